//! The macros that declare records and the words of their enum fields.

/// Declares a record type and its log.
///
/// ```
/// use netsniff_analysis::Record;
/// use netsniff_packet::{Address, Timestamp};
///
/// netsniff_analysis::record! {
///     /// One row for each host that was seen.
///     pub struct Host<'a> => "host" {
///         /// Time of the host's first packet.
///         ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
///         /// The host's address.
///         address: Address => "address", addr, None, Address, Netsniff;
///         /// Names that were resolved to it.
///         names: &'a [&'a str] => "names", set[string], None, Name, Netsniff;
///     }
/// }
/// assert_eq!(Host::LOG.path, "host");
/// assert_eq!(Host::LOG.fields[2].zeek_type.to_string(), "set[string]");
/// ```
///
/// In a struct without a lifetime a line `connection Netsniff;` stands for the columns `uid` and `id` of the row's
/// connection, which is told as the row is rendered; `connection Netsniff, function;` names the function that sets
/// the fields which follow from it. `joined Columns;` at the end stands for columns that a join adds
/// ([`columns!`](crate::columns!)).
///
/// `#[transport(Tcp)]` before a struct says that all its rows tell of connections of TCP.
///
/// A field is `rust_name: RustType => "log.name", zeek type, Unit, Privacy, Origin;` with its
/// meaning as a doc comment; nothing has a default. A field without a privacy class does not
/// compile:
///
/// ```compile_fail
/// netsniff_analysis::record! {
///     /// One row for each host that was seen.
///     pub struct Host => "host" {
///         /// Time of the host's first packet.
///         ts: netsniff_packet::Timestamp => "ts", time, Seconds, Netsniff;
///     }
/// }
/// ```
///
/// Nor does one whose Rust type does not print as its Zeek type:
///
/// ```compile_fail
/// netsniff_analysis::record! {
///     /// One row for each host that was seen.
///     pub struct Host => "host" {
///         /// Time of the host's first packet.
///         ts: netsniff_packet::Timestamp => "ts", count, Seconds, Plain, Netsniff;
///     }
/// }
/// ```
///
/// Nor do bytes that somebody sent, as if they were plain; `Word(HttpMethod)` would be a class for them:
///
/// ```compile_fail
/// netsniff_analysis::record! {
///     /// One row for each host that was seen.
///     pub struct Host<'a> => "host" {
///         /// What it asked for.
///         method: &'a [u8] => "method", string, None, Plain, Netsniff;
///     }
/// }
/// ```
#[macro_export]
macro_rules! record {
    // A row of a connection, in which `connection` stands for the columns of that.
    (
        $(#[doc = $log_doc:literal])+
        $(#[derive($($derive:ident),+)])?
        $vis:vis struct $name:ident => $path:literal {
            $(
                $(#[doc = $head_doc:literal])+
                $head:ident: $head_rust:ty => $head_name:literal,
                    $head_zeek:ident $([$head_element:ident])?, $head_unit:ident,
                    $head_privacy:ident $(($head_registry:ident))?, $head_origin:ident;
            )+
            connection $origin:ident $(, $complete:path)?;
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $rust:ty => $log_name:literal,
                    $zeek:ident $([$element:ident])?, $unit:ident, $privacy:ident $(($registry:ident))?,
                    $field_origin:ident;
            )*
            $(joined $joined:ty;)?
        }
    ) => {
        $(#[doc = $log_doc])+
        #[derive(Clone, Debug $(, $($derive),+)?)]
        $vis struct $name {
            $(
                $(#[doc = $head_doc])+
                $vis $head: $head_rust,
            )+
            $(
                $(#[doc = $doc])+
                $vis $field: $rust,
            )*
        }

        impl $name {
            /// The log, with its columns.
            $vis const LOG: &'static $crate::record::LogType = {
                static LOG: $crate::record::LogType = $crate::record::LogType {
                path: $path,
                doc: concat!($($log_doc),+).trim_ascii(),
                fields: {
                    const CONNECTION: [$crate::record::FieldInfo; $crate::record::Connection::COLUMNS] =
                        $crate::record::Connection::fields($crate::record::Origin::$origin);
                    const OWN: &[$crate::record::FieldInfo] = &[
                        $($crate::field_info!(
                            $($head_doc)+, $head_rust, $head_name, $head_zeek $([$head_element])?, $head_unit,
                            $head_privacy $(($head_registry))?, $head_origin
                        ),)+
                        CONNECTION[0], CONNECTION[1], CONNECTION[2], CONNECTION[3], CONNECTION[4],
                        $($crate::field_info!(
                            $($doc)+, $rust, $log_name, $zeek $([$element])?, $unit,
                            $privacy $(($registry))?, $field_origin
                        ),)*
                    ];
                    $crate::with_joined!(OWN $(, $joined)?)
                },
                };
                &LOG
            };
        }

        impl $crate::record::Row for $name {
            fn log(&self) -> &'static $crate::record::LogType {
                Self::LOG
            }

            $(
                fn complete(&mut self, connection: &$crate::record::Connection) {
                    $complete(self, connection);
                }
            )?

            fn visit(
                &self,
                connection: &$crate::record::Connection,
                visitor: &mut dyn $crate::record::Visitor,
            ) {
                let mut fields = Self::LOG.fields.iter().enumerate();
                $(
                    if let Some((index, info)) = fields.next() {
                        visitor.field(index, info, $crate::record::IntoValue::value(&self.$head));
                    }
                )+
                connection.visit(&mut fields, visitor);
                $(
                    if let Some((index, info)) = fields.next() {
                        visitor.field(index, info, $crate::record::IntoValue::value(&self.$field));
                    }
                )*
            }

            $(
                fn joined(&self) -> usize {
                    <$joined>::FIELDS.len()
                }
            )?
        }
    };
    // A row that sessions and joins hand over, of no single connection.
    (
        $(#[doc = $log_doc:literal])+
        $(#[transport($transport:ident)])?
        $vis:vis struct $name:ident => $path:literal { $($fields:tt)+ }
    ) => {
        $crate::record!(
            @plain [] $(#[doc = $log_doc])+ $(#[transport($transport)])? $vis struct $name => $path { $($fields)+ }
        );

        impl $crate::record::Row for $name {
            fn log(&self) -> &'static $crate::record::LogType {
                Self::LOG
            }

            fn visit(
                &self,
                _: &$crate::record::Connection,
                mut visitor: &mut dyn $crate::record::Visitor,
            ) {
                $crate::record::Record::visit(self, &mut visitor);
            }
        }
    };
    // One that borrows what it tells.
    (
        $(#[doc = $log_doc:literal])+
        $vis:vis struct $name:ident <$life:lifetime> => $path:literal { $($fields:tt)+ }
    ) => {
        $crate::record!(@plain [$life] $(#[doc = $log_doc])+ $vis struct $name <$life> => $path { $($fields)+ });
    };
    (
        @plain $generics:tt
        $(#[doc = $log_doc:literal])+
        $(#[transport($transport:ident)])?
        $vis:vis struct $name:ident $(<$life:lifetime>)? => $path:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $rust:ty => $log_name:literal,
                    $zeek:ident $([$element:ident])?, $unit:ident, $privacy:ident $(($registry:ident))?, $origin:ident;
            )+
        }
    ) => {
        $(#[doc = $log_doc])+
        #[derive(Clone, Debug)]
        $vis struct $name $(<$life>)? {
            $(
                $(#[doc = $doc])+
                $vis $field: $rust,
            )+
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// The log, with its columns.
            $vis const LOG: &'static $crate::record::LogType = {
                static LOG: $crate::record::LogType = $crate::record::LogType {
                    path: $path,
                    doc: concat!($($log_doc),+).trim_ascii(),
                    fields: &[$({
                        $crate::field_type!($generics $rust);
                        $crate::field_info!(
                            $($doc)+, Field, $log_name, $zeek $([$element])?, $unit,
                            $privacy $(($registry))?, $origin
                        )
                    },)+],
                };
                &LOG
            };
        }

        impl $(<$life>)? $crate::record::Record for $name $(<$life>)? {
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
                let mut fields = Self::LOG.fields.iter().enumerate();
                $(
                    if let Some((index, info)) = fields.next() {
                        let value = $crate::record::IntoValue::value(&self.$field);
                        visitor.field(index, info, value);
                    }
                )+
            }
        }
    };
}

/// Declares columns that a join adds to the rows of several logs.
///
/// ```
/// netsniff_analysis::columns! {
///     /// Where it stands.
///     pub struct Place {
///         /// Number of the room.
///         room: Option<u64> => "room", count, None, Plain, Netsniff;
///     }
/// }
/// netsniff_analysis::record! {
///     /// One row for each host that was seen.
///     pub struct Host => "host" {
///         /// Time of the host's first packet.
///         ts: netsniff_packet::Timestamp => "ts", time, Seconds, Plain, Netsniff;
///         connection Netsniff;
///         joined Place;
///     }
/// }
/// let names: Vec<&str> = Host::LOG.fields.iter().map(|field| field.name).collect();
/// assert_eq!(names, ["ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "room"]);
/// ```
#[macro_export]
macro_rules! columns {
    (
        $(#[doc = $struct_doc:literal])+
        $(#[derive($($derive:ident),+)])?
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $rust:ty => $log_name:literal,
                    $zeek:ident $([$element:ident])?, $unit:ident, $privacy:ident $(($registry:ident))?, $origin:ident;
            )+
        }
    ) => {
        $(#[doc = $struct_doc])+
        #[derive(Clone, Debug $(, $($derive),+)?)]
        $vis struct $name {
            $(
                $(#[doc = $doc])+
                $vis $field: $rust,
            )+
        }

        impl $name {
            /// Name, type, unit and origin of each column.
            $vis const FIELDS: &'static [$crate::record::FieldInfo] = &[$($crate::field_info!(
                $($doc)+, $rust, $log_name, $zeek $([$element])?, $unit, $privacy $(($registry))?, $origin
            ),)+];
        }

        impl $crate::record::Columns for $name {
            fn visit(&self, first: usize, visitor: &mut dyn $crate::record::Visitor) {
                let mut fields = Self::FIELDS.iter().enumerate();
                $(
                    if let Some((index, info)) = fields.next() {
                        let value = $crate::record::IntoValue::value(&self.$field);
                        visitor.field(first + index, info, value);
                    }
                )+
            }
        }
    };
}

/// The columns of a row, with those that a join adds.
#[doc(hidden)]
#[macro_export]
macro_rules! with_joined {
    ($own:ident) => {
        $own
    };
    ($own:ident, $joined:ty) => {
        const {
            &$crate::record::FieldInfo::chain::<{ $own.len() + <$joined>::FIELDS.len() }>(
                $own,
                <$joined>::FIELDS,
            )
        }
    };
}

/// A name for the type of a field that may borrow, for where no lifetime can be named.
#[doc(hidden)]
#[macro_export]
macro_rules! field_type {
    ([] $rust:ty) => {
        type Field = $rust;
    };
    ([$life:lifetime] $rust:ty) => {
        type Field<$life> = $rust;
    };
}

/// What a declaration says of one field.
#[doc(hidden)]
#[macro_export]
macro_rules! field_info {
    (
        $($doc:literal)+, $rust:ty, $log_name:literal, $zeek:ident $([$element:ident])?, $unit:ident,
        $privacy:ident $(($registry:ident))?, $origin:ident
    ) => {
        $crate::record::FieldInfo {
            name: $log_name,
            zeek_type: $crate::zeek_type!($rust, $zeek $([$element])?),
            unit: $crate::record::Unit::$unit,
            privacy: const {
                let class = $crate::record::Privacy::$privacy $(($crate::record::Registry::$registry))?;
                class.of::<$rust>()
            },
            origin: $crate::record::Origin::$origin,
            words: <$rust as $crate::record::IntoValue>::WORDS,
            doc: concat!($($doc),+).trim_ascii(),
        }
    };
}

/// The Zeek type of a field in Zeek's words, checked against the field's Rust type.
#[doc(hidden)]
#[macro_export]
macro_rules! zeek_type {
    ($rust:ty, set[$element:ident]) => {
        $crate::zeek_type!(@checked $rust, Set, $crate::zeek_type!(@scalar $element))
    };
    ($rust:ty, vector[$element:ident]) => {
        $crate::zeek_type!(@checked $rust, Vector, $crate::zeek_type!(@scalar $element))
    };
    ($rust:ty, $scalar:ident) => {
        $crate::zeek_type!(@checked $rust, One, $crate::zeek_type!(@scalar $scalar))
    };
    (@checked $rust:ty, $shape:ident, $scalar:expr) => {
        const {
            $crate::record::ZeekType::of::<$rust>($crate::record::Shape::$shape, $scalar)
        }
    };
    (@scalar bool) => { $crate::record::Scalar::Bool };
    (@scalar count) => { $crate::record::Scalar::Count };
    (@scalar int) => { $crate::record::Scalar::Int };
    (@scalar double) => { $crate::record::Scalar::Double };
    (@scalar time) => { $crate::record::Scalar::Time };
    (@scalar interval) => { $crate::record::Scalar::Interval };
    (@scalar addr) => { $crate::record::Scalar::Addr };
    (@scalar port) => { $crate::record::Scalar::Port };
    (@scalar enum) => { $crate::record::Scalar::Enum };
    (@scalar string) => { $crate::record::Scalar::String };
}

/// Declares an enum whose variants print as fixed words.
///
/// ```
/// netsniff_analysis::words! {
///     /// How the lamp is.
///     pub enum Lamp {
///         /// It shines.
///         On => "on",
///         /// It is dark.
///         Off => "off",
///     }
/// }
/// assert_eq!(Lamp::On.name(), "on");
/// assert_eq!(Lamp::ALL.len(), 2);
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])+
        $vis:vis enum $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $variant:ident => $word:literal,
            )+
        }
    ) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $(
                $(#[doc = $doc])+
                $variant,
            )+
        }

        impl $name {
            /// Every variant, in the order of declaration.
            #[allow(dead_code, reason = "not all words are walked")]
            $vis const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stands in the logs.
            #[must_use]
            #[inline]
            $vis const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::record::IntoValue for $name {
            const SCALARS: &'static [$crate::record::Scalar] =
                &[$crate::record::Scalar::Enum, $crate::record::Scalar::String];
            const WORDS: &'static [$crate::record::Word] = &[$(
                $crate::record::Word { name: $word, doc: concat!($($doc),+).trim_ascii() },
            )+];

            #[inline(always)]
            fn value(&self) -> $crate::record::Value<'_> {
                $crate::record::Value::Word(self.name().as_bytes())
            }
        }
    };
}
