//! Packets in packets: identities over time, depth, bounds and garbage.

use std::collections::BTreeSet;

use crate::support::{Row, Rows, analyse};
use netsniff_analysis::{ChecksumMode, Engine, Limits, Options};
use netsniff_packet::{LinkType, Packet, Timestamp, checksum};

const SECOND: i64 = 1_000_000_000;

/// An IPv4 packet from 192.0.2.`from` to 192.0.2.`to`, possibly a fragment.
fn fragment(protocol: u8, ends: [u8; 2], id: u8, word: u16, payload: &[u8]) -> Vec<u8> {
    let len = (20 + payload.len() as u16).to_be_bytes();
    let [high, low] = word.to_be_bytes();
    let mut bytes = vec![0x45, 0, len[0], len[1], 0, id, high, low, 64, protocol, 0, 0];
    bytes.extend([192, 0, 2, ends[0], 192, 0, 2, ends[1]]);
    bytes.extend(payload);
    bytes
}

fn ipv4(protocol: u8, ends: [u8; 2], payload: &[u8]) -> Vec<u8> {
    fragment(protocol, ends, 0, 0, payload)
}

fn udp(ends: [u8; 2], ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [ports[0], ports[1], 8 + payload.len() as u16, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    ipv4(17, ends, &bytes)
}

fn vxlan(inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![8, 0, 0, 0, 0, 0, 7, 0];
    bytes.extend([2; 12]);
    bytes.extend([8, 0]);
    bytes.extend(inner);
    bytes
}

fn gtpu(inner: &[u8]) -> Vec<u8> {
    let [high, low] = (inner.len() as u16).to_be_bytes();
    [&[0x30, 0xff, high, low, 0, 0, 0, 9], inner].concat()
}

fn gre(inner: &[u8]) -> Vec<u8> {
    [&[0, 0, 8, 0], inner].concat()
}

/// A UDP datagram in IPv6 between Teredo clients.
fn teredo(port: u16) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, 8, 17, 64];
    for last in [1, 2] {
        bytes.extend([0x20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    for word in [port, 9999, 8, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes
}

fn inner(port: u16) -> Vec<u8> {
    udp([101, 102], [port, 9999], b"inside")
}

fn packets<'a>(list: &'a [(i64, Vec<u8>)]) -> impl Iterator<Item = Packet<'a>> + Clone {
    list.iter().map(|(nanos, data)| Packet {
        timestamp: Timestamp::from_nanos(*nanos),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::RAW,
        interface: 0,
    })
}

fn run(list: &[(i64, Vec<u8>)]) -> Rows {
    analyse(packets(list), Limits::default())
}

/// Time in seconds, kind and what happened.
fn tunnel_rows(rows: &Rows) -> Vec<String> {
    let line = |row: &&Row| {
        let seconds = row["ts"].split('.').next().unwrap_or_default();
        format!("{seconds} {} {}", row["tunnel_type"], row["action"]).replace("Tunnel::", "")
    };
    rows.log("tunnel").iter().map(line).collect()
}

/// The rows of inner flows; all their parents must be outer flows, or tunnels without a flow.
fn inner_rows(rows: &Rows) -> Vec<&Row> {
    let (conns, tunnels) = (rows.log("conn"), rows.log("tunnel"));
    let without_flow = tunnels.iter().filter(|row| row["id.orig_p"] == "0");
    let uids: BTreeSet<_> =
        conns.iter().chain(without_flow).map(|row| row["uid"].as_str()).collect();
    let inner: Vec<_> = conns.into_iter().filter(|row| row["tunnel_parents"] != "-").collect();
    for row in &inner {
        for parent in row["tunnel_parents"].split(',') {
            assert!(uids.contains(parent), "{parent} is in no row: {row:?}");
        }
    }
    inner
}

/// A small generator (xorshift64*), seeded, so that failures come again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }
}

#[test]
fn a_carrier_that_begins_anew_is_a_new_parent() {
    let carrier = |port| udp([1, 2], [50_000, 4789], &vxlan(&inner(port)));
    let first = 60 * SECOND - 1;
    let rows = run(&[(0, carrier(1)), (first, carrier(2)), (first + 60 * SECOND, carrier(3))]);
    assert_eq!(
        tunnel_rows(&rows),
        ["0 VXLAN DISCOVER", "119 VXLAN CLOSE", "119 VXLAN DISCOVER", "119 VXLAN CLOSE"]
    );
    let parents: Vec<_> =
        inner_rows(&rows).iter().map(|row| row["tunnel_parents"].as_str()).collect();
    assert_eq!(parents.len(), 3);
    let distinct: BTreeSet<_> = parents.iter().collect();
    assert_eq!(distinct.len(), 2);
}

