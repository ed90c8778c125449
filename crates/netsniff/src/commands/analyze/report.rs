//! From an outcome to its summary, and to what must be said at once.

use std::collections::BTreeMap;

use netsniff_analysis::checksums::{Checked, Verdicts};
use netsniff_analysis::correlator::ExtractionStatistics;
use netsniff_analysis::correlator::{Bound, GivenUp};
use netsniff_analysis::flow::report::statistics::{Ending, FlowStatistics};
use netsniff_analysis::ingress::statistics::{Count as PacketCount, LossStatistics};
use netsniff_analysis::log::conn::{ConnState, Quality};
use netsniff_analysis::reassembly::stream::{GapCause, HoleEndings};
use netsniff_analysis::record::Proto;
use netsniff_analysis::{ChecksumMode, Depth};
use netsniff_console::number::{count, exact};
use netsniff_packet::checksum::ChecksumVerdict;
use netsniff_packet::decode::Layer as PacketLayer;
use netsniff_pipeline::{AnalysisOutcome, Settings};

use netsniff_delivery::Books;

use super::origin::Origin;
use super::packet_notes;
use crate::commands::delivery::undelivered;
use crate::summary::{
    Books as PacketBooks, ChecksumCounts, Checksums, Count, Extracted, Flows, Holes, Layer, Part,
    Summary, TcpHealth,
};

/// Everything that an analysis is known by once it is over.
pub(super) struct Analysis<'a> {
    /// Where the packets came from.
    pub(super) origin: &'a dyn Origin,
    pub(super) settings: &'a Settings,
    pub(super) outcome: &'a AnalysisOutcome,
    /// How hosts and people are named, where it is not by their names.
    pub(super) pseudonyms: Option<&'a str>,
    /// Where the rows went that were to be delivered.
    pub(super) delivered: &'a [Books],
    /// Wall time in nanoseconds.
    pub(super) elapsed_nanos: u64,
}

