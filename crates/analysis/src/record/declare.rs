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
    (
        $(#[doc = $log_doc:literal])+
        pub struct $name:ident $(<$life:lifetime>)? => $path:literal {
            $(
                $(#[doc = $doc:literal])+
                $field:ident: $rust:ty => $log_name:literal,
                    $zeek:ident $([$element:ident])?, $unit:ident, $privacy:ident $(($registry:ident))?, $origin:ident;
            )+
        }
    ) => {
        $(#[doc = $log_doc])+
        #[derive(Clone, Debug)]
        pub struct $name $(<$life>)? {
            $(
                $(#[doc = $doc])+
                pub $field: $rust,
            )+
        }

        impl $(<$life>)? $crate::record::Record for $name $(<$life>)? {
            const LOG: &'static $crate::record::LogType = &$crate::record::LogType {
                path: $path,
                doc: concat!($($log_doc),+).trim_ascii(),
                fields: &[$(
                    $crate::record::FieldInfo {
                        name: $log_name,
                        zeek_type: $crate::zeek_type!($rust, $zeek $([$element])?),
                        unit: $crate::record::Unit::$unit,
                        privacy: const {
                            let class = $crate::record::Privacy::$privacy
                                $(($crate::record::Registry::$registry))?;
                            class.of::<$rust>()
                        },
                        origin: $crate::record::Origin::$origin,
                        words: <$rust as $crate::record::IntoValue>::WORDS,
                        doc: concat!($($doc),+).trim_ascii(),
                    },
                )+],
            };

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
        pub enum $name:ident {
            $(
                $(#[doc = $doc:literal])+
                $variant:ident => $word:literal,
            )+
        }
    ) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(
                $(#[doc = $doc])+
                $variant,
            )+
        }

        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stands in the logs.
            #[must_use]
            #[inline]
            pub const fn name(self) -> &'static str {
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
