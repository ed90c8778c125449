//! Each finding in traffic that is made for it, beside traffic that looks similar and is none.

use std::time::Duration;

use netsniff_traffic::dialogue::{Leg, Side};
use serde_json::Value;

use super::traffic::{CLIENT, SERVER, Traffic, host, later};
use super::{recorded, rows, stream};
use crate::zeek::corpus::Scratch;

/// The findings of some traffic, which are the same for any number of workers.
fn found(traffic: Traffic) -> Vec<Value> {
    let scratch = Scratch::new("found");
    let capture = traffic.write(&scratch);
    let run = |workers| stream(&capture, &["--notices", "--workers", workers]);
    let one = run("1");
    for workers in ["2", "3"] {
        assert!(run(workers) == one, "{workers} workers write something else");
    }
    rows(&one, "notice")
}

/// The name and confidence of each.
fn names(found: &[Value]) -> Vec<(&str, &str)> {
    found.iter().map(|row| (text(row, "note"), text(row, "confidence"))).collect()
}

fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_else(|| panic!("{column} is unset: {row}"))
}

#[test]
fn a_port_scan_is_found_and_a_client_of_many_ports_is_not() {
    let mut scan = Traffic::default();
    let mut client = Traffic::default();
    for port in 1..=20 {
        scan.attempt(host(SERVER, port), u64::from(port) * 50, true);
        client.exchange(host(SERVER, port), u64::from(port) * 50, 100);
    }
    let rows = found(scan);
    assert_eq!(names(&rows), [("Scan::Port_Scan", "high")]);
    assert_eq!((text(&rows[0], "src"), text(&rows[0], "dst")), (CLIENT, SERVER));
    assert_eq!((&rows[0]["n"], &rows[0]["p"]), (&15.into(), &Value::Null));
    assert_eq!(rows[0]["uids"].as_array().unwrap().len(), 10);
    assert_eq!(names(&found(client)), []);
}

#[test]
fn an_address_scan_is_found_and_a_crawler_is_not() {
    let mut scan = Traffic::default();
    let mut crawler = Traffic::default();
    for last in 1..=30 {
        let target = host(&format!("203.0.113.{last}"), 445);
        scan.attempt(target, last * 100, last % 5 == 0);
        crawler.exchange(target, last * 100, 100);
    }
    let rows = found(scan);
    assert_eq!(names(&rows), [("Scan::Address_Scan", "medium")]);
    assert_eq!((text(&rows[0], "src"), &rows[0]["dst"]), (CLIENT, &Value::Null));
    assert_eq!(rows[0]["p"], 445);
    assert_eq!(names(&found(crawler)), []);
}

#[test]
fn data_in_names_is_found_and_long_names_of_a_few_are_not() {
    let mut tunnel = Traffic::default();
    let mut looks = Traffic::default();
    for number in 0..120_u64 {
        let data = format!("{number:040x}.{number:040x}.t.example.com");
        tunnel.query(&data, number * 200);
        // A name that is asked for often, and names of reverse look-ups, which are long by themselves.
        looks.query(&format!("{:040x}.{:040x}.t.example.com", number % 9, 1), number * 200);
        let nibbles: Vec<_> = format!("{number:032x}").chars().map(String::from).collect();
        looks.query(&format!("{}.ip6.arpa", nibbles.join(".")), number * 200 + 100);
    }
    let mut slow = Traffic::default();
    for number in 0..120_u64 {
        slow.query(&format!("{number:040x}.{number:040x}.t.example.com"), number * 40_000);
    }
    // Names of a whole day add up to no tunnel, however regular they are.
    let slow = found(slow);
    assert!(names(&slow).iter().all(|found| *found == ("Netsniff::Beacon", "low")), "{slow:?}");
    let rows = found(tunnel);
    assert_eq!(names(&rows), [("Netsniff::DNS_Tunnel", "medium")]);
    assert_eq!((text(&rows[0], "sub"), &rows[0]["n"]), ("example.com", &100.into()));
    assert_eq!(names(&found(looks)), []);
}

