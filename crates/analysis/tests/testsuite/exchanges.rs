//! Exchanges of DHCP and DHCPv6 that come in several flows: which messages make one row, and when it
//! is told.

use crate::support::{Row, Rows, analyse};
use netsniff_analysis::correlator::{Correlator, JoinedRow};
use netsniff_analysis::flow::tracker::FlowTracker;
use netsniff_analysis::ingress::Ingress;
use netsniff_analysis::record::{Connection, Fact};
use netsniff_analysis::rows::joins;
use netsniff_analysis::{DatagramBatch, Limits, Observer, Options, Phase, Record, SortKey};
use netsniff_packet::{LinkType, Packet, Timestamp};

/// A UDP datagram of IPv4.
fn udp(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let len = (28 + payload.len() as u16).to_be_bytes();
    let mut bytes = vec![0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, 17, 0, 0];
    bytes.extend(from.0);
    bytes.extend(to.0);
    for word in [from.1, to.1, 8 + payload.len() as u16, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// A UDP datagram of IPv6 between addresses fe80::`last` or, for 0, ff02::1:2.
fn udp6(from: (u8, u16), to: (u8, u16), payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut bytes = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, 17, 64];
    for last in [from.0, to.0] {
        let mut address = [0_u8; 16];
        if last == 0 {
            (address[0], address[1], address[13], address[15]) = (0xff, 2, 1, 2);
        } else {
            (address[0], address[1], address[15]) = (0xfe, 0x80, last);
        }
        bytes.extend(address);
    }
    for word in [from.1, to.1, len, 0] {
        bytes.extend(word.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// A message of DHCP with these options.
fn message(xid: u8, is_reply: bool, options: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 236];
    message[..8].copy_from_slice(&[1 + u8::from(is_reply), 1, 6, 0, 0, 0, 0, xid]);
    if is_reply {
        message[16..20].copy_from_slice(&[192, 0, 2, 100]);
    }
    message[28..34].copy_from_slice(&[2, 0, 94, 0, 83, xid]);
    [&message, &[99, 130, 83, 99][..], options, &[255]].concat()
}

const NOBODY: ([u8; 4], u16) = ([0; 4], 68);
const EVERYBODY: ([u8; 4], u16) = ([255; 4], 67);
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 67);
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 100], 68);

fn discover(xid: u8) -> Vec<u8> {
    udp(NOBODY, EVERYBODY, &message(xid, false, &[53, 1, 1]))
}

fn offer(xid: u8) -> Vec<u8> {
    udp(SERVER, CLIENT, &message(xid, true, &[53, 1, 2]))
}

fn all(list: &[(i64, Vec<u8>)], limits: Limits) -> Rows {
    let packets = list.iter().map(|(seconds, data)| Packet {
        timestamp: Timestamp::from_secs_nanos(*seconds, 0),
        data,
        wire_len: data.len() as u32,
        link_type: LinkType::RAW,
        interface: 0,
    });
    analyse(packets, limits)
}

fn dhcp(list: &[(i64, Vec<u8>)]) -> Vec<Row> {
    all(list, Limits::default()).log("dhcp").into_iter().cloned().collect()
}

fn types(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row["msg_types"].as_str()).collect()
}

#[test]
fn messages_of_several_flows_are_one_row() {
    let ask = [53, 1, 3, 12, 4, b'd', b'e', b's', b'k', 50, 4, 192, 0, 2, 100];
    let grant = [53, 1, 5, 51, 4, 0, 0, 14, 16, 15, 3, b'l', b'a', b'n'];
    let list = [
        (0, discover(1)),
        (1, offer(1)),
        (2, udp(NOBODY, EVERYBODY, &message(1, false, &ask))),
        (3, udp(SERVER, ([255; 4], 68), &message(1, true, &grant))),
    ];
    let all = all(&list, Limits::default());
    let rows = all.log("dhcp");
    assert_eq!(rows.len(), 1);
    let row = rows[0];
    for (column, value) in [
        ("ts", "0.000000"),
        ("client_addr", "192.0.2.100"),
        ("server_addr", "192.0.2.1"),
        ("mac", "02:00:5e:00:53:01"),
        ("host_name", "desk"),
        ("client_fqdn", "-"),
        ("domain", "lan"),
        ("requested_addr", "192.0.2.100"),
        ("assigned_addr", "192.0.2.100"),
        ("lease_time", "3600.000000"),
        ("msg_types", "DISCOVER,OFFER,REQUEST,ACK"),
        ("duration", "3.000000"),
    ] {
        assert_eq!(row[column], value, "{column}");
    }
    let mut uids: Vec<&str> = row["uids"].split(',').collect();
    let mut flows: Vec<&str> = all.log("conn").iter().map(|row| row["uid"].as_str()).collect();
    uids.sort_unstable();
    flows.sort_unstable();
    assert_eq!(uids, flows);
    assert_eq!(uids.len(), 3);
}

