//! Rendering, sorting and merging of log rows: nanoseconds for each row.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use netsniff_analysis::key::community_id::CommunityId;
use netsniff_analysis::log::Conn;
use netsniff_analysis::log::conn::{ConnState, Quality};
use netsniff_analysis::record::{Interval, LogType, Port, Proto, Record, Visitor};
use netsniff_analysis::rows::Encode as _;
use netsniff_analysis::{Depth, Limits, Observer as _, Phase, SortKey, Uid};
use netsniff_output::{Format, Merger, RowBuffer, RowSink, RowStyle};
use netsniff_packet::{Address, Timestamp};

/// Rows in one run; more than the caches hold.
const ROWS: u64 = 100_000;

fn main() {
    divan::main();
}

fn conn(number: u64) -> Conn<'static> {
    let hash = u128::from(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 32 | u128::from(number);
    let [.., a, b, c] = (number as u32).to_be_bytes();
    Conn {
        ts: Timestamp::from_nanos(1_329_843_175_736_107_000 + number as i64 * 1_234_567),
        uid: Uid::new(hash),
        id_orig_h: Address::from_v4([10, a, b, c]),
        id_orig_p: Port(number as u16 | 1024),
        id_resp_h: Address::from_v4([192, 0, 2, 200]),
        id_resp_p: Port(443),
        proto: Proto::Tcp,
        service: Some("ssl"),
        duration: Some(Interval::from_nanos(163_820_000 + number as i64 * 1000)),
        orig_bytes: Some(517 + number),
        resp_bytes: Some(14_231),
        conn_state: Some(ConnState::Sf),
        local_orig: Some(true),
        local_resp: Some(false),
        missed_bytes: Some(0),
        history: Some("ShADadfFr"),
        orig_pkts: Some(14),
        orig_ip_bytes: Some(1_240),
        resp_pkts: Some(17),
        resp_ip_bytes: Some(15_100),
        tunnel_parents: None,
        ip_proto: Some(6),
        community_id: CommunityId::from_text("1:LS7SFrUMvjTku9q2J/GHwibvtE8="),
        vlan: None,
        inner_vlan: None,
        quality: Quality::Clean,
        capture_missed_bytes: Some(0),
        network_missed_bytes: Some(0),
        depth: Depth::Protocols,
        depth_begin: Depth::Protocols,
        sampling: None,
        bad_checksums: Some(0),
    }
}

#[divan::bench(args = Format::ALL)]
fn conn_row(bencher: Bencher, format: Format) {
    let (style, rows) = (RowStyle::from(format), (0..1000).map(conn).collect::<Vec<_>>());
    let mut out = Vec::with_capacity(1 << 20);
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        out.clear();
        for row in &rows {
            style.encode(black_box(row), Some(Timestamp::EPOCH), &mut out);
        }
        black_box(out.len())
    });
}

/// The same row, whose fields are told through a table of functions, as those of sessions' rows are.
struct Dynamic<'a>(&'a Conn<'static>);

impl Record for Dynamic<'_> {
    fn log(&self) -> &'static LogType {
        Conn::LOG
    }

    #[inline(never)]
    fn visit<V: Visitor>(&self, visitor: &mut V) {
        let mut visitor: &mut dyn Visitor = visitor;
        self.0.visit(&mut visitor);
    }
}

#[divan::bench(args = Format::ALL)]
fn conn_row_dynamic(bencher: Bencher, format: Format) {
    let (style, rows) = (RowStyle::from(format), (0..1000).map(conn).collect::<Vec<_>>());
    let mut out = Vec::with_capacity(1 << 20);
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        out.clear();
        for row in &rows {
            style.encode(&Dynamic(black_box(row)), Some(Timestamp::EPOCH), &mut out);
        }
        black_box(out.len())
    });
}

#[divan::bench]
fn uid(bencher: Bencher) {
    bencher.bench_local(|| Uid::new(black_box(0x1234_5678_9abc_def0_1234_5678_9abc_def0)));
}

/// What flushing all flows at the end costs: rows come in the order of the table, not of the keys.
#[divan::bench]
fn sort_by_uid(bencher: Bencher) {
    bencher
        .counter(ItemsCount::new(ROWS))
        .with_inputs(|| buffer(ROWS, |number| (Timestamp::EPOCH, Phase::End, number)))
        .bench_local_values(|mut buffer| {
            buffer.sort();
            buffer
        });
}

/// What merging costs without the writing.
#[divan::bench(args = [1, 2, 8])]
fn merge_buffers(bencher: Bencher, workers: u64) {
    let mut buffers: Vec<_> = (0..workers)
        .map(|worker| {
            buffer(ROWS / workers, |number| {
                let ordinal = number * workers + worker;
                (Timestamp::from_nanos(ordinal as i64 / 8), Phase::Packet, ordinal)
            })
        })
        .collect();
    let mut merger = Merger::new(&Limits::default(), Some(Format::Tsv.into()), None);
    bencher.counter(ItemsCount::new(ROWS)).bench_local(|| {
        let mut sink = Count(0);
        let result = merger.merge(black_box(&mut buffers), &mut sink);
        (result.is_ok(), sink.0)
    });
}

fn buffer(rows: u64, key: impl Fn(u64) -> (Timestamp, Phase, u64)) -> RowBuffer {
    let mut buffer = RowBuffer::new(Some(Format::Tsv.into()));
    for number in 0..rows {
        let row = conn(number);
        let (time, phase, ordinal) = key(number);
        let ordinal = if phase == Phase::Packet { ordinal } else { 0 };
        buffer.record(&SortKey { time, phase, ordinal, uid: row.uid, number: 0 }, &row);
    }
    buffer
}

struct Count(usize);

impl RowSink for Count {
    type Error = anyhow::Error;

    fn row(&mut self, _: usize, _: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        self.0 += bytes.len();
        Ok(())
    }
}
