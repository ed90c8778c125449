//! Words with blanks between, layer by layer: one line a record (`docs/text-format.md`).

use std::io;

use netsniff_analysis::record::{
    Elements, FieldInfo, LogType, Proto, Record, Scalar, Value, Visitor,
};
use netsniff_console::printable::{Piece, each_piece};
use netsniff_packet::{Address, Timestamp};

use super::digits;
use super::json;
use super::{LogEncoder, RowFormat, RowStyle, StreamLayout};

/// Lines that tell a record as its packets are made: the network's part, the transport's, and the log's own.
///
/// Each word is a column and each column a word, so that what reads words needs to know no escapes. Files begin with lines
/// as Zeek's do, which name the columns.
pub(super) struct Text;

/// What stands for a value that is not set.
const UNSET: &[u8] = b"-";
/// What stands for an empty string.
const EMPTY: &[u8] = b"(empty)";
/// What stands for a set or vector without elements.
const NO_ELEMENTS: &[u8] = b"()";
/// What stands for one whose only element is not set.
const ONE_UNSET: &[u8] = b"(-)";

/// The columns that this format adds: the version of the Internet Protocol, and the name of the log.
const VERSION: &str = "_ip";
const PATH: &str = "_path";

impl RowFormat for Text {
    const EXTENSION: &'static str = "txt";

    fn columns<R: Record>(_: RowStyle, record: &R, out: &mut Vec<u8>) {
        let log = record.log();
        let mut words = Words {
            out,
            log,
            layout: Layout::of(log),
            transport: record.transport(),
            ports: [None; 2],
            is_transport_told: false,
        };
        record.visit(&mut words);
    }

    fn end_row(_: &'static LogType, _: usize, out: &mut Vec<u8>) {
        out.push(b'\n');
    }

    fn encoder(log: &'static LogType) -> Box<dyn LogEncoder> {
        Box::new(Lines { log })
    }

    const STREAM: Option<StreamLayout> = Some(StreamLayout {
        begin: |log, out| {
            line(out, "#path", [log.path]);
            line(out, "#fields", columns(log).map(|(name, _)| name));
        },
        row: |_, row, out| out.extend_from_slice(row),
    });
}

/// Which columns of a log are those of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// None: behind the first column comes what the log tells.
    Own,
    /// Addresses and ports.
    Connection,
    /// Addresses, ports, and the transport protocol.
    ConnectionAndTransport,
}

impl Layout {
    fn of(log: &LogType) -> Self {
        let has = |part| log.fields.iter().any(|field| Part::of(field) == part);
        match (has(Part::Responder), has(Part::Transport)) {
            (false, _) => Self::Own,
            (true, false) => Self::Connection,
            (true, true) => Self::ConnectionAndTransport,
        }
    }
}

/// What a column is in a log that tells of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Originator,
    OriginatorPort,
    Responder,
    ResponderPort,
    Transport,
    Other,
}

impl Part {
    #[inline(always)]
    fn of(field: &FieldInfo) -> Self {
        match field.name {
            "id.orig_h" => Self::Originator,
            "id.orig_p" => Self::OriginatorPort,
            "id.resp_h" => Self::Responder,
            "id.resp_p" => Self::ResponderPort,
            "proto" => Self::Transport,
            _ => Self::Other,
        }
    }
}

/// The columns of a log as the lines have them, with their types.
fn columns(log: &'static LogType) -> impl Iterator<Item = (&'static str, String)> {
    let layout = Layout::of(log);
    let own = |field: &'static FieldInfo| (field.name, field.zeek_type.to_string());
    let added = |name: &'static str, scalar: Scalar| (name, scalar.name().to_owned());
    let path = move || added(PATH, Scalar::String);
    let port = move |part| log.fields.iter().filter(move |field| Part::of(field) == part).map(own);
    log.fields.iter().enumerate().flat_map(move |(index, field)| match (layout, Part::of(field)) {
        (Layout::Own, _) if index == 0 => vec![own(field), path()],
        (Layout::Own, _) | (_, Part::Other | Part::Responder) => vec![own(field)],
        (_, Part::Originator) => vec![added(VERSION, Scalar::String), own(field)],
        (_, Part::OriginatorPort | Part::Transport) => Vec::new(),
        (_, Part::ResponderPort) => {
            let ports = port(Part::OriginatorPort).chain([own(field), path()]);
            [added("proto", Scalar::Enum)].into_iter().chain(ports).collect()
        }
    })
}