impl Analysis<'_> {
    pub(super) fn summary(&self) -> Summary {
        let AnalysisOutcome { packets, flows, .. } = self.outcome;
        let weirds = packets.weirds.iter().chain(&flows.weirds);
        Summary {
            input: self.origin.input(self),
            layers: layers(&packets.layers()),
            talkers: self.talkers(),
            connections: self.connections(),
            tcp: tcp_health(flows),
            oddities: sorted(weirds.map(|(&name, &times)| (name, times))),
            flows: (self.settings.options.depth > Depth::Packets).then(|| self.flows()),
            extracted: self.extracted(),
            checksums: self.checksums(),
            capture: self.origin.capture(),
            delivery: self.delivered.to_vec(),
            books: self.books(),
            notes: self.notes(),
        }
    }

    fn flows(&self) -> Flows {
        let flows = &self.outcome.flows;
        let states = Proto::ALL.iter().flat_map(|&proto| flows.states(proto));
        Flows {
            total: flows.flows_begun().map(|(_, begun)| begun).sum(),
            by_protocol: sorted(flows.flows_begun().map(|(of, begun)| (of.name(), begun))),
            by_state: sorted(states.map(|(state, ended)| (state.name(), ended))),
            by_end: sorted(flows.endings().map(|(ending, ended)| (ending.name(), ended))),
            by_service: sorted(flows.services()),
            holes: sorted(holes(&flows.holes)),
            failed_sessions: flows.failed_sessions,
            by_quality: sorted(flows.qualities().map(|(of, ended)| (of.name(), ended))),
            peak: flows.peak_flows as u64,
            peak_bytes: flows.peak_bytes as u64,
            peak_held_bytes: flows.peak_held_bytes() as u64,
        }
    }

    fn extracted(&self) -> Option<Extracted> {
        self.settings.options.extract.as_ref()?;
        let ExtractionStatistics { files, bytes, cut, refused, overrun, failed } =
            self.outcome.joins.extraction;
        Some(Extracted { files, bytes, cut_off: cut, refused, overrun, failed })
    }

    /// What was not extracted.
    fn not_extracted(&self) -> impl Iterator<Item = String> {
        let ExtractionStatistics { cut, refused, overrun, failed, .. } =
            self.outcome.joins.extraction;
        let limits = &self.settings.limits;
        let told = [
            (
                cut,
                format!("cut off after {} bytes each", exact(limits.extracted_file_bytes.into())),
            ),
            (
                refused,
                format!(
                    "not kept: the bound of {} files or {} bytes for all was reached",
                    exact(limits.extracted_files.into()),
                    exact(limits.extracted_bytes.into())
                ),
            ),
            (overrun, "not kept, since they came faster than they could be written".to_owned()),
            (failed, "not kept, since they could not be written".to_owned()),
        ];
        let told = told.into_iter().filter(|(number, _)| *number > 0);
        told.map(|(number, what)| format!("files {what}: {}", exact(number.into())))
    }

    fn checksums(&self) -> Checksums {
        let AnalysisOutcome { packets, flows, .. } = self.outcome;
        let mode = self.settings.options.checksums;
        let counts = |verdicts: Verdicts| {
            (mode != ChecksumMode::Ignore).then(|| ChecksumCounts {
                good: verdicts.of(ChecksumVerdict::Good),
                bad: verdicts.of(ChecksumVerdict::Bad),
                partial: verdicts.of(ChecksumVerdict::Partial),
                absent: verdicts.of(ChecksumVerdict::Absent),
                unknown: verdicts.of(ChecksumVerdict::Unknown),
            })
        };
        let above = |wanted| {
            flows.checksums().find(|(of, _)| *of == wanted).and_then(|(_, all)| counts(all))
        };
        Checksums {
            mode: mode.name().to_owned(),
            discarded: flows.discarded,
            ip: counts(packets.ip_checksums),
            tcp: above(Checked::Tcp),
            udp: above(Checked::Udp),
            icmp: above(Checked::Icmp),
            sctp: above(Checked::Sctp),
        }
    }

    fn books(&self) -> PacketBooks {
        let packets = &self.outcome.packets;
        let part = |name: &str, packets| Part { name: name.to_owned(), packets };
        let unsupported = packets.unsupported.values().map(|count| count.packets).sum();
        // What is left out of a connection is known by its datagrams, not by its packets.
        let discards = self.settings.options.checksums == ChecksumMode::Discard;
        let analysed = if discards { "decoded" } else { "analysed" };
        let by_depth = packets.without_flow.with(&self.outcome.flows.packets);
        let by_depth = by_depth.without(&packets.without_log).without(&packets.unjoined);
        let mut parts = if by_depth.of(Depth::Protocols) == by_depth.total() {
            vec![part(analysed, Some(by_depth.total()))]
        } else {
            let depths = by_depth.iter().filter(|(_, packets)| *packets > 0);
            let line = |of: Depth| format!("{analysed} at the depth {}", of.name());
            depths.map(|(of, packets)| part(&line(of), Some(packets))).collect()
        };
        for (name, untold) in [
            ("in no log: ARP, GRE acknowledgements", packets.without_log),
            ("fragments of datagrams not whole", packets.unjoined),
        ] {
            if untold.total() > 0 {
                parts.push(part(name, Some(untold.total())));
            }
        }
        parts.extend([
            part("with headers malformed or cut", Some(packets.stopped)),
            part("of a link type not supported", Some(unsupported)),
        ]);
        if packets.unknown > 0 {
            parts.push(part("carrying what is not known", Some(packets.unknown)));
        }
        if discards {
            parts.push(part("left out for a wrong IP checksum", Some(packets.discarded)));
        }
        if self.origin.has_filter() {
            parts.push(part("refused by the filter", Some(self.outcome.filtered)));
        }
        let LossStatistics { places, packets } = self.outcome.packets.losses;
        parts.extend(self.origin.parts());
        let lost = self.origin.lost();
        PacketBooks { read: self.origin.packets(), parts, lost, holes: Holes { places, packets } }
    }

    /// Why nothing of the input could be read, if so.
    pub(super) fn nothing_read(&self) -> Option<String> {
        let packets = &self.outcome.packets;
        let unsupported = &packets.unsupported;
        let sum: u64 = unsupported.values().map(|count| count.packets).sum();
        if packets.total.packets == 0 || sum < packets.total.packets {
            return None;
        }
        let named = unsupported.keys().map(|of| match of.name() {
            Some(name) => format!("{} ({name})", of.0),
            None => of.0.to_string(),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        Some(format!("nothing could be read: no packet has a link type but {named}, not supported"))
    }

    /// Why the capture is not as good as `percent` asks for, if so.
    pub(super) fn below(&self, percent: f64) -> Option<String> {
        let of = |quality| self.outcome.flows.of_quality(Proto::Tcp, quality);
        let [clean, touched, suspect] =
            [Quality::Clean, Quality::Touched, Quality::Suspect].map(of);
        let judged = clean.saturating_add(touched).saturating_add(suspect);
        let read = self.origin.packets();
        let lost = self.origin.known_lost();
        let share = |good: u64, all: u64| good as f64 / all as f64 * 100.0;
        if judged == 0 && lost.is_none() {
            let said = "no TCP connection that was seen whole and no drop counter tells of the \
                        capture's quality";
            return Some(said.to_owned());
        }
        if judged > 0 && share(clean, judged) < percent {
            let [judged, touched, suspect] =
                [judged, touched, suspect].map(|count| exact(count.into()));
            return Some(format!(
                "of {judged} TCP connections that would show a loss, {touched} are touched and \
                 {suspect} suspect"
            ));
        }
        let lost = lost.unwrap_or(0);
        let all = read.saturating_add(lost);
        (lost > 0 && share(read, all) < percent).then(|| {
            format!("the capture lost {} of {} packets", exact(lost.into()), exact(all.into()))
        })
    }

    /// What must be known to believe the logs.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.pseudonyms.map(str::to_owned).into_iter().collect();
        notes.extend(self.origin.notes(self));
        let (packets, flows) = (&self.outcome.packets, &self.outcome.flows);
        notes.extend(packet_notes::notes(packets));
        let evicted = flows.endings().find(|(ending, _)| *ending == Ending::Evicted);
        let evicted = evicted.map_or(0, |(_, ended)| ended);
        if evicted > 0 {
            let limits = &self.settings.limits;
            notes.push(format!(
                "the bound of {} flows or {} for them was reached: {} flows ended early, and the \
                 logs depend on the number of workers",
                count(limits.flows as u64),
                netsniff_console::number::bytes(limits.flow_bytes as u64),
                count(evicted)
            ));
        }
        notes.extend(self.joins_given_up());
        notes.extend(self.not_extracted());
        notes.extend(undelivered(self.delivered));
        notes
    }

    /// What bounds made those give up who join what several flows tell.
    fn joins_given_up(&self) -> Vec<String> {
        let note = |given_up: &GivenUp| {
            let GivenUp { bound, of, count: number, what } = *given_up;
            let bound = match bound {
                Bound::Number(most) => count(most as u64),
                Bound::Bytes(most) => netsniff_console::number::bytes(most as u64),
            };
            format!("the bound of {bound} {of} was reached: {} {what}", count(number))
        };
        self.outcome.joins.given_up.iter().map(note).collect()
    }
}

