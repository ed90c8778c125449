//! One test of a column.

use core::cmp::Ordering;
use std::net::IpAddr;

use netsniff_analysis::record::{FieldInfo, Scalar, Value};
use netsniff_console::calendar::moment;
use netsniff_packet::Address;

use super::number::{Number, ONE};
use super::words::Token;

/// A test of the value of a column.
#[derive(Clone, Debug)]
pub(super) struct Test {
    /// Place of the column in its log.
    pub(super) column: usize,
    pub(super) kind: Kind,
}

/// What is asked of a value.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Whether it is not set.
    IsNull,
    /// How it stands to another one.
    Compare(Comparison, Literal),
    /// Whether it is one of these, or an address in one of these networks.
    In(Vec<Literal>),
    /// Whether a text is like this pattern: `%` stands for any characters, `_` for one.
    Like(Vec<u8>),
}

/// How a value stands to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value that a column is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Bool(bool),
    Number(Number),
    Text(Vec<u8>),
    /// An address, and how many of its first bits count.
    Net(Address, u8),
}

impl Comparison {
    pub(super) fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// Whether it asks which of two is greater.
    pub(super) const fn orders(self) -> bool {
        !matches!(self, Self::Equal | Self::NotEqual)
    }

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl Test {
    /// Whether it holds; `None` where the value is not set. Of several values one is enough, and none may be the one that
    /// `!=` names.
    pub(super) fn holds(&self, value: &Value<'_>) -> Option<bool> {
        if let Kind::IsNull = self.kind {
            return Some(matches!(value, Value::Unset));
        }
        match value {
            Value::Unset => None,
            Value::List(list) => {
                let mut elements = (0..list.count()).map(|at| self.of_one(&list.element(at)));
                let is_not = matches!(self.kind, Kind::Compare(Comparison::NotEqual, _));
                Some(if is_not { elements.all(|it| it) } else { elements.any(|it| it) })
            }
            one => Some(self.of_one(one)),
        }
    }

    fn of_one(&self, value: &Value<'_>) -> bool {
        match &self.kind {
            Kind::IsNull => matches!(value, Value::Unset),
            Kind::Compare(comparison, literal) => {
                literal.compare(value).is_some_and(|ordering| comparison.holds(ordering))
            }
            Kind::In(literals) => {
                literals.iter().any(|it| it.compare(value) == Some(Ordering::Equal))
            }
            Kind::Like(pattern) => text_of(value).is_some_and(|text| is_like(text, pattern)),
        }
    }
}

impl Literal {
    /// What a word means for a column.
    pub(super) fn of(token: &Token, info: &FieldInfo) -> Result<Self, String> {
        let scalar = info.zeek_type.scalar;
        let wrong = |what: &str| Err(format!("{} is compared with {what}", info.name));
        match (scalar, token) {
            (Scalar::Bool, Token::Name(word)) => match word.to_ascii_lowercase().as_str() {
                "true" | "t" => Ok(Self::Bool(true)),
                "false" | "f" => Ok(Self::Bool(false)),
                _ => wrong("true or false"),
            },
            (Scalar::Bool, _) => wrong("true or false"),
            (Scalar::Addr, Token::Text(text)) => net(text).map_or_else(
                || wrong("an address or network between quotes, as '10.0.0.0/8'"),
                |(address, bits)| Ok(Self::Net(address, bits)),
            ),
            (Scalar::Addr, _) => wrong("an address or network between quotes, as '10.0.0.0/8'"),
            (Scalar::Time, Token::Text(text)) => {
                moment(text).map(|time| Self::Number(Number::of_nanos(time.nanos())))
            }
            (Scalar::Time, Token::Number(text)) => Number::parse(text).map_or_else(
                || wrong("seconds since 1970, or a time between quotes, as '2026-11-28T17:30:00Z'"),
                |number| Ok(Self::Number(number)),
            ),
            (Scalar::Time, _) => {
                wrong("seconds since 1970, or a time between quotes, as '2026-11-28T17:30:00Z'")
            }
            (Scalar::Enum | Scalar::String, Token::Text(text)) => word(text, info),
            (Scalar::Enum | Scalar::String, _) => wrong("a text between quotes"),
            (_, Token::Number(text)) => Number::parse(text).map_or_else(
                || wrong("a number, as 1.5 or 1e6"),
                |number| Ok(Self::Number(number)),
            ),
            _ => wrong("a number, as 1.5 or 1e6"),
        }
    }

    /// How a value stands to it; `None` where they cannot be compared. Whatever is in a network is equal to it.
    fn compare(&self, value: &Value<'_>) -> Option<Ordering> {
        match (self, value) {
            (Self::Bool(own), Value::Bool(other)) => Some(other.cmp(own)),
            (Self::Number(own), value) => Some(number_of(value)?.cmp(own)),
            (Self::Net(net, bits), Value::Addr(address)) => {
                Some(masked(*address, *bits).cmp(&masked(*net, *bits)))
            }
            (Self::Text(own), value) => Some(text_of(value)?.cmp(own)),
            _ => None,
        }
    }
}

/// A text, which must be a word of the column where that has a list of them.
fn word(text: &str, info: &FieldInfo) -> Result<Literal, String> {
    let known = info.words;
    if known.is_empty() || known.iter().any(|it| it.name == text) {
        return Ok(Literal::Text(text.as_bytes().to_vec()));
    }
    let names: Vec<_> = known.iter().map(|it| it.name).collect();
    Err(format!("{} is never '{text}'; it is one of {}", info.name, names.join(", ")))
}

/// An address, or a network with the number of bits that count of IPv6's 128.
fn net(text: &str) -> Option<(Address, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let (most, around) = if address.is_ipv4() { (32, 96) } else { (128, 0) };
    let bits = bits.unwrap_or(most);
    (bits <= most).then(|| (Address::from(address), bits + around))
}

/// The first bits of an address.
fn masked(address: Address, bits: u8) -> u128 {
    let [high, low] = address.words();
    let all = u128::from(high) << 64 | u128::from(low);
    all.checked_shr(128 - u32::from(bits)).unwrap_or(0)
}

fn number_of(value: &Value<'_>) -> Option<Number> {
    Some(match value {
        Value::Count(count) => Number::of_count(*count),
        Value::Int(int) => Number::of_int(*int),
        Value::Port(port) => Number::of_int(i64::from(*port)),
        Value::Double(double) => Number::of_double(*double)?,
        Value::Time(time) => Number::of_nanos(time.nanos()),
        Value::Seconds(seconds) => Number(i128::from(seconds.0) * ONE),
        Value::Interval(interval) => Number::of_nanos(interval.nanos()),
        _ => return None,
    })
}

const fn text_of<'v>(value: &Value<'v>) -> Option<&'v [u8]> {
    match value {
        Value::Word(bytes) | Value::Bytes(bytes) => Some(bytes),
        Value::Str(text) => Some(text.as_bytes()),
        _ => None,
    }
}

/// Whether a text is like a pattern. It goes back only to the last `%`, so that no pattern takes long.
fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut retry = None;
    while let Some(byte) = text.get(at) {
        match pattern.get(of) {
            Some(b'%') => {
                of += 1;
                retry = Some((at, of));
            }
            Some(wanted) if *wanted == b'_' || wanted == byte => (at, of) = (at + 1, of + 1),
            _ => {
                let Some((from, behind)) = retry else { return false };
                (at, of) = (from + 1, behind);
                retry = Some((from + 1, behind));
            }
        }
    }
    pattern.get(of..).unwrap_or_default().iter().all(|byte| *byte == b'%')
}