/// Rows between lines as those that a file of Zeek begins and ends with.
#[derive(Debug)]
struct Lines {
    log: &'static LogType,
}

impl LogEncoder for Lines {
    fn header(&mut self, opened: Timestamp, out: &mut Vec<u8>) {
        let mut date = Vec::new();
        digits::date(&mut date, opened);
        let opened = String::from_utf8_lossy(&date);
        for (name, word) in [
            ("#separator", "\\x20"),
            ("#set_separator", ","),
            ("#empty_field", "(empty)"),
            ("#unset_field", "-"),
            ("#path", self.log.path),
            ("#open", &*opened),
            ("#format", "netsniff-text-1 a format of netsniff, not of Zeek"),
        ] {
            line(out, name, [word]);
        }
        let (names, types): (Vec<_>, Vec<_>) = columns(self.log).unzip();
        line(out, "#fields", names);
        line(out, "#types", types);
    }

    #[inline]
    fn row(&mut self, row: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(row);
    }

    fn footer(&mut self, closed: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(b"#close ");
        digits::date(out, closed);
        out.push(b'\n');
        Ok(())
    }
}

/// Appends a line that is no row.
fn line(out: &mut Vec<u8>, name: &str, words: impl IntoIterator<Item: AsRef<str>>) {
    out.extend_from_slice(name.as_bytes());
    for word in words {
        out.push(b' ');
        out.extend_from_slice(word.as_ref().as_bytes());
    }
    out.push(b'\n');
}

/// Appends the values of one record, or of its begin or end, layer by layer.
struct Words<'a> {
    out: &'a mut Vec<u8>,
    log: &'static LogType,
    layout: Layout,
    transport: Option<Proto>,
    /// Those that came before the address and the protocol which they stand behind.
    ports: [Option<u16>; 2],
    is_transport_told: bool,
}

impl Visitor for Words<'_> {
    fn field(&mut self, index: usize, info: &'static FieldInfo, value: Value<'_>) {
        let part = if self.layout == Layout::Own { Part::Other } else { Part::of(info) };
        match part {
            Part::Other | Part::Responder => self.word(index, value),
            Part::Originator => {
                self.version(&value);
                self.word(index, value);
            }
            Part::OriginatorPort => self.ports[0] = port(&value),
            Part::ResponderPort => {
                self.ports[1] = port(&value);
                match self.transport {
                    Some(transport) => self.transport(transport.name().as_bytes()),
                    None if self.layout == Layout::Connection => self.transport(UNSET),
                    None => {}
                }
            }
            Part::Transport if self.is_transport_told => {}
            Part::Transport => match value {
                Value::Word(word) => self.transport(word),
                _ => self.transport(UNSET),
            },
        }
        if self.layout == Layout::Own && index == 0 {
            self.bytes(self.log.path.as_bytes());
        }
    }
}

/// A port that is set.
const fn port(value: &Value<'_>) -> Option<u16> {
    match value {
        Value::Port(port) => Some(*port),
        _ => None,
    }
}

impl Words<'_> {
    /// Appends a column.
    fn word(&mut self, index: usize, value: Value<'_>) {
        if index > 0 {
            self.out.push(b' ');
        }
        let start = self.out.len();
        match value {
            Value::List(elements) => list(self.out, elements),
            value => scalar(self.out, value, Place::Alone),
        }
        if index == 0 && self.out.get(start) == Some(&b'#') {
            // It would look like a line that is no row.
            self.out.splice(start..=start, *b"\\x23");
        }
    }

    /// Appends a column that is plain.
    fn bytes(&mut self, bytes: &[u8]) {
        self.out.push(b' ');
        self.out.extend_from_slice(bytes);
    }

    /// Appends which version of the Internet Protocol an address is of.
    fn version(&mut self, value: &Value<'_>) {
        self.bytes(match value {
            Value::Addr(address) if is_v4(*address) => b"ipv4",
            Value::Addr(_) => b"ipv6",
            _ => UNSET,
        });
    }

    /// Appends the transport's part, and the name of the log, which the log's own part begins with.
    fn transport(&mut self, name: &[u8]) {
        self.is_transport_told = true;
        self.bytes(name);
        for port in self.ports {
            self.out.push(b' ');
            match port {
                Some(port) => digits::integer(self.out, port),
                None => self.out.extend_from_slice(UNSET),
            }
        }
        self.bytes(self.log.path.as_bytes());
    }
}

