//! What a value of a rule is compared with: a pattern, a network or a number, as its modifiers say.

use std::net::IpAddr;

use netsniff_analysis::record::Value;
use regex::bytes::{Regex, RegexBuilder};
use rsigma_parser::{Modifier, SigmaString, SigmaValue, SpecialChar, StringPart};

use super::encodings;

/// Bytes that a compiled expression may take.
const MOST_BYTES: usize = 1 << 20;

/// Modifiers that say nothing which a row could answer, or that this does not do.
const REFUSED: [(Modifier, &str); 8] = [
    (Modifier::Expand, "expand"),
    (Modifier::FieldRef, "fieldref"),
    (Modifier::Minute, "minute"),
    (Modifier::Hour, "hour"),
    (Modifier::Day, "day"),
    (Modifier::Week, "week"),
    (Modifier::Month, "month"),
    (Modifier::Year, "year"),
];

/// One thing that a value may be.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// The column is not set.
    Unset,
    /// The column is set.
    Set,
    /// The text of the value.
    Text(Regex),
    /// An address in a network: its first bits, and how many.
    Network(IpAddr, u32),
    /// A number.
    Number(Comparison, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Pattern {
    /// The patterns of a value of a rule, of which one must hold.
    pub(super) fn of(value: &SigmaValue, modifiers: &[Modifier]) -> Result<Vec<Self>, String> {
        let has = |modifier| modifiers.contains(&modifier);
        if let Some((_, name)) = REFUSED.into_iter().find(|(modifier, _)| has(*modifier)) {
            return Err(format!("the modifier {name} is not known here"));
        }
        if has(Modifier::Exists) {
            return match value {
                SigmaValue::Bool(true) => Ok(vec![Self::Set]),
                SigmaValue::Bool(false) => Ok(vec![Self::Unset]),
                _ => Err("exists wants true or false".to_owned()),
            };
        }
        if let Some(comparison) = comparison(modifiers) {
            let number = number(value).ok_or_else(|| format!("{value} is no number"))?;
            return Ok(vec![Self::Number(comparison, number)]);
        }
        match value {
            SigmaValue::Null => Ok(vec![Self::Unset]),
            SigmaValue::Integer(_) | SigmaValue::Float(_) if modifiers.is_empty() => {
                // Columns of text may have a number, too.
                let text = SigmaString::from_raw(&value.to_string());
                let equal = Self::Number(Comparison::Equal, number(value).unwrap_or_default());
                Ok(vec![equal, text_of(&text, modifiers)?])
            }
            SigmaValue::String(text) if has(Modifier::Cidr) => {
                network(&text.original).map(|it| vec![it])
            }
            SigmaValue::String(text) if has(Modifier::Re) => {
                expression(&text.original, modifiers).map(|it| vec![it])
            }
            SigmaValue::String(text) => {
                let texts = encodings::encoded(text, modifiers)?;
                texts.iter().map(|text| text_of(text, modifiers)).collect()
            }
            _ => text_of(&SigmaString::from_raw(&value.to_string()), modifiers).map(|it| vec![it]),
        }
    }

    /// The pattern of a word that may stand in any column.
    pub(super) fn keyword(value: &SigmaValue) -> Result<Self, String> {
        match value {
            SigmaValue::String(text) => text_of(text, &[Modifier::Contains]),
            _ => text_of(&SigmaString::from_raw(&value.to_string()), &[Modifier::Contains]),
        }
    }

    /// Whether it holds for a value that is set.
    pub(super) fn holds(&self, value: &Value<'_>) -> bool {
        match (self, value) {
            (_, Value::Unset) | (Self::Unset, _) => false,
            (Self::Set, _) => true,
            // One of a list is enough.
            (_, Value::List(list)) => (0..list.count()).any(|at| self.holds(&list.element(at))),
            (Self::Text(regex), value) => is_match(regex, value),
            (Self::Network(network, len), value) => {
                address(value).is_some_and(|address| is_within(*network, *len, address))
            }
            (Self::Number(comparison, wanted), value) => {
                number_of(value).is_some_and(|number| comparison.holds(number, *wanted))
            }
        }
    }
}

impl Comparison {
    fn holds(self, number: f64, wanted: f64) -> bool {
        match self {
            Self::Equal => number == wanted,
            Self::NotEqual => number != wanted,
            Self::Greater => number > wanted,
            Self::GreaterOrEqual => number >= wanted,
            Self::Less => number < wanted,
            Self::LessOrEqual => number <= wanted,
        }
    }
}

fn comparison(modifiers: &[Modifier]) -> Option<Comparison> {
    modifiers.iter().find_map(|modifier| match modifier {
        Modifier::Neq => Some(Comparison::NotEqual),
        Modifier::Gt => Some(Comparison::Greater),
        Modifier::Gte => Some(Comparison::GreaterOrEqual),
        Modifier::Lt => Some(Comparison::Less),
        Modifier::Lte => Some(Comparison::LessOrEqual),
        _ => None,
    })
}

fn number(value: &SigmaValue) -> Option<f64> {
    match value {
        SigmaValue::Integer(number) => Some(*number as f64),
        SigmaValue::Float(number) => Some(*number),
        SigmaValue::String(text) => text.original.trim().parse().ok(),
        _ => None,
    }
}

/// A value that is a number, a port, a time or a span of time; these in seconds.
fn number_of(value: &Value<'_>) -> Option<f64> {
    match *value {
        Value::Count(number) => Some(number as f64),
        Value::Int(number) => Some(number as f64),
        Value::Double(number) => Some(number),
        Value::Port(port) => Some(f64::from(port)),
        Value::Time(time) => Some(time.nanos() as f64 / 1e9),
        Value::Seconds(seconds) => Some(seconds.0 as f64),
        Value::Interval(span) => Some(span.nanos() as f64 / 1e9),
        _ => None,
    }
}

/// Whether the text of a value matches, as JSON has it.
fn is_match(regex: &Regex, value: &Value<'_>) -> bool {
    match value {
        Value::Word(bytes) | Value::Bytes(bytes) => regex.is_match(bytes),
        Value::Str(text) => regex.is_match(text.as_bytes()),
        Value::Bool(value) => {
            let words: [&[u8]; 2] = if *value { [b"true", b"T"] } else { [b"false", b"F"] };
            words.into_iter().any(|word| regex.is_match(word))
        }
        Value::Count(number) => regex.is_match(number.to_string().as_bytes()),
        Value::Int(number) => regex.is_match(number.to_string().as_bytes()),
        Value::Port(port) => regex.is_match(port.to_string().as_bytes()),
        Value::Addr(address) => regex.is_match(address.to_ip().to_string().as_bytes()),
        _ => false,
    }
}

/// Whether an address is in a network, of which no address of the other version of IP is one.
fn is_within(network: IpAddr, len: u32, address: IpAddr) -> bool {
    let same = |network: u128, address: u128, width: u32| {
        // To shift by all bits is no shift.
        len == 0 || network >> (width - len) == address >> (width - len)
    };
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            same(network.to_bits().into(), address.to_bits().into(), 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            same(network.to_bits(), address.to_bits(), 128)
        }
        _ => false,
    }
}