#[test]
fn a_receiver_that_does_not_read_is_found_and_one_that_pauses_is_not() {
    let traffic = |pause| {
        let mut traffic = Traffic::default();
        let setup = traffic.setup(host(SERVER, 80), 0);
        traffic.dialogue(setup, |dialogue| {
            dialogue.say(Side::Client, &[1; 20_000]).window(Side::Server, 0);
            dialogue.pause(Duration::from_millis(pause)).window(Side::Server, 1 << 20);
            dialogue.say(Side::Client, &[1; 20_000]).close(Side::Client).close(Side::Server);
        });
        traffic
    };
    let rows = found(traffic(3000));
    assert_eq!(names(&rows), [("Netsniff::Zero_Window", "medium")]);
    let said = text(&rows[0], "msg");
    assert!(said.contains("the responder kept its window closed for 30"), "{said}");
    assert_eq!(names(&found(traffic(300))), []);
}

#[test]
fn a_storm_of_retransmissions_is_found_with_its_place_and_a_few_are_not() {
    let traffic = |loss| {
        let mut traffic = Traffic::default();
        let setup = traffic.setup(host(SERVER, 80), 0);
        let setup = netsniff_traffic::dialogue::Setup { loss: (0.0, loss), ..setup };
        traffic.dialogue(setup, |dialogue| {
            dialogue.say(Side::Client, &[1; 400_000]).close(Side::Client).close(Side::Server);
        });
        traffic
    };
    let rows = found(traffic(0.14));
    let storm: Vec<_> =
        rows.iter().filter(|row| row["note"] == "Netsniff::Retransmissions").collect();
    assert_eq!(storm.len(), 1, "{rows:?}");
    let said = text(storm[0], "msg");
    assert!(said.starts_with("the originator sent ") && said.contains("behind the tap"), "{said}");
    assert_eq!(names(&found(traffic(0.02))), []);
}

#[test]
fn certificates_expire_with_time() {
    let capture = recorded("protocols.pcapng");
    let expired = |capture: &std::path::Path| {
        let rows = rows(&stream(capture, &["--notices"]), "notice");
        rows.iter().filter(|row| row["note"] == "SSL::Certificate_Expired").cloned().collect()
    };
    let now: Vec<Value> = expired(&capture);
    assert!(now.is_empty(), "{now:?}");
    let scratch = Scratch::new("expired");
    let years = Duration::from_secs(11 * 365 * 86_400);
    let then: Vec<Value> = expired(&later(&capture, years, &scratch));
    assert!(!then.is_empty());
    for row in then {
        assert_eq!(text(&row, "confidence"), "high");
        assert!(text(&row, "msg").starts_with("the certificate expired 36"), "{row}");
    }
}

/// Milliseconds that no period has.
fn irregular(number: u64) -> u64 {
    number * 60_000 + (number * number * 7_919 + number * 104_729) % 55_000
}

#[test]
fn a_beacon_is_found_and_people_are_not() {
    let connections = |time: fn(u64) -> u64, size: fn(u64) -> usize| {
        let mut traffic = Traffic::default();
        (0..25).for_each(|at| traffic.exchange(host(SERVER, 443), time(at), size(at)));
        traffic
    };
    let regular = |at| at * 60_000 + at % 7 * 500;
    let rows = found(connections(regular, |at| 300 + at as usize % 4));
    assert_eq!(names(&rows), [("Netsniff::Beacon", "medium")]);
    assert_eq!((text(&rows[0], "src"), text(&rows[0], "dst")), (CLIENT, SERVER));
    assert_eq!((&rows[0]["p"], &rows[0]["n"]), (&443.into(), &20.into()));
    let said = text(&rows[0], "msg");
    assert!(said.contains("every 60.5") && said.contains("sent 30"), "{said}");
    assert_eq!(names(&found(connections(irregular, |_| 300))), []);
    let sizes = |at: u64| 100 + (at * at * 7_919 % 9_000) as usize;
    assert_eq!(names(&found(connections(regular, sizes))), []);
    // Attempts send nothing, whatever one connection among them sent.
    let mut attempts = Traffic::default();
    attempts.exchange(host(SERVER, 443), 1, 300);
    (1..25).for_each(|at| attempts.attempt(host(SERVER, 443), regular(at), true));
    let rows = found(attempts);
    assert!(!names(&rows).iter().any(|(name, _)| *name == "Netsniff::Beacon"), "{rows:?}");
}