fn is_v4(address: Address) -> bool {
    address.to_ip().is_ipv4()
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Alone,
    /// Among others, with commas between.
    InList,
}

/// Appends one value.
fn scalar(out: &mut Vec<u8>, value: Value<'_>, place: Place) {
    match value {
        Value::Unset | Value::List(_) => out.extend_from_slice(UNSET),
        Value::Bool(value) => out.push(if value { b'T' } else { b'F' }),
        Value::Count(value) => digits::integer(out, value),
        Value::Int(value) => digits::integer(out, value),
        Value::Double(value) => double(out, value),
        Value::Time(value) => digits::exact_seconds(out, value.nanos()),
        Value::Seconds(value) => digits::seconds(out, digits::whole_micros(value)),
        Value::Interval(value) => digits::exact_seconds(out, value.nanos()),
        Value::Addr(value) => digits::address(out, value),
        Value::Port(value) => digits::integer(out, value),
        Value::Word(value) => out.extend_from_slice(value),
        Value::Str(value) => string(out, value.as_bytes(), place),
        Value::Bytes(value) => string(out, value, place),
    }
}

/// Appends the values of a set or vector with commas between.
fn list(out: &mut Vec<u8>, elements: &dyn Elements) {
    match elements.count() {
        0 => return out.extend_from_slice(NO_ELEMENTS),
        1 if matches!(elements.element(0), Value::Unset) => {
            return out.extend_from_slice(ONE_UNSET);
        }
        _ => {}
    }
    for index in 0..elements.count() {
        if index > 0 {
            out.push(b',');
        }
        scalar(out, elements.element(index), Place::InList);
    }
}

/// Appends the shortest number that reads back as `value`.
fn double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        out.extend_from_slice(b"nan");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    } else {
        json::number(out, value);
    }
}

/// Appends text as one word that reads as nothing of the format's own.
fn string(out: &mut Vec<u8>, bytes: &[u8], place: Place) {
    if bytes.is_empty() {
        return out.extend_from_slice(EMPTY);
    }
    if let Some((&first, rest)) = bytes.split_first()
        && [UNSET, EMPTY, NO_ELEMENTS, ONE_UNSET].contains(&bytes)
    {
        digits::escaped_byte(out, first);
        return out.extend_from_slice(rest);
    }
    let is_plain = |byte| {
        matches!(byte, b'!'..=b'~') & (byte != b'\\') & (place == Place::Alone || byte != b',')
    };
    if bytes.iter().fold(true, |all, byte| all & is_plain(*byte)) {
        return out.extend_from_slice(bytes);
    }
    escaped(out, bytes, place);
}

