//! A filter from arbitrary text, on an arbitrary packet of any link type.
//!
//! The input is a link type, the text up to the first NUL byte, and the packet. Beyond not
//! panicking, a filter must mean the same once it is written out in full, and as a program.
#![no_main]

use std::num::NonZeroU32;

use libfuzzer_sys::fuzz_target;
use netsniff_packet::filter::classic::{Metadata, Options, Target};
use netsniff_packet::{Filter, LinkType, Packet, Timestamp};

fuzz_target!(|input: &[u8]| {
    let [link_type, rest @ ..] = input else {
        return;
    };
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let data = parts.next().unwrap_or_default();
    let filter = match Filter::parse(&text) {
        Ok(filter) => filter,
        Err(error) => {
            let _ = (error.to_string(), error.caret().to_string());
            return;
        }
    };
    let link_type = match *link_type {
        255 => LinkType::LINUX_SLL2,
        other => LinkType(other.into()),
    };
    let timestamp = Timestamp::EPOCH;
    let packet = Packet { timestamp, data, wire_len: data.len() as u32, link_type, interface: 0 };
    let verdict = filter.matches(&packet);
    assert!(!verdict || filter.check(link_type).is_ok());
    let options = Options { target: Target::File, snaplen: NonZeroU32::MIN, sample: None };
    if let Ok(program) = filter.compile(link_type, &options) {
        let metadata = Metadata { length: packet.wire_len, ..Metadata::default() };
        assert_eq!(program.run(data, &metadata) != 0, verdict);
    }
    if let Ok(again) = Filter::parse(&filter.to_string()) {
        assert_eq!(again.matches(&packet), verdict);
    }
});
