//! The values of a row as they wait for their document.

use netsniff_analysis::record::{FieldInfo, Interval, Proto, Value, Visitor};
use netsniff_packet::Timestamp;

use super::super::{digits, json};
use super::dialect::Form;
use super::plan::Plan;
use crate::format::style::TimeForm;

/// Bytes before the values.
const HEAD: usize = 9;
/// Bytes before each value: its column and its length.
const BEFORE: usize = 6;
/// There is no time.
const NO_TIME: i64 = i64::MIN;
/// Logs with no more columns need no memory besides the stack.
const FEW: usize = 128;

/// Begins a row.
#[inline]
pub(super) fn begin(transport: Option<Proto>, time: Option<Timestamp>, out: &mut Vec<u8>) {
    out.push(transport.map_or(u8::MAX, |transport| match transport {
        Proto::Tcp => 0,
        Proto::Udp => 1,
        Proto::Icmp => 2,
        Proto::Unknown => 3,
    }));
    out.extend_from_slice(&time.map_or(NO_TIME, digits::time_micros).to_le_bytes());
}

/// Appends values that are set, each behind its column and its length.
pub(super) struct Appender<'a> {
    plan: &'a Plan,
    /// The first point in time.
    begun: Option<i64>,
    out: &'a mut Vec<u8>,
}

impl<'a> Appender<'a> {
    pub(super) const fn new(plan: &'a Plan, out: &'a mut Vec<u8>) -> Self {
        Self { plan, begun: None, out }
    }
}

impl Visitor for Appender<'_> {
    #[inline]
    fn field(&mut self, index: usize, _: &'static FieldInfo, value: Value<'_>) {
        if matches!(value, Value::Unset) {
            return;
        }
        let start = self.out.len();
        self.out.extend_from_slice(&(index as u16).to_le_bytes());
        self.out.extend_from_slice(&[0; 4]);
        match self.plan.form(index) {
            Form::Plain => self.plain(value),
            form => self.formed(form, value),
        }
        let len = (self.out.len() - start - BEFORE) as u32;
        if let Some(place) = self.out.get_mut(start + 2..start + BEFORE) {
            place.copy_from_slice(&len.to_le_bytes());
        }
    }
}

impl Appender<'_> {
    #[inline]
    fn plain(&mut self, value: Value<'_>) {
        match value {
            Value::Time(time) => self.time(digits::time_micros(time)),
            Value::Seconds(time) => self.time(digits::whole_micros(time)),
            Value::List(elements) => json::array(self.out, TimeForm::Iso8601, elements),
            value => json::scalar(self.out, TimeForm::Iso8601, value),
        }
    }

    fn time(&mut self, micros: i64) {
        self.begun.get_or_insert(micros);
        json::iso8601(self.out, micros, self.plan.zone());
    }

    fn formed(&mut self, form: Form, value: Value<'_>) {
        match (form, value) {
            (Form::Text, value) => self.between(b"\"", value, b"\""),
            (Form::Listed, value) => self.between(b"[", value, b"]"),
            (Form::ListedText, value) => self.between(b"[\"", value, b"\"]"),
            (Form::Nanos, Value::Interval(span)) => digits::integer(self.out, span.nanos()),
            (Form::Seconds, Value::Interval(span)) => seconds(self.out, span),
            (Form::Seconds, Value::List(elements)) => {
                self.out.push(b'[');
                for index in 0..elements.count() {
                    if index > 0 {
                        self.out.push(b',');
                    }
                    self.formed(form, elements.element(index));
                }
                self.out.push(b']');
            }
            (Form::End, Value::Interval(span)) => match self.begun {
                Some(begun) => {
                    let end = begun.saturating_add(digits::interval_micros(span));
                    json::iso8601(self.out, end, self.plan.zone());
                }
                None => self.plain(value),
            },
            (Form::Word(words), Value::Word(word)) => self.word(words, word),
            (Form::Word(words), Value::Bytes(word)) => self.word(words, word),
            (Form::Word(words), Value::Str(word)) => self.word(words, word.as_bytes()),
            (_, value) => self.plain(value),
        }
    }

    fn between(&mut self, before: &[u8], value: Value<'_>, behind: &[u8]) {
        self.out.extend_from_slice(before);
        self.plain(value);
        self.out.extend_from_slice(behind);
    }

    fn word(&mut self, words: &[(&str, &str)], word: &[u8]) {
        let known = words.iter().find(|(own, _)| own.as_bytes() == word);
        self.plain(known.map_or(Value::Bytes(word), |&(_, other)| Value::Str(other)));
    }
}

/// Appends a span in seconds, as a whole number where it is one.
fn seconds(out: &mut Vec<u8>, span: Interval) {
    if span.nanos() % 1_000_000_000 == 0 {
        digits::integer(out, span.nanos() / 1_000_000_000);
    } else {
        digits::short_seconds(out, digits::interval_micros(span));
    }
}

/// The values of one row.
pub(super) struct Values<'a> {
    pub(super) transport: Option<Proto>,
    /// The time at which it was written, in microseconds.
    pub(super) written: Option<i64>,
    rendered: &'a [&'a [u8]],
}

impl Values<'_> {
    /// The value of a column as JSON, where it is set.
    #[inline]
    pub(super) fn get(&self, column: u16) -> Option<&[u8]> {
        self.rendered.get(usize::from(column)).copied().filter(|value| !value.is_empty())
    }
}

/// Calls `take` with the values of a row of so many columns.
pub(super) fn read(bytes: &[u8], columns: usize, take: impl FnOnce(&Values<'_>)) {
    let Some((head, mut rest)) = bytes.split_at_checked(HEAD) else { return };
    let (mut few, mut many) = ([&[][..]; FEW], Vec::new());
    let rendered = match few.get_mut(..columns) {
        Some(few) => few,
        None => {
            many.resize(columns, &[][..]);
            &mut many[..]
        }
    };
    while let Some((&[a, b, c, d, e, f], behind)) = rest.split_first_chunk() {
        let len = u32::from_le_bytes([c, d, e, f]) as usize;
        let Some((value, next)) = behind.split_at_checked(len) else { break };
        if let Some(place) = rendered.get_mut(usize::from(u16::from_le_bytes([a, b]))) {
            *place = value;
        }
        rest = next;
    }
    let transport = match head.first() {
        Some(0) => Some(Proto::Tcp),
        Some(1) => Some(Proto::Udp),
        Some(2) => Some(Proto::Icmp),
        Some(3) => Some(Proto::Unknown),
        _ => None,
    };
    let time = head.get(1..).and_then(|time| time.try_into().ok()).map(i64::from_le_bytes);
    take(&Values { transport, written: time.filter(|&time| time != NO_TIME), rendered });
}
