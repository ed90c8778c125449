//! Documents, written by their plan.

use netsniff_analysis::record::Proto;

use super::super::json;
use super::plan::{Member, Plan, What};
use super::row::{self, Values};

/// The values that a member follows from.
pub(in crate::format) struct Inputs<'a> {
    values: &'a Values<'a>,
    columns: &'a [Option<u16>],
}

impl Inputs<'_> {
    /// The value of an input as JSON, where the log has it and it is set.
    pub(in crate::format) fn json(&self, input: usize) -> Option<&[u8]> {
        self.values.get((*self.columns.get(input)?)?)
    }

    /// The text of an input, escaped as in JSON and without quotes.
    pub(in crate::format) fn text(&self, input: usize) -> Option<&[u8]> {
        self.json(input)?.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }

    /// The transport protocol of the connection.
    pub(in crate::format) const fn transport(&self) -> Option<Proto> {
        self.values.transport
    }
}

impl Plan {
    /// Appends the document of a row to `out`, which is empty.
    pub(super) fn write(&self, row: &[u8], out: &mut Vec<u8>) {
        row::read(row, self.columns(), |values| {
            let members = if self.is_icmp(values) { &self.icmp } else { &self.members };
            object(members, values, self.zone(), out);
        });
        out.push(b'\n');
    }
}

/// Appends an object of the members that are set; returns whether there are any.
fn object(members: &[Member], values: &Values<'_>, zone: &[u8], out: &mut Vec<u8>) -> bool {
    out.push(b'{');
    let mut is_first = true;
    for member in members {
        let start = out.len();
        if !is_first {
            out.push(b',');
        }
        out.extend_from_slice(&member.key);
        let before = out.len();
        let is_set = match &member.what {
            What::Column(column) => match values.get(*column) {
                Some(value) => {
                    out.extend_from_slice(value);
                    true
                }
                None => false,
            },
            What::Constant(json) => {
                out.extend_from_slice(json);
                true
            }
            What::Object(inner) => object(inner, values, zone, out),
            What::Items(columns) => items(columns, values, out),
            What::Written => values.written.is_some_and(|time| {
                json::iso8601(out, time, zone);
                true
            }),
            What::Derived(columns, make) => {
                make(&Inputs { values, columns }, out);
                out.len() > before
            }
        };
        if is_set {
            is_first = false;
        } else {
            out.truncate(start);
        }
    }
    out.push(b'}');
    !is_first
}

/// Appends an array of objects, each of the next values of these columns; returns whether any column is set.
fn items(columns: &[(Box<[u8]>, u16)], values: &Values<'_>, out: &mut Vec<u8>) -> bool {
    let column = |(key, column): &'_ (Box<[u8]>, u16)| Some((key.clone(), values.get(*column)?));
    let mut rest: Vec<_> = columns.iter().filter_map(column).collect();
    if rest.is_empty() {
        return false;
    }
    let mut lists: Vec<_> = rest.iter_mut().map(|(key, value)| (key, elements(value))).collect();
    out.push(b'[');
    for number in 0.. {
        let start = out.len();
        out.extend_from_slice(if number > 0 { b",{" } else { b"{" });
        let begun = out.len();
        for (key, list) in &mut lists {
            let Some(value) = list.next() else { continue };
            if out.len() > begun {
                out.push(b',');
            }
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        }
        if out.len() == begun {
            out.truncate(start);
            break;
        }
        out.push(b'}');
    }
    out.push(b']');
    true
}

/// The values of a list that is rendered as JSON; of any other value itself.
pub(in crate::format) fn elements(json: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inner = json.strip_prefix(b"[").and_then(|list| list.strip_suffix(b"]"));
    let mut rest = inner.unwrap_or(json);
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if inner.is_some() { end_of_first(rest) } else { rest.len() };
        let (value, behind) = rest.split_at(end);
        rest = behind.strip_prefix(b",").unwrap_or(behind);
        Some(value)
    })
}

/// Where the first value of a list ends. There are no lists in lists.
fn end_of_first(json: &[u8]) -> usize {
    let (mut is_text, mut is_escaped) = (false, false);
    let end = json.iter().position(|&byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_text = !is_text,
            b',' => return !is_text,
            _ => {}
        }
        false
    });
    end.unwrap_or(json.len())
}