#[test]
fn a_look_behind_ten_seconds_ends_what_was_silent_for_five() {
    let at = |list: &[i64]| -> Vec<(i64, Vec<u8>)> {
        list.iter().map(|&seconds| (seconds, discover(1))).collect()
    };
    let rows = |list: &[i64]| dhcp(&at(list)).len();
    assert_eq!(rows(&[0, 9]), 1);
    assert_eq!(rows(&[0, 10]), 1, "ten seconds are not more than ten");
    assert_eq!(rows(&[0, 11]), 2, "the look comes before the message of the same time");
    assert_eq!(rows(&[0, 7, 12]), 1, "five seconds are not more than five");
    assert_eq!(rows(&[0, 6, 12]), 2);
    assert_eq!(rows(&[0, 7, 12, 17, 22]), 1);
    assert_eq!(rows(&[0, 7, 12, 16, 22]), 2, "the second look waits for ten seconds, too");
    let busy: Vec<i64> = (0..=39).collect();
    assert_eq!(rows(&busy), 1);
    let busier: Vec<i64> = (0..=40).collect();
    assert_eq!(rows(&busier), 2, "the first look that is more than thirty seconds behind");
}

#[test]
fn looks_are_those_of_the_whole_capture() {
    let other = |seconds| (seconds, udp(([192, 0, 2, 7], 9000), ([192, 0, 2, 8], 9001), b"other"));
    let alone = [0, 4, 14].map(|seconds| (seconds, discover(1)));
    assert_eq!(dhcp(&alone).len(), 2, "a look at 14 s");
    let mut many = alone.to_vec();
    many.insert(2, other(10));
    assert_eq!(dhcp(&many).len(), 1, "a look at 10 s, and none before 20 s");
}

#[test]
fn a_duration_goes_to_the_latest_message() {
    let mut list = [0, 3, 2].map(|seconds| (seconds, discover(1)));
    assert_eq!(dhcp(&list)[0]["duration"], "3.000000");
    list[1].0 = 2;
    assert_eq!(dhcp(&list)[0]["duration"], "2.000000");
}

#[test]
fn ten_flows_or_fifty_messages_fill_a_row() {
    let from = |last: u8| (([192, 0, 2, last], 68), message(1, false, &[53, 1, 8]));
    let list: Vec<_> =
        (1..=11).map(|last| (0, udp(from(last).0, EVERYBODY, &from(last).1))).collect();
    let counts: Vec<usize> = dhcp(&list).iter().map(|row| row["uids"].split(',').count()).collect();
    assert_eq!(counts, [10, 1]);
    let list: Vec<_> = (0..51).map(|_| (0, discover(1))).collect();
    let rows = dhcp(&list);
    let counts: Vec<usize> = rows.iter().map(|row| row["msg_types"].split(',').count()).collect();
    assert_eq!(counts, [50, 1]);
}

#[test]
fn what_would_be_looked_at_first_makes_room() {
    let limits = Limits { exchanges: 2, ..Limits::default() };
    let list = [1, 2, 1, 3, 4].map(discover);
    let list: Vec<_> = (0..).zip(list).collect();
    let all = all(&list, limits);
    let rows: Vec<Row> = all.log("dhcp").into_iter().cloned().collect();
    assert_eq!(types(&rows), ["DISCOVER,DISCOVER", "DISCOVER", "DISCOVER", "DISCOVER"]);
    let begins: Vec<&str> = rows.iter().map(|row| row["ts"].as_str()).collect();
    assert_eq!(begins, ["0.000000", "1.000000", "3.000000", "4.000000"]);
}