fn address(value: &Value<'_>) -> Option<IpAddr> {
    match value {
        Value::Addr(address) => Some(address.to_ip()),
        Value::Word(bytes) | Value::Bytes(bytes) => core::str::from_utf8(bytes).ok()?.parse().ok(),
        Value::Str(text) => text.parse().ok(),
        _ => None,
    }
}

/// A network as `192.0.2.0/24`, or a single address.
fn network(text: &str) -> Result<Pattern, String> {
    let wrong = || format!("{text:?} is no network, as 192.0.2.0/24");
    let (address, len) = text.split_once('/').map_or((text, None), |(it, len)| (it, Some(len)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let len = len.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
    if len > width {
        return Err(wrong());
    }
    Ok(Pattern::Network(address, len))
}

fn regex(expression: &str, build: impl FnOnce(&mut RegexBuilder)) -> Result<Pattern, String> {
    let mut builder = RegexBuilder::new(expression);
    build(builder.size_limit(MOST_BYTES).dfa_size_limit(MOST_BYTES));
    builder.build().map(Pattern::Text).map_err(|error| {
        let said = error.to_string();
        format!("its expression cannot be used: {}", said.lines().last().unwrap_or_default())
    })
}

/// An expression, which may match anywhere and tells upper from lower case unless a flag says otherwise.
fn expression(text: &str, modifiers: &[Modifier]) -> Result<Pattern, String> {
    let has = |modifier| modifiers.contains(&modifier);
    regex(text, |builder| {
        builder
            .case_insensitive(has(Modifier::IgnoreCase))
            .multi_line(has(Modifier::Multiline))
            .dot_matches_new_line(has(Modifier::DotAll));
    })
}

/// A text with wildcards, which is the whole value unless a modifier says otherwise, in upper or lower case.
fn text_of(text: &SigmaString, modifiers: &[Modifier]) -> Result<Pattern, String> {
    let has = |modifier| modifiers.contains(&modifier);
    let contains = has(Modifier::Contains);
    let mut expression = String::new();
    if !contains && !has(Modifier::EndsWith) {
        expression.push_str(r"\A");
    }
    for part in &text.parts {
        match part {
            StringPart::Plain(text) => expression.push_str(&regex::escape(text)),
            StringPart::Special(SpecialChar::WildcardMulti) => expression.push_str("(?s-u:.)*"),
            // A character, or a byte that is none.
            StringPart::Special(SpecialChar::WildcardSingle) => {
                expression.push_str("(?:(?s:.)|(?s-u:.))");
            }
        }
    }
    if !contains && !has(Modifier::StartsWith) {
        expression.push_str(r"\z");
    }
    regex(&expression, |builder| {
        builder.case_insensitive(!has(Modifier::Cased));
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_packet::Address;

    fn is(value: &str, modifiers: &[Modifier], text: &[u8]) -> bool {
        let value = SigmaValue::String(SigmaString::new(value));
        let patterns = Pattern::of(&value, modifiers).unwrap();
        patterns.iter().any(|pattern| pattern.holds(&Value::Bytes(text)))
    }

    #[test]
    fn texts_match_as_sigma_has_it() {
        assert!(is("Mozilla", &[], b"mozilla") && !is("Mozilla", &[], b"mozilla/5"));
        assert!(!is("Mozilla", &[Modifier::Cased], b"mozilla"));
        assert!(
            is("a*d", &[], b"a\xffbc\nd")
                && is("a?c", &[], b"a\xffc")
                && is("a?c", &[], "aäc".as_bytes())
        );
        assert!(is(r"a\*", &[], b"a*") && !is(r"a\*", &[], b"ab"));
        assert!(is("b*c?e", &[Modifier::Contains], b"abxcxcdef"), "it tries every place");
        assert!(
            is(".exe", &[Modifier::EndsWith], b"x.EXE")
                && !is(".exe", &[Modifier::EndsWith], b"xexe")
        );
        assert!(
            is("x", &[Modifier::StartsWith], b"xy") && !is("y", &[Modifier::StartsWith], b"xy")
        );
        assert!(is("^a.c$", &[Modifier::Re], b"abc") && !is("^a.c$", &[Modifier::Re], b"ABC"));
        assert!(is("^a.c$", &[Modifier::Re, Modifier::IgnoreCase], b"ABC"));
        assert!(is("foo", &[Modifier::Base64Offset, Modifier::Contains], b"xxhmb28="));
        assert!(is("-a", &[Modifier::WindAsh, Modifier::Contains], b"cmd /a"));
    }

    #[test]
    fn networks_and_numbers_are_compared_as_such() {
        let holds = |value: SigmaValue, modifiers: &[Modifier], of: Value<'_>| {
            Pattern::of(&value, modifiers).unwrap().iter().any(|pattern| pattern.holds(&of))
        };
        let text = |text: &str| SigmaValue::String(SigmaString::new(text));
        let addr = |text: &str| Value::Addr(Address::from(text.parse::<IpAddr>().unwrap()));
        let cidr = [Modifier::Cidr];
        assert!(holds(text("10.0.0.0/8"), &cidr, addr("10.9.8.7")));
        assert!(!holds(text("10.0.0.0/8"), &cidr, addr("11.9.8.7")));
        assert!(
            !holds(text("::/8"), &cidr, addr("10.0.0.1"))
                && holds(text("0.0.0.0/0"), &cidr, addr("10.0.0.1"))
        );
        assert!(!holds(text("0.0.0.0/0"), &cidr, addr("2001:db8::1")));
        assert!(holds(text("fe80::/10"), &cidr, addr("fe80::1")));
        assert!(
            holds(text("443"), &[], Value::Port(443))
                && holds(SigmaValue::Integer(443), &[], Value::Port(443))
        );
        assert!(holds(SigmaValue::Integer(100), &[Modifier::Gt], Value::Count(101)));
        assert!(!holds(SigmaValue::Integer(100), &[Modifier::Gt], Value::Count(100)));
        assert!(
            holds(text("true"), &[], Value::Bool(true))
                && !holds(text("true"), &[], Value::Bool(false))
        );
        assert!(!holds(SigmaValue::Null, &[], Value::Count(0)));
    }

    #[test]
    fn what_cannot_be_done_is_refused() {
        let refused = |value: &str, modifier| {
            Pattern::of(&SigmaValue::String(SigmaString::new(value)), &[modifier]).unwrap_err()
        };
        assert!(refused("x", Modifier::Expand).contains("expand"));
        assert!(refused("10.0.0.0/33", Modifier::Cidr).contains("is no network"));
        assert!(refused("(a{1000}){1000}", Modifier::Re).contains("cannot be used"));
        assert!(refused("(", Modifier::Re).contains("cannot be used"));
        assert!(refused("x", Modifier::Gt).contains("is no number"));
        assert!(refused("x", Modifier::Wide).contains("base64"));
    }
}
