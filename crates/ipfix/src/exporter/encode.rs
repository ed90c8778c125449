//! Headers, templates and records as bytes, in network order (RFC 7011, 3).

use netsniff_packet::Timestamp;

use super::connection::{Connection, RunEnd};
use super::element::{END, Groups, Number, Type, Value};
use super::{END_TEMPLATE, FIRST_TEMPLATE, Untellable};

const VERSION: u16 = 10;
/// Set numbers of templates (RFC 7011, 3.3.2).
const TEMPLATES: u16 = 2;
const OPTIONS_TEMPLATES: u16 = 3;
/// The first length of text that is told in three bytes (RFC 7011, 7).
const LONG: usize = 255;
/// Seconds from 1900 to 1970 (RFC 5905).
const SINCE_1900: i64 = 2_208_988_800;
const SECOND: i64 = 1_000_000_000;

pub(super) fn header(sent: u32, sequence: u32, domain: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&VERSION.to_be_bytes());
    // The length is written at the end.
    out.extend_from_slice(&[0; 2]);
    for number in [sent, sequence, domain] {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

/// Writes the length of what began at `begin` to the place `at`. Whoever adds to it keeps it below 64 KiB.
pub(super) fn patch_length(out: &mut [u8], begin: usize, at: usize) {
    let length = (out.len() - begin) as u16;
    if let Some(place) = out.get_mut(at..at + 2) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

/// Appends the template of a record: of a connection with these groups, or of the end of a run.
pub(super) fn template(id: u16, groups: Option<Groups>, own: u32, out: &mut Vec<u8>) {
    let begin = out.len();
    let set = if groups.is_some() { TEMPLATES } else { OPTIONS_TEMPLATES };
    let fields: Vec<(Number, Type)> = match groups {
        Some(groups) => groups.elements().map(|it| (it.number, it.kind)).collect(),
        None => END.iter().map(|it| (it.number, it.kind)).collect(),
    };
    out.extend_from_slice(&set.to_be_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&(fields.len() as u16).to_be_bytes());
    if groups.is_none() {
        let scopes = END.iter().filter(|it| it.is_scope).count();
        out.extend_from_slice(&(scopes as u16).to_be_bytes());
    }
    for (number, kind) in fields {
        let (id, enterprise) = number.written(own);
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&kind.length().to_be_bytes());
        if let Some(enterprise) = enterprise {
            out.extend_from_slice(&enterprise.to_be_bytes());
        }
    }
    patch_length(out, begin, begin + 2);
}

/// Appends the record of a connection.
pub(super) fn connection(
    of: &Connection<'_>,
    groups: Groups,
    out: &mut Vec<u8>,
) -> Result<(), Untellable> {
    for element in groups.elements() {
        // The groups are those that it has values for.
        let value = (element.value)(of).unwrap_or(Value::Number(0));
        put(element.kind, value, out)?;
    }
    Ok(())
}

/// Appends the record of the end of a run: `totals` are bytes, messages and records of connections.
pub(super) fn end(of: &RunEnd<'_>, domain: u32, totals: [u64; 3], out: &mut Vec<u8>) {
    out.extend_from_slice(&domain.to_be_bytes());
    text(of.sensor, out);
    text(of.run, out);
    for number in totals.into_iter().chain([of.rows]) {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn put(kind: Type, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), Untellable> {
    match (kind, value) {
        (kind, Value::Address(address)) => {
            // An address of IPv4 has that in its last bytes (RFC 4291, 2.5.5.2).
            let [high, low] = address.words().map(u64::to_be_bytes);
            let bytes = [high, low].concat();
            let length = usize::from(kind.length()).min(bytes.len());
            out.extend_from_slice(bytes.get(bytes.len() - length..).unwrap_or_default());
        }
        (Type::Nanoseconds, Value::Time(time)) => {
            out.extend_from_slice(&ntp(time).ok_or(Untellable::Time)?.to_be_bytes());
        }
        (_, Value::Time(time)) => {
            let millis = u64::try_from(time.nanos().div_euclid(1_000_000));
            out.extend_from_slice(&millis.map_err(|_| Untellable::Time)?.to_be_bytes());
        }
        (_, Value::Text(value)) => text(value, out),
        (kind, Value::Number(number)) => {
            let bytes = number.to_be_bytes();
            let length = usize::from(kind.length()).min(bytes.len());
            out.extend_from_slice(bytes.get(bytes.len() - length..).unwrap_or_default());
        }
    }
    Ok(())
}

/// Seconds since 1900 and a binary fraction, if it is in the first era of that count.
fn ntp(time: Timestamp) -> Option<u64> {
    let seconds = u32::try_from(time.nanos().div_euclid(SECOND) + SINCE_1900).ok()?;
    let nanos = time.nanos().rem_euclid(SECOND) as u64;
    let fraction = ((nanos << 32) + SECOND as u64 / 2) / SECOND as u64;
    Some(u64::from(seconds) << 32 | fraction)
}

fn text(value: &str, out: &mut Vec<u8>) {
    // Longer text fits into no message, and its record is refused for that.
    let length = value.len().min(usize::from(u16::MAX));
    match u8::try_from(length) {
        Ok(short) if length < LONG => out.push(short),
        _ => {
            out.push(LONG as u8);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(value.as_bytes());
}

// Numbers of templates that groups can have end before that of the end of a run.
const _: () =
    assert!(FIRST_TEMPLATE as usize + (1 << super::Group::ALL.len()) <= END_TEMPLATE as usize);
