//! Values as a visitor sees them, and the Rust types that fields may have.

use std::borrow::Cow;
use std::sync::Arc;

use netsniff_packet::{Address, Timestamp};

use super::{Scalar, Word};
use crate::key::community_id::CommunityId;
use crate::key::uid::Uid;

/// The value of one field, borrowed from its record.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// The input does not show it.
    Unset,
    /// True or false.
    Bool(bool),
    /// An unsigned number.
    Count(u64),
    /// A signed number.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A point in time.
    Time(Timestamp),
    /// A point in time in whole seconds.
    Seconds(Seconds),
    /// A span of time.
    Interval(Interval),
    /// An IP address.
    Addr(Address),
    /// A port of TCP or UDP.
    Port(u16),
    /// Letters, digits and punctuation of ASCII that no format needs to escape: no control
    /// characters, spaces, commas, quotes or backslashes, neither empty nor `-`.
    Word(&'a [u8]),
    /// Text; formats escape what they must.
    Str(&'a str),
    /// Bytes off the wire, mostly text in an unknown encoding; formats escape what they must.
    Bytes(&'a [u8]),
    /// The values of a set or vector.
    List(&'a dyn Elements),
}

/// The elements of a set or vector.
pub trait Elements {
    /// How many there are.
    fn count(&self) -> usize;
    /// The element at `index`, and [`Value::Unset`] past the end.
    fn element(&self, index: usize) -> Value<'_>;
}

/// A Rust type that a field of a record may have.
pub trait IntoValue {
    /// The Zeek types that the declaration of such a field may name.
    const SCALARS: &'static [Scalar];
    /// Whether the field is a set or vector of them.
    const LIST: bool = false;
    /// The words that the field can have, where they are a fixed list.
    const WORDS: &'static [Word] = &[];
    /// Whether it holds bytes as somebody sent them, which may be any.
    const AS_SENT: bool = false;
    /// The value, without copying.
    fn value(&self) -> Value<'_>;
}

/// A span of time in nanoseconds, negative where a clock went back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval(i64);

impl Interval {
    /// An interval of so many nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// The time from `start` to `end`.
    #[must_use]
    pub const fn between(start: Timestamp, end: Timestamp) -> Self {
        Self(end.nanos_since(start))
    }

    /// The time from `start` to `end`, of which whole microseconds are told: Zeek reads files in
    /// microseconds, so what begins and ends within the same one takes no time.
    #[must_use]
    pub const fn in_micros(start: Timestamp, end: Timestamp) -> Self {
        let end = end.nanos().div_euclid(1000);
        Self(end.saturating_sub(start.nanos().div_euclid(1000)).saturating_mul(1000))
    }

    /// The length of the interval in nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        self.0
    }
}

/// Whole seconds since 1970-01-01 00:00:00 UTC: points in time that no packet has, up to the year 9999.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub i64);

/// A port of TCP, UDP or SCTP, or for ICMP what Zeek puts in its place: the type (originator) and
/// the type of the answer or the code (responder).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

macro_rules! into_value {
    ($($rust:ty => $($scalar:ident)|+ $(as $as_sent:literal)?, $self:ident => $value:expr;)+) => {$(
        impl IntoValue for $rust {
            const SCALARS: &'static [Scalar] = &[$(Scalar::$scalar),+];
            $(const AS_SENT: bool = $as_sent;)?

            #[inline(always)]
            fn value(&$self) -> Value<'_> {
                $value
            }
        }
    )+};
}

into_value! {
    bool => Bool, self => Value::Bool(*self);
    u8 => Count, self => Value::Count(u64::from(*self));
    u16 => Count, self => Value::Count(u64::from(*self));
    u32 => Count, self => Value::Count(u64::from(*self));
    u64 => Count, self => Value::Count(*self);
    i32 => Int, self => Value::Int(i64::from(*self));
    i64 => Int, self => Value::Int(*self);
    f64 => Double, self => Value::Double(*self);
    Timestamp => Time, self => Value::Time(*self);
    Seconds => Time, self => Value::Seconds(*self);
    Interval => Interval, self => Value::Interval(*self);
    Address => Addr, self => Value::Addr(*self);
    Port => Port, self => Value::Port(self.0);
    Uid => String, self => Value::Word(self.as_bytes());
    CommunityId => String, self => Value::Word(self.as_bytes());
    &str => String | Enum, self => Value::Str(self);
    String => String | Enum, self => Value::Str(self);
    Box<str> => String | Enum, self => Value::Str(self);
    Cow<'static, str> => String | Enum, self => Value::Str(self);
    Arc<str> => String | Enum, self => Value::Str(self);
    &[u8] => String as true, self => Value::Bytes(self);
    Box<[u8]> => String as true, self => Value::Bytes(self);
}

impl<T: IntoValue> IntoValue for Option<T> {
    const SCALARS: &'static [Scalar] = T::SCALARS;
    const LIST: bool = T::LIST;
    const WORDS: &'static [Word] = T::WORDS;
    const AS_SENT: bool = T::AS_SENT;

    #[inline(always)]
    fn value(&self) -> Value<'_> {
        match self {
            Some(value) => value.value(),
            None => Value::Unset,
        }
    }
}

/// A set or vector is a list of values, whatever holds these.
macro_rules! lists {
    ($($list:ty),+) => {$(
        impl<T: ListElement> IntoValue for $list {
            const SCALARS: &'static [Scalar] = T::SCALARS;
            const LIST: bool = true;
            const WORDS: &'static [Word] = T::WORDS;
            const AS_SENT: bool = T::AS_SENT;

            #[inline(always)]
            fn value(&self) -> Value<'_> {
                Value::List(self)
            }
        }

        impl<T: ListElement> Elements for $list {
            fn count(&self) -> usize {
                self.len()
            }

            fn element(&self, index: usize) -> Value<'_> {
                self.get(index).map_or(Value::Unset, T::value)
            }
        }
    )+};
}

lists!(&[T], Vec<T>);

/// The values of a set or vector that is not set where it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsetIfEmpty<T>(pub Vec<T>);

impl<T> Default for UnsetIfEmpty<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: ListElement> IntoValue for UnsetIfEmpty<T> {
    const SCALARS: &'static [Scalar] = Vec::<T>::SCALARS;
    const LIST: bool = Vec::<T>::LIST;
    const WORDS: &'static [Word] = Vec::<T>::WORDS;
    const AS_SENT: bool = Vec::<T>::AS_SENT;

    #[inline(always)]
    fn value(&self) -> Value<'_> {
        if self.0.is_empty() { Value::Unset } else { self.0.value() }
    }
}

/// A type that sets and vectors may hold; `u8` is not one, so that bytes stay a string.
pub trait ListElement: IntoValue {}

macro_rules! list_elements {
    ($($rust:ty)+) => {$( impl ListElement for $rust {} )+};
}

list_elements!(bool u16 u32 u64 i64 f64 Timestamp Interval Address Port Uid &str String Arc<str> &[u8] Box<[u8]>);
