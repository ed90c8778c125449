//! Pictures of connections that are made here, packet by packet.

use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::PcapWriter;

use super::*;

const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 1000);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A capture of bare IPv4 packets, one each millisecond.
struct Capture {
    writer: PcapWriter<Vec<u8>>,
    millis: i64,
    without_options: bool,
}

impl Capture {
    fn new() -> Self {
        Self {
            writer: PcapWriter::new(Vec::new(), LinkType::RAW, 65_535).unwrap(),
            millis: 0,
            without_options: false,
        }
    }

    fn ip(&mut self, from: [u8; 4], to: [u8; 4], protocol: u8, payload: &[u8]) {
        let len = (20 + payload.len()) as u16;
        let mut data = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
        data[2..4].copy_from_slice(&len.to_be_bytes());
        data.extend(from.iter().chain(&to).chain(payload));
        self.millis += 1;
        let timestamp = Timestamp::from_nanos(1_000_000_000_000 + self.millis * 1_000_000);
        let wire_len = data.len() as u32;
        let packet =
            Packet { timestamp, link_type: LinkType::RAW, wire_len, data: &data, interface: 0 };
        self.writer.write_packet(&packet).unwrap();
    }

    /// A segment of the client, or of the server, with so many bytes of payload.
    fn tcp(&mut self, is_client: bool, numbers: (u32, u32), flags: u8, window: u16, len: usize) {
        let (from, to) = if is_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let has_options = flags & SYN > 0 && !self.without_options;
        let options: &[u8] = if has_options { &[3, 3, 2, 1] } else { &[] };
        let mut segment = Vec::new();
        segment.extend(from.1.to_be_bytes());
        segment.extend(to.1.to_be_bytes());
        segment.extend(numbers.0.to_be_bytes());
        segment.extend(numbers.1.to_be_bytes());
        segment.extend([((5 + options.len() / 4) << 4) as u8, flags]);
        segment.extend(window.to_be_bytes());
        segment.extend([0; 4]);
        segment.extend(options);
        segment.resize(segment.len() + len, b'x');
        self.ip(from.0, to.0, 6, &segment);
    }

    /// The same without options.
    fn bare(&mut self, is_client: bool, numbers: (u32, u32), flags: u8) {
        self.without_options = true;
        self.tcp(is_client, numbers, flags, 1000, 0);
        self.without_options = false;
    }

    /// A handshake; the next numbers of client and server are 1 beyond these.
    fn open(client: u32, server: u32) -> Self {
        let mut capture = Self::new();
        capture.tcp(true, (client, 0), SYN, 1000, 0);
        capture.tcp(false, (server, client.wrapping_add(1)), SYN | ACK, 1000, 0);
        let next = (client.wrapping_add(1), server.wrapping_add(1));
        capture.tcp(true, next, ACK, 1000, 0);
        capture
    }

    fn picture(self) -> Sequence {
        of(&*self.writer.finish().unwrap(), "", Limits::default()).unwrap()
    }
}

fn ranges(direction: &Direction, class: Class) -> Vec<(i64, i64)> {
    direction.strokes(class).list.iter().map(|it| (it.low, it.high)).collect()
}

#[test]
fn numbers_go_on_where_they_wrap() {
    let start = u32::MAX - 250;
    let mut capture = Capture::open(start, 7);
    for at in 0..10_u32 {
        let number = start.wrapping_add(1 + at * 100);
        capture.tcp(true, (number, 8), ACK, 1000, 100);
        capture.tcp(false, (8, number.wrapping_add(100)), ACK, 1000, 0);
    }
    let picture = capture.picture();
    let [client, server] = &picture.directions;
    let expected: Vec<_> = (0..10).map(|at| (at * 100, at * 100 + 100)).collect();
    assert_eq!(ranges(client, Class::Data), expected);
    assert_eq!(client.track.acknowledged.highest(), Some(1000));
    // 1000 shifted by 2, as both offered.
    assert_eq!(client.track.window.highest(), Some(5000));
    assert_eq!((server.strokes(Class::Data).segments, client.track.far), (0, 0));
    let signs: Vec<_> = client.track.signs.iter().map(|it| (it.kind, it.position)).collect();
    assert_eq!(signs, [(SignKind::Syn, -1)]);
}

