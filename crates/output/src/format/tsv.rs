//! Columns with tabs between, as Zeek's ASCII writer prints them.

use std::io::{self, Write as _};

use netsniff_analysis::record::{Elements, FieldInfo, LogType, Record, Value, Visitor};
use netsniff_console::printable::{Piece, each_piece};
use netsniff_packet::Timestamp;

use super::digits;
use super::line::Line;
use super::{LogEncoder, RowFormat, RowStyle};

/// Zeek's tab-separated format with its default separators, and UTF-8 left as it is, but for signs that are no text.
pub(super) struct Tsv;

/// What stands for a value that is not set.
const UNSET: &[u8] = b"-";
/// What stands for an empty string, set or vector.
const EMPTY: &[u8] = b"(empty)";

impl RowFormat for Tsv {
    const EXTENSION: &'static str = "log";

    #[inline]
    fn columns<R: Record>(_: RowStyle, record: &R, out: &mut Vec<u8>) {
        let start = out.len();
        let mut columns = Columns { line: Line::new(out) };
        record.visit(&mut columns);
        let out = columns.line.settled();
        if out.get(start) == Some(&b'#') {
            // It would look like a header line.
            out.splice(start..=start, *b"\\x23");
        }
    }

    #[inline]
    fn end_row(_: &'static LogType, _: usize, out: &mut Vec<u8>) {
        out.push(b'\n');
    }

    fn encoder(log: &'static LogType) -> Box<dyn LogEncoder> {
        Box::new(Lines { log })
    }
}

/// Rows between the lines that a file of Zeek begins and ends with.
#[derive(Debug)]
struct Lines {
    log: &'static LogType,
}

impl LogEncoder for Lines {
    fn header(&mut self, opened: Timestamp, out: &mut Vec<u8>) {
        out.extend_from_slice(b"#separator \\x09\n");
        out.extend_from_slice(b"#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n");
        out.extend_from_slice(b"#path\t");
        out.extend_from_slice(self.log.path.as_bytes());
        out.extend_from_slice(b"\n#open\t");
        digits::date(out, opened);
        out.extend_from_slice(b"\n#fields");
        for field in self.log.fields {
            out.push(b'\t');
            out.extend_from_slice(field.name.as_bytes());
        }
        out.extend_from_slice(b"\n#types");
        for field in self.log.fields {
            out.push(b'\t');
            out.extend_from_slice(field.zeek_type.to_string().as_bytes());
        }
        out.push(b'\n');
    }

    #[inline]
    fn row(&mut self, row: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(row);
    }

    fn footer(&mut self, closed: Timestamp, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(b"#close\t");
        digits::date(out, closed);
        out.push(b'\n');
        Ok(())
    }
}

/// Appends the values of one record, with tabs between.
struct Columns<'a> {
    line: Line<'a>,
}

impl Visitor for Columns<'_> {
    #[inline(always)]
    fn field(&mut self, index: usize, _: &'static FieldInfo, value: Value<'_>) {
        let line = &mut self.line;
        if index > 0 {
            if matches!(value, Value::Unset) {
                return line.put(*b"\t-", 2);
            }
            line.put(*b"\t", 1);
        }
        match value {
            Value::Unset => line.put(*b"-", 1),
            Value::Bool(value) => line.put([if value { b'T' } else { b'F' }], 1),
            Value::Count(value) => line.number(value),
            Value::Port(value) => line.number(value.into()),
            Value::Int(value) => line.signed(value),
            Value::Time(value) => line.time(value),
            Value::Seconds(value) => line.seconds(value),
            Value::Interval(value) => line.interval(value),
            Value::Addr(value) => line.address(value),
            Value::Word(value) => line.bytes(value),
            Value::Str(value) => text(line, value.as_bytes()),
            Value::Bytes(value) => text(line, value),
            Value::List(elements) => list(line.settled(), elements),
            Value::Double(value) => double(line.settled(), value),
        }
    }
}

/// Appends text that is no part of a list.
fn text(line: &mut Line<'_>, bytes: &[u8]) {
    if is_plain_text(bytes, ALONE) {
        line.bytes(bytes);
    } else {
        string(line.settled(), bytes, ALONE);
    }
}

/// Appends one value; `separator` would part it.
#[inline(always)]
fn scalar(out: &mut Vec<u8>, value: Value<'_>, separator: u8) {
    match value {
        Value::Unset | Value::List(_) => out.extend_from_slice(UNSET),
        Value::Bool(value) => out.push(if value { b'T' } else { b'F' }),
        Value::Count(value) => digits::integer(out, value),
        Value::Int(value) => digits::integer(out, value),
        Value::Double(value) => double(out, value),
        Value::Time(value) => digits::seconds(out, digits::time_micros(value)),
        Value::Seconds(value) => digits::seconds(out, digits::whole_micros(value)),
        Value::Interval(value) => digits::seconds(out, digits::interval_micros(value)),
        Value::Addr(value) => digits::address(out, value),
        Value::Port(value) => digits::integer(out, value),
        Value::Word(value) => out.extend_from_slice(value),
        Value::Str(value) => string(out, value.as_bytes(), separator),
        Value::Bytes(value) => string(out, value, separator),
    }
}

/// Appends the values of a set or vector with commas between.
fn list(out: &mut Vec<u8>, elements: &dyn Elements) {
    if elements.count() == 0 {
        return out.extend_from_slice(EMPTY);
    }
    for index in 0..elements.count() {
        if index > 0 {
            out.push(b',');
        }
        scalar(out, elements.element(index), IN_LIST);
    }
}

