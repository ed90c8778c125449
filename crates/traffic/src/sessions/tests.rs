//! Sessions are whole, whatever the seed.

use core::time::Duration;
use std::collections::{BTreeMap, HashMap, HashSet};

use netsniff_packet::checksum::{self, ChecksumVerdict};
use netsniff_packet::decode::{self, TcpFlags, Transport};
use netsniff_packet::{LinkType, Timestamp};

use super::*;
use crate::impair::Impairment;

fn settings(mix: &[Kind], sessions: u64) -> Settings {
    Settings {
        hosts: 20,
        mix: mix.to_vec(),
        profile: Profile::Usual,
        think: Duration::from_millis(300),
        sessions: Some(sessions),
        is_ipv6: false,
        network: Impairment::default(),
        seed: 7,
        start: Timestamp::from_secs_nanos(1_767_225_600, 0),
    }
}

/// What is seen of a connection: SYN, SYN-ACK, FIN and RST, and payload of either side.
#[derive(Debug, Default)]
struct Seen {
    flags: BTreeMap<(Side, u16), usize>,
    payload: HashMap<Side, usize>,
}

use crate::dialogue::Side;

type Flow = (String, String, u16, u16);

fn connections(frames: impl Iterator<Item = Frame>) -> BTreeMap<Flow, Seen> {
    let mut all: BTreeMap<Flow, Seen> = BTreeMap::new();
    let mut last = Timestamp::MIN;
    for Frame { timestamp, from, data } in frames {
        assert!(timestamp >= last, "in order of time");
        last = timestamp;
        let decoded = decode::packet(LinkType::ETHERNET, &data, data.len() as u32);
        assert!(decoded.stop.is_none() && decoded.oddities.is_empty());
        assert_eq!(checksum::transport(&decoded, &data), ChecksumVerdict::Good);
        let ip = decoded.ip.unwrap();
        let (ports, payload, flags) = match decoded.transport {
            Transport::Tcp(tcp) => {
                ((tcp.source_port, tcp.destination_port), tcp.payload_len, tcp.flags.0)
            }
            Transport::Udp(udp) => ((udp.source_port, udp.destination_port), udp.payload_len, 0),
            other => panic!("{other:?}"),
        };
        let (source, destination) = (ip.source.to_string(), ip.destination.to_string());
        let key = match from {
            Side::Client => (source, destination, ports.0, ports.1),
            Side::Server => (destination, source, ports.1, ports.0),
        };
        let seen = all.entry(key).or_default();
        *seen.payload.entry(from).or_default() += payload as usize;
        *seen.flags.entry((from, flags & 0x17)).or_default() += 1;
    }
    all
}

#[test]
fn every_session_of_every_kind_is_whole() {
    for is_ipv6 in [false, true] {
        for kind in Kind::ALL {
            let mut hosts = Hosts::new(Settings { is_ipv6, ..settings(&[kind], 200) });
            let all = connections(&mut hosts);
            assert_eq!(hosts.sessions(), 200);
            let of_kind = all.iter().filter(|((.., port), _)| *port == kind.port());
            let count = of_kind.clone().count();
            assert!((190..=200).contains(&count), "{count} of {kind:?}, a few may share ports");
            for (key, seen) in &all {
                let payload = |side| seen.payload.get(&side).copied().unwrap_or(0);
                assert!(payload(Side::Server) > 0, "{kind:?} {key:?}");
                let is_tcp = key.3 != 53;
                for flags in [TcpFlags::SYN, TcpFlags::FIN] {
                    let ends = [Side::Client, Side::Server].map(|side| {
                        let having = seen
                            .flags
                            .iter()
                            .filter(|((of, had), _)| *of == side && had & flags.0 != 0);
                        having.map(|(_, count)| count).sum::<usize>()
                    });
                    assert_eq!(ends, [usize::from(is_tcp); 2], "{kind:?} {key:?} {flags:?}");
                }
            }
            if kind == Kind::Ftp {
                let data = all.keys().filter(|(.., port)| *port >= 20_000).count();
                assert_eq!(data, count, "each has a connection for its file");
            }
        }
    }
}

