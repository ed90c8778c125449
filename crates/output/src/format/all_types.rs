//! Rows with a column of each type, for tests of formats that give columns types: what they write is compared with the JSON of the
//! same rows.

use netsniff_analysis::record::{Interval, Port, Seconds};
use netsniff_packet::{Address, Timestamp};
use serde_json::Value as Json;

use super::{Format, RowStyle};
use netsniff_analysis::rows::Encode as _;

netsniff_analysis::record! {
    /// A row with a column of each type.
    pub struct All<'a> => "all" {
        /// A time.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// A time in whole seconds.
        until: Option<Seconds> => "until", time, Seconds, Plain, Netsniff;
        /// A span.
        span: Option<Interval> => "span", interval, Seconds, Plain, Netsniff;
        /// Whether.
        flag: Option<bool> => "flag", bool, None, Plain, Netsniff;
        /// A number.
        count: Option<u64> => "count", count, Bytes, Plain, Netsniff;
        /// A number that may be below 0.
        int: Option<i64> => "int", int, None, Plain, Netsniff;
        /// A number with a fraction.
        double: Option<f64> => "double", double, None, Plain, Netsniff;
        /// An address.
        host: Option<Address> => "id.orig_h", addr, None, Address, Netsniff;
        /// A port.
        port: Option<Port> => "id.orig_p", port, None, Plain, Netsniff;
        /// Text.
        text: Option<&'a [u8]> => "text", string, None, FreeText, Netsniff;
        /// Many texts.
        texts: Option<Vec<&'a str>> => "texts", vector[string], None, FreeText, Netsniff;
        /// Many numbers.
        counts: Option<Vec<u64>> => "counts", set[count], None, Plain, Netsniff;
    }
}

/// Rows with values and without.
pub(super) fn rows() -> Vec<All<'static>> {
    let all = |at: i64| All {
        ts: Timestamp::from_nanos(1_767_225_600_123_456_000 + at * 1000),
        until: (at % 3 == 0).then_some(Seconds(253_402_300_799)),
        span: (at % 2 == 0).then_some(Interval::from_nanos(164_897_000 - at * 1_000_000_000)),
        flag: (at % 4 > 0).then_some(at % 4 == 1),
        count: (at % 5 > 0).then_some(u64::MAX - at.unsigned_abs()),
        int: (at % 7 > 0).then_some(-at),
        double: (at % 6 > 0).then_some(at as f64 / 3.0),
        host: Some(if at % 2 == 0 {
            Address::from_v4([10, 0, 0, at as u8])
        } else {
            Address::from_v6([at as u8; 16])
        }),
        port: (at % 9 > 0).then_some(Port(65_535 - at as u16)),
        text: match at % 4 {
            0 => None,
            1 => Some(b""),
            2 => Some(b"-\x00\xff\"\\ \x1b[31m"),
            _ => Some("r\u{e9}sum\u{e9}".as_bytes()),
        },
        texts: match at % 4 {
            0 => None,
            1 => Some(Vec::new()),
            2 => Some(vec!["", "a,b"]),
            _ => Some(vec!["x", "y", "z"]),
        },
        counts: (at % 2 > 0).then(|| vec![0, u64::MAX]),
    };
    (0..200).map(all).collect()
}

/// A row as JSON has it.
pub(super) fn json(row: &All<'_>) -> Json {
    let mut out = Vec::new();
    RowStyle::of(Format::Json).encode(row, None, &mut out);
    serde_json::from_slice(&out).unwrap()
}
