//! Records by their templates.

use netsniff_packet::{Address, Timestamp};

use crate::bytes::{Bytes, number};
use crate::element::Meaning;
use crate::flow::{Direction, EndReason, Flow, Sent};
use crate::message::Clock;
use crate::sampling::{Sampling, SamplingFields};
use crate::template::{Field, Template, VARIABLE};

/// Seconds from 1900 to 1970 (RFC 5905).
const SINCE_1900: i64 = 2_208_988_800;
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const UDP_LITE: u8 = 136;
const DCCP: u8 = 33;
const SCTP: u8 = 132;

/// What an exporter counted of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCounts {
    /// Flow records that it sent.
    pub exported_flows: Option<u64>,
    /// Flow records that it had and did not send.
    pub not_sent_flows: Option<u64>,
    /// Packets that it saw and did not look at.
    pub ignored_packets: Option<u64>,
    /// Packets that it dropped.
    pub dropped_packets: Option<u64>,
}

/// The values of a record that mean something here.
#[derive(Debug, Default)]
pub(crate) struct Values {
    source: Option<Address>,
    destination: Option<Address>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
    protocol: Option<u8>,
    icmp_both: Option<u16>,
    icmp_type: Option<u8>,
    icmp_code: Option<u8>,
    /// By direction, forward first.
    sent: [Sent; 2],
    total: [Sent; 2],
    has_reverse: bool,
    duration_nanos: Option<i64>,
    direction: Option<Direction>,
    end_reason: Option<EndReason>,
    vlan: Option<u16>,
    ingress: Option<u32>,
    egress: Option<u32>,
    is_event: bool,
    uptimes: [[Option<u32>; 2]; 2],
    pub(crate) system_init: Option<Timestamp>,
    pub(crate) sampling: SamplingFields,
    pub(crate) own: OwnCounts,
}

/// Takes the next record of a set; `None` where its bytes are fewer than it has.
pub(crate) fn next(set: &mut Bytes<'_>, template: &Template, clock: &Clock) -> Option<Values> {
    let mut values = Values::default();
    for field in &template.fields {
        let len = match field.len {
            VARIABLE => match set.u8()? {
                255 => set.u16()?.into(),
                len => len.into(),
            },
            len => usize::from(len),
        };
        let value = set.take(len)?;
        values.take(field, value, clock);
    }
    Some(values)
}

/// The number that is a value, if it is one.
fn count(value: &[u8]) -> Option<u64> {
    (1..=8).contains(&value.len()).then(|| number(value))
}

/// A number with a fraction, which may be told in half its bytes (RFC 7011, 6.2).
fn float(value: &[u8]) -> Option<f64> {
    let half = || value.try_into().ok().map(|bytes| f64::from(f32::from_be_bytes(bytes)));
    value.try_into().ok().map(f64::from_be_bytes).or_else(half)
}

fn address(value: &[u8]) -> Option<Address> {
    match value.len() {
        4 => value.try_into().ok().map(Address::from_v4),
        16 => value.try_into().ok().map(Address::from_v6),
        _ => None,
    }
}

fn is_unspecified(address: Address) -> bool {
    address.to_ip().is_unspecified()
}

/// A time of so many units since the epoch, of which a second has `per_second`.
fn time(value: &[u8], per_second: i64) -> Option<Timestamp> {
    // Nothing was seen in 1970: exporters write zeros for what they do not know.
    let units = i64::try_from(count(value)?).ok().filter(|units| *units > 0)?;
    units.checked_mul(1_000_000_000 / per_second).map(Timestamp::from_nanos)
}

fn ntp(value: &[u8]) -> Option<Timestamp> {
    if value.len() != 8 {
        return None;
    }
    let both = Some(number(value)).filter(|both| *both > 0)?;
    let (seconds, fraction) = (both >> 32, both & 0xffff_ffff);
    let nanos = (fraction * 1_000_000_000 + (1 << 31)) >> 32;
    Some(Timestamp::from_secs_nanos(seconds as i64 - SINCE_1900, nanos as i64))
}

fn before(clock: &Clock, value: &[u8]) -> Option<Timestamp> {
    let micros = i64::try_from(count(value)?).ok()?;
    Some(clock.sent.offset(-micros.checked_mul(1000)?))
}

