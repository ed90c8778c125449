//! One MessagePack map for each row (<https://github.com/msgpack/msgpack/blob/master/spec.md>).
//!
//! Keys are the names of columns; those not set are left out, as in JSON. A point in time is the extension type -1, to
//! the nanosecond, and a span of time a float of seconds. Text is a `str` with the letters that JSON's text has: bytes that are
//! no text and characters that control or turn a terminal are `\xNN`, so that a value is the same in both formats.

use netsniff_analysis::record::{Elements, FieldInfo, LogType, Record, Value, Visitor};
use netsniff_packet::{Address, Timestamp};
use rmp::Marker;
use rmp::encode::{
    write_array_len, write_bool, write_ext_meta, write_f64, write_map_len, write_nil, write_sint,
    write_str, write_str_len, write_uint,
};

use super::digits;
use super::letters::letters;
use super::{LogEncoder, RowFormat, RowStyle, StreamLayout};

/// MessagePack maps, one behind the other.
///
/// A map begins with the number of its members, which is known behind them: a rendered row ends with that number, and
/// the writer puts it in front.
pub(super) struct MsgPack;

/// Bytes of the number of members behind a row: as many as a map begins with at most, so that a row takes no more bytes in a
/// file than it has here.
const COUNT: usize = 3;

/// The extension type of a point in time.
const TIMESTAMP: i8 = -1;

impl RowFormat for MsgPack {
    const EXTENSION: &'static str = "msgpack";

    #[inline]
    fn begin_row<R: Record>(_: RowStyle, _: &R, _: Option<Timestamp>, out: &mut Vec<u8>) {
        count(out, 0);
    }

    #[inline]
    fn columns<R: Record>(_: RowStyle, record: &R, out: &mut Vec<u8>) {
        let (_, members) = split(out);
        out.truncate(out.len().saturating_sub(COUNT));
        let mut visitor = Members { out, members };
        record.visit(&mut visitor);
        let members = visitor.members;
        count(out, members);
    }

    fn encoder(_: &'static LogType) -> Box<dyn LogEncoder> {
        Box::new(Maps)
    }

    const STREAM: Option<StreamLayout> = Some(StreamLayout { begin: |_, _| {}, row: stream });
}

/// Appends how many members there are so far.
#[inline]
fn count(out: &mut Vec<u8>, members: u16) {
    let [high, low] = members.to_be_bytes();
    let behind: [u8; COUNT] = [0, high, low];
    out.extend_from_slice(&behind);
}

/// The members of a row, or of its begin, and how many they are.
fn split(row: &[u8]) -> (&[u8], u16) {
    match row.split_last_chunk::<COUNT>() {
        Some((members, [_, high, low])) => (members, u16::from_be_bytes([*high, *low])),
        None => (row, 0),
    }
}

/// Rows, and nothing else.
#[derive(Debug)]
struct Maps;

impl LogEncoder for Maps {
    #[inline]
    fn row(&mut self, row: &[u8], out: &mut Vec<u8>) {
        let (members, count) = split(row);
        put(write_map_len(out, count.into()));
        out.extend_from_slice(members);
    }
}

/// Appends a row with the name of its log before its own members.
fn stream(log: &LogType, row: &[u8], out: &mut Vec<u8>) {
    let (members, count) = split(row);
    put(write_map_len(out, u32::from(count) + 1));
    put(write_str(out, "_path"));
    put(write_str(out, log.path));
    out.extend_from_slice(members);
}

/// Writing to a `Vec` cannot fail.
fn put<T, E>(written: Result<T, E>) {
    drop(written.ok());
}

/// Appends the members of one map, and counts them.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    members: u16,
}

impl Visitor for Members<'_> {
    #[inline]
    fn field(&mut self, _: usize, info: &'static FieldInfo, value: Value<'_>) {
        if matches!(value, Value::Unset) {
            return;
        }
        self.members += 1;
        put(write_str(self.out, info.name));
        match value {
            Value::List(elements) => array(self.out, elements),
            value => scalar(self.out, value),
        }
    }
}