/// Appends a floating-point number with up to six decimals.
fn double(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    // Writing to a `Vec` cannot fail.
    let _ = write!(out, "{value:.6}");
    if value.is_infinite() {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
    if value.fract() == 0.0 {
        out.extend_from_slice(b".0");
    }
}

/// What parts values of a set or vector, and what parts nothing that is not escaped anyway.
const IN_LIST: u8 = b',';
const ALONE: u8 = b'\\';

/// Whether a byte stands for itself.
const fn is_plain(byte: u8, separator: u8) -> bool {
    matches!(byte, b' '..0x7f) & (byte != b'\\') & (byte != separator)
}

/// Appends text, so that it can be told from what the format itself writes.
#[inline]
fn string(out: &mut Vec<u8>, bytes: &[u8], separator: u8) {
    if is_plain_text(bytes, separator) {
        out.extend_from_slice(bytes);
    } else if is_reserved(bytes) {
        reserved(out, bytes);
    } else {
        escaped(out, bytes, separator);
    }
}

/// Whether text stands for itself.
#[inline]
fn is_plain_text(bytes: &[u8], separator: u8) -> bool {
    // Without a way out of the loop, several bytes are looked at by each instruction.
    !is_reserved(bytes) && bytes.iter().fold(true, |all, byte| all & is_plain(*byte, separator))
}

/// Whether text is empty or reads like one of the format's own words.
#[inline]
fn is_reserved(bytes: &[u8]) -> bool {
    bytes.len() <= EMPTY.len() && (bytes.is_empty() || bytes == UNSET || bytes == EMPTY)
}

/// Appends a string that is empty or reads like one of the format's own words.
#[cold]
fn reserved(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.split_first() {
        None => out.extend_from_slice(EMPTY),
        Some((&first, rest)) => {
            digits::escaped_byte(out, first);
            out.extend_from_slice(rest);
        }
    }
}

/// Appends text with escapes: backslashes doubled, separators, active signs, and what is beyond ASCII
/// in what is not UTF-8, as `\xNN`. Zeek leaves all of UTF-8 as it is; signs that a terminal or a reader of lines obeys are no text.
#[cold]
fn escaped(out: &mut Vec<u8>, bytes: &[u8], separator: u8) {
    each_piece(bytes, |piece| match piece {
        Piece::Text(text) => plain_text(out, text.as_bytes(), separator),
        Piece::Active(bytes) => bytes.iter().for_each(|&byte| digits::escaped_byte(out, byte)),
    });
}

/// Appends text without active signs.
fn plain_text(out: &mut Vec<u8>, mut rest: &[u8], separator: u8) {
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\' || byte == separator) {
        let (run, behind) = rest.split_at(at);
        out.extend_from_slice(run);
        if let Some((&byte, behind)) = behind.split_first() {
            match byte {
                b'\\' => out.extend_from_slice(b"\\\\"),
                byte => digits::escaped_byte(out, byte),
            }
            rest = behind;
        }
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: Value<'_>) -> String {
        let mut out = Vec::new();
        match value {
            Value::List(elements) => list(&mut out, elements),
            value => scalar(&mut out, value, ALONE),
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_zeek_does() {
        // The first seven stand in Zeek's own logs of public captures.
        for (bytes, expected) in [
            (&b"efedejfpeeepeneb\x05jeocacacacacabm"[..], r"efedejfpeeepeneb\x05jeocacacacacabm"),
            (b"_sip._udp.sip.cyber\xf2ity.dk", r"_sip._udp.sip.cyber\xf2ity.dk"),
            (b"_\xf3ip._udp.sip.cybercit\x92.dk", r"_\xf3ip._udp.sip.cybercit\x92.dk"),
            (b"q2\xc7\xbf\xbe\xe2y.pirate.sea", r"q2\xc7\xbf\xbe\xe2y.pirate.sea"),
            (b"1.0.0.127.in-addr.arp\\", r"1.0.0.127.in-addr.arp\\"),
            (b"O=VeriSign\\, Inc.", r"O=VeriSign\\, Inc."),
            ("ynet חדשות".as_bytes(), "ynet חדשות"),
            (b"a\tb\nc", r"a\x09b\x0ac"),
            (b"\x7f", r"\x7f"),
            ("\u{9b}31m\u{202e}a\u{2028}b".as_bytes(), r"\xc2\x9b31m\xe2\x80\xaea\xe2\x80\xa8b"),
            (b"ends with half a letter \xe2\x82", r"ends with half a letter \xe2\x82"),
            (b"", "(empty)"),
            (b"-", r"\x2d"),
            (b"--", "--"),
            (b"(empty)", r"\x28empty)"),
        ] {
            assert_eq!(text(Value::Bytes(bytes)), expected);
        }
    }

    #[test]
    fn lists_escape_their_separator() {
        let list = ["a,b", "", "-", "plain"].as_slice();
        assert_eq!(text(Value::List(&list)), r"a\x2cb,(empty),\x2d,plain");
        let empty: &[&str] = &[];
        assert_eq!(text(Value::List(&empty)), "(empty)");
        let times = [1u64, 2].as_slice();
        assert_eq!(text(Value::List(&times)), "1,2");
    }

    #[test]
    fn doubles_lose_trailing_zeros() {
        for (value, expected) in [
            (0.5, "0.5"),
            (3.0, "3.0"),
            (100.0, "100.0"),
            (-1.234_567_89, "-1.234568"),
            (0.0, "0.0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
            (1e-7, "0"),
        ] {
            assert_eq!(text(Value::Double(value)), expected);
        }
    }
}