#[test]
fn bytes_are_a_bound_as_well() {
    // A host name of 250 letters in each of a hundred exchanges at once.
    let named = |xid: u8| {
        let options = [&[53, 1, 1, 12, 250][..], &[b'x'; 250]].concat();
        (0, udp(NOBODY, EVERYBODY, &message(xid, false, &options)))
    };
    let list: Vec<_> = (0..100).map(named).collect();
    let told_at_once = |exchange_bytes| {
        let rows = all(&list, Limits { exchange_bytes, ..Limits::default() });
        let log = rows.logs.get("dhcp").map_or(&[][..], Vec::as_slice);
        assert_eq!(log.len(), 100);
        log.iter().filter(|(key, _)| key.phase == Phase::Packet).count()
    };
    assert_eq!(told_at_once(Limits::default().exchange_bytes), 0);
    assert_eq!(told_at_once(0), 100);
    let early = told_at_once(50_000);
    assert!((10..90).contains(&early), "{early}");
}

#[test]
fn what_a_client_calls_itself_counts_more_than_its_hardware() {
    let mac = |identifier: &[u8]| {
        let options = [&[53, 1, 1, 61, identifier.len() as u8], identifier].concat();
        dhcp(&[(0, udp(NOBODY, EVERYBODY, &message(1, false, &options)))])[0]["mac"].clone()
    };
    assert_eq!(mac(&[1, 2, 0, 94, 0, 83, 99]), "02:00:5e:00:53:63");
    // Only Ethernet addresses are told of identifiers.
    assert_eq!(mac(&[0, b'd', b'e', b's', b'k']), "02:00:5e:00:53:01");
}

#[test]
fn a_relay_is_neither_client_nor_one_who_asks() {
    let relay = ([198, 51, 100, 1], 67);
    let mut ask = message(1, false, &[53, 1, 1]);
    let mut answer = message(1, true, &[53, 1, 2]);
    ask[24..28].copy_from_slice(&relay.0);
    answer[24..28].copy_from_slice(&relay.0);
    // The relay sends from another of its addresses than the server answers to.
    let list = [(0, udp(([192, 0, 2, 2], 67), SERVER, &ask)), (0, udp(SERVER, relay, &answer))];
    let rows = dhcp(&list);
    assert_eq!(types(&rows), ["DISCOVER,OFFER"]);
    assert_eq!(rows[0]["client_addr"], "192.0.2.100");
    assert_eq!(rows[0]["server_addr"], "192.0.2.1");
    assert_eq!(rows[0]["assigned_addr"], "192.0.2.100");
}

#[test]
fn what_is_no_message_makes_no_row_and_no_service() {
    let cut = message(1, false, &[53, 1]);
    let list = [(0, udp(NOBODY, EVERYBODY, &cut[..cut.len() - 2]))];
    let all = all(&list, Limits::default());
    assert!(all.log("dhcp").is_empty());
    assert_eq!(all.log("conn")[0]["service"], "-");
    assert_eq!(all.log("weird")[0]["name"], "DHCP_malformed_message");
    assert_eq!(all.log("weird")[0]["source"], "DHCP");
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    [&code.to_be_bytes()[..], &(value.len() as u16).to_be_bytes(), value].concat()
}

/// A message of DHCPv6 of the client with this hardware address.
fn message6(kind: u8, client: u8, options: &[u8]) -> Vec<u8> {
    let duid = option(1, &[0, 3, 0, 1, 2, 0, 94, 0, 83, client]);
    [&[kind, 0, 0, 9], &*duid, options].concat()
}

#[test]
fn messages_of_dhcpv6_are_joined_by_client_and_transaction() {
    let mut lease = [0; 24];
    lease[..16].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    (lease[19], lease[23]) = (60, 90);
    let association = option(3, &[&[0; 12][..], &option(5, &lease)].concat());
    let server = option(2, &[0, 2, 5]);
    let list = [
        (0, udp6((1, 546), (0, 547), &message6(1, 0x11, &option(3, &[0; 12])))),
        (0, udp6((2, 546), (0, 547), &message6(1, 0x12, &[]))),
        (1, udp6((9, 547), (1, 546), &message6(2, 0x11, &[server, association].concat()))),
    ];
    let all = all(&list, Limits::default());
    let rows: Vec<Row> = all.log("dhcpv6").into_iter().cloned().collect();
    assert_eq!(types(&rows), ["SOLICIT,ADVERTISE", "SOLICIT"]);
    for (column, value) in [
        ("client_addr", "fe80::1"),
        ("server_addr", "fe80::9"),
        ("client_duid", "0003000102005e005311"),
        ("server_duid", "000205"),
        ("mac", "02:00:5e:00:53:11"),
        ("assigned_addrs", "2001:db8::7"),
        ("addr_preferred_lifetimes", "60.000000"),
        ("addr_valid_lifetimes", "90.000000"),
        ("requested_addrs", "-"),
        ("status", "-"),
        ("relays", "0"),
        ("duration", "1.000000"),
    ] {
        assert_eq!(rows[0][column], value, "{column}");
    }
    assert_eq!(rows[0]["uids"].split(',').count(), 2);
    let services: Vec<&str> = all.log("conn").iter().map(|row| row["service"].as_str()).collect();
    assert_eq!(services, ["dhcpv6"; 3]);
}

