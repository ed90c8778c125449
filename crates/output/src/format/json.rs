//! One JSON object on each line, as Zeek's JSON writer prints it.

use std::io::Write as _;

use netsniff_analysis::record::{Elements, FieldInfo, LogType, Record, Value, Visitor};
use netsniff_console::printable::{Piece, each_piece};
use netsniff_packet::Timestamp;

use super::digits;
use super::line::Line;
use super::style::{Extension, RowStyle, TimeForm};
use super::{LogEncoder, RowFormat, StreamLayout};

/// JSON lines: fields in column order, those not set left out.
pub(super) struct Json;

impl RowFormat for Json {
    const EXTENSION: &'static str = "log";

    #[inline]
    fn begin_row<R: Record>(
        style: RowStyle,
        record: &R,
        time: Option<Timestamp>,
        out: &mut Vec<u8>,
    ) {
        out.push(b'{');
        if style.extension != Extension::None {
            extension(style, record.log(), time, out);
        }
    }

    #[inline]
    fn columns<R: Record>(style: RowStyle, record: &R, out: &mut Vec<u8>) {
        let is_first = out.last() == Some(&b'{');
        let mut members = Members { line: Line::new(out), is_first, times: style.times };
        record.visit(&mut members);
        members.line.settled();
    }

    #[inline]
    fn end_row(_: &'static LogType, _: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(b"}\n");
    }

    fn encoder(_: &'static LogType) -> Box<dyn LogEncoder> {
        Box::new(Objects)
    }

    const STREAM: Option<StreamLayout> = Some(StreamLayout { begin: |_, _| {}, row: stream });
}

/// The member that names the log of a row.
const PATH: &str = "_path";

/// Rows, and nothing else.
#[derive(Debug)]
pub(super) struct Objects;

impl LogEncoder for Objects {
    #[inline]
    fn row(&mut self, row: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(row);
    }
}

/// Appends the members that stand before those of the log, as Zeek's `Log::default_ext_func` has them.
fn extension(style: RowStyle, log: &LogType, time: Option<Timestamp>, out: &mut Vec<u8>) {
    let mut members = Members { line: Line::new(out), is_first: true, times: style.times };
    if style.extension == Extension::PathAndWriteTime {
        members.begin(PATH);
        quoted(&mut members.line, log.path.as_bytes());
    }
    if let Some(time) = time {
        members.begin("_write_ts");
        members.value(Value::Time(time));
    }
    members.line.settled();
}

/// Appends a row with the name of its log before its own members.
fn stream(log: &LogType, row: &[u8], out: &mut Vec<u8>) {
    // A row is an object.
    let members = row.strip_prefix(b"{").unwrap_or(row);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(PATH.as_bytes());
    out.extend_from_slice(b"\":\"");
    out.extend_from_slice(log.path.as_bytes());
    out.extend_from_slice(if members.starts_with(b"}") { b"\"" } else { b"\"," });
    out.extend_from_slice(members);
}

/// Appends the members of one object, with commas between.
struct Members<'a> {
    line: Line<'a>,
    is_first: bool,
    times: TimeForm,
}

impl Visitor for Members<'_> {
    #[inline(always)]
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        if matches!(value, Value::Unset) {
            return;
        }
        self.begin(info.name);
        self.value(value);
    }
}

impl Members<'_> {
    #[inline(always)]
    fn value(&mut self, value: Value<'_>) {
        let line = &mut self.line;
        match value {
            Value::Count(value) => line.number(value),
            Value::Port(value) => line.number(value.into()),
            Value::Int(value) => line.signed(value),
            Value::Time(value) => timed(line, self.times, digits::time_micros(value)),
            Value::Seconds(value) => timed(line, self.times, digits::whole_micros(value)),
            Value::Interval(value) => line.short_micros(digits::interval_micros(value)),
            Value::Bool(true) => line.put(*b"true", 4),
            Value::Bool(false) => line.put(*b"false", 5),
            Value::Addr(value) => {
                line.put(*b"\"", 1);
                line.address(value);
                line.put(*b"\"", 1);
            }
            Value::Word(value) => quoted(line, value),
            Value::Str(value) => text(line, value.as_bytes()),
            Value::Bytes(value) => text(line, value),
            Value::List(elements) => array(line.settled(), self.times, elements),
            value => scalar(line.settled(), self.times, value),
        }
    }
}

impl Members<'_> {
    /// Begins a member with its name.
    fn begin(&mut self, name: &str) {
        match core::mem::replace(&mut self.is_first, false) {
            true => self.line.put(*b"\"", 1),
            false => self.line.put(*b",\"", 2),
        }
        self.line.bytes(name.as_bytes());
        self.line.put(*b"\":", 2);
    }
}

/// Appends microseconds since 1970-01-01.
#[inline(always)]
fn timed(line: &mut Line<'_>, form: TimeForm, micros: i64) {
    match form {
        TimeForm::Epoch => line.short_micros(micros),
        TimeForm::Iso8601 => iso8601(line.settled(), micros, b"Z"),
    }
}

/// The same without a line.
fn time(out: &mut Vec<u8>, form: TimeForm, micros: i64) {
    match form {
        TimeForm::Epoch => digits::short_seconds(out, micros),
        TimeForm::Iso8601 => iso8601(out, micros, b"Z"),
    }
}

/// Appends microseconds since 1970-01-01 as a date and a time with its zone, in quotes.
pub(super) fn iso8601(out: &mut Vec<u8>, micros: i64, zone: &[u8]) {
    out.push(b'"');
    digits::iso8601(out, micros);
    out.extend_from_slice(zone);
    out.push(b'"');
}