impl Values {
    fn take(&mut self, field: &Field, value: &[u8], clock: &Clock) {
        let side = usize::from(field.is_reverse);
        let value_of = || count(value);
        let small = || count(value).and_then(|it| u8::try_from(it).ok());
        let port = || count(value).and_then(|it| u16::try_from(it).ok());
        self.has_reverse |= field.is_reverse;
        let sent = &mut self.sent[side];
        match field.meaning {
            Meaning::Nothing => {}
            Meaning::Octets => sent.octets = value_of(),
            Meaning::Packets => sent.packets = value_of(),
            Meaning::PayloadOctets => sent.payload_octets = value_of(),
            Meaning::TcpFlags => sent.tcp_flags = port().filter(|flags| *flags != 0),
            Meaning::TotalOctets => self.total[side].octets = value_of(),
            Meaning::TotalPackets => self.total[side].packets = value_of(),
            Meaning::ResponderOctets => self.respond(|sent| sent.octets = value_of()),
            Meaning::ResponderPackets => self.respond(|sent| sent.packets = value_of()),
            Meaning::StartUptime => {
                self.uptimes[side][0] = value_of().and_then(|it| u32::try_from(it).ok());
            }
            Meaning::EndUptime => {
                self.uptimes[side][1] = value_of().and_then(|it| u32::try_from(it).ok());
            }
            Meaning::StartSeconds => sent.start = time(value, 1),
            Meaning::EndSeconds => sent.end = time(value, 1),
            Meaning::StartMillis => sent.start = time(value, 1000),
            Meaning::EndMillis => sent.end = time(value, 1000),
            Meaning::StartNtp => sent.start = ntp(value),
            Meaning::EndNtp => sent.end = ntp(value),
            Meaning::StartDelta => sent.start = before(clock, value),
            Meaning::EndDelta => sent.end = before(clock, value),
            Meaning::DurationMillis => self.duration_nanos = nanos(value, 1_000_000),
            Meaning::DurationMicros => self.duration_nanos = nanos(value, 1000),
            Meaning::SystemInit => self.system_init = time(value, 1000),
            Meaning::Protocol => self.protocol = small(),
            Meaning::SourcePort => self.source_port = port(),
            Meaning::DestinationPort => self.destination_port = port(),
            // Templates for both versions of IP fill the other one with zeros.
            Meaning::Source => self.source = either(self.source, address(value)),
            Meaning::Destination => self.destination = either(self.destination, address(value)),
            Meaning::IcmpTypeCode => self.icmp_both = either_number(self.icmp_both, port()),
            Meaning::IcmpType => self.icmp_type = small(),
            Meaning::IcmpCode => self.icmp_code = small(),
            Meaning::EndReason => self.end_reason = value_of().and_then(EndReason::of),
            Meaning::Direction => {
                self.direction = match value_of() {
                    Some(1) => Some(Direction::Initiator),
                    Some(2) => Some(Direction::ReverseInitiator),
                    _ => None,
                };
            }
            Meaning::Vlan => self.vlan = port().map(|tag| tag & 0xfff).filter(|id| *id != 0),
            Meaning::Ingress => self.ingress = value_of().and_then(|it| u32::try_from(it).ok()),
            Meaning::Egress => self.egress = value_of().and_then(|it| u32::try_from(it).ok()),
            Meaning::Sampler => self.sampling.sampler = value_of(),
            Meaning::SamplingInterval => self.sampling.interval = value_of(),
            Meaning::SamplingChosen => self.sampling.chosen = value_of(),
            Meaning::SamplingSpace => self.sampling.space = value_of(),
            Meaning::SamplingPopulation => self.sampling.population = value_of(),
            Meaning::SamplingProbability => {
                self.sampling.probability = float(value);
            }
            // What is told at the begin of a flow, and what was denied, has no counts.
            Meaning::FirewallEvent => self.is_event |= !matches!(value_of(), Some(2 | 5)),
            Meaning::NatEvent => self.is_event |= value_of() != Some(0),
            Meaning::ExportedFlows => self.own.exported_flows = value_of(),
            Meaning::NotSentFlows => self.own.not_sent_flows = value_of(),
            Meaning::IgnoredPackets => self.own.ignored_packets = value_of(),
            Meaning::DroppedPackets => self.own.dropped_packets = value_of(),
        }
    }

    fn respond(&mut self, set: impl FnOnce(&mut Sent)) {
        self.has_reverse = true;
        set(&mut self.sent[1]);
    }