/// Facts and looks of one ring, with their keys.
#[derive(Default)]
struct Facts(Vec<(SortKey, Option<FactOf>)>);

/// A fact with its connection.
type FactOf = (Connection, Box<dyn Fact>);

impl Observer for Facts {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}

    fn fact(&mut self, key: &SortKey, connection: &Connection, fact: Box<dyn Fact>) {
        self.0.push((*key, Some((*connection, fact))));
    }

    fn look(&mut self, key: &SortKey) {
        self.0.push((*key, None));
    }
}

/// What the packets of one ring tell together, at milliseconds.
fn ring(list: &[(i64, Vec<u8>)]) -> Facts {
    let mut ingress = Ingress::new(Limits::default(), Options::default());
    let mut tracker = FlowTracker::new(Limits::default(), Options::default(), 1);
    let (mut units, mut facts) = (DatagramBatch::default(), Facts::default());
    for (millis, data) in list {
        let timestamp = Timestamp::from_nanos(millis * 1_000_000);
        let (wire_len, link_type) = (data.len() as u32, LinkType::RAW);
        let packet = Packet { timestamp, data, wire_len, link_type, interface: 0 };
        let _ = ingress.packet(&packet, 0..data.len(), &mut units, &mut facts);
        tracker.units(units.as_slice().iter(), data, &mut facts);
        units.clear();
    }
    facts
}

fn looks(facts: &Facts) -> Vec<i64> {
    let of_looks = facts.0.iter().filter(|(_, fact)| fact.is_none());
    of_looks.map(|(key, _)| key.time.nanos() / 1_000_000).collect()
}

#[test]
fn looks_come_with_the_first_packet_behind_ten_seconds_and_not_with_each() {
    let every_second: Vec<_> = (0..=35).map(|second| (second * 1_000, other())).collect();
    assert_eq!(looks(&ring(&every_second)), [0, 10_000, 20_000, 30_000]);
    let seldom = [0, 9_999, 13_000, 20_000, 22_999, 23_000].map(|at| (at, other()));
    assert_eq!(looks(&ring(&seldom)), [0, 13_000, 23_000]);
}

#[test]
fn several_rings_look_at_one_traffic_and_no_more_often_than_one() {
    // The second ring would look at 13 s, where the exchange was silent for six.
    let quiet = ring(&[0, 10_000, 20_000].map(|at| (at, other())));
    let busy = ring(&[500, 7_000, 13_000].map(|at| (at, discover(1))));
    assert_eq!((looks(&quiet), looks(&busy)), (vec![0, 10_000, 20_000], vec![500, 13_000]));
    let mut facts: Vec<_> = quiet.0.into_iter().chain(busy.0).collect();
    facts.sort_by_key(|(key, _)| *key);
    let mut correlator = Correlator::new(&Limits::default(), joins());
    let mut rows = Rows::default();
    let mut take = |joined: JoinedRow| rows.record(&joined.key, &joined.whole());
    for (key, fact) in facts {
        match fact {
            Some((connection, fact)) => {
                correlator.fact(&key, &connection, &*fact).1.for_each(&mut take);
            }
            None => correlator.look(&key).for_each(&mut take),
        }
    }
    correlator.finish(Timestamp::from_secs_nanos(21, 0)).for_each(&mut take);
    rows.sort();
    let types: Vec<_> = rows.log("dhcp").iter().map(|row| row["msg_types"].clone()).collect();
    assert_eq!(types, ["DISCOVER,DISCOVER,DISCOVER"]);
}

/// A datagram of something else.
fn other() -> Vec<u8> {
    udp(([192, 0, 2, 7], 9_000), ([192, 0, 2, 8], 9_001), b"other")
}