#[test]
fn what_was_acknowledged_and_never_seen_is_lost_by_the_capture() {
    let mut capture = Capture::open(100, 500);
    capture.tcp(true, (101, 501), ACK, 1000, 100);
    capture.tcp(true, (301, 501), ACK, 1000, 100);
    for _ in 0..20 {
        capture.tcp(false, (501, 401), ACK, 1000, 0);
    }
    capture.tcp(true, (401, 501), ACK | FIN, 1000, 0);
    capture.tcp(false, (501, 402), ACK | RST, 1000, 0);
    let picture = capture.picture();
    let [client, server] = &picture.directions;
    let [gap] = &client.gaps[..] else { panic!("{:?}", client.gaps) };
    assert_eq!((gap.start, gap.end, gap.cause.as_str()), (100, 200, "capture"));
    assert_eq!(ranges(client, Class::Data), [(0, 100), (200, 300)]);
    let svg = picture.svg(0);
    assert!(svg.contains("100 bytes missing, 100 to 200: capture, acknowledged"), "{svg}");
    assert!(svg.contains("seq-gap-capture") && svg.contains("seq-fin"), "{svg}");
    assert_eq!(server.figure("resets"), Some(1));
    assert!(picture.html().unwrap().contains("lost by the capture"));
}

#[test]
fn a_window_is_as_wide_as_both_sides_agreed() {
    // Scaling counts only where both offer it (RFC 7323, 2.2).
    let mut capture = Capture::new();
    capture.tcp(true, (100, 0), SYN, 1000, 0);
    capture.bare(false, (500, 101), SYN | ACK);
    capture.tcp(true, (101, 501), ACK, 1000, 100);
    capture.tcp(false, (501, 201), ACK, 1000, 100);
    capture.tcp(true, (201, 601), ACK, 1000, 0);
    let [client, server] = capture.picture().directions;
    let limits = [client.track.window.highest(), server.track.window.highest()];
    assert_eq!(limits, [Some(1100), Some(1100)]);
    let widest = [client.figure("window_max"), server.figure("window_max")];
    assert_eq!(widest, [Some(1000), Some(1000)]);
    // Without a SYN nobody knows.
    let mut capture = Capture::new();
    capture.tcp(true, (101, 501), ACK, 1000, 100);
    capture.tcp(false, (501, 201), ACK, 1000, 100);
    let picture = capture.picture();
    assert_eq!(picture.directions[0].track.window.highest(), None);
    assert!(picture.html().unwrap().contains("The limit of the window is not known"));
}

#[test]
fn a_closed_window_and_the_probe_of_it_have_signs() {
    let mut capture = Capture::open(100, 500);
    capture.tcp(true, (101, 501), ACK, 1000, 100);
    capture.tcp(false, (501, 201), ACK, 0, 0);
    capture.tcp(true, (201, 501), ACK, 1000, 1);
    capture.tcp(false, (501, 201), ACK, 0, 0);
    let picture = capture.picture();
    let client = &picture.directions[0];
    let closed = client.track.signs.iter().filter(|it| it.kind == SignKind::ZeroWindow);
    assert_eq!(closed.map(|it| it.position).collect::<Vec<_>>(), [100, 100]);
    assert_eq!(ranges(client, Class::Probe), [(100, 101)]);
    assert_eq!(picture.directions[1].figure("zero_windows"), Some(2));
}

#[test]
fn many_segments_become_fewer_marks_that_cover_them_all() {
    let mut capture = Capture::open(0, 500);
    let segments = 12_000_u32;
    for at in 0..segments {
        capture.tcp(true, (1 + at * 10, 501), ACK, 1000, 10);
    }
    let picture = capture.picture();
    let strokes = picture.directions[0].strokes(Class::Data);
    assert!(strokes.list.len() <= marks::MOST && strokes.list.len() > 2_000);
    assert_eq!((strokes.segments, strokes.left_out), (segments.into(), 0));
    assert_eq!(strokes.list.iter().map(|it| it.segments).sum::<u64>(), u64::from(segments));
    let mut end = 0;
    for stroke in &strokes.list {
        assert_eq!(stroke.low, end);
        end = stroke.high;
    }
    assert_eq!(end, i64::from(segments) * 10);
    let most = strokes.most_segments();
    assert!(picture.html().unwrap().contains(&format!("Each mark is up to {most} segments.")));
}

#[test]
fn no_mark_covers_what_was_not_seen() {
    let mut capture = Capture::open(0, 500);
    let segments = (0..15_000_u32).filter(|at| at % 3 != 2);
    for at in segments.clone() {
        capture.tcp(true, (1 + at * 10, 501), ACK, 1000, 10);
    }
    let picture = capture.picture();
    let strokes = picture.directions[0].strokes(Class::Data);
    assert!(strokes.list.len() <= marks::MOST && strokes.left_out > 0);
    assert!(
        strokes.list.iter().all(|it| it.high - it.low <= 20 && it.low % 30 + 20 >= it.high % 30)
    );
    let drawn: u64 = strokes.list.iter().map(|it| it.segments).sum();
    assert_eq!((drawn + strokes.left_out, strokes.segments), (10_000, 10_000));
    let note = format!(
        "{} segments have no mark.",
        netsniff_console::number::exact(strokes.left_out.into())
    );
    assert!(picture.html().unwrap().contains(&note), "{note}");
    assert_eq!(segments.count(), 10_000);
}