/// Appends text that needs no escapes, with its quotes.
fn quoted(line: &mut Line<'_>, bytes: &[u8]) {
    line.put(*b"\"", 1);
    line.bytes(bytes);
    line.put(*b"\"", 1);
}

/// Appends text that is no part of a list, with its quotes.
fn text(line: &mut Line<'_>, bytes: &[u8]) {
    if is_plain(bytes) {
        quoted(line, bytes);
    } else {
        string(line.settled(), bytes);
    }
}

#[inline(always)]
pub(super) fn scalar(out: &mut Vec<u8>, times: TimeForm, value: Value<'_>) {
    match value {
        Value::Unset | Value::List(_) => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Count(value) => digits::integer(out, value),
        Value::Int(value) => digits::integer(out, value),
        Value::Double(value) => double(out, value),
        Value::Time(value) => time(out, times, digits::time_micros(value)),
        Value::Seconds(value) => time(out, times, digits::whole_micros(value)),
        Value::Interval(value) => digits::short_seconds(out, digits::interval_micros(value)),
        Value::Addr(value) => {
            out.push(b'"');
            digits::address(out, value);
            out.push(b'"');
        }
        Value::Port(value) => digits::integer(out, value),
        Value::Word(value) => {
            out.push(b'"');
            out.extend_from_slice(value);
            out.push(b'"');
        }
        Value::Str(value) => string(out, value.as_bytes()),
        Value::Bytes(value) => string(out, value),
    }
}

/// Appends the values of a set or vector as an array.
pub(super) fn array(out: &mut Vec<u8>, times: TimeForm, elements: &dyn Elements) {
    out.push(b'[');
    for index in 0..elements.count() {
        if index > 0 {
            out.push(b',');
        }
        scalar(out, times, elements.element(index));
    }
    out.push(b']');
}

/// Appends the shortest number that reads back as `value`; `null` for what is no number.
fn double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        number(out, value);
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Appends the shortest number that reads back as `value`, which is finite.
pub(super) fn number(out: &mut Vec<u8>, value: f64) {
    let magnitude = value.abs();
    // Writing to a `Vec` cannot fail.
    let _ = if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        write!(out, "{value:e}")
    } else if value.fract() == 0.0 {
        write!(out, "{value}.0")
    } else {
        write!(out, "{value}")
    };
}

/// Bytes that stand for themselves.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b' ';
    while byte < 0x7f {
        plain[byte as usize] = byte != b'\\' && byte != b'"';
        byte += 1;
    }
    plain
};

/// Whether all bytes stand for themselves.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| PLAIN[usize::from(byte)])
}

/// Appends a string with its quotes.
#[inline]
fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    if is_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        escaped(out, bytes);
    }
    out.push(b'"');
}

/// The letter that stands for a control character behind a backslash, where JSON has one (RFC 8259, 7).
pub(super) const fn letter(sign: u8) -> Option<u8> {
    Some(match sign {
        b'\x08' => b'b',
        b'\x0c' => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        _ => return None,
    })
}

/// Appends text with JSON's escapes; what is beyond ASCII in what is not UTF-8, and active signs without an escape
/// of their own, become the text `\xNN`, whose backslash is escaped in turn.
#[cold]
fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    each_piece(bytes, |piece| match piece {
        Piece::Text(text) => {
            for &byte in text.as_bytes() {
                match byte {
                    b'"' => out.extend_from_slice(b"\\\""),
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    byte => out.push(byte),
                }
            }
        }
        Piece::Active(&[sign]) if letter(sign).is_some() => {
            out.push(b'\\');
            out.extend(letter(sign));
        }
        Piece::Active(bytes) => bytes.iter().for_each(|&byte| unprintable(out, byte)),
    });
}

fn unprintable(out: &mut Vec<u8>, byte: u8) {
    out.push(b'\\');
    digits::escaped_byte(out, byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(value: Value<'_>) -> String {
        let mut out = Vec::new();
        match value {
            Value::List(elements) => array(&mut out, TimeForm::Epoch, elements),
            value => scalar(&mut out, TimeForm::Epoch, value),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_json_and_read_back() {
        for (bytes, expected) in [
            (&b"plain"[..], r#""plain""#),
            (b"", r#""""#),
            (b"-", r#""-""#),
            (b"say \"hi\"\\", r#""say \"hi\"\\""#),
            (b"a\tb\r\n", r#""a\tb\r\n""#),
            (b"\x00\x1f\x7f", r#""\\x00\\x1f\\x7f""#),
            (b"cyber\xf2ity.dk", r#""cyber\\xf2ity.dk""#),
            ("\u{9b}\u{202e}".as_bytes(), r#""\\xc2\\x9b\\xe2\\x80\\xae""#),
            ("חדשות".as_bytes(), r#""חדשות""#),
        ] {
            assert_eq!(rendered(Value::Bytes(bytes)), expected);
            let parsed: serde_json::Value = serde_json::from_str(expected).unwrap();
            assert!(parsed.is_string());
        }
    }

    #[test]
    fn numbers_are_the_shortest() {
        for (value, expected) in [
            (0.163_820_028_305_053_7, "0.1638200283050537"),
            (0.0, "0.0"),
            (3.0, "3.0"),
            (1e20, "100000000000000000000.0"),
            (1e21, "1e21"),
            (1.5e-6, "0.0000015"),
            (1.5e-7, "1.5e-7"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(rendered(Value::Double(value)), expected);
        }
    }

    #[test]
    fn lists_are_arrays() {
        let list = ["a,b", ""].as_slice();
        assert_eq!(rendered(Value::List(&list)), r#"["a,b",""]"#);
        let empty: &[u64] = &[];
        assert_eq!(rendered(Value::List(&empty)), "[]");
    }
}