#[test]
fn parents_are_right_whatever_the_times_and_contents() {
    let mut random = Random(5);
    let mut seen = 0;
    for _ in 0..300 {
        let mut now = 1_000 * SECOND;
        let mut list = Vec::new();
        for number in 0..40 {
            now += random.below(40) as i64 * SECOND;
            // Some stamps lie far back.
            let time = now - (random.below(5) / 4) as i64 * random.below(100) as i64 * SECOND;
            let port = random.below(3) as u16;
            let mut ends = [1, 2];
            if random.below(2) == 0 {
                ends.reverse();
            }
            let data = match random.below(7) {
                0 => udp([1, 2], [50_000 + port, 4789], &vxlan(&inner(number))),
                1 => udp(ends, [2152, 2152], &gtpu(&inner(number))),
                2 => udp(ends, [2152, 2152], b"no tunnel"),
                3 => udp([1, 2], [50_000 + port, 4789], b"no tunnel"),
                4 => udp(ends, [2152, 2152], &gtpu(&ipv4(47, [3, 4], &gre(&inner(number))))),
                5 => ipv4(47, ends, &gre(&inner(number))),
                _ => udp(ends, [3544, 3544], &teredo(number)),
            };
            list.push((time, data));
        }
        seen += inner_rows(&run(&list)).len();
    }
    assert!(seen > 5_000, "{seen} rows of inner flows");
}

#[test]
fn a_carrier_on_any_port_stays_known_by_what_else_it_sends() {
    let ports = [40_001, 40_002];
    let rows = run(&[
        (0, udp([1, 2], ports, &teredo(1))),
        (50 * SECOND, udp([2, 1], [40_002, 40_001], b"no tunnel")),
        (100 * SECOND, udp([1, 2], ports, &teredo(2))),
    ]);
    assert_eq!(inner_rows(&rows).len(), 2);
    assert_eq!(tunnel_rows(&rows), ["0 TEREDO DISCOVER", "100 TEREDO CLOSE"]);
}

#[test]
fn the_end_of_a_tunnel_has_the_time_of_the_packet_that_shows_it() {
    let there = |number| udp([1, 2], [40_001, 3544], &teredo(number));
    let other = udp([3, 4], [5, 6], b"other");
    let told = |seconds: i64| {
        tunnel_rows(&run(&[(0, there(1)), (seconds * SECOND, other.clone())])).pop().unwrap()
    };
    assert_eq!(told(59), "59 TEREDO CLOSE", "the capture ends");
    assert_eq!(told(100), "100 TEREDO CLOSE");
    assert_eq!(told(3_600), "3600 TEREDO CLOSE");
    // The look that was due at 10 s finds an hour of silence before the flow ends, which was due at 60 s.
    assert_eq!(told(3_601), "3601 TEREDO EXPIRE");
}

#[test]
fn hosts_that_tunnel_above_ip_are_no_connection() {
    let there = ipv4(47, [1, 2], &gre(&inner(1)));
    let back = ipv4(47, [2, 1], &gre(&inner(2)));
    let hour = 3600 * SECOND;
    let rows =
        run(&[(0, there.clone()), (SECOND, back), (2 * hour, there.clone()), (27 * hour, there)]);
    assert_eq!(
        tunnel_rows(&rows),
        [
            "0 GRE DISCOVER",
            "7200 GRE EXPIRE",
            "7200 GRE DISCOVER",
            "97200 GRE EXPIRE",
            "97200 GRE DISCOVER"
        ]
    );
    let uids: Vec<_> = rows.log("tunnel").iter().map(|row| row["uid"].clone()).collect();
    assert_eq!(uids[0], uids[3], "silence below a day keeps the identity");
    assert_ne!(uids[0], uids[4]);
    assert_eq!(inner_rows(&rows).len(), rows.log("conn").len(), "no row for GRE itself");
}