/// A message of NTP from a server whose clock is so many seconds before that of the capture.
fn ntp(traffic: &mut Traffic, server: &str, seconds: u64, ahead: u64) {
    let (client, server) = (host(CLIENT, 123), host(server, 123));
    let mut message = [0; 48];
    (message[0], message[2]) = (0x23, 6);
    traffic.datagram(client, server, seconds * 1000, &message);
    (message[0], message[1]) = (0x24, 2);
    let now = (1_767_225_600 + seconds + ahead + 2_208_988_800) as u32;
    for field in [16, 24, 32, 40] {
        message[field..field + 4].copy_from_slice(&now.to_be_bytes());
    }
    traffic.datagram(server, client, seconds * 1000 + 20, &message);
}

#[test]
fn a_clock_that_servers_contradict_is_found_and_a_small_difference_is_not() {
    let clocks = |ahead: [u64; 2]| {
        let mut traffic = Traffic::default();
        for round in 0..3 {
            ntp(&mut traffic, "198.51.100.1", round * 1000 + 1, ahead[0]);
            ntp(&mut traffic, "198.51.100.2", round * 1000 + 2, ahead[1]);
        }
        found(traffic)
    };
    assert_eq!(names(&clocks([30, 30])), []);
    let both = clocks([4000, 4001]);
    let expected =
        [("Netsniff::NTP_Server_Off", "low"), ("Netsniff::Wrong_Capture_Clock", "medium")];
    assert_eq!(names(&both), expected);
    let said = text(&both[1], "msg");
    assert!(said.contains("behind the time of 2 servers"), "{said}");
    assert!(both[1]["src"].is_null() && both[1]["dst"].is_null());
    assert_eq!(names(&clocks([0, 4000])), [("Netsniff::NTP_Server_Off", "low")]);
}

