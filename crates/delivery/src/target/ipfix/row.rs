//! A row of `conn` as what IPFIX tells of it.

use std::borrow::Cow;
use std::net::IpAddr;

use netsniff_ipfix::exporter::{Connection, RunEnd, Side, Told};
use netsniff_packet::{Address, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::CONN;
use crate::identity::{RUN_END, Row, nanos};

const FIN: u16 = 1;
const SYN: u16 = 2;
const RST: u16 = 4;
const ACK: u16 = 16;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const ICMPV6: u8 = 58;

/// A row that was read.
pub(super) enum Parsed<'a> {
    Connection(Box<Columns<'a>>),
    End(End<'a>),
}

/// The columns of `conn` that are told.
#[derive(Deserialize)]
pub(super) struct Columns<'a> {
    #[serde(borrow)]
    ts: &'a RawValue,
    uid: Cow<'a, str>,
    #[serde(rename = "id.orig_h")]
    originator: IpAddr,
    #[serde(rename = "id.orig_p")]
    originator_port: u16,
    #[serde(rename = "id.resp_h")]
    responder: IpAddr,
    #[serde(rename = "id.resp_p")]
    responder_port: u16,
    #[serde(borrow)]
    service: Option<Cow<'a, str>>,
    #[serde(borrow)]
    duration: Option<&'a RawValue>,
    orig_bytes: Option<u64>,
    resp_bytes: Option<u64>,
    #[serde(borrow)]
    conn_state: Option<Cow<'a, str>>,
    missed_bytes: Option<u64>,
    #[serde(borrow)]
    history: Option<Cow<'a, str>>,
    orig_pkts: u64,
    orig_ip_bytes: u64,
    resp_pkts: u64,
    resp_ip_bytes: u64,
    ip_proto: u8,
    vlan: Option<u16>,
    inner_vlan: Option<u16>,
    quality: Cow<'a, str>,
    depth: Cow<'a, str>,
    capture_missed_bytes: Option<u64>,
    network_missed_bytes: Option<u64>,
    bad_checksums: Option<u64>,
    sampling: Option<u64>,
}

/// A row of `run_end`.
#[derive(Deserialize)]
pub(super) struct End<'a> {
    of: Cow<'a, str>,
    rows: u64,
}

impl<'a> Parsed<'a> {
    /// Reads a row. The error is a sentence.
    pub(super) fn of(row: &Row<'a>) -> Result<Self, String> {
        let read = match row.log {
            CONN => serde_json::from_slice(row.json).map(|it| Self::Connection(Box::new(it))),
            RUN_END => serde_json::from_slice(row.json).map(Self::End),
            log => return Err(format!("IPFIX has no form for the log {log}")),
        };
        read.map_err(|error| format!("IPFIX cannot tell this row: {error}"))
    }

    /// What is told of it.
    pub(super) fn told(&'a self, row: &Row<'a>) -> Result<Told<'a>, String> {
        let (sensor, run) = (&row.identity.sensor, &row.identity.run);
        match self {
            Self::Connection(columns) => columns.connection(row).map(Told::from),
            Self::End(End { of, rows }) if of == CONN => {
                Ok(Told::End(RunEnd { sensor, run, rows: *rows }))
            }
            Self::End(End { of, .. }) => Err(format!("IPFIX has no form for the log {of}")),
        }
    }
}

impl Columns<'_> {
    fn connection<'a>(&'a self, row: &Row<'a>) -> Result<Connection<'a>, String> {
        let time = |value: &RawValue| {
            nanos(value.get()).ok_or_else(|| format!("{} is no time", value.get()))
        };
        let start = Timestamp::from_nanos(time(self.ts)?);
        // The time of the last packet is not known where it is that of another one, or before it.
        let is_alone = self.orig_pkts.saturating_add(self.resp_pkts) == 1;
        let duration = self.duration.map(time).transpose()?.or(is_alone.then_some(0));
        let text = |of: &'a Option<Cow<'_, str>>| of.as_deref().unwrap_or_default();
        let (state, history) = (text(&self.conn_state), text(&self.history));
        let is_tcp = self.ip_proto == TCP;
        let is_icmp = matches!(self.ip_proto, ICMP | ICMPV6);
        Ok(Connection {
            sensor: &row.identity.sensor,
            run: &row.identity.run,
            seq: row.seq,
            uid: &self.uid,
            start,
            end: duration.map(|nanos| start.offset(nanos)),
            originator: address(self.originator),
            responder: address(self.responder),
            ports: [self.originator_port, self.responder_port],
            icmp: is_icmp.then(|| self.icmp()),
            protocol: self.ip_proto,
            sent: [
                side(self.orig_pkts, self.orig_ip_bytes, self.orig_bytes),
                side(self.resp_pkts, self.resp_ip_bytes, self.resp_bytes),
            ],
            tcp_flags: (is_tcp && self.history.is_some()).then(|| flags(history)),
            is_ended: is_tcp && is_ended(state),
            service: text(&self.service),
            state,
            history,
            vlan: self.vlan,
            inner_vlan: self.inner_vlan,
            quality: &self.quality,
            depth: &self.depth,
            missed: self.missed_bytes,
            capture_missed: self.capture_missed_bytes,
            network_missed: self.network_missed_bytes,
            bad_checksums: self.bad_checksums,
            sampling: self.sampling,
        })
    }

    /// Type and code: the port of the responder is the type of the answer, where there is one, and else the code.
    fn icmp(&self) -> (u8, u8) {
        let kind = self.originator_port as u8;
        let is_asked = match self.ip_proto {
            ICMP => matches!(kind, 0 | 8..=10 | 13..=18),
            _ => matches!(kind, 128..=131 | 133..=136 | 139 | 140 | 144 | 145),
        };
        (kind, if is_asked { 0 } else { self.responder_port as u8 })
    }
}

const fn side(packets: u64, octets: u64, payload_octets: Option<u64>) -> Side {
    Side { packets, octets, payload_octets }
}

fn address(address: IpAddr) -> Address {
    match address {
        IpAddr::V4(address) => Address::from_v4(address.octets()),
        IpAddr::V6(address) => Address::from_v6(address.octets()),
    }
}

/// The flags that letters of a history tell, of the originator and the responder. No letter tells more than it was
/// written for: a segment with data has none for its ACK.
fn flags(history: &str) -> [u16; 2] {
    let mut sides = [0; 2];
    for letter in history.bytes() {
        let flags = match letter.to_ascii_uppercase() {
            b'S' => SYN,
            b'H' => SYN | ACK,
            b'A' => ACK,
            b'F' => FIN,
            b'R' => RST,
            b'I' => FIN | RST,
            _ => 0,
        };
        sides[usize::from(letter.is_ascii_lowercase())] |= flags;
    }
    sides
}

/// Whether the end of a TCP connection was seen.
fn is_ended(state: &str) -> bool {
    matches!(state, "SF" | "REJ" | "RSTO" | "RSTR" | "RSTOS0" | "RSTRH")
}