/// Appends text with escapes: backslashes doubled; every kind of blank, commas of a list, active signs, and what is beyond
/// ASCII in what is not UTF-8, as `\xNN`.
#[cold]
fn escaped(out: &mut Vec<u8>, bytes: &[u8], place: Place) {
    each_piece(bytes, |piece| match piece {
        Piece::Active(bytes) => bytes.iter().for_each(|&byte| digits::escaped_byte(out, byte)),
        Piece::Text(text) => {
            for sign in text.chars() {
                let mut buffer = [0; 4];
                let bytes = sign.encode_utf8(&mut buffer).as_bytes();
                match sign {
                    '\\' => out.extend_from_slice(b"\\\\"),
                    ',' if place == Place::InList => digits::escaped_byte(out, b','),
                    sign if sign.is_whitespace() => {
                        bytes.iter().for_each(|&byte| digits::escaped_byte(out, byte));
                    }
                    _ => out.extend_from_slice(bytes),
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::rows::LOGS;

    use super::*;

    fn text(value: Value<'_>) -> String {
        let mut out = Vec::new();
        match value {
            Value::List(elements) => list(&mut out, elements),
            value => scalar(&mut out, value, Place::Alone),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_text_is_one_word() {
        for (bytes, expected) in [
            (&b"efedejfpeeepeneb\x05jeocacacacacabm"[..], r"efedejfpeeepeneb\x05jeocacacacacabm"),
            (b"_sip._udp.sip.cyber\xf2ity.dk", r"_sip._udp.sip.cyber\xf2ity.dk"),
            (b"1.0.0.127.in-addr.arp\\", r"1.0.0.127.in-addr.arp\\"),
            (b"O=VeriSign\\, Inc.", r"O=VeriSign\\,\x20Inc."),
            ("ynet חדשות".as_bytes(), r"ynet\x20חדשות"),
            (b" ", r"\x20"),
            (b"a\tb\nc", r"a\x09b\x0ac"),
            ("a\u{a0}b\u{3000}c".as_bytes(), r"a\xc2\xa0b\xe3\x80\x80c"),
            ("\u{9b}31m\u{202e}a\u{2028}b".as_bytes(), r"\xc2\x9b31m\xe2\x80\xaea\xe2\x80\xa8b"),
            (
                b"ends with half a letter \xe2\x82",
                r"ends\x20with\x20half\x20a\x20letter\x20\xe2\x82",
            ),
            (b"", "(empty)"),
            (b"-", r"\x2d"),
            (b"--", "--"),
            (b"(empty)", r"\x28empty)"),
            (b"()", r"\x28)"),
            (b"(-)", r"\x28-)"),
        ] {
            assert_eq!(text(Value::Bytes(bytes)), expected);
            assert_eq!(expected.split_whitespace().count(), 1);
        }
    }

    /// A set whose elements may not be told.
    struct Unsets(usize);

    impl Elements for Unsets {
        fn count(&self) -> usize {
            self.0
        }

        fn element(&self, _: usize) -> Value<'_> {
            Value::Unset
        }
    }

    #[test]
    fn lists_are_told_from_what_they_are_not() {
        let list = ["a,b", "", "-", "plain", "two words"].as_slice();
        assert_eq!(text(Value::List(&list)), r"a\x2cb,(empty),\x2d,plain,two\x20words");
        let none: &[&str] = &[];
        let one_empty = [""].as_slice();
        let told = [
            text(Value::List(&none)),
            text(Value::List(&one_empty)),
            text(Value::List(&Unsets(1))),
            text(Value::List(&Unsets(2))),
            text(Value::Unset),
            text(Value::Str("")),
        ];
        assert_eq!(told, ["()", "(empty)", "(-)", "-,-", "-", "(empty)"]);
    }

    #[test]
    fn numbers_are_not_rounded() {
        for (value, expected) in [
            (0.163_820_028_305_053_7, "0.1638200283050537"),
            (3.0, "3.0"),
            (1.5e-7, "1.5e-7"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(text(Value::Double(value)), expected);
        }
        let time = Timestamp::from_nanos(1_767_225_600_000_123_456);
        assert_eq!(text(Value::Time(time)), "1767225600.000123456");
    }

    #[test]
    fn columns_of_a_connection_come_layer_by_layer_and_no_log_has_one_twice() {
        let mut layouts = Vec::new();
        for log in LOGS.iter().copied() {
            let names: Vec<_> = columns(log).map(|(name, _)| name).collect();
            let mut sorted = names.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), names.len(), "{}", log.path);
            for field in log.fields {
                assert!(names.contains(&field.name), "{}: {}", log.path, field.name);
            }
            let added = names.len() - log.fields.len();
            let layers = names.join(" ");
            let layout = Layout::of(log);
            let expected = match layout {
                Layout::Own => 1,
                Layout::Connection => 3,
                Layout::ConnectionAndTransport => 2,
            };
            assert_eq!(added, expected, "{}: {layers}", log.path);
            let part = " _ip id.orig_h id.resp_h proto id.orig_p id.resp_p _path";
            assert_eq!(layers.contains(part), layout != Layout::Own, "{}: {layers}", log.path);
            layouts.push(layout);
        }
        for layout in [Layout::Own, Layout::Connection, Layout::ConnectionAndTransport] {
            assert!(layouts.contains(&layout), "{layout:?}");
        }
    }
}