/// Sums by name, the largest first; what never occurred is left out.
fn sorted(counts: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<Count> {
    let mut sums = BTreeMap::<_, u64>::new();
    for (name, number) in counts.into_iter().filter(|(_, number)| *number > 0) {
        *sums.entry(name).or_default() += number;
    }
    let count = |(name, count): (&str, u64)| Count { name: name.to_owned(), count };
    let mut list: Vec<_> = sums.into_iter().map(count).collect();
    list.sort_by_key(|item| core::cmp::Reverse(item.count));
    list
}

/// How holes in streams ended.
fn holes(endings: &HoleEndings) -> impl Iterator<Item = (&'static str, u64)> {
    let gaps = GapCause::ALL.iter().map(|cause| match cause {
        GapCause::Capture => "lost_by_the_capture",
        GapCause::Snaplen => "cut_by_the_capture",
        GapCause::Bound => "given_up_for_a_bound",
        GapCause::Time => "given_up_for_time",
        GapCause::End => "open_at_the_end",
    });
    [("filled", endings.filled)].into_iter().chain(gaps.zip(endings.gaps))
}

fn begun(flows: &FlowStatistics, proto: Proto) -> u64 {
    flows.flows_begun().find(|(of, _)| *of == proto).map_or(0, |(_, begun)| begun)
}

fn tcp_health(flows: &FlowStatistics) -> Option<TcpHealth> {
    let watched = |number: u64| (flows.unwatched == 0).then_some(number);
    let connections = begun(flows, Proto::Tcp);
    if connections == 0 {
        return None;
    }
    let of = |wanted: &[ConnState]| {
        let states = flows.states(Proto::Tcp).filter(|(state, _)| wanted.contains(state));
        states.map(|(_, ended)| ended).sum()
    };
    let established = [
        ConnState::S1,
        ConnState::S2,
        ConnState::S3,
        ConnState::Sf,
        ConnState::Rsto,
        ConnState::Rstr,
    ];
    Some(TcpHealth {
        connections,
        established: of(&established),
        rejected: of(&[ConnState::Rej]),
        unanswered: of(&[ConnState::S0]),
        reset: of(&[ConnState::Rsto, ConnState::Rstr]),
        data_segments: watched(flows.segments.data),
        retransmitted: watched(flows.segments.retransmitted),
        out_of_order: watched(flows.segments.out_of_order),
        duplicates: watched(flows.segments.duplicates),
        with_gaps: watched(flows.flows_with_gaps),
        missed_bytes: watched(flows.missed_bytes),
        acknowledged_early: watched(flows.saved.holes),
        rtt_median_nanos: flows.talkers.handshakes().quantile(0.5),
        rtt_p95_nanos: flows.talkers.handshakes().quantile(0.95),
    })
}

fn layers(counts: &[(PacketLayer, PacketCount)]) -> Vec<Layer> {
    let layer = |(layer, count): &(PacketLayer, PacketCount)| Layer {
        name: title(*layer).to_owned(),
        depth: 0,
        packets: count.packets,
        bytes: count.bytes,
    };
    counts.iter().map(layer).collect()
}

/// A layer's name for people.
const fn title(layer: PacketLayer) -> &'static str {
    match layer {
        PacketLayer::Ethernet => "Ethernet",
        PacketLayer::Cooked => "Linux cooked",
        PacketLayer::Loopback => "loopback",
        PacketLayer::Ppp => "PPP",
        PacketLayer::Wlan => "802.11",
        PacketLayer::Radiotap => "radiotap",
        PacketLayer::Nflog => "netfilter log",
        PacketLayer::Vlan => "VLAN",
        PacketLayer::VnTag => "VN-Tag",
        PacketLayer::ETag => "E-TAG",
        PacketLayer::Pbb => "provider backbone bridging",
        PacketLayer::Hsr => "HSR",
        PacketLayer::Cmd => "Cisco metadata",
        PacketLayer::Macsec => "MACsec",
        PacketLayer::Nsh => "NSH",
        PacketLayer::Mpls => "MPLS",
        PacketLayer::Pppoe => "PPPoE session",
        PacketLayer::PppoeDiscovery => "PPPoE discovery",
        PacketLayer::Llc => "LLC",
        PacketLayer::Arp => "ARP",
        PacketLayer::Ipv4 => "IPv4",
        PacketLayer::Ipv6 => "IPv6",
        PacketLayer::Fragment => "IP fragment",
        PacketLayer::Tcp => "TCP",
        PacketLayer::Udp => "UDP",
        PacketLayer::Icmp => "ICMP",
        PacketLayer::Icmpv6 => "ICMPv6",
        PacketLayer::Sctp => "SCTP",
        PacketLayer::Gre => "GRE",
        PacketLayer::IpInIp => "IP in IP",
        PacketLayer::Vxlan => "VXLAN",
        PacketLayer::Geneve => "Geneve",
        PacketLayer::Gtpu => "GTP-U",
        PacketLayer::Teredo => "Teredo",
        PacketLayer::Ayiya => "AYIYA",
        PacketLayer::OtherNetwork => "other, above the link",
        PacketLayer::OtherTransport => "other, above IP",
    }
}
