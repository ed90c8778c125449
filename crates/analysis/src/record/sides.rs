//! Records with columns that both sides of a connection have.

/// Declares a record type as [`record!`](crate::record!) does, whose last columns are those of two sides.
///
/// The columns of each side are listed, since each has a name and a meaning of its own; they are one struct, and the same
/// code renders them. A row of `tcp` has 95 columns: code of its own for each would not stay in the processor's cache
/// from one row to the next.
///
/// ```
/// netsniff_analysis::sides_record! {
///     /// One row for each game.
///     pub struct Game => "game" {
///         /// When it began.
///         ts: netsniff_packet::Timestamp => "ts", time, Seconds, Plain, Netsniff;
///         sides Team
///         home {
///             /// Goals of the hosts.
///             goals: Option<u32> => "home_goals", count, Times, Plain, Netsniff;
///         }
///         away {
///             /// Goals of the guests.
///             goals: Option<u32> => "away_goals", count, Times, Plain, Netsniff;
///         }
///     }
/// }
/// let names: Vec<&str> = Game::LOG.fields.iter().map(|field| field.name).collect();
/// assert_eq!(names, ["ts", "home_goals", "away_goals"]);
/// ```
///
/// Sides with different columns do not compile:
///
/// ```compile_fail
/// netsniff_analysis::sides_record! {
///     /// One row for each game.
///     pub struct Game => "game" {
///         /// When it began.
///         ts: netsniff_packet::Timestamp => "ts", time, Seconds, Plain, Netsniff;
///         sides Team
///         home {
///             /// Goals of the hosts.
///             goals: Option<u32> => "home_goals", count, Times, Plain, Netsniff;
///         }
///         away {
///             /// Goals of the guests.
///             goals: Option<u64> => "away_goals", count, Times, Plain, Netsniff;
///         }
///     }
/// }
/// ```
#[macro_export]
macro_rules! sides_record {
    (
        $(#[doc = $log_doc:literal])+
        $(#[transport($transport:ident)])?
        $vis:vis struct $name:ident => $path:literal {
            $(
                $(#[doc = $head_doc:literal])+
                $head:ident: $head_rust:ty => $head_name:literal,
                    $head_zeek:ident $([$head_element:ident])?, $head_unit:ident,
                    $head_privacy:ident $(($head_registry:ident))?, $head_origin:ident;
            )+
            sides $side:ident
            $first:ident { $(
                $(#[doc = $first_doc:literal])+
                $field:ident: $rust:ty => $first_name:literal,
                    $zeek:ident $([$element:ident])?, $unit:ident, $privacy:ident $(($registry:ident))?, $origin:ident;
            )+ }
            $second:ident { $(
                $(#[doc = $second_doc:literal])+
                $second_field:ident: $second_rust:ty => $second_name:literal,
                    $second_zeek:ident $([$second_element:ident])?, $second_unit:ident,
                    $second_privacy:ident $(($second_registry:ident))?, $second_origin:ident;
            )+ }
        }
    ) => {
        $(#[doc = $log_doc])+
        #[derive(Clone, Debug)]
        $vis struct $name {
            $(
                $(#[doc = $head_doc])+
                $vis $head: $head_rust,
            )+
            #[doc = concat!("What `", stringify!($first), "` did.")]
            $vis $first: $side,
            #[doc = concat!("What `", stringify!($second), "` did.")]
            $vis $second: $side,
        }

        #[doc = concat!("The columns that each side has in [`", stringify!($name), "`].")]
        #[derive(Clone, Debug, Default)]
        $vis struct $side {
            $(
                $(#[doc = $first_doc])+
                $vis $field: $rust,
            )+
        }

        impl $name {
            /// The log, with its columns.
            $vis const LOG: &'static $crate::record::LogType = {
                const _: () = assert!(
                    $crate::record::is_same(
                        stringify!($($field: $rust;)+),
                        stringify!($($second_field: $second_rust;)+),
                    ),
                    "both sides have the same columns in the same order",
                );
                static LOG: $crate::record::LogType = $crate::record::LogType {
                    path: $path,
                    doc: concat!($($log_doc),+).trim_ascii(),
                    fields: &[
                        $($crate::field_info!(
                            $($head_doc)+, $head_rust, $head_name, $head_zeek $([$head_element])?, $head_unit,
                            $head_privacy $(($head_registry))?, $head_origin
                        ),)+
                        $($crate::field_info!(
                            $($first_doc)+, $rust, $first_name, $zeek $([$element])?, $unit,
                            $privacy $(($registry))?, $origin
                        ),)+
                        $($crate::field_info!(
                            $($second_doc)+, $second_rust, $second_name, $second_zeek $([$second_element])?,
                            $second_unit, $second_privacy $(($second_registry))?, $second_origin
                        ),)+
                    ],
                };
                &LOG
            };
        }

        impl $side {
            /// Visits its columns, the first of which is column `at` of the row.
            #[inline(never)]
            fn visit<V: $crate::record::Visitor>(&self, at: usize, visitor: &mut V) {
                const COUNT: usize = [$(stringify!($field)),+].len();
                let infos = $name::LOG.fields.get(at..).and_then(|infos| infos.first_chunk::<COUNT>());
                let Some(infos) = infos else { return };
                let mut fields = infos.iter().enumerate();
                $(
                    if let Some((index, info)) = fields.next() {
                        let value = $crate::record::IntoValue::value(&self.$field);
                        visitor.field(at + index, info, value);
                    }
                )+
            }
        }

        impl $crate::record::Record for $name {
            #[inline]
            fn log(&self) -> &'static $crate::record::LogType {
                Self::LOG
            }

            $(
                #[inline]
                fn transport(&self) -> Option<$crate::record::Proto> {
                    Some($crate::record::Proto::$transport)
                }
            )?

            #[inline]
            fn visit<V: $crate::record::Visitor>(&self, visitor: &mut V) {
                const HEADS: usize = [$(stringify!($head)),+].len();
                const COUNT: usize = [$(stringify!($field)),+].len();
                let mut fields = Self::LOG.fields.iter().enumerate();
                $(
                    if let Some((index, info)) = fields.next() {
                        let value = $crate::record::IntoValue::value(&self.$head);
                        visitor.field(index, info, value);
                    }
                )+
                self.$first.visit(HEADS, visitor);
                self.$second.visit(HEADS + COUNT, visitor);
            }
        }
    };
}

/// Whether two declarations are the same, at compile time.
#[doc(hidden)]
#[must_use]
pub const fn is_same(first: &str, second: &str) -> bool {
    let (first, second) = (first.as_bytes(), second.as_bytes());
    let mut at = 0;
    while at < first.len() && at < second.len() && first[at] == second[at] {
        at += 1;
    }
    at == first.len() && at == second.len()
}
