//! What an update changes, and under which conditions, RFC 2136 section 2, in the words of Zeek's
//! column `answers`.

use super::allotment::Part;
use super::message::{DnsMessage, Header, Resource};
use super::{names, rdata};

/// QCLASS NONE and ANY (RFC 2136, section 1.3).
const NONE: u16 = 254;
const ANY: u16 = 255;

/// QTYPE ANY.
const ALL: u16 = 255;

/// Reads conditions and changes into the transaction of the zone, and tells whether that was all of them.
pub(super) fn read(message: &mut DnsMessage<'_>, header: Header, parts: &mut [Part]) -> bool {
    let sections = [(header.answers, true), (header.authorities, false)];
    for (count, is_condition) in sections {
        for _ in 0..count {
            let Some(record) = message.resource() else { return false };
            let Some(data) = data(message, &record) else { return false };
            if let Some(Part { transaction, .. }) = parts.first_mut() {
                let text =
                    if is_condition { condition(&record, &data) } else { change(&record, &data) };
                transaction.change(header, record.name.as_bytes(), record.ttl, text);
            }
        }
    }
    true
}

/// What the RDATA says; `None` where it is not sound. There is none where the type alone counts.
fn data(message: &mut DnsMessage<'_>, record: &Resource) -> Option<Vec<u8>> {
    if record.data.is_empty() {
        return Some(Vec::new());
    }
    let told = rdata::read(message, record);
    told.is_sound.then(|| told.text.unwrap_or_default())
}

/// What must hold before (section 2.4).
fn condition(record: &Resource, data: &[u8]) -> Vec<u8> {
    let word: &[u8] = match (record.class, record.kind) {
        (NONE, ALL) => b"pre: NoName",
        (ANY, ALL) => b"pre: Name",
        (NONE, _) => b"pre: NoRRSet",
        _ => b"pre: RRSet",
    };
    let mut words = vec![word];
    let kind = kind(record.kind);
    if record.kind != ALL {
        words.push(kind.as_bytes());
    }
    words.push(record.name.as_bytes());
    sentence(words, data)
}

/// What is added or deleted (section 2.5).
fn change(record: &Resource, data: &[u8]) -> Vec<u8> {
    let kind = kind(record.kind);
    match (record.class, record.kind) {
        (ANY, ALL) => sentence(vec![b"del: Name", record.name.as_bytes()], data),
        (ANY, _) => sentence(vec![b"del: RRSet", kind.as_bytes()], data),
        (NONE, _) => sentence(vec![b"del:", kind.as_bytes(), record.name.as_bytes()], data),
        _ => sentence(vec![b"add:", kind.as_bytes(), record.name.as_bytes()], data),
    }
}

fn kind(kind: u16) -> String {
    names::query_type(kind).map_or_else(|| format!("query-{kind}"), str::to_owned)
}

fn sentence<'a>(mut words: Vec<&'a [u8]>, data: &'a [u8]) -> Vec<u8> {
    if !data.is_empty() {
        words.push(data);
    }
    words.join(&b' ')
}