fn scalar(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Unset | Value::List(_) => put(write_nil(out)),
        Value::Bool(value) => put(write_bool(out, value)),
        Value::Count(value) => put(write_uint(out, value)),
        Value::Int(value) => put(write_sint(out, value)),
        // As in JSON.
        Value::Double(value) if !value.is_finite() => put(write_nil(out)),
        Value::Double(value) => put(write_f64(out, value)),
        Value::Time(value) => time(out, value.nanos()),
        Value::Seconds(value) => time(out, value.0.saturating_mul(1_000_000_000)),
        // Exact to the nanosecond up to 104 days.
        Value::Interval(value) => put(write_f64(out, value.nanos() as f64 / 1e9)),
        Value::Addr(value) => {
            address(out, value);
        }
        Value::Port(value) => put(write_uint(out, value.into())),
        Value::Word(value) | Value::Bytes(value) => text(out, value),
        Value::Str(value) => text(out, value.as_bytes()),
    }
}

/// Appends an address as text, which is no longer than a short string may be.
fn address(out: &mut Vec<u8>, value: Address) {
    // A string of up to 255 bytes, and their number.
    let start = out.len();
    out.extend_from_slice(&[Marker::Str8.to_u8(), 0]);
    digits::address(out, value);
    let len = out.len() - start - 2;
    if let Some(number) = out.get_mut(start + 1) {
        *number = u8::try_from(len).unwrap_or(u8::MAX);
    }
}

/// Appends text as JSON has it.
fn text(out: &mut Vec<u8>, value: &[u8]) {
    let text = letters(value);
    put(write_str_len(out, u32::try_from(text.len()).unwrap_or(u32::MAX)));
    out.extend_from_slice(&text);
}

/// Appends the values of a set or vector.
fn array(out: &mut Vec<u8>, elements: &dyn Elements) {
    // No set has as many.
    put(write_array_len(out, u32::try_from(elements.count()).unwrap_or(u32::MAX)));
    for index in 0..elements.count() {
        scalar(out, elements.element(index));
    }
}

