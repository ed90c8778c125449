//! Text to words: the longest match wins, as in libpcap's scanner, so `80-90` is one word.

use core::net::Ipv6Addr;

use super::FilterError;
use super::names::{self, look_up};
use super::tree::{Operator, Protocol, Relation};

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    Protocol(Protocol),
    Keyword(Keyword),
    Relation(Relation),
    Operator(Operator),
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    Colon,
    Number(u32),
    /// Two to four decimal bytes with dots between them: an address or the front of one.
    Ipv4 {
        value: u32,
        bits: u32,
    },
    Ipv6(Ipv6Addr),
    Mac([u8; 6]),
    /// Anything else that looks like a name; after a backslash even a keyword is one.
    Name(&'a str),
    End,
}

/// A reserved word that is no protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    Source,
    Destination,
    Host,
    Net,
    Mask,
    Port,
    PortRange,
    Proto,
    Less,
    Greater,
    Byte,
    Broadcast,
    Multicast,
    Length,
    Inbound,
    Outbound,
    InterfaceIndex,
    Vlan,
    Mpls,
    PppoeDiscovery,
    PppoeSession,
    Llc,
    Rnr,
    Unsupported,
}

/// A word and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) word: Word<'a>,
    pub(super) start: usize,
    pub(super) end: usize,
}

const KEYWORDS: &[(&str, Keyword)] = &[
    ("and", Keyword::And),
    ("or", Keyword::Or),
    ("not", Keyword::Not),
    ("src", Keyword::Source),
    ("dst", Keyword::Destination),
    ("host", Keyword::Host),
    ("net", Keyword::Net),
    ("mask", Keyword::Mask),
    ("port", Keyword::Port),
    ("portrange", Keyword::PortRange),
    ("proto", Keyword::Proto),
    ("less", Keyword::Less),
    ("greater", Keyword::Greater),
    ("byte", Keyword::Byte),
    ("broadcast", Keyword::Broadcast),
    ("multicast", Keyword::Multicast),
    ("len", Keyword::Length),
    ("length", Keyword::Length),
    ("inbound", Keyword::Inbound),
    ("outbound", Keyword::Outbound),
    ("ifindex", Keyword::InterfaceIndex),
    ("vlan", Keyword::Vlan),
    ("mpls", Keyword::Mpls),
    ("pppoed", Keyword::PppoeDiscovery),
    ("pppoes", Keyword::PppoeSession),
    ("llc", Keyword::Llc),
    ("rnr", Keyword::Rnr),
];

const SYMBOLS: &[(&str, Word<'static>)] = &[
    ("&&", Word::Keyword(Keyword::And)),
    ("||", Word::Keyword(Keyword::Or)),
    (">=", Word::Relation(Relation::AtLeast)),
    ("<=", Word::Relation(Relation::AtMost)),
    ("!=", Word::Relation(Relation::NotEqual)),
    ("==", Word::Relation(Relation::Equal)),
    ("<<", Word::Operator(Operator::ShiftLeft)),
    (">>", Word::Operator(Operator::ShiftRight)),
    ("+", Word::Operator(Operator::Add)),
    ("-", Word::Operator(Operator::Subtract)),
    ("*", Word::Operator(Operator::Multiply)),
    ("/", Word::Operator(Operator::Divide)),
    ("%", Word::Operator(Operator::Modulo)),
    ("&", Word::Operator(Operator::And)),
    ("|", Word::Operator(Operator::Or)),
    ("^", Word::Operator(Operator::Xor)),
    ("!", Word::Keyword(Keyword::Not)),
    ("<", Word::Relation(Relation::Less)),
    (">", Word::Relation(Relation::Greater)),
    ("=", Word::Relation(Relation::Equal)),
    ("(", Word::OpenParenthesis),
    (")", Word::CloseParenthesis),
    ("[", Word::OpenBracket),
    ("]", Word::CloseBracket),
    (":", Word::Colon),
];

/// The words of `text`, with a [`Word::End`] after the last.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, FilterError> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(&byte) = text.as_bytes().get(start) {
        if matches!(byte, b' ' | b'\r' | b'\n' | b'\t') {
            start += 1;
            continue;
        }
        let (word, length) =
            word(&text[start..]).map_err(|sentence| FilterError::new(text, start, sentence))?;
        tokens.push(Token { word, start, end: start + length });
        start += length;
    }
    tokens.push(Token { word: Word::End, start: text.len(), end: text.len() });
    Ok(tokens)
}

