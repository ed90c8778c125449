//! What follows from columns, as the pipelines of Elastic's integration for Zeek have it.

use std::net::IpAddr;

use netsniff_analysis::record::Proto;

use super::super::digits;
use super::super::document::{Inputs, elements};

pub(super) fn transport(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match inputs.transport() {
        Some(Proto::Tcp) => b"\"tcp\"",
        Some(Proto::Udp) => b"\"udp\"",
        Some(Proto::Icmp) => b"\"icmp\"",
        Some(Proto::Unknown) | None => b"",
    });
}

/// The types of an event that Elastic's pipeline gives to a state.
pub(super) fn connection_type(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match inputs.text(0) {
        Some(b"S0" | b"S1") => b"[\"connection\",\"start\"]",
        Some(b"SF") => b"[\"connection\",\"start\",\"end\"]",
        Some(b"REJ") => b"[\"connection\",\"start\",\"denied\"]",
        Some(_) => b"[\"connection\",\"info\"]",
        None => b"[\"connection\"]",
    });
}

pub(super) fn direction(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match (inputs.json(0), inputs.json(1)) {
        (Some(b"true"), Some(b"true")) => b"\"internal\"",
        (Some(b"true"), Some(b"false")) => b"\"outbound\"",
        (Some(b"false"), Some(b"true")) => b"\"inbound\"",
        (Some(b"false"), Some(b"false")) => b"\"external\"",
        _ => b"",
    });
}

/// The sum of both sides, where both are known.
pub(super) fn sum(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    let number = |input| str::from_utf8(inputs.json(input)?).ok()?.parse::<u64>().ok();
    let both = number(0).zip(number(1)).and_then(|(orig, resp)| orig.checked_add(resp));
    if let Some(sum) = both {
        digits::integer(out, sum);
    }
}

pub(super) fn class(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match inputs.json(0) {
        Some(b"1") => b"\"IN\"",
        Some(b"3") => b"\"CH\"",
        Some(b"4") => b"\"HS\"",
        Some(b"254") => b"\"NONE\"",
        Some(b"255") => b"\"ANY\"",
        _ => b"",
    });
}

pub(super) fn flags(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    if (0..4).all(|input| inputs.json(input).is_none()) {
        return;
    }
    out.push(b'[');
    let begun = out.len();
    for (input, flag) in [&b"\"AA\""[..], b"\"TC\"", b"\"RD\"", b"\"RA\""].into_iter().enumerate() {
        if inputs.json(input) == Some(b"true") {
            listed(out, begun, flag);
        }
    }
    out.push(b']');
}

/// Those answers that are addresses.
pub(super) fn resolved(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    let is_address = |answer: &&[u8]| {
        let text = answer.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
        text.and_then(|text| str::from_utf8(text).ok())
            .is_some_and(|text| text.parse::<IpAddr>().is_ok())
    };
    let Some(answers) = inputs.json(0) else { return };
    let start = out.len();
    out.push(b'[');
    let begun = out.len();
    for address in elements(answers).filter(is_address) {
        listed(out, begun, address);
    }
    if out.len() == begun {
        out.truncate(start);
    } else {
        out.push(b']');
    }
}

/// Appends a value to a list whose values begin at `begun`.
fn listed(out: &mut Vec<u8>, begun: usize, value: &[u8]) {
    if out.len() > begun {
        out.push(b',');
    }
    out.extend_from_slice(value);
}

pub(super) fn http_outcome(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match inputs.json(0) {
        Some([b'1'..=b'3', _, _]) => b"\"success\"",
        Some([b'4'..=b'9', _, _]) => b"\"failure\"",
        _ => b"",
    });
}

pub(super) fn outcome(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match inputs.json(0) {
        Some(b"true") => b"\"success\"",
        Some(b"false") => b"\"failure\"",
        _ => b"",
    });
}

pub(super) fn tls_version(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match inputs.text(0) {
        Some(b"SSLv2") => b"\"2.0\"",
        Some(b"SSLv3") => b"\"3.0\"",
        Some(b"TLSv10" | b"DTLSv10") => b"\"1.0\"",
        Some(b"TLSv11") => b"\"1.1\"",
        Some(b"TLSv12" | b"DTLSv12") => b"\"1.2\"",
        Some(b"TLSv13" | b"DTLSv13") => b"\"1.3\"",
        _ => b"",
    });
}

pub(super) fn tls_protocol(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(match inputs.text(0) {
        Some(text) if text.starts_with(b"SSLv") => b"\"ssl\"",
        Some(text) if text.starts_with(b"TLSv") => b"\"tls\"",
        Some(text) if text.starts_with(b"DTLSv") => b"\"dtls\"",
        _ => b"",
    });
}
