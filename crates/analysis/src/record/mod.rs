//! Records: declared once with [`record!`](crate::record!), visited field by field.
//!
//! One declaration gives the struct, its log's name, and for each field its type, unit, meaning and
//! privacy class. Every output format, the schema, the documentation and anonymisation read that
//! declaration; none of them knows a log by name.

mod anonymous;
mod connection;
mod declare;
mod membership;
mod order;
mod registry;
mod row;
mod sides;
mod value;

pub use anonymous::{Anonymous, RecordAnonymizer};
pub use connection::{Connection, Proto};
pub use membership::{Membership, Undecided};
pub use order::{Observer, Phase, SortKey};
pub use registry::Registry;
pub use row::{BegunRow, Columns, Fact, LastColumns, Row, RowEnd, WholeRow};
#[doc(hidden)]
pub use sides::is_same;
pub use value::{Elements, Interval, IntoValue, Port, Seconds, UnsetIfEmpty, Value};

use core::fmt;

/// A row of a log, borrowed for one visit.
pub trait Record {
    /// The log that the row belongs to, with its fields in column order.
    fn log(&self) -> &'static LogType;

    /// The transport protocol of the connection that it tells of, also where no column says it; `None` where only a
    /// column can, and where nothing does.
    #[inline]
    fn transport(&self) -> Option<Proto> {
        None
    }

    /// Tells `visitor` each field once, in column order.
    fn visit<V: Visitor>(&self, visitor: &mut V);
}

/// Whoever wants the values of a record: a writer, a test, a counter.
pub trait Visitor {
    /// The value of column `index` (from 0), which `info` describes.
    fn field(&mut self, index: usize, info: &'static FieldInfo, value: Value<'_>);
}

impl<V: Visitor + ?Sized> Visitor for &mut V {
    fn field(&mut self, index: usize, info: &'static FieldInfo, value: Value<'_>) {
        (**self).field(index, info, value);
    }
}

/// A log: a name and its columns.
#[derive(Debug)]
pub struct LogType {
    /// Name as in Zeek's `#path`, and the stem of the file's name.
    pub path: &'static str,
    /// What one row is.
    pub doc: &'static str,
    /// The columns in order.
    pub fields: &'static [FieldInfo],
}

/// A column of a log.
#[derive(Clone, Copy, Debug)]
pub struct FieldInfo {
    /// Name in the log, as `id.orig_h`.
    pub name: &'static str,
    /// Type as Zeek names it.
    pub zeek_type: ZeekType,
    /// What a number counts.
    pub unit: Unit,
    /// What the value would give away.
    pub privacy: Privacy,
    /// Who defined the column.
    pub origin: Origin,
    /// The words that can stand in the column, where they are a fixed list.
    pub words: &'static [Word],
    /// What the value means, in a sentence.
    pub doc: &'static str,
}

/// One of the words that can stand in a column.
#[derive(Debug)]
pub struct Word {
    /// The word as the logs have it.
    pub name: &'static str,
    /// What the column means, for the documentation.
    pub doc: &'static str,
}

/// The type of a column in Zeek's terms, as its `#types` line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeekType {
    /// One value, or a container of values.
    pub shape: Shape,
    /// The type of the value or of each element.
    pub scalar: Scalar,
}

/// Whether a column has one value or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A single value.
    One,
    /// `set[…]`: distinct values without order.
    Set,
    /// `vector[…]`: values in order.
    Vector,
}

/// A simple Zeek type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `bool`: `T` or `F`.
    Bool,
    /// `count`: unsigned, 64 bits.
    Count,
    /// `int`: signed, 64 bits.
    Int,
    /// `double`.
    Double,
    /// `time`: seconds since the Unix epoch.
    Time,
    /// `interval`: seconds.
    Interval,
    /// `addr`: an IPv4 or IPv6 address.
    Addr,
    /// `port`: a port number, or the type and code of ICMP.
    Port,
    /// `enum`: a word of a fixed list.
    Enum,
    /// `string`: bytes.
    String,
}