#[test]
fn what_is_too_deep_is_not_followed() {
    let nest = |levels: u8| {
        (0..levels).fold(inner(1), |inside, level| ipv4(4, [10 + level, 20 + level], &inside))
    };
    let rows = run(&[(0, nest(4))]);
    let tunnels = rows.log("tunnel");
    assert_eq!(tunnels.len(), 4, "all tunnels are discovered");
    let innermost = tunnels.iter().find(|row| row["id.orig_h"] == "192.0.2.10").unwrap();
    let inside = inner_rows(&rows);
    assert_eq!(inside.len(), 1);
    assert_eq!(inside[0]["tunnel_parents"], innermost["uid"]);
    let rows = run(&[(0, nest(5))]);
    assert!(rows.log("conn").is_empty());
    let weirds: Vec<_> = rows.log("weird").iter().map(|row| row["name"].as_str()).collect();
    assert_eq!(weirds, ["exceeded_tunnel_max_depth"]);
}

#[test]
fn fragments_within_fragments_of_a_tunnel_come_together() {
    let datagram = udp([101, 102], [7, 9999], &[5; 1000]);
    let payload = &datagram[20..];
    let inside = [
        fragment(17, [101, 102], 1, 0x2000, &payload[..512]),
        fragment(17, [101, 102], 1, 512 / 8, &payload[512..]),
    ];
    let mut list = Vec::new();
    for (id, piece) in (1..).zip(&inside) {
        let outer = udp([1, 2], [2152, 2152], &gtpu(piece));
        let payload = &outer[20..];
        list.push((0, fragment(17, [1, 2], id, 256 / 8, &payload[256..])));
        list.push((0, fragment(17, [1, 2], id, 0x2000, &payload[..256])));
    }
    let rows = run(&list);
    let found = inner_rows(&rows);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["orig_ip_bytes"], "1028");
    let outer = rows.log("conn").into_iter().find(|row| row["id.orig_p"] == "2152");
    assert_eq!(outer.unwrap()["orig_pkts"], "2");
    assert!(rows.log("weird").is_empty());
}

#[test]
fn tunnels_stay_within_their_bound() {
    let limits = Limits { tunnels: 10, ..Limits::default() };
    let list: Vec<_> = (0..1_000)
        .map(|n| (i64::from(n), udp([1, 2], [20_000 + n as u16, 4789], &vxlan(&inner(n as u16)))))
        .collect();
    let mut engine = Engine::new(limits, Options::default(), 1);
    let mut rows = Rows::default();
    for packet in packets(&list) {
        engine.packet(&packet, &mut rows);
    }
    let statistics = *engine.ingress().tunnels().statistics();
    engine.finish(&mut rows);
    rows.sort();
    assert_eq!((statistics.begun, statistics.refused, statistics.peak), (10, 990, 10));
    assert_eq!(inner_rows(&rows).len(), 10);
    assert_eq!(rows.log("conn").len(), 2_000, "inner flows without a parent are flows");
}

#[test]
fn garbage_neither_panics_nor_invents_parents() {
    let mut random = Random(9);
    let nested = udp([1, 2], [2152, 2152], &gtpu(&ipv4(47, [3, 4], &gre(&inner(1)))));
    let seeds = [
        nested,
        udp([1, 2], [50_000, 4789], &vxlan(&inner(2))),
        udp([1, 2], [3544, 3544], &teredo(3)),
        fragment(17, [1, 2], 1, 0x2000, &udp([1, 2], [2152, 2152], &gtpu(&inner(4)))[20..44]),
        fragment(17, [1, 2], 1, 3, &udp([1, 2], [2152, 2152], &gtpu(&inner(4)))[44..]),
        ipv4(41, [5, 6], &teredo(5)),
    ];
    for _ in 0..300 {
        let mut list = Vec::new();
        for number in 0..60 {
            let mut data = seeds[random.below(seeds.len() as u64) as usize].clone();
            for _ in 0..random.below(4) {
                let at = random.below(data.len() as u64) as usize;
                data[at] = random.below(256) as u8;
            }
            if random.below(8) == 0 {
                data.truncate(random.below(data.len() as u64) as usize);
            }
            list.push((number * SECOND, data));
        }
        inner_rows(&run(&list));
    }
}