    /// The flow that they tell of, if it is a connection: addresses, protocol, ports if it has any, and a time.
    pub(crate) fn flow(mut self, clock: &Clock, system_init: Option<Timestamp>) -> Option<Flow> {
        self.times(clock, system_init);
        let protocol = self.protocol?;
        let icmp = self.icmp();
        let has_ports = matches!(protocol, TCP | UDP | UDP_LITE | DCCP | SCTP);
        let ports = self.source_port.zip(self.destination_port);
        let is_icmp = matches!(protocol, ICMP | ICMPV6);
        if self.is_event || has_ports && ports.is_none() || is_icmp && icmp.is_none() {
            return None;
        }
        let (source_port, destination_port) = ports.filter(|_| has_ports).unwrap_or_default();
        let [forward, reverse] = self.sent;
        let flow = Flow {
            source: self.source?,
            destination: self.destination?,
            source_port,
            destination_port,
            protocol,
            icmp: icmp.filter(|_| is_icmp),
            forward,
            reverse: self.has_reverse.then_some(reverse),
            direction: self.direction,
            end_reason: self.end_reason,
            sampling: Sampling::Untold,
            vlan: self.vlan,
            ingress: self.ingress,
            egress: self.egress,
            template: None,
            is_touched: false,
        };
        flow.start().is_some().then_some(flow)
    }

    fn icmp(&self) -> Option<(u8, u8)> {
        let both = |number: u16| ((number >> 8) as u8, number as u8);
        let apart = self.icmp_type.zip(self.icmp_code);
        // NetFlow tells type and code as the destination port.
        apart.or_else(|| self.icmp_both.map(both)).or_else(|| self.destination_port.map(both))
    }

    /// Brings times that are relative, and counts since the begin, to where the others are.
    fn times(&mut self, clock: &Clock, system_init: Option<Timestamp>) {
        let init = self.system_init.or(system_init);
        let at = |millis: u32| {
            let since_init = || init.map(|init| init.offset(i64::from(millis) * 1_000_000));
            clock.at_uptime(millis).or_else(since_init)
        };
        for side in 0..2 {
            let [start, end] = self.uptimes[side];
            let (sent, total) = (&mut self.sent[side], &self.total[side]);
            sent.start = sent.start.or_else(|| start.and_then(at));
            sent.end = sent.end.or_else(|| end.and_then(at));
            sent.octets = sent.octets.or(total.octets);
            sent.packets = sent.packets.or(total.packets);
        }
        let forward = &mut self.sent[0];
        if let Some(duration) = self.duration_nanos {
            forward.start = forward.start.or_else(|| forward.end.map(|end| end.offset(-duration)));
            forward.end = forward.end.or_else(|| forward.start.map(|start| start.offset(duration)));
        }
    }
}

fn nanos(value: &[u8], unit: i64) -> Option<i64> {
    i64::try_from(count(value)?).ok()?.checked_mul(unit)
}

fn either(old: Option<Address>, new: Option<Address>) -> Option<Address> {
    match old {
        Some(old) if !is_unspecified(old) => Some(old),
        old => new.filter(|new| old.is_none() || !is_unspecified(*new)).or(old),
    }
}

/// One of two, of which zero is that of the other version of IP.
fn either_number(old: Option<u16>, new: Option<u16>) -> Option<u16> {
    old.filter(|old| *old != 0).or(new).or(old)
}

/// The flow of a record of NetFlow 5; `None` where it has fewer bytes, or tells nothing.
pub(crate) fn netflow5(record: &[u8], clock: &Clock) -> Option<Flow> {
    let mut bytes = Bytes(record);
    let mut next = |len| bytes.take(len).map(number);
    let (source, destination) = (next(4)? as u32, next(4)? as u32);
    let _next_hop = next(4)?;
    let (ingress, egress) = (next(2)? as u32, next(2)? as u32);
    let (packets, octets) = (next(4)?, next(4)?);
    let (first, last) = (next(4)? as u32, next(4)? as u32);
    let (source_port, destination_port) = (next(2)? as u16, next(2)? as u16);
    let _padding = next(1)?;
    let (flags, protocol) = (next(1)? as u16, next(1)? as u8);
    let values = Values {
        source: Some(Address::from_v4(source.to_be_bytes())),
        destination: Some(Address::from_v4(destination.to_be_bytes())),
        source_port: Some(source_port),
        destination_port: Some(destination_port),
        protocol: Some(protocol),
        sent: [
            Sent {
                packets: Some(packets),
                octets: Some(octets),
                tcp_flags: Some(flags).filter(|flags| *flags != 0),
                ..Sent::default()
            },
            Sent::default(),
        ],
        uptimes: [[Some(first), Some(last)], [None; 2]],
        ingress: Some(ingress),
        egress: Some(egress),
        ..Values::default()
    };
    values.flow(clock, None)
}