impl FieldInfo {
    /// Columns of two declarations, one behind the other.
    ///
    /// # Panics
    ///
    /// When they are not `N`. Declarations are evaluated at compile time, where it is an error.
    #[must_use]
    pub const fn chain<const N: usize>(own: &[Self], behind: &[Self]) -> [Self; N] {
        assert!(own.len() + behind.len() == N, "as many columns as both have");
        let mut all = [own[0]; N];
        let mut at = 0;
        while at < N {
            all[at] = if at < own.len() { own[at] } else { behind[at - own.len()] };
            at += 1;
        }
        all
    }
}

impl Scalar {
    /// Zeek's name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Count => "count",
            Self::Int => "int",
            Self::Double => "double",
            Self::Time => "time",
            Self::Interval => "interval",
            Self::Addr => "addr",
            Self::Port => "port",
            Self::Enum => "enum",
            Self::String => "string",
        }
    }
}

impl ZeekType {
    /// The type of a field whose Rust type is `T`.
    ///
    /// # Panics
    ///
    /// When a `T` would not print as that type. Declarations are evaluated at compile time, where
    /// it is an error.
    #[must_use]
    pub const fn of<T: IntoValue>(shape: Shape, scalar: Scalar) -> Self {
        assert!(
            T::LIST != matches!(shape, Shape::One),
            "a set or vector needs a Rust type with many values, and nothing else may have one"
        );
        let mut index = 0;
        while index < T::SCALARS.len() {
            if T::SCALARS[index] as u8 == scalar as u8 {
                return Self { shape, scalar };
            }
            index += 1;
        }
        panic!("the Rust type of this field does not print as its Zeek type");
    }
}

impl fmt::Display for ZeekType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.scalar.name();
        match self.shape {
            Shape::One => f.write_str(name),
            Shape::Set => write!(f, "set[{name}]"),
            Shape::Vector => write!(f, "vector[{name}]"),
        }
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The values are no quantity.
    None,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// TCP segments.
    Segments,
    /// Flows, in both directions.
    Flows,
    /// Routers that a packet passed.
    Hops,
    /// How often something happened.
    Times,
}

impl Unit {
    /// The unit's name; empty for [`Unit::None`].
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Packets => "packets",
            Self::Segments => "segments",
            Self::Flows => "flows",
            Self::Hops => "hops",
            Self::Times => "times",
        }
    }
}

/// What a value would give away about people, which anonymisation goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privacy {
    /// An IP or MAC address.
    Address,
    /// A value that is computed from addresses. Whoever computes it takes pseudonyms where the
    /// addresses are not to be told; writers leave it as it is.
    FromAddress,
    /// The name of a host, a service or a thing.
    Name,
    /// The name of a person or an account, or a secret of theirs.
    User,
    /// Text that people or programs wrote: anything may stand in it.
    FreeText,
    /// A hash of content, by which known content is recognised.
    ContentHash,
    /// A word of a protocol, as somebody sent it: nothing of the above where the registry has it, else
    /// [`Self::FreeText`].
    Word(Registry),
    /// Nothing of the above.
    Plain,
}

impl Privacy {
    /// The class of a field whose Rust type is `T`.
    ///
    /// # Panics
    ///
    /// When bytes that may be any would be plain. Declarations are evaluated at compile time, where it is an
    /// error.
    #[must_use]
    pub const fn of<T: IntoValue>(self) -> Self {
        assert!(
            !(T::AS_SENT && matches!(self, Self::Plain)),
            "what somebody sent is not plain: say of which registry it is, or of which other class"
        );
        self
    }

    /// The class of one text of a field.
    #[must_use]
    pub fn of_text(self, text: &[u8]) -> Self {
        match self {
            Self::Word(registry) if registry.has(text) => Self::Plain,
            Self::Word(_) => Self::FreeText,
            other => other,
        }
    }

    /// The class as the schema prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::FromAddress => "from address",
            Self::Name => "name",
            Self::User => "user",
            Self::FreeText => "free text",
            Self::ContentHash => "content hash",
            Self::Word(_) => "word",
            Self::Plain => "plain",
        }
    }
}

/// Who defined a column and its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Zeek's default scripts.
    Zeek,
    /// A policy script of Zeek that is not loaded by default.
    ZeekPolicy,
    /// No script of Zeek has the column.
    Netsniff,
}

impl Origin {
    /// The origin as the schema prints it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zeek => "Zeek",
            Self::ZeekPolicy => "Zeek policy",
            Self::Netsniff => "netsniff",
        }
    }
}