/// The VXLAN of Linux, GRE in UDP and MPLS in UDP; hosts are the tunnel of GRE, whatever its ports.
#[test]
fn tunnels_in_udp_on_further_ports_are_followed() {
    let gre_in = |port| udp([1, 2], [port, 4754], &gre(&inner(port)));
    let labels = [&[0, 1, 1, 64][..], &inner(7)].concat();
    let rows = run(&[
        (0, udp([1, 2], [40_000, 8472], &vxlan(&inner(1)))),
        (0, gre_in(40_001)),
        (1, gre_in(40_002)),
        (2, udp([1, 2], [40_003, 6635], &labels)),
        // None of these is a tunnel.
        (3, udp([1, 2], [40_004, 8472], b"\x08 is no tunnel, whatever comes first")),
        (3, udp([1, 2], [40_005, 4754], &gre(b"no packet"))),
        (3, udp([1, 2], [40_006, 6635], b"\0\x01\x01\x40 and no packet")),
    ]);
    let mut found = tunnel_rows(&rows);
    found.sort();
    let expected =
        ["0 GRE DISCOVER", "0 MPLS CLOSE", "0 MPLS DISCOVER", "0 VXLAN CLOSE", "0 VXLAN DISCOVER"];
    assert_eq!(found, expected);
    let parents: BTreeSet<_> = inner_rows(&rows).iter().map(|row| &row["tunnel_parents"]).collect();
    assert_eq!((inner_rows(&rows).len(), parents.len()), (4, 3));
    assert_eq!(rows.log("conn").len(), 4 + 7, "each carrier has a row of its own");
}

#[test]
fn ports_of_tunnels_are_the_users_choice() {
    let list = [(0, udp([1, 2], [40_000, 9999], &vxlan(&inner(1))))];
    let of = |ports: Option<&str>| {
        let ports = ports.map(|text| text.parse().unwrap()).unwrap_or_default();
        let options = Options { tunnel_ports: std::sync::Arc::new(ports), ..Options::default() };
        let mut engine = Engine::new(Limits::default(), options, 0);
        let mut rows = Rows::default();
        packets(&list).for_each(|packet| engine.packet(&packet, &mut rows));
        engine.finish(&mut rows);
        rows.sort();
        (rows.log("tunnel").len(), rows.log("conn").len())
    };
    assert_eq!(of(None), (0, 1));
    assert_eq!(of(Some("vxlan=9999")), (2, 2));
}

/// Over IPv6 too a tunnel needs no checksum (RFC 6935, 5); anything else does (RFC 8200, 8.1).
#[test]
fn tunnels_without_checksums_are_right_on_the_users_ports_as_well() {
    let over_v6 = |payload: &[u8]| {
        let udp = &udp([1, 2], [40_000, 9999], payload)[20..];
        let [high, low] = (udp.len() as u16).to_be_bytes();
        [&[0x60, 0, 0, 0, high, low, 17, 64][..], &[0x20; 31], &[1], udp].concat()
    };
    let mut inner = inner(1);
    let sum = checksum::compute(&inner[..20]);
    inner[10..12].copy_from_slice(&sum.to_be_bytes());
    for (body, ports, tunnels, bad) in [
        (vxlan(&inner), "vxlan=9999", 2, "0"),
        (vxlan(&inner), "vxlan=9998", 0, "1"),
        (b"no tunnel".to_vec(), "vxlan=9999", 0, "1"),
    ] {
        for checksums in [ChecksumMode::Count, ChecksumMode::Discard] {
            let tunnel_ports = std::sync::Arc::new(ports.parse().unwrap());
            let options = Options { tunnel_ports, checksums, ..Options::default() };
            let mut engine = Engine::new(Limits::default(), options, 0);
            let mut rows = Rows::default();
            let list = [(0, over_v6(&body))];
            packets(&list).for_each(|packet| engine.packet(&packet, &mut rows));
            engine.finish(&mut rows);
            rows.sort();
            assert_eq!(rows.log("tunnel").len(), tunnels, "{ports} {checksums:?}");
            let carriers = rows.log("conn").into_iter().filter(|row| row["tunnel_parents"] == "-");
            let counts: Vec<_> = carriers.map(|row| row["bad_checksums"].clone()).collect();
            assert_eq!(counts, [bad], "{ports} {checksums:?}");
        }
    }
}