/// The first word of a text that does not begin with a blank, and its length.
fn word(text: &str) -> Result<(Word<'_>, usize), String> {
    if let Some(name) = text.strip_prefix('\\') {
        let length = name.find([' ', '!', '(', ')', '\n', '\t']).unwrap_or(name.len());
        if length > 0 {
            return Ok((Word::Name(&name[..length]), length + 1));
        }
    }
    let name = name_length(text);
    let ipv6 = ipv6_prefix(text).filter(|found| found.1 > name);
    let mac = mac_prefix(text).filter(|found| found.1 >= name);
    match (mac, ipv6) {
        (Some((address, length)), None) => return Ok((Word::Mac(address), length)),
        (Some((address, length)), Some(other)) if length >= other.1 => {
            return Ok((Word::Mac(address), length));
        }
        (_, Some((address, length))) => return Ok((Word::Ipv6(address), length)),
        (None, None) => {}
    }
    if name == 0 {
        return SYMBOLS
            .iter()
            .find(|symbol| text.starts_with(symbol.0))
            .map(|symbol| (symbol.1, symbol.0.len()))
            .ok_or_else(|| match text.chars().next() {
                Some(c) => format!("unexpected character {c:?}"),
                None => "unexpected end".to_owned(),
            });
    }
    let name = &text[..name];
    Ok((number(name)?.unwrap_or_else(|| named(name)), name.len()))
}

/// A number or the front of an IPv4 address, where the whole of `name` is one.
fn number(name: &str) -> Result<Option<Word<'_>>, String> {
    let overflow = || format!("the number {name} does not fit 32 bits");
    if let Some(digits) = name.strip_prefix("0x").or_else(|| name.strip_prefix("0X"))
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return u32::from_str_radix(digits, 16)
            .map(|n| Some(Word::Number(n)))
            .map_err(|_| overflow());
    }
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        let octal = name.len() > 1 && name.starts_with('0');
        if octal && name.bytes().any(|byte| byte > b'7') {
            return Err(format!("the number {name} begins with 0 and is not octal"));
        }
        let radix = if octal { 8 } else { 10 };
        return u32::from_str_radix(name, radix)
            .map(|n| Some(Word::Number(n)))
            .map_err(|_| overflow());
    }
    let parts = name.split('.').count();
    if !(2..=4).contains(&parts)
        || !name.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    {
        return Ok(None);
    }
    let mut value = 0;
    let mut bits = 0;
    for part in name.split('.') {
        let Ok(byte) = part.parse::<u8>() else {
            return Err(format!("{name} is not an IPv4 address: {part} is above 255"));
        };
        value = value << 8 | u32::from(byte);
        bits += 8;
    }
    Ok(Some(Word::Ipv4 { value, bits }))
}

fn named(name: &str) -> Word<'_> {
    if let Some(protocol) = look_up(names::PROTOCOLS, name) {
        Word::Protocol(protocol)
    } else if let Some(keyword) = look_up(KEYWORDS, name) {
        Word::Keyword(keyword)
    } else if names::UNSUPPORTED.contains(&name) {
        Word::Keyword(Keyword::Unsupported)
    } else if let Some(number) = look_up(names::NUMBERS, name) {
        Word::Number(number)
    } else {
        Word::Name(name)
    }
}

/// Length of the letters, digits, dots, and inner hyphens and underscores that `text` begins with.
fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if !bytes.first().is_some_and(u8::is_ascii_alphanumeric) {
        return 0;
    }
    let run = bytes
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        .count();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    bytes[..run].iter().rposition(inner).map_or(0, |last| last + 1)
}

