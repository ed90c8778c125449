//! Indicators of `--intel`, and the rows in which they are seen.
//!
//! What matches what is as in Zeek's intelligence framework: addresses exactly or by their net, everything else as a
//! whole and without regard to case. Names below a listed domain do not match.

mod file;
mod places;

use std::collections::BTreeMap;

use netsniff_packet::{Address, Timestamp};

pub use self::file::FileError;
pub(super) use self::places::PLACES;
use self::places::Place;
use super::finding::{Found, Note};
use super::sighting::{Seen, Sighting};
use crate::log::{Confidence, Intel};
use crate::record::Port;

/// Seen indicators that somebody wants a notice of.
pub static INTEL_NOTICE: Note = Note {
    name: "Intel::Notice",
    doc: "An indicator was seen whose line of `--intel` has T in `meta.do_notice`.",
    confidence: "High that it was seen; how much that means, its source must know.",
    advice: "Look up the indicator at its source, and what the host did before and after.",
};

crate::words! {
    /// The types of indicators, in Zeek's words.
    pub enum IndicatorType {
        /// An IP address.
        Addr => "Intel::ADDR",
        /// A net, in CIDR notation.
        Subnet => "Intel::SUBNET",
        /// A URL without the `http://` before it.
        Url => "Intel::URL",
        /// The name of software.
        Software => "Intel::SOFTWARE",
        /// A mail address.
        Email => "Intel::EMAIL",
        /// The name of a host.
        Domain => "Intel::DOMAIN",
        /// The name of a user.
        UserName => "Intel::USER_NAME",
        /// A hash of a file.
        FileHash => "Intel::FILE_HASH",
        /// The name of a file.
        FileName => "Intel::FILE_NAME",
        /// The hash of a certificate.
        CertHash => "Intel::CERT_HASH",
        /// The hash of an SSH host key.
        PubkeyHash => "Intel::PUBKEY_HASH",
        /// A JA3 or JA3S fingerprint.
        Ja3 => "Intel::JA3",
        /// A JA4 fingerprint.
        Ja4 => "Intel::JA4",
    }
}

/// What is known of an indicator, from one line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Meta {
    source: String,
    do_notice: bool,
    /// The only place where it counts, if there is one.
    only_in: Option<String>,
}

/// All indicators, to be looked up.
#[derive(Debug, Default)]
pub struct Indicators {
    /// Nets by the number of their leading bits and by their first address.
    nets: BTreeMap<(u8, [u64; 2]), Vec<Meta>>,
    /// The others by type and by what they are, in lower case.
    others: BTreeMap<(IndicatorType, Box<[u8]>), Vec<Meta>>,
}

/// The bits of `address` that a net with so many leading bits has.
fn masked(address: Address, bits: u8) -> [u64; 2] {
    let [high, low] = address.words();
    let mask = |bits: u32| if bits == 0 { 0 } else { u64::MAX << (64 - bits) };
    let bits = u32::from(bits);
    if bits <= 64 { [high & mask(bits), 0] } else { [high, low & mask(bits - 64)] }
}

impl Indicators {
    /// Rows of the indicators that are in `sighting`, and in `found` what somebody wants a notice of.
    pub(super) fn seen(
        &self,
        now: Timestamp,
        sighting: &Sighting,
        found: &mut Vec<Found>,
    ) -> Vec<Intel> {
        let mut rows = Vec::new();
        for place in PLACES.iter().filter(|place| place.log == sighting.log.path) {
            for seen in sighting.values(place.column) {
                if let Some((kind, what)) = place.indicator(sighting, seen) {
                    self.look_up(now, sighting, place, (kind, &what), found, &mut rows);
                }
            }
        }
        rows
    }

    fn look_up(
        &self,
        now: Timestamp,
        sighting: &Sighting,
        place: &Place,
        (kind, what): (IndicatorType, &[u8]),
        found: &mut Vec<Found>,
        rows: &mut Vec<Intel>,
    ) {
        let mut matched = Vec::new();
        let mut metas = Vec::new();
        for (of, all) in self.matching(kind, what) {
            let here: Vec<_> = all
                .iter()
                .filter(|it| it.only_in.as_deref().is_none_or(|only| only == place.name))
                .collect();
            if !here.is_empty() && !matched.contains(&of.name()) {
                matched.push(of.name());
            }
            metas.extend(here);
        }
        if metas.is_empty() {
            return;
        }
        let mut sources: Vec<String> = metas.iter().map(|meta| meta.source.clone()).collect();
        sources.sort_unstable();
        sources.dedup();
        if metas.iter().any(|meta| meta.do_notice) {
            let said =
                format!("an indicator of the type {} was seen at {}", kind.name(), place.name);
            let notice = Found::new(&INTEL_NOTICE, Confidence::High, sighting, said);
            let mut identifier = what.to_ascii_lowercase();
            identifier.extend_from_slice(&notice.identifier);
            found.push(notice.saying(Some(what)).told_by(identifier));
        }
        rows.push(row(now, sighting, place, (kind, what), matched, sources));
    }

    /// All that match, with their types.
    fn matching(&self, kind: IndicatorType, what: &[u8]) -> Vec<(IndicatorType, &[Meta])> {
        let mut all = Vec::new();
        if let Some(metas) = self.others.get(&(kind, what.to_ascii_lowercase().into())) {
            all.push((kind, &**metas));
        }
        if kind == IndicatorType::Addr
            && let Some(address) = places::address(what)
        {
            let nets = (0..=128).filter_map(|bits| self.nets.get(&(bits, masked(address, bits))));
            all.extend(nets.map(|metas| (IndicatorType::Subnet, &**metas)));
        }
        all
    }
}

fn row(
    ts: Timestamp,
    sighting: &Sighting,
    place: &Place,
    (kind, what): (IndicatorType, &[u8]),
    matched: Vec<&'static str>,
    sources: Vec<String>,
) -> Intel {
    Intel {
        ts,
        uid: sighting.word("uid").map(str::to_owned),
        id_orig_h: sighting.address("id.orig_h"),
        id_orig_p: sighting.port("id.orig_p").map(Port),
        id_resp_h: sighting.address("id.resp_h"),
        id_resp_p: sighting.port("id.resp_p").map(Port),
        seen_indicator: Some(what.into()),
        seen_indicator_type: kind.name(),
        seen_where: place.name,
        seen_node: "netsniff",
        matched,
        sources,
        fuid: sighting.word("fuid").map(str::to_owned),
        file_mime_type: sighting.text("mime_type").map(Into::into),
    }
}

/// What stands in a column, as bytes.
fn bytes_of(seen: &Seen) -> Option<Vec<u8>> {
    match seen {
        Seen::Text(text) if !text.is_empty() => Some(text.to_vec()),
        Seen::Address(address) => Some(address.to_string().into_bytes()),
        _ => None,
    }
}