/// What nobody can read is not analysed; what has a row is.
#[test]
fn books_tell_what_is_unknown() {
    let ethernet = |kind: [u8; 2], payload: &[u8]| [&[2; 12], &kind[..], payload].concat();
    let v6 = |next: u8| {
        let mut bytes = vec![0x60, 0, 0, 0, 0, 8, next, 64];
        bytes.extend([0x20; 32]);
        bytes.extend([9; 8]);
        bytes
    };
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &[2; 20]].concat();
    let unknown_in_gre = |kind: [u8; 2]| ipv4(47, [1, 2], &[&[0, 0], &kind[..], &[7; 60]].concat());
    let framed = [&[0, 0, 0x65, 0x58][..], &ethernet([0x88, 0xcc], &[1; 40])].concat();
    let acknowledgement = [0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 5];
    for (name, data, is_known) in [
        ("LLDP", ethernet([0x88, 0xcc], &[1; 40]), false),
        ("an unknown type behind a tag", ethernet([0x81, 0], &[0, 7, 0x12, 0x34, 1, 2]), false),
        ("spanning tree", ethernet([0, 38], &[0x42; 38]), false),
        ("PPPoE discovery", ethernet([0x88, 0x63], &[0x11, 9, 0, 0, 0, 0]), false),
        ("ARP", ethernet([8, 6], &arp), true),
        ("GRE with an unknown type", ethernet([8, 0], &unknown_in_gre([0x12, 0x34])), false),
        ("GRE with a frame of LLDP", ethernet([8, 0], &ipv4(47, [1, 2], &framed)), false),
        ("GRE that acknowledges", ethernet([8, 0], &ipv4(47, [1, 2], &acknowledgement)), true),
        ("ESP in IPv6", ethernet([0x86, 0xdd], &v6(50)), false),
        ("an unknown protocol", ethernet([8, 0], &ipv4(253, [1, 2], &[7; 9])), true),
        ("an unknown protocol in IPv6", ethernet([0x86, 0xdd], &v6(253)), true),
        (
            "a frame of LLDP in VXLAN",
            {
                let mut frame = vec![8, 0, 0, 0, 0, 0, 7, 0];
                frame.extend(ethernet([0x88, 0xcc], &[1; 40]));
                ethernet([8, 0], &udp([1, 2], [5, 4789], &frame))
            },
            true,
        ),
    ] {
        let mut engine = Engine::new(Limits::default(), Options::default(), 0);
        let mut rows = Rows::default();
        let packet = Packet {
            timestamp: Timestamp::EPOCH,
            data: &data,
            wire_len: data.len() as u32,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        engine.packet(&packet, &mut rows);
        engine.finish(&mut rows);
        rows.sort();
        let counts = engine.ingress().statistics();
        let books = (counts.unknown, counts.decoded, counts.stopped);
        assert_eq!(books, if is_known { (0, 1, 0) } else { (1, 0, 0) }, "{name}");
        assert_eq!(engine.packets_by_depth().total(), counts.decoded, "{name}");
    }
}

/// As Zeek's baseline `core.tunnels.gre-mpls` has it, and by what `packet-protocols/gre/main.zeek` lists for
/// access points.
#[test]
fn gre_carries_labels_and_frames_of_access_points() {
    let frame = |kind: u16, payload: &[u8]| {
        let [high, low] = kind.to_be_bytes();
        run(&[(SECOND, ipv4(47, [1, 2], &[&[0, 0, high, low], payload].concat()))])
    };
    let label = |inner: &[u8]| [&[0, 1, 1, 64], inner].concat();
    let wireless = |control: [u8; 2], inner: &[u8]| {
        [&control, &[0; 22][..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], inner].concat()
    };
    for kind in [0x8847, 0x8848] {
        let rows = frame(kind, &label(&inner(7)));
        assert_eq!(inner_rows(&rows).len(), 1, "{kind:#x}");
        assert_eq!(tunnel_rows(&rows)[0], "1 GRE DISCOVER");
    }
    for kind in [0x8200, 0x8210, 0x82f0, 0x8370, 0x9000] {
        let rows = frame(kind, &wireless([8, 1], &inner(7)));
        assert_eq!(inner_rows(&rows).len(), 1, "{kind:#x}");
        // Nothing is known of a frame that is encrypted.
        assert!(frame(kind, &wireless([8, 0x41], &inner(7))).log("conn").is_empty());
    }
    for kind in [0x8201, 0x8380, 0x9001, 0x1234] {
        assert!(frame(kind, &wireless([8, 1], &inner(7))).log("conn").is_empty(), "{kind:#x}");
    }
}