/// The longest IPv6 address that `text` begins with.
fn ipv6_prefix(text: &str) -> Option<(Ipv6Addr, usize)> {
    /// As long as an address with every digit and an IPv4 tail can be.
    const LONGEST: usize = 45;
    let run = text
        .bytes()
        .take(LONGEST)
        .take_while(|byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'))
        .count();
    text[..run].contains(':').then_some(())?;
    (2..=run).rev().find_map(|length| Some((text[..length].parse().ok()?, length)))
}

/// The longest MAC address that `text` begins with: `1:2:3:4:5:6`, the same with `-` or `.`,
/// `0102.0304.0506` or `010203040506`.
fn mac_prefix(text: &str) -> Option<([u8; 6], usize)> {
    let separated = [b':', b'-', b'.'].into_iter().find_map(|mark| mac_groups(text, mark));
    let bytes = text.as_bytes();
    let hex = |from: usize, to: usize| -> Option<u64> {
        let digits = bytes.get(from..to)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
        u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
    };
    let address = |value: u64| {
        let [_, _, address @ ..] = value.to_be_bytes();
        address
    };
    let dotted = || {
        (bytes.get(4) == Some(&b'.') && bytes.get(9) == Some(&b'.')).then_some(())?;
        Some((address(hex(0, 4)? << 32 | hex(5, 9)? << 16 | hex(10, 14)?), 14))
    };
    separated.or_else(dotted).or_else(|| Some((address(hex(0, 12)?), 12)))
}

/// Six groups of one or two hexadecimal digits with `mark` between them.
fn mac_groups(text: &str, mark: u8) -> Option<([u8; 6], usize)> {
    let bytes = text.as_bytes();
    let mut address = [0; 6];
    let mut at = 0;
    for (number, byte) in address.iter_mut().enumerate() {
        if number > 0 {
            (bytes.get(at) == Some(&mark)).then_some(())?;
            at += 1;
        }
        let digits = bytes[at.min(bytes.len())..]
            .iter()
            .take(2)
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        *byte = u8::from_str_radix(text.get(at..at + digits)?, 16).ok()?;
        at += digits;
    }
    Some((address, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word<'_>> {
        let mut words: Vec<_> = tokens(text).unwrap().into_iter().map(|token| token.word).collect();
        assert_eq!(words.pop(), Some(Word::End));
        words
    }

    #[test]
    fn the_longest_word_wins() {
        assert_eq!(words("80-90"), [Word::Name("80-90")]);
        assert_eq!(words("1.2.3.4.5"), [Word::Name("1.2.3.4.5")]);
        assert_eq!(words("10.1"), [Word::Ipv4 { value: 0x0a01, bits: 16 }]);
        assert_eq!(words("1:2:3:4:5:6"), [Word::Mac([1, 2, 3, 4, 5, 6])]);
        assert_eq!(words("1:2:3:4:5:6:7:8").len(), 1);
        assert_eq!(words("aa-bb-cc-dd-ee-ff"), words("aabbccddeeff"));
        assert_eq!(words("aabb.ccdd.eeff"), words("aa.bb.cc.dd.ee.ff"));
        assert_eq!(words("::1"), [Word::Ipv6(Ipv6Addr::LOCALHOST)]);
        assert_eq!(words("fe80::").len(), 1);
        assert_eq!(words("icmp-echo"), [Word::Number(8)]);
        assert_eq!(words("\\tcp"), [Word::Name("tcp")]);
        assert_eq!(words("0x10 010"), [Word::Number(16), Word::Number(8)]);
    }

    #[test]
    fn accessors_are_not_addresses() {
        assert_eq!(words("ether[0:4]").len(), 6);
        assert_eq!(words("ip6[6:2]=1").len(), 8);
        assert_eq!(words("len-20"), [Word::Name("len-20")]);
        assert_eq!(words("tcp[12:1]&0xf0>>2").len(), 10);
    }

    #[test]
    fn what_is_no_word_is_an_error_in_its_place() {
        let error = |text| tokens(text).unwrap_err().to_string();
        assert_eq!(error("tcp ; udp"), "unexpected character ';' at column 5");
        assert_eq!(error("tcp é"), "unexpected character 'é' at column 5");
        assert_eq!(
            error("len > 4294967296"),
            "the number 4294967296 does not fit 32 bits at column 7"
        );
        assert_eq!(error("port 089"), "the number 089 begins with 0 and is not octal at column 6");
        assert_eq!(
            error("host 1.2.3.256"),
            "1.2.3.256 is not an IPv4 address: 256 is above 255 at column 6"
        );
    }
}