/// A response of a web server that says so of its time, at this second of the first day of 2026.
fn response(traffic: &mut Traffic, server: u8, second: u64, header: &str) {
    let setup = traffic.setup(host(&format!("203.0.113.{server}"), 80), second * 1000);
    traffic.dialogue(setup, |dialogue| {
        dialogue.say(Side::Client, b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
        let answer = format!("HTTP/1.1 200 OK\r\n{header}\r\nContent-Length: 0\r\n\r\n");
        dialogue.say(Side::Server, answer.as_bytes()).close(Side::Client).close(Side::Server);
    });
}

#[test]
fn a_clock_that_web_servers_contradict_is_found_and_what_was_kept_is_not() {
    const LATER: [&str; 3] = [
        "Date: Thu, 01 Jan 2026 01:00:10 GMT",
        "Date: Thu, 01 Jan 2026 01:00:21 GMT",
        "Date: Thu, 01 Jan 2026 01:00:30 GMT",
    ];
    const EARLIER: [&str; 3] = [
        "Date: Wed, 31 Dec 2025 23:00:10 GMT",
        "Date: Wed, 31 Dec 2025 23:00:21 GMT",
        "Date: Wed, 31 Dec 2025 23:00:30 GMT",
    ];
    let served = |headers: &[&str]| {
        let mut traffic = Traffic::default();
        for (number, header) in (1..).zip(headers) {
            response(&mut traffic, number, u64::from(number) * 10, header);
        }
        let rows = found(traffic).into_iter();
        rows.filter(|row| text(row, "note") != "Netsniff::One_Way_Capture").collect::<Vec<_>>()
    };
    const WRONG: (&str, &str) = ("Netsniff::Wrong_Capture_Clock", "medium");
    const OFF: (&str, &str) = ("Netsniff::HTTP_Server_Off", "low");
    let rows = served(&LATER);
    assert_eq!(names(&rows), [OFF, WRONG]);
    let said = text(&rows[1], "msg");
    assert!(said.contains("are 3600 s behind the time of 2 servers"), "{said}");
    assert_eq!(rows[1]["uids"].as_array().unwrap().len(), 2);
    let rows = served(&EARLIER);
    assert_eq!(names(&rows), [WRONG], "a third one tells that it was not kept");
    assert!(text(&rows[0], "msg").contains("before the time of 3 servers"));
    assert_eq!(names(&served(&EARLIER[..2])), [], "both may have been made before");
    for field in ["Age: 7", "Via: 1.1 cache", "X-Cache: HIT", "X-Cache-Hits: 1"] {
        let kept = EARLIER.map(|header| format!("{header}\r\n{field}"));
        assert_eq!(names(&served(&kept.each_ref().map(String::as_str))), [], "a cache had them");
    }
    let apart = [LATER[0], "Date: Thu, 01 Jan 2026 01:00:31 GMT"];
    assert_eq!(names(&served(&apart)), [OFF, OFF], "10 seconds are too far from each other");
    let near = [LATER[0], "Date: Thu, 01 Jan 2026 01:00:29 GMT"];
    assert_eq!(names(&served(&near)), [OFF, WRONG]);
    let little = ["Date: Thu, 01 Jan 2026 00:01:09 GMT", "Date: Thu, 01 Jan 2026 00:01:19 GMT"];
    assert_eq!(names(&served(&little)), [], "59 seconds");
    let enough = ["Date: Thu, 01 Jan 2026 00:01:11 GMT", "Date: Thu, 01 Jan 2026 00:01:21 GMT"];
    assert_eq!(names(&served(&enough)), [OFF, WRONG]);
    let scattered = [
        "Date: Tue, 30 Dec 2025 23:00:10 GMT",
        EARLIER[1],
        EARLIER[2],
        "Date: Thu, 01 Jan 2026 00:00:40 GMT",
    ];
    assert_eq!(names(&served(&scattered)), [], "they were made at any time");
    let right = "Date: Thu, 01 Jan 2026 00:00:30 GMT";
    assert_eq!(names(&served(&[right, right, right])), []);
    // Two that are right outweigh two that are wrong.
    let both = [
        "Date: Thu, 01 Jan 2026 00:00:10 GMT",
        "Date: Thu, 01 Jan 2026 00:00:20 GMT",
        LATER[2],
        "Date: Thu, 01 Jan 2026 01:00:40 GMT",
    ];
    assert_eq!(names(&served(&both)), [OFF, OFF]);
}

/// What counts is what a server said last, in the first response of a connection.
#[test]
fn a_web_server_that_was_set_right_is_a_witness_no_more() {
    const RIGHT: &str = "Date: Thu, 01 Jan 2026 00:00:20 GMT";
    const LATER: &str = "Date: Thu, 01 Jan 2026 01:00:30 GMT";
    let mut corrected = Traffic::default();
    response(&mut corrected, 1, 10, "Date: Thu, 01 Jan 2026 01:00:10 GMT");
    response(&mut corrected, 1, 20, RIGHT);
    response(&mut corrected, 2, 30, LATER);
    let off = [("Netsniff::HTTP_Server_Off", "low"), ("Netsniff::HTTP_Server_Off", "low")];
    assert_eq!(names(&found(corrected)), off);
    let mut second = Traffic::default();
    for server in ["203.0.113.1", "203.0.113.2"] {
        let setup = second.setup(host(server, 80), 20_000);
        second.dialogue(setup, |dialogue| {
            for date in [RIGHT, LATER] {
                dialogue.say(Side::Client, b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
                let answer = format!("HTTP/1.1 200 OK\r\n{date}\r\nContent-Length: 0\r\n\r\n");
                dialogue.say(Side::Server, answer.as_bytes());
            }
            dialogue.close(Side::Client).close(Side::Server);
        });
    }
    assert_eq!(names(&found(second)), [], "later responses may have waited for earlier ones");
}

#[test]
fn regular_questions_about_the_time_are_no_more_than_low() {
    let mut traffic = Traffic::default();
    (0..25).for_each(|round| ntp(&mut traffic, SERVER, round * 128, 0));
    assert_eq!(names(&found(traffic)), [("Netsniff::Beacon", "low")]);
}

fn web() -> Traffic {
    let mut traffic = Traffic::default();
    (0..25).for_each(|at| traffic.exchange(host(SERVER, 80), irregular(at), 2000));
    traffic
}

#[test]
fn a_capture_of_one_direction_is_found_and_attempts_are_not() {
    let rows = found(web().one_way());
    assert_eq!(names(&rows), [("Netsniff::One_Way_Capture", "medium")]);
    assert!(rows[0]["src"].is_null() && rows[0]["dst"].is_null(), "no host did it");
    assert_eq!(names(&found(web())), []);
    // Who gets no answer says nothing more: such attempts do not count, however many there are.
    let mut attempts = web();
    (0..40).for_each(|at| {
        attempts.attempt(host(&format!("10.0.0.{at}"), 9000 + at as u16), at, false);
    });
    assert_eq!(names(&found(attempts)), []);
    let mut scan = Traffic::default();
    (0..40).for_each(|port| scan.fin_probe(host(SERVER, 1000 + port), u64::from(port)));
    assert_eq!(names(&found(scan)), []);
}

#[test]
fn a_capture_with_every_packet_twice_is_found_and_a_bad_path_is_not() {
    assert_eq!(names(&found(web().doubled())), [("Netsniff::Doubled_Capture", "high")]);
    // A few of the connections are mirrored twice.
    let mut some = Traffic::default();
    (0..5).for_each(|at| some.exchange(host(SERVER, 90), irregular(at) + 7, 2000));
    assert_eq!(names(&found(web().with(some.doubled()))), []);
}

/// An exchange of DHCP in which a server gives an address to a client, or takes it back.
fn dhcp(traffic: &mut Traffic, seconds: u64, server: &str, mac: u8, address: u8, releases: bool) {
    let message = |kind: u8, operation: u8, has_address: bool| {
        let mut message = vec![0; 240];
        (message[0], message[1], message[2]) = (operation, 1, 6);
        message[4..8].copy_from_slice(&[seconds as u8, mac, kind / 7, 1]);
        if has_address {
            let place = if operation == 1 { 12 } else { 16 };
            message[place..place + 4].copy_from_slice(&[192, 0, 2, address]);
        }
        message[28..34].copy_from_slice(&[2, 0, 0, 0, 0, mac]);
        message[236..240].copy_from_slice(&[99, 130, 83, 99]);
        message.extend_from_slice(&[53, 1, kind, 51, 4, 0, 0, 14, 16, 255]);
        message
    };
    let (server, anybody) = (host(server, 67), host("255.255.255.255", 68));
    let mut client = host("0.0.0.0", 68);
    let time = seconds * 1000;
    if releases {
        client = host(&format!("192.0.2.{address}"), 68);
        return traffic.datagram(client, server, time, &message(7, 1, true));
    }
    let all = host("255.255.255.255", 67);
    traffic.datagram(client, all, time, &message(3, 1, false));
    traffic.datagram(server, anybody, time + 5, &message(5, 2, true));
}

#[test]
fn servers_of_dhcp_that_contradict_each_other_are_found() {
    const ONE: &str = "192.0.2.253";
    const OTHER: &str = "192.0.2.254";
    let rows_of = |steps: &[(u64, &str, u8, u8, bool)]| {
        let mut traffic = Traffic::default();
        for &(seconds, server, mac, address, releases) in steps {
            dhcp(&mut traffic, seconds, server, mac, address, releases);
        }
        found(traffic)
    };
    let two = rows_of(&[(0, ONE, 1, 10, false), (60, OTHER, 1, 11, false)]);
    assert_eq!(names(&two), [("Netsniff::Several_DHCP_Servers", "medium")]);
    assert_eq!((text(&two[0], "src"), text(&two[0], "dst")), (OTHER, ONE));
    assert!(!two[0]["uids"].as_array().unwrap().is_empty());
    let twice = rows_of(&[(0, ONE, 1, 10, false), (60, ONE, 2, 10, false)]);
    assert_eq!(names(&twice), [("Netsniff::Address_Given_Twice", "medium")]);
    let foreign = rows_of(&[(0, ONE, 1, 10, false), (60, OTHER, 2, 10, false)]);
    assert_eq!(names(&foreign), [("Netsniff::Address_Given_Twice", "low")]);
    // Renewed, released before, expired before, and another server long after.
    assert_eq!(names(&rows_of(&[(0, ONE, 1, 10, false), (60, ONE, 1, 10, false)])), []);
    let released = [(0, ONE, 1, 10, false), (30, ONE, 1, 10, true), (60, ONE, 2, 10, false)];
    assert_eq!(names(&rows_of(&released)), []);
    assert_eq!(names(&rows_of(&[(0, ONE, 1, 10, false), (3700, ONE, 2, 10, false)])), []);
    assert_eq!(names(&rows_of(&[(0, ONE, 1, 10, false), (3700, OTHER, 1, 11, false)])), []);
}

/// A connection whose large segments the path loses again and again, so many times, before it lets them pass.
fn stuck(traffic: &mut Traffic, milliseconds: u64, times: u32) {
    let setup = traffic.setup(host(SERVER, 80), milliseconds);
    let setup = netsniff_traffic::dialogue::Setup { in_flight: 1448, ..setup };
    traffic.dialogue(setup, |dialogue| {
        dialogue.say(Side::Client, &[1; 300]).say(Side::Server, &[2; 200]);
        dialogue.lose(Side::Client, Leg::Far, 0, times).say(Side::Client, &[3; 6000]);
    });
}

#[test]
fn a_black_hole_is_found_and_a_segment_that_passes_at_last_is_none() {
    let mut one = Traffic::default();
    stuck(&mut one, 0, 1000);
    let rows = found(one);
    assert_eq!(names(&rows), [("Netsniff::MTU_Black_Hole", "low")]);
    assert_eq!((text(&rows[0], "src"), text(&rows[0], "dst")), (CLIENT, SERVER));
    assert_eq!(text(&rows[0], "msg"), "the originator sent 1448 bytes in vain 5 times");
    let mut two = Traffic::default();
    stuck(&mut two, 0, 1000);
    stuck(&mut two, 60_000, 1000);
    let rows = found(two);
    let expected = [("Netsniff::MTU_Black_Hole", "low"), ("Netsniff::MTU_Black_Hole", "medium")];
    assert_eq!(names(&rows), expected);
    assert_eq!(rows[1]["uids"].as_array().unwrap().len(), 2);
    let mut told = Traffic::default();
    told.too_big(0);
    // The message is told when nothing follows it.
    stuck(&mut told, 200_000, 1000);
    let rows = found(told);
    assert_eq!(names(&rows), [("Netsniff::MTU_Black_Hole", "medium")]);
    assert!(text(&rows[0], "msg").ends_with("a router had told it that its packets are too large"));
    let mut passing = Traffic::default();
    stuck(&mut passing, 0, 5);
    assert_eq!(names(&found(passing)), []);
}

#[test]
fn hosts_that_contend_for_an_address_are_found_and_a_takeover_is_not() {
    const ADDRESS: [u8; 4] = [192, 0, 2, 77];
    let contend = |owners: &[(u8, Option<u8>)]| {
        let mut traffic = web();
        for (&(mac, vlan), second) in owners.iter().zip(0..) {
            traffic.arp(mac, ADDRESS, second * 10_000, vlan);
            traffic.arp(mac + 100, [192, 0, 2, mac], second * 10_000 + 1, vlan);
        }
        found(traffic)
    };
    let rows = contend(&[(1, None), (2, None), (1, None), (2, None)]);
    assert_eq!(names(&rows), [("Netsniff::ARP_Conflict", "medium")]);
    assert_eq!((text(&rows[0], "src"), &rows[0]["n"]), ("192.0.2.77", &3.into()));
    assert_eq!(text(&rows[0], "sub"), "02:00:00:00:00:02 02:00:00:00:00:01");
    assert_eq!(names(&contend(&[(1, None), (1, None), (2, None), (2, None)])), [], "it moved");
    let apart =
        [(1, Some(3)), (2, Some(4)), (1, Some(3)), (2, Some(4)), (1, Some(3)), (2, Some(4))];
    assert_eq!(names(&contend(&apart)), [], "two VLANs");
}
