//! Rows that are flows and rows that are none, sessions, and templates that are told again.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};

use netsniff_ipfix::exporter::Told;

use super::*;
use crate::Identity;
use crate::delivery::Target;

const TCP: &str = r#"{"ts":1700000000.123456,"uid":"CHhAvVGS1DHFjwGM9","id.orig_h":"192.0.2.1","id.orig_p":40000,"id.resp_h":"192.0.2.2","id.resp_p":443,"proto":"tcp","duration":1.5,"orig_bytes":3,"resp_bytes":0,"conn_state":"SF","history":"ShAF","orig_pkts":4,"orig_ip_bytes":200,"resp_pkts":3,"resp_ip_bytes":150,"ip_proto":6,"quality":"clean","depth":"protocols","depth_begin":"protocols"}"#;

fn told(json: &str, test: impl FnOnce(Result<Told<'_>, String>)) {
    let identity = Identity::new("s", "r").unwrap();
    let row = Row { identity: &identity, log: CONN, seq: 0, time: 0, json: json.as_bytes() };
    match &Parsed::of(&row) {
        Ok(parsed) => test(parsed.told(&row)),
        Err(why) => test(Err(why.clone())),
    }
}

#[test]
fn a_row_is_read_to_the_nanosecond_and_unset_is_unset() {
    told(TCP, |told| {
        let Ok(Told::Connection(of)) = told else { panic!() };
        assert_eq!(of.start.nanos(), 1_700_000_000_123_456_000);
        assert_eq!(of.end.unwrap().nanos(), 1_700_000_001_623_456_000);
        assert_eq!((of.tcp_flags, of.is_ended), (Some([1 | 2 | 16, 2 | 16]), true));
        assert_eq!((of.sent[0].payload_octets, of.sent[1].payload_octets), (Some(3), Some(0)));
        assert_eq!((of.missed, of.vlan, of.service), (None, None, ""));
    });
    told(&TCP.replace(r#""duration":1.5,"#, ""), |told| {
        let Ok(Told::Connection(of)) = told else { panic!() };
        assert_eq!(of.end, None, "of seven packets, the last may be before the first");
    });
    let alone =
        TCP.replace(r#""duration":1.5,"#, "").replace(r#""orig_pkts":4"#, r#""orig_pkts":1"#);
    told(&alone.replace(r#""resp_pkts":3"#, r#""resp_pkts":0"#), |told| {
        let Ok(Told::Connection(of)) = told else { panic!() };
        assert_eq!(of.end, Some(of.start));
    });
}

#[test]
fn icmp_has_the_code_where_the_row_has_it() {
    for (kind, other, expected) in [(8, 0, (8, 0)), (13, 14, (13, 0)), (3, 1, (3, 1))] {
        let json = TCP
            .replace(r#""ip_proto":6"#, r#""ip_proto":1"#)
            .replace("40000", &kind.to_string())
            .replace("443", &other.to_string());
        told(&json, |told| {
            let Ok(Told::Connection(of)) = told else { panic!() };
            assert_eq!((of.icmp, of.tcp_flags, of.is_ended), (Some(expected), None, false));
        });
    }
}

#[test]
fn what_is_no_row_of_connections_is_refused() {
    for wrong in
        ["{}".to_owned(), TCP.replace("1.5", "\"x\""), TCP.replace(r#""orig_pkts":4,"#, "")]
    {
        told(&wrong, |told| assert!(told.is_err(), "{wrong}"));
    }
    // IPv4-mapped addresses are written as those of IPv4, and stand in headers of IPv6.
    told(&TCP.replace("192.0.2.1", "2001:db8::1"), |told| assert!(told.is_ok()));
    let target = Target::open("ipfix://127.0.0.1").unwrap();
    assert!(target.wants("conn") && !target.wants("dns"));
    assert_eq!(target.ports(), [4739]);
    let why = Target::open("ipfix://127.0.0.1?log=conn,dns").unwrap_err().to_string();
    assert!(why.contains("log=dns has no form there; conn has"), "{why}");
    for wrong in ["time=us", "pen=x", "domain=-1", "mtu=1500", "refresh=1s", "a=b"] {
        assert!(Target::open(&format!("ipfix://127.0.0.1?{wrong}")).is_err(), "{wrong}");
    }
    for wrong in ["rate=0", "mtu=539", "mtu=65536", "refresh=x"] {
        assert!(Target::open(&format!("ipfix+udp://127.0.0.1?{wrong}")).is_err(), "{wrong}");
    }
}

/// Sends a good row, one that is none, and another good one.
fn send(receiver: &mut dyn Receiver) -> Answer {
    let identity = Identity::new("s", "r").unwrap();
    let row = |seq, json: &'static str| Row {
        identity: &identity,
        log: CONN,
        seq,
        time: 0,
        json: json.as_bytes(),
    };
    receiver.send(&[row(0, TCP), row(1, "{}"), row(2, TCP)])
}

fn is_as_sent(answer: &Answer) -> bool {
    let Answer::Each(answers) = answer else { return false };
    matches!(answers.as_slice(), [RowAnswer::Accepted, RowAnswer::Refused(_), RowAnswer::Accepted])
}

/// The message at the begin of some bytes: its sequence number, and whether it begins with a template.
fn message(bytes: &[u8]) -> (usize, u32, bool) {
    assert_eq!(bytes[..2], [0, 10]);
    let length = u16::from_be_bytes([bytes[2], bytes[3]]).into();
    let sequence = u32::from_be_bytes(bytes[8..12].try_into().unwrap());
    (length, sequence, bytes[16..18] == [0, 2])
}

fn read(stream: &mut TcpStream) -> (usize, u32, bool) {
    let mut bytes = vec![0; 18];
    stream.read_exact(&mut bytes).unwrap();
    let (length, sequence, has_template) = message(&bytes);
    bytes.resize(length, 0);
    stream.read_exact(&mut bytes[18..]).unwrap();
    (length, sequence, has_template)
}

#[test]
fn a_new_connection_is_a_new_session() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix://{}", listener.local_addr().unwrap());
    let mut opened = open(Address::parse(&url).unwrap()).unwrap();
    for _ in 0..2 {
        assert!(is_as_sent(&send(&mut *opened.receiver)));
        let (mut stream, _) = listener.accept().unwrap();
        let (first, sequence, has_template) = read(&mut stream);
        assert_eq!((sequence, has_template), (0, true));
        assert!(is_as_sent(&send(&mut *opened.receiver)));
        let (second, sequence, has_template) = read(&mut stream);
        assert_eq!((sequence, has_template), (2, false));
        assert!(second < first);
    }
    drop(listener);
    assert!(matches!(send(&mut *opened.receiver), Answer::Later { .. }));
}

#[test]
fn datagrams_go_on_counting_where_nobody_listened() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap();
    let mut opened = open(Address::parse(&format!("ipfix+udp://{at}")).unwrap()).unwrap();
    let read = |socket: &UdpSocket| {
        let mut bytes = [0; 2000];
        let length = socket.recv(&mut bytes).unwrap();
        let (told, sequence, has_template) = message(&bytes);
        assert_eq!(told, length);
        (sequence, has_template)
    };
    for expected in [(0, true), (2, false)] {
        assert!(is_as_sent(&send(&mut *opened.receiver)));
        assert_eq!(read(&socket), expected);
    }
    drop(socket);
    // The first one is lost, and the system tells it with the second.
    assert!(is_as_sent(&send(&mut *opened.receiver)));
    let Answer::Each(answers) = send(&mut *opened.receiver) else { panic!() };
    assert!(matches!(answers[0], RowAnswer::Later(_)), "{answers:?}");
    // From then on nothing counts as sent that nobody took.
    (0..3).for_each(|_| {
        let answer = send(&mut *opened.receiver);
        assert!(matches!(answer, Answer::Later { .. }), "{answer:?}");
    });
    let socket = UdpSocket::bind(at).unwrap();
    assert!(is_as_sent(&send(&mut *opened.receiver)));
    assert_eq!(read(&socket), (6, false), "a message without records asks");
    assert_eq!(read(&socket), (6, true));
}

#[test]
fn templates_are_told_again_over_udp() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap();
    let url = format!("ipfix+udp://{at}?refresh=1ms");
    let mut opened = open(Address::parse(&url).unwrap()).unwrap();
    let mut bytes = [0; 2000];
    for _ in 0..3 {
        send(&mut *opened.receiver);
        socket.recv(&mut bytes).unwrap();
        assert!(message(&bytes).2);
        std::thread::sleep(Duration::from_millis(2));
    }
    let begin = Instant::now();
    let url = format!("ipfix+udp://{at}?rate=50");
    let mut opened = open(Address::parse(&url).unwrap()).unwrap();
    (0..6).for_each(|_| _ = send(&mut *opened.receiver));
    assert!(begin.elapsed() >= Duration::from_millis(100), "five pauses of 20 ms");
    (0..6).for_each(|_| _ = socket.recv(&mut bytes).unwrap());
    let mut opened = open(Address::parse(&format!("ipfix+udp://{at}")).unwrap()).unwrap();
    let mut with_template = Vec::new();
    for at in 0..2 * REFRESH_MESSAGES + 1 {
        send(&mut *opened.receiver);
        socket.recv(&mut bytes).unwrap();
        if message(&bytes).2 {
            with_template.push(at);
        }
    }
    assert_eq!(with_template, [0, REFRESH_MESSAGES, 2 * REFRESH_MESSAGES]);
}