/// Appends a point in time, in nanoseconds since 1970: "timestamp 64" where it fits, or else "timestamp 96".
fn time(out: &mut Vec<u8>, nanos: i64) {
    let (seconds, nanos) =
        (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000) as u32);
    match u64::try_from(seconds) {
        Ok(whole) if whole < 1 << 34 => {
            put(write_ext_meta(out, 8, TIMESTAMP));
            out.extend_from_slice(&(u64::from(nanos) << 34 | whole).to_be_bytes());
        }
        _ => {
            put(write_ext_meta(out, 12, TIMESTAMP));
            out.extend_from_slice(&nanos.to_be_bytes());
            out.extend_from_slice(&seconds.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::SortKey;
    use netsniff_analysis::record::Seconds;
    use netsniff_analysis::rows::Encode as _;
    use rmpv::Value as Read;

    use super::*;
    use crate::{Format, LiveSink as _, LogFiles, Roll, RowSink as _};

    fn read(mut bytes: &[u8]) -> Read {
        let value = rmpv::decode::read_value(&mut bytes).unwrap();
        assert!(bytes.is_empty(), "{} bytes behind {value}", bytes.len());
        value
    }

    fn one(value: Value<'_>) -> Read {
        let mut out = Vec::new();
        scalar(&mut out, value);
        read(&out)
    }

    #[test]
    fn numbers_and_truths_are_what_they_are() {
        assert_eq!(one(Value::Count(u64::MAX)), Read::from(u64::MAX));
        assert_eq!(one(Value::Int(-129)), Read::from(-129));
        assert_eq!(one(Value::Double(-0.5)), Read::from(-0.5));
        assert_eq!(one(Value::Bool(true)), Read::from(true));
        assert_eq!(one(Value::Port(65_535)), Read::from(65_535));
        assert_eq!(one(Value::Unset), Read::Nil);
        assert_eq!(one(Value::Double(f64::NAN)), Read::Nil, "as in JSON");
    }

    #[test]
    fn times_are_exact_before_and_behind_every_border() {
        let parts = |value| match one(value) {
            Read::Ext(TIMESTAMP, bytes) => match <[u8; 8]>::try_from(&bytes[..]) {
                Ok(bytes) => {
                    let number = u64::from_be_bytes(bytes);
                    (8, (number & ((1 << 34) - 1)) as i64, (number >> 34) as u32)
                }
                Err(_) => {
                    let (nanos, seconds) = bytes.split_at(4);
                    let seconds = i64::from_be_bytes(seconds.try_into().unwrap());
                    (12, seconds, u32::from_be_bytes(nanos.try_into().unwrap()))
                }
            },
            other => panic!("{other}"),
        };
        let time = |nanos| parts(Value::Time(Timestamp::from_nanos(nanos)));
        assert_eq!(time(1_317_402_178_000_000_007), (8, 1_317_402_178, 7));
        assert_eq!(time(0), (8, 0, 0));
        assert_eq!(time(-1), (12, -1, 999_999_999));
        assert_eq!(time(i64::MAX), (8, 9_223_372_036, 854_775_807));
        assert_eq!(parts(Value::Seconds(Seconds(-5))), (12, -5, 0));
    }

    #[test]
    fn texts_are_those_of_json() {
        let texts: [&[u8]; 9] = [
            b"plain",
            b"",
            b"say \"hi\"\\",
            b"a\tb\r\n\x08\x0c",
            b"\x00\x1f\x7f",
            b"cyber\xf2ity.dk",
            "\u{9b}\u{202e}".as_bytes(),
            "חדשות".as_bytes(),
            &[b'x'; 300],
        ];
        for bytes in texts {
            let text = Text { text: bytes };
            let mut json = Vec::new();
            RowStyle::of(Format::Json).encode(&text, None, &mut json);
            let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
            assert_eq!(one(Value::Bytes(bytes)).as_str(), json["text"].as_str());
        }
    }

    #[test]
    fn addresses_are_text() {
        let longest = Address::from_v6([0xab; 16]);
        for (address, text) in [
            (Address::from_v4([192, 0, 2, 1]), "192.0.2.1"),
            (longest, "abab:abab:abab:abab:abab:abab:abab:abab"),
        ] {
            assert_eq!(one(Value::Addr(address)), Read::from(text));
        }
    }

    netsniff_analysis::record! {
        /// A row of text.
        pub struct Text<'a> => "text" {
            /// The text.
            text: &'a [u8] => "text", string, None, FreeText, Netsniff;
        }
    }

    netsniff_analysis::record! {
        /// A row of two numbers.
        pub struct Pair => "pair" {
            /// One.
            one: u64 => "one", count, None, Plain, Netsniff;
            /// Another one.
            other: Option<u64> => "other", count, None, Plain, Netsniff;
        }
    }

    #[test]
    fn maps_leave_out_what_is_not_set_whatever_parts_they_come_in() {
        let row = |records: &[Pair]| {
            let mut row = Vec::new();
            count(&mut row, 0);
            for record in records {
                RowStyle::of(Format::MsgPack).columns(record, &mut row);
            }
            let mut file = Vec::new();
            Maps.row(&row, &mut file);
            assert!(file.len() <= row.len(), "a file is no larger than what was counted");
            read(&file)
        };
        let text = |records: &[Pair]| row(records).to_string();
        assert_eq!(text(&[Pair { one: 1, other: None }]), r#"{"one": 1}"#);
        assert_eq!(text(&[Pair { one: 1, other: Some(2) }]), r#"{"one": 1, "other": 2}"#);
        let many: Vec<_> = (0..20).map(|one| Pair { one, other: Some(one) }).collect();
        assert_eq!(row(&many).as_map().unwrap().len(), 40);
    }

    #[test]
    fn rolled_files_are_no_larger_than_they_may_be_and_lose_no_row() {
        const SIZE: u64 = 1000;
        let path = std::env::temp_dir().join(format!("netsniff-msgpack-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        let roll = Roll { every: None, size: Some(SIZE) };
        let mut files = LogFiles::live(&path, Format::MsgPack, roll, Timestamp::EPOCH).unwrap();
        for number in 0..100 {
            let mut row = Vec::new();
            count(&mut row, 0);
            // From 16 members on a map begins with more bytes.
            for one in 0..number % 12 {
                let pair = Pair { one, other: Some(number) };
                RowStyle::of(Format::MsgPack).columns(&pair, &mut row);
            }
            files.row(0, &SortKey::first_at(Timestamp::EPOCH), &row).unwrap();
        }
        files.end(Timestamp::EPOCH).unwrap();
        let mut rows = 0;
        for file in std::fs::read_dir(&path).unwrap() {
            let bytes = std::fs::read(file.unwrap().path()).unwrap();
            assert!(bytes.len() as u64 <= SIZE, "{}", bytes.len());
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                assert!(rmpv::decode::read_value(&mut rest).unwrap().is_map());
                rows += 1;
            }
        }
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(rows, 100);
    }
}