#[test]
fn stamps_before_the_first_have_their_place() {
    let mut capture = Capture::open(0, 500);
    capture.tcp(true, (1, 501), ACK, 1000, 10);
    capture.millis = -1000;
    capture.tcp(true, (11, 501), ACK, 1000, 10);
    let picture = capture.picture();
    assert_eq!(picture.earliest, -1_000_000_000);
    let at: Vec<_> =
        picture.directions[0].strokes(Class::Data).list.iter().map(|it| it.at).collect();
    assert_eq!(at, [3_000_000, -1_000_000_000]);
    assert!(picture.svg(0).contains("\n-0."), "{}", picture.svg(0));
}

#[test]
fn any_numbers_make_a_picture_of_bounded_size() {
    let mut state = 0x9e37_79b9_u32;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let mut capture = Capture::open(random(), random());
    for _ in 0..30_000 {
        let (from, numbers) = (random() & 1 == 1, (random(), random()));
        let flags = (random() as u8 & (FIN | RST | SYN)) & random() as u8 | ACK;
        capture.tcp(from, numbers, flags, random() as u16, (random() % 50) as usize);
    }
    let picture = capture.picture();
    for (role, direction) in picture.directions.iter().enumerate() {
        let strokes: usize = Class::ALL.iter().map(|it| direction.strokes(*it).list.len()).sum();
        assert!(strokes <= Class::ALL.len() * marks::MOST);
        assert!(direction.track.acknowledged.points.len() <= marks::MOST + 1);
        assert!(direction.track.signs.len() <= 1000);
        assert!(picture.svg(role).len() < 400_000, "{}", picture.svg(role).len());
        assert!(direction.track.far > 0);
    }
}

#[test]
fn datagrams_have_bytes() {
    let mut capture = Capture::new();
    for len in [10_usize, 20, 30] {
        let mut datagram = vec![0x03, 0xe8, 0x13, 0x88, 0, (8 + len) as u8, 0, 0];
        datagram.resize(8 + len, 0);
        capture.ip([10, 0, 0, 1], [10, 0, 0, 2], 17, &datagram);
    }
    let picture = capture.picture();
    assert_eq!(picture.kind, Kind::Datagrams);
    let [client, server] = &picture.directions;
    let values: Vec<_> = client.track.bytes.points.iter().map(|(_, value)| *value).collect();
    assert_eq!(values, [Some(10), Some(30), Some(60)]);
    assert_eq!((client.figure("bytes"), server.figure("bytes")), (Some(60), Some(0)));
    assert!(picture.svg(0).contains("seq-bytes") && !picture.svg(0).contains("seq-ack"));
}

#[test]
fn no_more_is_read_than_may_be() {
    let mut capture = Capture::open(100, 500);
    for at in 0..10 {
        capture.tcp(true, (101 + at * 10, 501), ACK, 1000, 10);
    }
    let bytes = capture.writer.finish().unwrap();
    let cut = of(&*bytes, "", Limits { packets: 5 }).unwrap();
    assert!(cut.is_cut && cut.datagrams == 5);
    assert_eq!(cut.directions[0].figure("data_segments"), Some(2));
    assert!(cut.html().unwrap().contains("Only the first 5 packets were read"));
    let whole = of(&*bytes, "", Limits { packets: 13 }).unwrap();
    assert!(!whole.is_cut && whole.datagrams == 13);
    assert!(of(&bytes[..24], "", Limits::default()).is_err(), "no packet, no picture");
}

#[test]
fn a_picture_has_the_looks_of_the_page_alone() {
    let mut capture = Capture::open(100, 500);
    capture.tcp(true, (101, 501), ACK, 1000, 100);
    capture.tcp(false, (501, 201), ACK, 1000, 0);
    let picture = capture.picture();
    for role in [0, 1] {
        let svg = picture.svg(role);
        assert!(!svg.contains("style=") && !svg.contains("=\"#"), "{svg}");
        assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (1, 1));
        assert!(svg.contains("role=\"img\"") && svg.contains("<desc id="), "{svg}");
        for class in svg.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(STYLE.contains(&format!(".{class}")), "{class} has no look");
        }
    }
    assert!(!picture.html().unwrap().contains("style="));
}
