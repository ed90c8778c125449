//! Messages built by hand: templates that come late, go, or make no sense; bounds; books that add up.

use std::time::Duration;

use netsniff_ipfix::sampling::Sampling;
use netsniff_ipfix::{
    Collector, Exporter, Flow, Limits, Refusal, StreamBooks, StreamKey, Transport,
};
use netsniff_packet::{Address, Timestamp};

const NOW: Timestamp = Timestamp::from_secs_nanos(1_700_000_000, 0);
const SENT: u32 = 1_700_000_000;

fn exporter(last: u8) -> Exporter {
    Exporter { address: Address::from_v4([192, 0, 2, last]), port: 4739, transport: Transport::Udp }
}

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let len = (content.len() + 4) as u16;
    [&id.to_be_bytes()[..], &len.to_be_bytes(), content].concat()
}

fn numbers(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn ipfix(sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let body = sets.concat();
    let len = (body.len() + 16) as u16;
    let head = [10_u16.to_be_bytes(), len.to_be_bytes()].concat();
    [head, [SENT, sequence, 7].map(u32::to_be_bytes).concat(), body].concat()
}

fn netflow9(sequence: u32, uptime: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let head = [9_u16.to_be_bytes(), [0, 1]].concat();
    [head, [uptime, SENT, sequence, 7].map(u32::to_be_bytes).concat(), sets.concat()].concat()
}

/// Addresses, ports, protocol, packets, octets, start and end in milliseconds.
const FIELDS: [u16; 18] = [8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 2, 4, 1, 8, 152, 8, 153, 8];

fn template(id: u16) -> Vec<u8> {
    [numbers(&[id, 9]), numbers(&FIELDS)].concat()
}

/// A record of that template, whose source port is `port`.
fn record(port: u16) -> Vec<u8> {
    let start = u64::from(SENT) * 1000 - 5000;
    [
        &[10, 0, 0, 1, 10, 0, 0, 2][..],
        &port.to_be_bytes(),
        &443_u16.to_be_bytes(),
        &[6],
        &9_u32.to_be_bytes(),
        &1234_u64.to_be_bytes(),
        &start.to_be_bytes(),
        &(start + 2500).to_be_bytes(),
    ]
    .concat()
}

fn records(ports: &[u16]) -> Vec<u8> {
    ports.iter().flat_map(|port| record(*port)).collect()
}

struct Bed {
    collector: Collector,
    flows: Vec<Flow>,
}

impl Bed {
    fn new(limits: Limits) -> Self {
        Self { collector: Collector::new(limits), flows: Vec::new() }
    }

    fn take(&mut self, message: &[u8]) -> Result<(), Refusal> {
        self.take_from(exporter(1), message)
    }

    fn take_from(&mut self, exporter: Exporter, message: &[u8]) -> Result<(), Refusal> {
        let flows = &mut self.flows;
        self.collector.message(exporter, NOW, message, |_: &StreamKey, flow| flows.push(flow))
    }

    fn ports(&self) -> Vec<u16> {
        self.flows.iter().map(|flow| flow.source_port).collect()
    }

    fn books(&self) -> StreamBooks {
        let (_, books) = self.collector.books().next().unwrap();
        assert_eq!(books.records, books.flows + books.options + books.others);
        assert_eq!(books.sets, books.decoded_sets + books.waiting_sets + books.undecoded_sets);
        books
    }
}

#[test]
fn a_record_is_read_to_the_nanosecond() {
    let mut bed = Bed::new(Limits::default());
    bed.take(&ipfix(0, &[set(2, &template(256)), set(256, &records(&[1000]))])).unwrap();
    let [flow] = &bed.flows[..] else { panic!("{:?}", bed.flows) };
    assert_eq!(flow.source, Address::from_v4([10, 0, 0, 1]));
    assert_eq!((flow.source_port, flow.destination_port, flow.protocol), (1000, 443, 6));
    assert_eq!((flow.forward.packets, flow.forward.octets), (Some(9), Some(1234)));
    assert_eq!(flow.start(), Some(NOW - Duration::from_secs(5)));
    assert_eq!(flow.end(), Some(NOW - Duration::from_millis(2500)));
    assert_eq!(
        (flow.reverse, flow.forward.tcp_flags, flow.sampling),
        (None, None, Sampling::Untold)
    );
}

#[test]
fn data_waits_for_its_template_and_nothing_was_lost() {
    let mut bed = Bed::new(Limits::default());
    bed.take(&ipfix(0, &[set(256, &records(&[1, 2])), set(257, &records(&[3]))])).unwrap();
    assert_eq!((bed.books().waiting_sets, bed.books().lost, bed.ports()), (2, None, vec![]));
    bed.take(&ipfix(3, &[set(2, &template(257))])).unwrap();
    assert_eq!((bed.books().waiting_sets, bed.books().lost, bed.ports()), (1, None, vec![3]));
    bed.take(&ipfix(3, &[set(2, &template(256)), set(256, &records(&[4]))])).unwrap();
    assert_eq!(bed.ports(), [3, 4, 1, 2], "what waited comes behind the message that explains it");
    assert_eq!((bed.books().waiting_sets, bed.books().lost), (0, Some(0)));
    assert!(bed.flows.iter().all(|flow| !flow.is_touched));
    bed.take(&ipfix(9, &[set(256, &records(&[5]))])).unwrap();
    bed.take(&ipfix(10, &[set(256, &records(&[6, 7]))])).unwrap();
    bed.take(&ipfix(12, &[set(256, &records(&[8]))])).unwrap();
    assert_eq!(bed.books().lost, Some(5));
    assert!(bed.flows.last().unwrap().is_touched, "it began before the loss");
}

#[test]
fn what_waits_is_bounded_and_given_up_in_time() {
    // Room for two sets of 74 bytes with what each takes besides, and not for three.
    let full = || {
        let mut bed = Bed::new(Limits { waiting_bytes: 420, ..Limits::default() });
        for sequence in 0..10 {
            let port = 10 * sequence as u16;
            bed.take(&ipfix(sequence, &[set(256, &records(&[port, port + 1]))])).unwrap();
        }
        let books = bed.books();
        assert_eq!((books.waiting_sets, books.undecoded_sets, books.lost), (2, 8, None));
        bed
    };
    let mut bed = full();
    bed.take(&ipfix(20, &[set(2, &template(256))])).unwrap();
    assert_eq!(bed.ports(), [80, 81, 90, 91], "the oldest made room");
    let mut bed = full();
    bed.collector.expire(NOW + Duration::from_secs(1800));
    assert_eq!(bed.books().waiting_sets, 2);
    bed.collector.expire(NOW + Duration::from_secs(1901));
    assert_eq!((bed.books().waiting_sets, bed.books().undecoded_sets), (0, 10));
}

#[test]
fn sets_without_content_take_room_too() {
    let mut bed = Bed::new(Limits::default());
    let empty = vec![set(256, &[]); 16_000];
    for sequence in 0..4 {
        bed.take(&ipfix(sequence, &empty)).unwrap();
    }
    let books = bed.books();
    assert_eq!(books.sets, 64_000);
    assert!(books.waiting_sets < (256 << 10) / 32, "{} wait", books.waiting_sets);
}

#[test]
fn fields_without_bytes_cost_nothing_and_a_template_of_them_is_refused() {
    let mut bed = Bed::new(Limits::default());
    let alone = numbers(&[256, 2, 7, 0, 11, 0]);
    bed.take(&ipfix(0, &[set(2, &alone), set(256, &[0; 9])])).unwrap();
    assert_eq!((bed.books().templates, bed.books().templates_refused), (0, 1));
    // Of 512 fields 511 have no bytes: what is read of a record is one field.
    let mut many = numbers(&[257, 512, 82, 1]);
    many.extend(numbers(&[95, 0]).repeat(511));
    let room = Limits { all_fields: 1, ..Limits::default() };
    let mut bed = Bed::new(room);
    bed.take(&ipfix(0, &[set(2, &many), set(257, &[1; 60_000])])).unwrap();
    assert_eq!((bed.books().templates, bed.books().others), (1, 60_000));
}

#[test]
fn a_probability_in_half_its_bytes_is_a_sample() {
    let mut bed = Bed::new(Limits::default());
    // A scope of the whole system, then the selector and its probability.
    let options = numbers(&[258, 3, 1, 144, 4, 302, 4, 311, 4]);
    let told = [[0, 0, 0, 1], [0, 0, 0, 5], 0.25_f32.to_be_bytes()].concat();
    let sets = [set(3, &options), set(258, &told), set(2, &template(256))];
    bed.take(&ipfix(0, &sets)).unwrap();
    bed.take(&ipfix(1, &[set(256, &records(&[1]))])).unwrap();
    assert_eq!(bed.flows[0].sampling, Sampling::Some);
}

#[test]
fn numbers_go_on_behind_the_last_one_there_is() {
    for (behind, lost) in [(u32::MAX - 2, 0), (5, 8)] {
        let mut bed = Bed::new(Limits::default());
        let first = u32::MAX - 9;
        bed.take(&ipfix(first, &[set(2, &template(256)), set(256, &records(&[1; 4]))])).unwrap();
        bed.take(&ipfix(first + 4, &[set(256, &records(&[2; 3]))])).unwrap();
        bed.take(&ipfix(behind, &[set(256, &records(&[3; 6]))])).unwrap();
        let next = behind.wrapping_add(6);
        bed.take(&ipfix(next, &[set(256, &records(&[4, 5]))])).unwrap();
        let books = bed.books();
        assert_eq!((books.lost, books.restarts), (Some(lost), 0), "{books:?}");
    }
}

#[test]
fn records_without_a_start_are_no_connections() {
    let mut bed = Bed::new(Limits::default());
    let fields = numbers(&[256, 6, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 2, 4]);
    let told = [&[10, 0, 0, 1, 10, 0, 0, 2][..], &numbers(&[5, 6]), &[17, 0, 0, 0, 9]].concat();
    bed.take(&ipfix(0, &[set(2, &fields), set(256, &told)])).unwrap();
    assert_eq!((bed.books().others, bed.flows.len()), (1, 0));
    // The time of a start that is told to be none is none, either: nothing was seen in 1970.
    let mut zero = record(1);
    let start = zero.len() - 16;
    zero[start..start + 8].fill(0);
    bed.take(&ipfix(1, &[set(2, &template(257)), set(257, &zero)])).unwrap();
    assert_eq!((bed.books().others, bed.flows.len()), (2, 0), "{:?}", bed.flows);
}

#[test]
fn templates_are_withdrawn_replaced_and_forgotten() {
    let mut bed = Bed::new(Limits::default());
    bed.take(&ipfix(0, &[set(2, &[template(256), template(257)].concat())])).unwrap();
    assert_eq!(bed.books().templates, 2);
    bed.take(&ipfix(0, &[set(2, &numbers(&[256, 0])), set(256, &records(&[1]))])).unwrap();
    assert_eq!((bed.books().templates, bed.books().waiting_sets), (1, 1));
    bed.take(&ipfix(1, &[set(2, &numbers(&[2, 0]))])).unwrap();
    assert_eq!((bed.books().templates, bed.books().templates_ended), (0, 2));
    // The same id with ports alone: no connection.
    let ports = numbers(&[258, 2, 7, 2, 11, 2]);
    bed.take(&ipfix(1, &[set(2, &ports), set(258, &numbers(&[1, 2]))])).unwrap();
    assert_eq!((bed.books().others, bed.books().templates), (1, 1));
    bed.take(&ipfix(2, &[set(2, &template(258)), set(258, &records(&[9]))])).unwrap();
    assert_eq!((bed.ports(), bed.books().templates), (vec![9], 1));
    bed.collector.expire(NOW + Duration::from_secs(5401));
    assert_eq!(bed.books().templates, 0, "it was not told again");
}

#[test]
fn templates_without_sense_or_room_are_refused() {
    let limits = Limits { templates: 2, fields: 9, ..Limits::default() };
    let mut bed = Bed::new(limits);
    let refused = [
        numbers(&[255, 1, 7, 2]),
        numbers(&[256, 1, 7, 0]),
        numbers(&[256, 10, 7, 2]),
        numbers(&[256, 3, 7, 2]),
    ];
    for (at, wrong) in refused.iter().enumerate() {
        bed.take(&ipfix(0, &[set(2, wrong)])).unwrap();
        assert_eq!((bed.books().templates_refused, bed.books().templates), (at as u64 + 1, 0));
    }
    for id in 256..260 {
        bed.take(&ipfix(0, &[set(2, &template(id))])).unwrap();
    }
    assert_eq!((bed.books().templates, bed.books().templates_refused), (2, 6));
    let bed_of_all = Limits { all_fields: 20, ..Limits::default() };
    let mut bed = Bed::new(bed_of_all);
    for last in 1..5 {
        bed.take_from(exporter(last), &ipfix(0, &[set(2, &template(256))])).unwrap();
    }
    let held: u64 = bed.collector.books().map(|(_, books)| books.templates).sum();
    assert_eq!(held, 2, "9 fields each, of 20 for all");
}

#[test]
fn fields_of_any_length_and_of_enterprises_are_passed_over() {
    // A string of any length, an element of an enterprise, and the octets of the other direction.
    let fields = [
        numbers(&[256, 12, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 82, 0xffff, 0x8001, 4, 0, 9]),
        numbers(&[0x8001, 8, 0, 29305, 0x8002, 8, 0, 29305, 1, 8, 152, 8, 153, 8]),
    ]
    .concat();
    let rest = |octets: u64| {
        let start = u64::from(SENT) * 1000;
        let mut bytes = vec![1, 2, 3, 4];
        for value in [octets, 0, 77, start, start] {
            bytes.extend(value.to_be_bytes());
        }
        bytes
    };
    let head = [&[10, 0, 0, 1, 10, 0, 0, 2][..], &numbers(&[5, 6]), &[17]].concat();
    let short = [&head[..], &[3], b"abc", &rest(1)].concat();
    let long = [&head[..], &[255, 1, 44], &[b'x'; 300], &rest(2)].concat();
    let mut bed = Bed::new(Limits::default());
    let padded = [short, long, vec![0; 3]].concat();
    bed.take(&ipfix(0, &[set(2, &fields), set(256, &padded)])).unwrap();
    let reverse: Vec<_> = bed.flows.iter().map(|flow| flow.reverse.unwrap()).collect();
    assert_eq!(reverse.iter().map(|sent| sent.octets).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert_eq!(reverse[0].packets, Some(0), "told to be none");
    assert_eq!(bed.flows[1].forward.packets, None, "not told");
    assert_eq!((bed.books().decoded_sets, bed.books().damaged), (1, 0));
    // The length of the string reaches beyond the set.
    let beyond = [&head[..], &[200], &[b'x'; 60]].concat();
    bed.take(&ipfix(2, &[set(256, &beyond)])).unwrap();
    assert_eq!((bed.books().undecoded_sets, bed.books().lost), (1, None));
}

#[test]
fn netflow9_counts_messages_and_tells_of_samplers() {
    let mut bed = Bed::new(Limits::default());
    let fields = numbers(&[256, 8, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 22, 4, 21, 4, 48, 1]);
    // A scope of the whole system, then the sampler and its interval.
    let options = numbers(&[257, 4, 8, 1, 4, 48, 1, 50, 4]);
    let sampler = |id: u8, interval: u32| [&[0, 0, 0, 0, id][..], &interval.to_be_bytes()].concat();
    let flow = |sampler: u8| {
        let times = [500_u32, 900].map(u32::to_be_bytes).concat();
        [&[10, 0, 0, 1, 10, 0, 0, 2][..], &numbers(&[5, 6]), &[17], &times, &[sampler]].concat()
    };
    bed.take(&netflow9(3, 1000, &[set(0, &fields), set(1, &options)])).unwrap();
    let told = [sampler(4, 100), sampler(5, 1)].concat();
    bed.take(&netflow9(4, 1000, &[set(257, &told)])).unwrap();
    bed.take(&netflow9(5, 1000, &[set(256, &[flow(4), flow(5), flow(6)].concat())])).unwrap();
    let sampling: Vec<_> = bed.flows.iter().map(|flow| flow.sampling).collect();
    assert_eq!(sampling, [Sampling::OneOf(100), Sampling::All, Sampling::Some]);
    assert_eq!(bed.flows[0].start(), Some(NOW - Duration::from_millis(500)));
    assert_eq!((bed.books().options, bed.books().lost), (2, Some(0)));
    bed.take(&netflow9(9, 1000, &[])).unwrap();
    assert_eq!(bed.books().lost, Some(3), "messages");
    bed.take(&netflow9(7, 1000, &[])).unwrap();
    assert_eq!((bed.books().lost, bed.books().late), (Some(2), 1));
    bed.take(&netflow9(7, 1000, &[])).unwrap();
    assert_eq!((bed.books().lost, bed.books().duplicates), (Some(2), 1));
    bed.take(&netflow9(0, 10, &[])).unwrap();
    assert_eq!((bed.books().lost, bed.books().restarts), (Some(2), 1));
}

#[test]
fn exporters_are_bounded_and_silent_ones_make_room() {
    let mut bed = Bed::new(Limits { streams: 2, ..Limits::default() });
    let message = ipfix(0, &[set(2, &template(256))]);
    assert_eq!(bed.take_from(exporter(1), &message), Ok(()));
    assert_eq!(bed.take_from(exporter(2), &message), Ok(()));
    assert_eq!(bed.take_from(exporter(3), &message), Err(Refusal::Room));
    assert_eq!(bed.collector.refused().collect::<Vec<_>>(), [(Refusal::Room, 1)]);
    let later = NOW + Duration::from_secs(6000);
    bed.collector.message(exporter(3), later, &message, |_, _| ()).unwrap();
    assert_eq!((bed.collector.left(), bed.collector.books().count()), (1, 2));
}

#[test]
fn templates_end_with_their_connection() {
    let mut bed = Bed::new(Limits::default());
    bed.take(&ipfix(0, &[set(2, &template(256)), set(300, &[1])])).unwrap();
    bed.collector.disconnected(&exporter(1));
    let books = bed.books();
    assert_eq!((books.templates, books.waiting_sets, books.undecoded_sets), (0, 0, 1));
}

#[test]
fn every_cut_and_every_changed_byte_is_survived() {
    let message = ipfix(0, &[set(2, &template(256)), set(256, &records(&[1, 2]))]);
    for len in 0..message.len() {
        let mut bed = Bed::new(Limits::default());
        assert!(bed.take(&message[..len]).is_err(), "its length says more");
    }
    for at in 0..message.len() {
        for change in [1, 0x7f, 0x80, 0xff] {
            let mut changed = message.clone();
            changed[at] ^= change;
            let mut bed = Bed::new(Limits::default());
            if bed.take(&changed).is_ok() {
                bed.books();
            }
        }
    }
}