#[test]
fn the_seed_decides_every_byte() {
    let frames = |seed| {
        let hosts = Hosts::new(Settings { seed, ..settings(&Kind::ALL, 60) });
        hosts.map(|frame| (frame.timestamp, frame.data)).collect::<Vec<_>>()
    };
    let once = frames(1);
    assert!(once == frames(1), "the same seed");
    assert!(once != frames(2), "another one");
    let clients: HashSet<_> = once.iter().map(|(_, data)| data[26..30].to_vec()).collect();
    assert!(clients.len() > 20, "hosts and servers");
}

/// Sessions that have ended are forgotten.
#[test]
fn memory_is_that_of_the_sessions_of_the_moment() {
    let hosts = Hosts::new(settings(&[Kind::Dns], 20_000));
    let mut ends = Vec::new();
    let mut hosts = hosts;
    while hosts.next().is_some() {
        ends.push(hosts.held());
    }
    assert!(ends.len() >= 39_000);
    assert!(ends.iter().all(|held| *held <= 2 * 20), "{:?}", ends.iter().max());
}

#[test]
fn what_the_network_loses_is_sent_again() {
    let network = Impairment {
        loss: 0.02,
        duplication: 0.01,
        reordering: 0.02,
        max_delay: Duration::from_millis(2),
    };
    let mix = [Kind::Http, Kind::Https];
    let all = connections(Hosts::new(Settings { network, ..settings(&mix, 100) }));
    let again = all.values().filter(|seen| {
        seen.flags.iter().any(|((_, flags), count)| flags & 0x02 != 0 && *count > 1)
    });
    assert!(again.count() > 2, "some handshakes were lost or doubled");
    let whole = all.iter().filter(|((.., port), seen)| {
        *port == 53
            || [Side::Client, Side::Server].iter().all(|side| {
                seen.flags.iter().any(|((of, flags), _)| of == side && flags & 0x01 != 0)
            })
    });
    assert!(whole.count() * 100 >= all.len() * 97, "nearly all end all the same");
}

/// Nobody answers what never came, and who gets no answer asks again.
#[test]
fn names_are_asked_for_again() {
    let network = Impairment { loss: 0.3, ..Impairment::default() };
    let hosts = Hosts::new(Settings { network, ..settings(&[Kind::Dns], 2000) });
    let all = connections(hosts);
    let count = |seen: &Seen, side| seen.flags.get(&(side, 0)).copied().unwrap_or(0);
    let asked = |times| {
        let of = all.values().filter(|seen| count(seen, Side::Client) == times);
        of.map(|seen| count(seen, Side::Server)).collect::<Vec<_>>()
    };
    assert!(all.values().all(|seen| count(seen, Side::Client) <= 2));
    let never_asked = |seen: &&Seen| count(seen, Side::Server) > count(seen, Side::Client);
    assert_eq!(all.values().filter(never_asked).count(), 0);
    // Half of what is lost is lost behind the tap, so that some questions are seen and have no answer.
    let (once, twice) = (asked(1), asked(2));
    assert!(twice.len() > 300, "{}", twice.len());
    let answers = [0, 1, 2].map(|answers| twice.iter().filter(|seen| **seen == answers).count());
    assert!(answers[1] > answers[0] && answers[1] > answers[2] && answers[2] > 20, "{answers:?}");
    assert!(once.iter().filter(|answers| **answers == 1).count() > 700, "{}", once.len());
}

#[test]
fn names_lead_back() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(Kind::from_name("gopher"), None);
}

/// S2's trace of one host had 870 bytes a packet and 350 packets a second on average.
#[test]
fn sessions_of_the_papers_have_the_averages_of_their_trace() {
    let profile = Profile::Papers;
    for seed in [1, 2, 3] {
        let mix = profile.mix();
        let (hosts, think) = (profile.hosts(), profile.think());
        let hosts = Hosts::new(Settings { hosts, profile, think, seed, ..settings(mix, 500) });
        let (mut frames, mut bytes, mut first, mut last) = (0_u64, 0_u64, None, Timestamp::MIN);
        for frame in hosts {
            frames += 1;
            bytes += frame.data.len() as u64;
            first = first.or(Some(frame.timestamp));
            last = frame.timestamp;
        }
        let seconds = last.nanos_since(first.unwrap()) as f64 / 1e9;
        let (mean, rate) = (bytes as f64 / frames as f64, frames as f64 / seconds);
        assert!((mean / 870.0 - 1.0).abs() < 0.04, "{mean} bytes a packet with seed {seed}");
        assert!((rate / 350.0 - 1.0).abs() < 0.15, "{rate} packets a second with seed {seed}");
    }
}
