//! Rows as compact cells, for formats whose writer makes columns of them.
//!
//! A cell is a tag and what it has besides; cells stand in the order of the columns of their log. Times are microseconds and
//! spans are seconds, as in the other formats; text has the letters that JSON's text has.

use netsniff_analysis::record::{Elements, FieldInfo, Record, Value, Visitor};
use netsniff_packet::Address;

use super::digits;
use super::letters::letters;

const UNSET: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const UNSIGNED: u8 = 3;
const SIGNED: u8 = 4;
const DOUBLE: u8 = 5;
const TEXT: u8 = 6;
const LIST: u8 = 7;

/// Appends the cells of some columns.
#[inline]
pub(super) fn columns<R: Record>(record: &R, out: &mut Vec<u8>) {
    record.visit(&mut Appender(out));
}

struct Appender<'a>(&'a mut Vec<u8>);

impl Visitor for Appender<'_> {
    #[inline]
    fn field(&mut self, _: usize, _: &'static FieldInfo, value: Value<'_>) {
        match value {
            Value::List(elements) => list(self.0, elements),
            value => cell(self.0, value),
        }
    }
}

fn list(out: &mut Vec<u8>, elements: &dyn Elements) {
    let count = elements.count();
    out.push(LIST);
    number(out, count as u64);
    for index in 0..count {
        cell(out, elements.element(index));
    }
}

fn cell(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::Unset | Value::List(_) => out.push(UNSET),
        Value::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        Value::Count(value) => unsigned(out, value),
        Value::Port(value) => unsigned(out, value.into()),
        Value::Int(value) => signed(out, value),
        Value::Time(value) => signed(out, digits::time_micros(value)),
        Value::Seconds(value) => signed(out, digits::whole_micros(value)),
        Value::Double(value) => double(out, value),
        Value::Interval(value) => double(out, digits::interval_micros(value) as f64 / 1e6),
        Value::Addr(value) => address(out, value),
        Value::Word(value) => text(out, value),
        Value::Str(value) => text(out, &letters(value.as_bytes())),
        Value::Bytes(value) => text(out, &letters(value)),
    }
}

fn unsigned(out: &mut Vec<u8>, value: u64) {
    out.push(UNSIGNED);
    number(out, value);
}

fn signed(out: &mut Vec<u8>, value: i64) {
    out.push(SIGNED);
    out.extend_from_slice(&value.to_le_bytes());
}

fn double(out: &mut Vec<u8>, value: f64) {
    out.push(DOUBLE);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends an address as text, which has at most 39 letters: their number is one byte.
fn address(out: &mut Vec<u8>, value: Address) {
    let start = out.len();
    out.extend_from_slice(&[TEXT, 0]);
    digits::address(out, value);
    let len = out.len() - start - 2;
    if let Some(at) = out.get_mut(start + 1) {
        *at = len as u8;
    }
}

fn text(out: &mut Vec<u8>, value: &[u8]) {
    out.push(TEXT);
    number(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a number, seven bits a byte, the lowest ones first.
#[inline]
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A value of a row, or of a set or vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    Unset,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Double(f64),
    Text(&'a [u8]),
    /// A set or vector of so many values, which follow.
    List(u64),
}

/// The cells of a row, one behind the other.
#[derive(Debug)]
pub(super) struct Cells<'a>(pub(super) &'a [u8]);

impl<'a> Cells<'a> {
    /// The next cell; what is no cell, which no worker writes, is not set.
    #[inline]
    pub(super) fn cell(&mut self) -> Cell<'a> {
        self.take().unwrap_or(Cell::Unset)
    }

    #[inline]
    fn take(&mut self) -> Option<Cell<'a>> {
        let (&tag, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(match tag {
            FALSE | TRUE => Cell::Bool(tag == TRUE),
            UNSIGNED => Cell::Unsigned(self.number()?),
            SIGNED => Cell::Signed(i64::from_le_bytes(self.eight()?)),
            DOUBLE => Cell::Double(f64::from_le_bytes(self.eight()?)),
            TEXT => {
                let len = usize::try_from(self.number()?).ok()?;
                let (text, rest) = self.0.split_at_checked(len)?;
                self.0 = rest;
                Cell::Text(text)
            }
            LIST => Cell::List(self.number()?),
            _ => Cell::Unset,
        })
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        let (eight, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*eight)
    }
}

#[cfg(test)]
mod tests {
    use netsniff_analysis::record::Interval;
    use netsniff_packet::Timestamp;

    use super::*;

    fn read(value: Value<'_>) -> Vec<Cell<'static>> {
        let mut out = Vec::new();
        match value {
            Value::List(elements) => list(&mut out, elements),
            value => cell(&mut out, value),
        }
        let mut cells = Cells(out.leak());
        let mut all = Vec::new();
        while !cells.0.is_empty() {
            all.push(cells.cell());
        }
        all
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(read(Value::Count(value)), [Cell::Unsigned(value)]);
        }
        for value in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(read(Value::Int(value)), [Cell::Signed(value)]);
        }
        let time = Timestamp::from_nanos(1_767_225_600_000_123_499);
        assert_eq!(read(Value::Time(time)), [Cell::Signed(1_767_225_600_000_123)]);
        let span = Value::Interval(Interval::from_nanos(164_897_000));
        assert_eq!(read(span), [Cell::Double(0.164_897)]);
        assert_eq!(read(Value::Bool(true)), [Cell::Bool(true)]);
        assert_eq!(read(Value::Bool(false)), [Cell::Bool(false)]);
        assert_eq!(read(Value::Unset), [Cell::Unset]);
        assert_eq!(read(Value::Str(&"x".repeat(300))), [Cell::Text(&[b'x'; 300])]);
        assert_eq!(read(Value::Bytes(b"a\xff")), [Cell::Text(b"a\\xff")]);
        let longest = Value::Addr(Address::from_v6([0xab; 16]));
        assert_eq!(read(longest), [Cell::Text(b"abab:abab:abab:abab:abab:abab:abab:abab")]);
        let list = [3_u64, 500].as_slice();
        let cells = [Cell::List(2), Cell::Unsigned(3), Cell::Unsigned(500)];
        assert_eq!(read(Value::List(&list)), cells);
    }

    #[test]
    fn what_is_no_row_has_unset_cells() {
        for bytes in [&b""[..], b"\x03", b"\x03\x80", b"\x06\x05ab", b"\x04\x00", &[0xff; 20]] {
            assert_eq!(Cells(bytes).cell(), Cell::Unset);
        }
        let endless = [&[UNSIGNED][..], &[0xff; 30]].concat();
        assert_eq!(Cells(&endless).cell(), Cell::Unset);
    }
}
