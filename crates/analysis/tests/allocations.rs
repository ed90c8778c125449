//! What flows are counted to take is what they take: floods of each kind, under an allocator that counts.
//!
//! The allocator is one for the process, so that all is one test.

use core::net::{IpAddr, Ipv4Addr};

use netsniff_analysis::{Engine, Limits, Observer, Options, Record, SortKey};
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_traffic::frame::{Host, tcp_frame, udp_frame};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const SYN: u16 = 0x02;
const ACK: u16 = 0x10;

/// What flows may take.
const FLOW_BYTES: usize = 16 << 20;

/// What an engine holds besides, however many flows there are: its tables of deadlines and of what is odd, the
/// place for what is in work, and twice the index of flows while that grows.
const BESIDES: usize = 5 << 20;

/// Nanoseconds from one packet to the next: what is told of connections waits for some milliseconds.
const APART: i64 = 10_000;

/// Forgets all rows.
struct Nobody;

impl Observer for Nobody {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}
}

/// What a kind of flow says, each side in one segment; `None` where it has no handshake.
struct Kind {
    name: &'static str,
    port: u16,
    said: Option<[Vec<u8>; 2]>,
    /// What comes from the client behind a hole, again and again.
    behind: Vec<u8>,
    segments: u32,
}

impl Kind {
    fn of(name: &'static str, port: u16, client: &[u8], server: &[u8]) -> Self {
        let said = Some([client.to_vec(), server.to_vec()]);
        Self { name, port, said, behind: Vec::new(), segments: 0 }
    }

    fn with_holes(self, behind: &[u8], segments: u32) -> Self {
        Self { behind: behind.to_vec(), segments, ..self }
    }
}

fn kinds() -> Vec<Kind> {
    let request = |of: usize| {
        let cookie = "c".repeat(of);
        format!("GET /{of} HTTP/1.1\r\nHost: example.org\r\nCookie: {cookie}\r\n\r\n").repeat(3)
    };
    let greeting = b"220 mail.example.org ESMTP\r\n";
    let mail = b"EHLO host.example.org\r\nMAIL FROM:<someone@example.org>\r\nRCPT TO:<other@example.org>\r\n";
    let hello = [&[0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, 3, 3][..], &[7; 1000]].concat();
    vec![
        Kind { name: "SYN", port: 80, said: None, behind: Vec::new(), segments: 0 },
        Kind { name: "DNS", port: 53, said: None, behind: Vec::new(), segments: 0 },
        Kind::of("holes of a byte", 80, b"", b"").with_holes(b"a", 60),
        Kind::of("bytes behind holes", 80, b"GET / HTTP/1.1\r\n", b"")
            .with_holes(&[b'x'; 1200], 20),
        Kind::of("HTTP", 80, request(300).as_bytes(), b""),
        Kind::of("half a header of HTTP", 80, &request(1300).as_bytes()[..1200], b""),
        Kind::of("TLS", 443, &hello, b""),
        Kind::of("SMTP", 25, mail, greeting),
        Kind::of(
            "FTP",
            21,
            b"USER someone\r\nPASS secret\r\nPORT 10,0,0,1,9,9\r\n",
            b"220 hello\r\n",
        ),
        Kind::of("SSH", 22, b"SSH-2.0-client_with_a_name\r\n", b"SSH-2.0-server\r\n"),
        Kind::of(
            "IRC",
            6667,
            b"NICK someone\r\nUSER a b c :d\r\nJOIN #here\r\n",
            b":s NOTICE * :hi\r\n",
        ),
        Kind::of("what nobody knows", 9999, &[0xfe; 900], &[0xfd; 900]),
    ]
}

/// The frames of flow number `flow`.
fn frames(kind: &Kind, flow: u32) -> Vec<Vec<u8>> {
    let [_, a, b, c] = flow.to_be_bytes();
    let client = Host::new(IpAddr::V4(Ipv4Addr::new(10, a, b, c)), 40_000);
    let server = Host::new(IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1)), kind.port);
    let segment =
        |from: &Host, to: &Host, flags, [sequence, acknowledgement]: [u32; 2], payload: &[u8]| {
            let header = TcpHeader {
                source_port: 0,
                destination_port: 0,
                sequence,
                acknowledgement,
                flags,
                window: 65_535,
                checksum: 0,
                urgent_pointer: 0,
                options: &[],
            };
            tcp_frame(from, to, 0, &header, payload).unwrap()
        };
    let Some([asked, answered]) = &kind.said else {
        let query = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\x03org\0\0\x01\0\x01";
        return vec![match kind.port {
            53 => udp_frame(&client, &server, 0, query).unwrap(),
            _ => segment(&client, &server, SYN, [1, 0], &[]),
        }];
    };
    let mut frames = vec![
        segment(&client, &server, SYN, [1, 0], &[]),
        segment(&server, &client, SYN | ACK, [1, 2], &[]),
        segment(&client, &server, ACK, [2, 2], &[]),
    ];
    if !answered.is_empty() {
        frames.push(segment(&server, &client, ACK, [2, 2], answered));
    }
    let behind = 2 + answered.len() as u32;
    if !asked.is_empty() {
        frames.push(segment(&client, &server, ACK, [2, behind], asked));
    }
    let step = kind.behind.len() as u32 + 1;
    frames.extend((0..kind.segments).map(|number| {
        let sequence = 3 + asked.len() as u32 + number * step;
        segment(&client, &server, ACK, [sequence, behind], &kind.behind)
    }));
    frames
}

/// More flows than there is room for, all open at once. Returns the most that was allocated for the engine, and the
/// most that its flows counted.
fn flood(kind: &Kind) -> (usize, usize) {
    let limits = Limits { flow_bytes: FLOW_BYTES, ..Limits::default() }.with_join_bytes(0);
    let before = ALLOCATOR.current_usage();
    let mut engine = Engine::new(limits, Options::default(), 7);
    ALLOCATOR.reset_peak_usage();
    let mut count = 0;
    for flow in 0..100_000 {
        for frame in frames(kind, flow) {
            count += 1;
            let timestamp = Timestamp::from_secs_nanos(1_000, 0).offset(count * APART);
            let (data, wire_len) = (&frame[..], frame.len() as u32);
            let link_type = LinkType::ETHERNET;
            engine.packet(
                &Packet { timestamp, data, wire_len, link_type, interface: 0 },
                &mut Nobody,
            );
        }
        let is_over = engine.tracker().statistics().peak_bytes > FLOW_BYTES / 100 * 95;
        // Once flows end early as new ones begin, half as many see whether anything stays behind.
        if is_over && flow as usize > engine.tracker().statistics().peak_flows * 3 / 2 {
            break;
        }
    }
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    (peak, engine.tracker().statistics().peak_bytes)
}

#[test]
fn what_flows_are_counted_to_take_is_what_they_take() {
    let mut wrong = Vec::new();
    for kind in kinds() {
        let (allocated, counted) = flood(&kind);
        let is_over = allocated > FLOW_BYTES + BESIDES;
        // What is counted is there.
        let is_short = counted > allocated + allocated / 4;
        let is_full = counted > FLOW_BYTES / 10 * 9;
        if is_over || is_short || !is_full {
            wrong.push(format!(
                "{}: {allocated} allocated, {counted} counted of {FLOW_BYTES}",
                kind.name
            ));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
