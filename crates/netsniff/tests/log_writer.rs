//! The thread that writes live logs: every row that was handed over is written or counted as refused,
//! whatever the output does, and whoever captures never waits.

#![cfg(unix)]

mod live;

use std::fs::File;
use std::io::{Read as _, pipe};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use netsniff_analysis::Limits;
use netsniff_analysis::SortKey;
use netsniff_output::{
    Bounds, Format, HandedOver, LiveSink, LiveStream, LogFiles, LogWriter, Merger, OnFailure, Roll,
    RowBuffer, RowProducer, RowSink, RowStyle, SinkBooks, WriterSettings, WriterStatistics,
};
use netsniff_packet::Timestamp;

use live::{Directory, add, at, log};

const STYLE: Option<RowStyle> = Some(RowStyle::of(Format::Json));
const WEIRD: &str = "weird";

type Told = Arc<Mutex<Vec<String>>>;

/// Settings, and what is told.
fn settings(producers: usize) -> (WriterSettings, Told) {
    let told = Told::default();
    let tell = Arc::clone(&told);
    let settings = WriterSettings {
        producers,
        bounds: Bounds::default(),
        on_failure: OnFailure::End,
        end_wait: Duration::from_secs(60),
        tell: Box::new(move |said| tell.lock().unwrap().push(said.to_owned())),
    };
    (settings, told)
}

fn start(sink: impl LiveSink, settings: WriterSettings) -> (LogWriter, Vec<RowProducer>) {
    let merger = Merger::new(&Limits::default(), STYLE, None);
    LogWriter::start(sink, merger, settings).unwrap()
}

fn files(directory: &Directory, roll: Roll) -> LogFiles {
    LogFiles::live(&directory.0, Format::Json, roll, at(0)).unwrap()
}

/// A buffer with rows at the times `from..from + count`, in nanoseconds, named by `producer` and time.
fn rows(producer: usize, from: i64, count: i64) -> RowBuffer {
    let mut rows = RowBuffer::new(STYLE);
    fill(&mut rows, producer, from, count);
    rows
}

fn fill(rows: &mut RowBuffer, producer: usize, from: i64, count: i64) {
    for time in from..from + count {
        add(rows, time, &format!("{producer}.{time}"));
    }
}

const fn nanos(time: i64) -> Timestamp {
    Timestamp::from_nanos(time)
}

/// The names of the rows.
fn names(rows: &[String]) -> Vec<String> {
    let name = |row: &String| {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        row["name"].as_str().unwrap().to_owned()
    };
    rows.iter().map(name).collect()
}

fn weird(statistics: &WriterStatistics) -> [u64; 2] {
    assert_eq!(statistics.written.total(), statistics.written.rows(log(WEIRD)));
    let mut refused = statistics.refused_full.clone();
    refused.add(&statistics.refused_failed);
    refused.add(&statistics.refused_end);
    assert_eq!(statistics.refused, refused);
    [statistics.written.rows(log(WEIRD)), statistics.refused.rows(log(WEIRD))]
}

#[test]
fn rings_that_hand_over_while_logs_roll_lose_nothing() {
    const RINGS: usize = 4;
    const ROUNDS: i64 = 400;
    const ROWS: i64 = 25;
    let directory = Directory::new("rings");
    let roll = Roll { every: Some(Duration::from_millis(40)), size: Some(50_000) };
    let (settings, told) = settings(RINGS);
    let (writer, producers) = start(files(&directory, roll), settings);
    std::thread::scope(|scope| {
        for (ring, mut producer) in producers.into_iter().enumerate() {
            scope.spawn(move || {
                let mut buffer = RowBuffer::new(STYLE);
                for round in 0..ROUNDS {
                    fill(&mut buffer, ring, round * ROWS, ROWS);
                    let over = producer.hand_over(nanos((round + 1) * ROWS), &mut buffer);
                    assert_eq!(over, HandedOver::Taken);
                    assert!(buffer.is_empty());
                    if round % 50 == ring as i64 {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                producer.finish(nanos(ROUNDS * ROWS));
            });
        }
        let commands = writer.commands();
        scope.spawn(move || {
            for _ in 0..20 {
                commands.roll();
                std::thread::sleep(Duration::from_millis(7));
            }
        });
    });
    let outcome = writer.finish();
    let expected = RINGS as i64 * ROUNDS * ROWS;
    assert_eq!(weird(&outcome.statistics), [expected as u64, 0]);
    assert_eq!(outcome.failure, None);
    assert!(outcome.joins.is_some());
    let mut found = names(&directory.rows(WEIRD));
    found.sort();
    let rings =
        (0..RINGS).flat_map(|ring| (0..ROUNDS * ROWS).map(move |it| format!("{ring}.{it}")));
    let mut all: Vec<String> = rings.collect();
    all.sort();
    assert!(found == all, "{} rows of {expected}", found.len());
    assert!(directory.files(WEIRD).len() > 5, "it hardly rolled");
    assert!(told.lock().unwrap().is_empty());
    assert!(outcome.statistics.most_bytes > 0);
}

#[test]
fn rows_of_several_rings_are_merged_up_to_the_watermark_of_all() {
    let directory = Directory::new("merged");
    let (settings, _) = settings(2);
    let (writer, mut producers) = start(files(&directory, Roll::default()), settings);
    let mut second = producers.pop().unwrap();
    let mut first = producers.pop().unwrap();
    // The second ring is behind, but not for long, and tells its time without rows at last.
    for round in 0..20 {
        first.hand_over(nanos(round * 100 + 100), &mut rows(0, round * 100, 100));
        second.hand_over(nanos(round * 100 + 50), &mut rows(1, round * 100, 50));
    }
    second.hand_over(nanos(2000), &mut RowBuffer::new(STYLE));
    first.finish(nanos(2000));
    second.finish(nanos(2000));
    let outcome = writer.finish();
    assert_eq!(weird(&outcome.statistics), [3000, 0]);
    assert_eq!(outcome.statistics.late_rows, 0);
    let times: Vec<i64> = names(&directory.rows(WEIRD))
        .iter()
        .map(|name| name.split_once('.').unwrap().1.parse().unwrap())
        .collect();
    assert!(times.is_sorted() && times.len() == 3000);
}

/// Waits until `is_so`, or fails after a while that is long for any machine; returns how long it took.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

#[test]
fn a_ring_that_lags_holds_up_others_for_a_short_time_only() {
    let directory = Directory::new("lags");
    let (settings, _) = settings(2);
    let (writer, mut producers) = start(files(&directory, Roll::default()), settings);
    producers[0].hand_over(nanos(100), &mut rows(0, 0, 100));
    let path = directory.join("weird.log");
    let is_there = || path.exists() && directory.rows(WEIRD).len() == 100;
    let took = wait_until("rows waited for a ring for ever", is_there);
    // A second on a machine that is not busy.
    assert!(took < Duration::from_secs(5), "{took:?}");
    wait_until("it was not counted", || weird(&writer.statistics()) == [100, 0]);
    producers[1].hand_over(nanos(60), &mut rows(1, 0, 60));
    producers[0].hand_over(nanos(110), &mut rows(0, 100, 10));
    drop(producers);
    let outcome = writer.finish();
    assert_eq!(weird(&outcome.statistics), [170, 0]);
    assert_eq!(outcome.statistics.late_rows, 60);
    assert_eq!(directory.rows(WEIRD).len(), 170);
}

/// A stream into a pipe, and the end that nobody reads yet.
fn stalled(format: Format) -> (LiveStream, std::io::PipeReader) {
    let (reader, writer) = pipe().unwrap();
    let file = File::from(OwnedFd::from(writer));
    (LiveStream::new(file, "the pipe", format).unwrap(), reader)
}

fn lines(mut reader: std::io::PipeReader) -> Vec<String> {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "it ends in half a row");
    text.lines().map(str::to_owned).collect()
}

/// The logs of all rows of layered text, whose header lines say which word is the name of the log.
fn logs_of_text(lines: &[String]) -> Vec<String> {
    let mut logs = Vec::new();
    let mut at = None;
    for line in lines {
        if let Some(fields) = line.strip_prefix("#fields ") {
            at = fields.split(' ').position(|field| field == "_path");
        } else if !line.starts_with('#') {
            let word = line.split(' ').nth(at.expect("rows come behind their header"));
            logs.push(word.expect("a row has all its words").to_owned());
        }
    }
    logs
}

/// The logs of all rows in a stream, which ends with a whole one.
fn logs_of_rows(format: Format, mut reader: std::io::PipeReader) -> Vec<String> {
    if format == Format::Json {
        let log = |line: &String| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            row["_path"].as_str().unwrap().to_owned()
        };
        return lines(reader).iter().map(log).collect();
    }
    if matches!(format, Format::Ecs | Format::Eve) {
        let log = |line: &String| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let dataset =
                row["event"]["dataset"].as_str().and_then(|name| name.strip_prefix("zeek."));
            let is_weird = dataset == Some("weird") || row["event_type"] == "anomaly";
            if is_weird { WEIRD.to_owned() } else { row.to_string() }
        };
        return lines(reader).iter().map(log).collect();
    }
    if format == Format::Text {
        return logs_of_text(&lines(reader));
    }
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    let mut rest = bytes.as_slice();
    let mut logs = Vec::new();
    while !rest.is_empty() {
        let row = rmpv::decode::read_value(&mut rest).expect("it ends in half a row");
        let is_path = |(name, _): &&(rmpv::Value, rmpv::Value)| name.as_str() == Some("_path");
        let (_, log) = row.as_map().unwrap().iter().find(is_path).unwrap();
        logs.push(log.as_str().unwrap().to_owned());
    }
    logs
}

#[test]
fn a_pipe_that_nobody_reads_never_holds_up_whoever_captures() {
    let streams: Vec<_> = Format::ALL.iter().filter(|format| format.streams()).collect();
    assert!(streams.len() > 1);
    for format in streams {
        fill_a_pipe_that_nobody_reads(*format);
    }
}

fn fill_a_pipe_that_nobody_reads(format: Format) {
    let (stream, reader) = stalled(format);
    let (mut settings, told) = settings(2);
    let bytes = 300_000;
    settings.bounds = Bounds { bytes, ..Bounds::default() };
    settings.end_wait = Duration::from_millis(400);
    let merger = Merger::new(&Limits::default(), Some(format.into()), None);
    let (writer, mut producers) = LogWriter::start(stream, merger, settings).unwrap();
    let (mut refused, mut produced) = (0, 0);
    let mut longest = Duration::ZERO;
    for round in 0..2000 {
        for (ring, producer) in producers.iter_mut().enumerate() {
            let mut buffer = RowBuffer::new(Some(format.into()));
            fill(&mut buffer, ring, round * 10, 10);
            produced += 10;
            let begun = Instant::now();
            match producer.hand_over(nanos(round * 10 + 10), &mut buffer) {
                HandedOver::Taken => {}
                HandedOver::Refused(rows) => refused += rows,
            }
            longest = longest.max(begun.elapsed());
            assert!(buffer.is_empty());
        }
    }
    assert!(refused > 30_000, "{refused}: the bound was no bound");
    assert!(longest < Duration::from_secs(2), "a hand-over took {longest:?}");
    let so_far = writer.statistics();
    assert_eq!(so_far.refused_full.rows(log(WEIRD)), refused);
    assert!((bytes / 2..=bytes).contains(&so_far.most_bytes), "{so_far:?}");
    let said = writer.first_refusal().expect("the first refusal is to be told");
    assert!(said.contains("rows are refused"), "{said}");
    assert_eq!(writer.first_refusal(), None, "it was told");
    wait_until("the stall was not seen", || writer.statistics().stalls.count > 0);
    drop(producers);
    let begun = Instant::now();
    let outcome = writer.finish();
    assert!(begun.elapsed() < Duration::from_secs(10));
    let [written, refused] = weird(&outcome.statistics);
    assert_eq!(written + refused, produced);
    // What is in the pipe was written, to the row.
    let logs = logs_of_rows(format, reader);
    assert_eq!(logs.len() as u64, written);
    assert!(written > 100, "{written}");
    assert!(logs.iter().all(|log| log == WEIRD));
    assert!(outcome.statistics.stalls.longest_nanos > 100_000_000);
    assert_eq!(told.lock().unwrap().len(), 1, "{told:?}");
    assert!(outcome.failure.is_some_and(|said| said.ends_with("the reader does not read")));
}

#[test]
fn the_end_waits_for_a_reader_that_comes_late() {
    let (stream, reader) = stalled(Format::Json);
    let (mut settings, told) = settings(1);
    settings.bounds = Bounds { bytes: 100_000, ..Bounds::default() };
    let (writer, mut producers) = start(stream, settings);
    let mut producer = producers.pop().unwrap();
    producer.begin_end();
    let reader = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        lines(reader)
    });
    // Much more than pipe and queue hold, none of it refused.
    for round in 0..200 {
        let over = producer.hand_over(nanos(round * 100 + 100), &mut rows(0, round * 100, 100));
        assert_eq!(over, HandedOver::Taken);
    }
    producer.finish(nanos(20_000));
    let outcome = writer.finish();
    assert_eq!(weird(&outcome.statistics), [20_000, 0]);
    assert!(outcome.statistics.stalls.count >= 1);
    assert_eq!(outcome.failure, None);
    let found = names(&reader.join().unwrap());
    let expected: Vec<String> = (0..20_000).map(|time| format!("0.{time}")).collect();
    assert!(found == expected);
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn a_row_longer_than_a_pipe_takes_at_once_arrives_whole() {
    let (stream, reader) = stalled(Format::Json);
    let (settings, _) = settings(1);
    let (writer, mut producers) = start(stream, settings);
    let reader = std::thread::spawn(move || lines(reader));
    let mut buffer = RowBuffer::new(STYLE);
    let long = "n".repeat(200_000);
    for (time, name) in ["short", &long, "short"].into_iter().enumerate() {
        add(&mut buffer, time as i64, name);
    }
    producers[0].hand_over(nanos(3), &mut buffer);
    drop(producers);
    assert_eq!(weird(&writer.finish().statistics), [3, 0]);
    assert_eq!(names(&reader.join().unwrap()), ["short", &long, "short"]);
}

#[test]
fn a_reader_that_goes_ends_the_run_and_is_told_once() {
    for on_failure in [OnFailure::End, OnFailure::GoOn] {
        let (stream, reader) = stalled(Format::Json);
        let (mut settings, told) = settings(1);
        settings.on_failure = on_failure;
        let (writer, mut producers) = start(stream, settings);
        drop(reader);
        producers[0].hand_over(nanos(10), &mut rows(0, 0, 10));
        wait_until("the rows were not refused", || writer.statistics().refused.total() == 10);
        assert_eq!(writer.first_refusal(), None, "that has a message of its own");
        // One flush fails, and the next one ends the rest behind it, so that it fails again and again.
        for round in 1..=8 {
            producers[0].hand_over(nanos(round * 10 + 10), &mut rows(0, round * 10, 10));
            writer.commands().flush();
            let refused = round as u64 * 10 + 10;
            let is_refused = || writer.statistics().refused.total() == refused;
            wait_until("the rows were not refused", is_refused);
        }
        let said = "cannot write the pipe: Broken pipe (os error 32): the reader has gone, or there \
                    was none; start it first";
        let failure = (on_failure == OnFailure::End).then(|| said.to_owned());
        assert_eq!(writer.failure(), failure);
        assert_eq!(producers[0].failure(), failure);
        drop(producers);
        let outcome = writer.finish();
        assert_eq!(weird(&outcome.statistics), [0, 90]);
        assert_eq!(outcome.statistics.refused_failed.total(), 90);
        assert_eq!(outcome.failure, failure);
        assert_eq!(*told.lock().unwrap(), [said]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_ends_the_run_with_its_path_and_what_to_do() {
    let directory = Directory::new("full");
    if !netsniff_testing::full_device(&directory.join("weird.log"), "no log was written to it") {
        return;
    }
    let (settings, told) = settings(1);
    let (writer, mut producers) = start(files(&directory, Roll::default()), settings);
    producers[0].hand_over(nanos(10), &mut rows(0, 0, 10));
    wait_until("the failure was not told", || producers[0].failure().is_some());
    drop(producers);
    let outcome = writer.finish();
    assert_eq!(weird(&outcome.statistics), [0, 10]);
    let path = directory.join("weird.log");
    let said = format!(
        "cannot write {}: No space left on device (os error 28): make room there, or write the logs \
         elsewhere",
        path.display()
    );
    assert_eq!(outcome.failure.as_ref(), Some(&said));
    assert_eq!(*told.lock().unwrap(), [said]);
}

/// Lets `work` see a file system of so many bytes in place of a directory, in a thread with mounts of its own; says so where
/// it may not. What that thread starts sees it, too.
#[cfg(target_os = "linux")]
fn on_small_disk(directory: &Directory, bytes: usize, work: impl FnOnce() + Send) {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    std::thread::scope(|scope| {
        let disk = scope.spawn(|| {
            let none = None::<&str>;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            let size = format!("size={bytes}");
            let is_mounted = unshare(CloneFlags::CLONE_NEWNS)
                .and_then(|()| mount(none, "/", none, private, none))
                .and_then(|()| {
                    let flags = MsFlags::empty();
                    mount(Some("none"), &directory.0, Some("tmpfs"), flags, Some(&*size))
                });
            match is_mounted {
                Ok(()) => work(),
                Err(error) => {
                    netsniff_testing::skip(
                        netsniff_testing::Need::Root,
                        format_args!("no small file system can be mounted: {error}"),
                    );
                }
            }
        });
        disk.join().unwrap();
    });
}

/// A disk that is full for a while: the run goes on, whole rows stay, and each row is written or counted.
#[test]
#[cfg(target_os = "linux")]
fn a_run_goes_on_while_a_disk_is_full_and_writes_again_once_it_has_room() {
    const DISK: usize = 256 << 10;
    let directory = Directory::new("small");
    on_small_disk(&directory, DISK, || {
        // The room that comes back.
        let ballast = directory.join("ballast");
        std::fs::write(&ballast, vec![0; DISK / 2]).unwrap();
        let (mut settings, told) = settings(1);
        settings.on_failure = OnFailure::GoOn;
        let (writer, mut producers) = start(files(&directory, Roll::default()), settings);
        let mut handed = 0;
        let mut hand_over = |producer: &mut RowProducer, count: i64| {
            let over = producer.hand_over(nanos(handed + count), &mut rows(0, handed, count));
            assert_eq!(over, HandedOver::Taken);
            handed += count;
            handed
        };
        let failed = || writer.statistics().refused_failed.total();
        wait_until("the disk did not become full", || {
            hand_over(&mut producers[0], 100);
            failed() > 0
        });
        // Longer than a disk must be full to be worth a word once it is not.
        let full = Instant::now();
        while full.elapsed() < Duration::from_millis(1500) {
            hand_over(&mut producers[0], 1);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!((writer.failure(), told.lock().unwrap().len()), (None, 1));
        let size = || std::fs::metadata(directory.join("weird.log")).unwrap().len();
        assert!(size() > DISK as u64 / 4, "{}", size());
        let whole = directory.rows(WEIRD).len();
        std::fs::remove_file(&ballast).unwrap();
        wait_until("the logs were not written again", || {
            hand_over(&mut producers[0], 1);
            std::thread::sleep(Duration::from_millis(5));
            told.lock().unwrap().len() == 2
        });
        let all = hand_over(&mut producers[0], 10) as u64;
        drop(producers);
        let outcome = writer.finish();
        let [written, refused] = weird(&outcome.statistics);
        assert_eq!((outcome.failure, written + refused), (None, all));
        assert_eq!(outcome.statistics.refused_failed.total(), refused);
        let rows = directory.rows(WEIRD);
        assert_eq!(
            rows.len() as u64,
            written,
            "each of them is whole, and nothing else stands there"
        );
        assert!(whole > 0 && rows.len() > whole, "{whole} of {}", rows.len());
        assert_eq!(names(&rows).last(), Some(&format!("0.{}", all - 1)));
        let told = told.lock().unwrap();
        assert!(
            told[0].contains("No space left on device") && told[0].contains("make room there"),
            "{told:?}"
        );
        assert!(
            told[1].starts_with("the logs are written again after ")
                && told[1].ends_with(" of them are missing"),
            "{told:?}"
        );
    });
}

/// A sink that does in `row` what it is told to.
struct Odd {
    books: SinkBooks,
    gate: Receiver<()>,
    panics: bool,
}

impl Odd {
    fn new(panics: bool) -> (Self, Sender<()>) {
        let (open, gate) = channel();
        (Self { books: SinkBooks::default(), gate, panics }, open)
    }
}

impl RowSink for Odd {
    type Error = anyhow::Error;

    fn row(&mut self, _: usize, _: &SortKey, _: &[u8]) -> anyhow::Result<()> {
        assert!(!self.panics, "as it was told to");
        // Until the test ends.
        let _ = self.gate.recv();
        Ok(())
    }
}

impl LiveSink for Odd {
    fn books(&self) -> &SinkBooks {
        &self.books
    }
}

/// A backlog is written for longer than nothing may be written, and room comes with each buffer of it.
#[test]
fn a_backlog_gives_room_while_it_is_written_and_is_written_to_its_end() {
    let (sink, gate) = Odd::new(false);
    let (mut settings, _) = settings(1);
    settings.end_wait = Duration::from_millis(400);
    settings.bounds = Bounds { bytes: 200_000, ..Bounds::default() };
    let (writer, mut producers) = start(sink, settings);
    let producer = &mut producers[0];
    let mut round = 0;
    let mut produce = |producer: &mut RowProducer| {
        round += 1;
        producer.hand_over(nanos(round * 10), &mut rows(0, round * 10 - 10, 10))
    };
    // The first is being written, or waits, too.
    let mut taken = 0;
    while produce(producer) == HandedOver::Taken {
        taken += 1;
        assert!(taken < 1000);
    }
    assert!(taken > 20 && producer.is_nearly_full(), "{taken}");
    let write = |rows: u64| (0..rows).for_each(|_| gate.send(()).unwrap());
    write(taken / 2 * 10);
    wait_until("the first half gives no room", || !producer.is_nearly_full());
    assert_eq!(produce(producer), HandedOver::Taken);
    producer.begin_end();
    drop(producers);
    let slow = std::thread::spawn(move || {
        for _ in 0..taken - taken / 2 + 1 {
            std::thread::sleep(Duration::from_millis(40));
            (0..10).for_each(|_| gate.send(()).unwrap());
        }
        gate
    });
    let begun = Instant::now();
    let outcome = writer.finish();
    assert!(begun.elapsed() > Duration::from_millis(400), "{:?}", begun.elapsed());
    slow.join().unwrap();
    let WriterStatistics { refused_full, refused_end, .. } = outcome.statistics;
    assert_eq!((refused_full.total(), refused_end.total()), (10, 0));
    assert_eq!(outcome.failure, None);
}

#[test]
fn an_output_that_hangs_is_given_up_and_its_rows_are_counted() {
    let (sink, gate) = Odd::new(false);
    let (mut settings, _) = settings(1);
    settings.end_wait = Duration::from_millis(200);
    let (writer, mut producers) = start(sink, settings);
    for round in 0..5 {
        producers[0].hand_over(nanos(round * 10 + 10), &mut rows(0, round * 10, 10));
    }
    writer.commands().write(&mut rows(9, 0, 7));
    let begun = Instant::now();
    drop(producers);
    let outcome = writer.finish();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(weird(&outcome.statistics), [0, 57]);
    assert_eq!(outcome.statistics.refused_end.total(), 57);
    assert!(outcome.joins.is_none());
    assert!(outcome.failure.is_some_and(|said| said.contains("was given up")));
    drop(gate);
}

#[test]
fn a_ring_that_never_ends_is_not_waited_for() {
    let directory = Directory::new("endless");
    let (mut settings, _) = settings(2);
    settings.end_wait = Duration::from_millis(100);
    let (writer, mut producers) = start(files(&directory, Roll::default()), settings);
    let mut second = producers.pop().unwrap();
    let rounds = std::thread::spawn(move || {
        let mut produced = 0;
        loop {
            produced += 10;
            let over = second.hand_over(nanos(produced), &mut rows(1, produced - 10, 10));
            if over == HandedOver::Refused(10) {
                return (second, produced);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    std::thread::sleep(Duration::from_millis(30));
    let commands = writer.commands();
    let outcome = writer.finish();
    let (second, produced) = rounds.join().unwrap();
    assert_eq!(commands.write(&mut rows(3, 0, 1)), HandedOver::Refused(1));
    // The last hand-over was refused, maybe behind the last look at the books.
    let [written, refused] = weird(&outcome.statistics);
    assert!([produced as u64, produced as u64 - 10].contains(&(written + refused)));
    assert_eq!(directory.rows(WEIRD).len() as u64, written);
    assert!(refused > 0);
    drop((producers, second));
}

#[test]
fn a_panic_of_the_output_is_a_failure_and_holds_up_nobody() {
    let (sink, _gate) = Odd::new(true);
    let (settings, _) = settings(1);
    let (writer, mut producers) = start(sink, settings);
    producers[0].hand_over(nanos(10), &mut rows(0, 0, 10));
    wait_until("the panic was not told", || writer.failure().is_some());
    let over = producers[0].hand_over(nanos(20), &mut rows(0, 10, 5));
    assert_eq!(over, HandedOver::Refused(5));
    drop(producers);
    let outcome = writer.finish();
    assert_eq!(weird(&outcome.statistics), [0, 15]);
    assert!(outcome.failure.is_some_and(|said| said.ends_with("panicked")));
}

#[test]
fn rows_from_the_side_wait_for_nobody_and_come_behind_the_end_too() {
    let directory = Directory::new("side");
    let (mut settings, _) = settings(1);
    settings.bounds = Bounds { bytes: 0, side_bytes: 4000 };
    let (writer, mut producers) = start(files(&directory, Roll::default()), settings);
    let commands = writer.commands();
    // The ring is told that nothing fits, and its silence holds up nothing.
    let over = producers[0].hand_over(nanos(10), &mut rows(0, 0, 10));
    assert_eq!(over, HandedOver::Refused(10));
    assert_eq!(commands.write(&mut rows(7, 1_000_000, 3)), HandedOver::Taken);
    commands.flush();
    wait_until("the rows waited", || writer.statistics().written.total() == 3);
    assert_eq!(commands.write(&mut rows(7, 0, 200)), HandedOver::Refused(200));
    drop(producers);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(commands.write(&mut rows(8, 0, 2)), HandedOver::Taken);
    let outcome = writer.finish();
    assert_eq!(weird(&outcome.statistics), [5, 210]);
    assert_eq!(
        names(&directory.rows(WEIRD)),
        ["7.1000000", "7.1000001", "7.1000002", "8.0", "8.1"]
    );
    assert_eq!(commands.write(&mut rows(8, 0, 1)), HandedOver::Refused(1), "the thread has ended");
}

#[test]
fn rows_are_in_their_file_within_a_second_and_asking_rolls() {
    let directory = Directory::new("soon");
    let (settings, _) = settings(1);
    let (writer, mut producers) = start(files(&directory, Roll::default()), settings);
    producers[0].hand_over(nanos(5), &mut rows(0, 0, 5));
    let path = directory.join("weird.log");
    let took = wait_until("no row came", || path.exists() && directory.rows(WEIRD).len() == 5);
    // Within a second on a machine that is not busy.
    assert!(took < Duration::from_secs(5), "{took:?}");
    writer.commands().roll();
    wait_until("it did not roll", || !path.exists());
    producers[0].hand_over(nanos(9), &mut rows(0, 5, 4));
    drop(producers);
    assert_eq!(weird(&writer.finish().statistics), [9, 0]);
    assert_eq!(directory.files(WEIRD).len(), 2);
    let expected: Vec<String> = (0..9).map(|time| format!("0.{time}")).collect();
    assert_eq!(names(&directory.rows(WEIRD)), expected);
}

#[test]
fn a_handle_that_is_dropped_ends_the_thread() {
    let (stream, reader) = stalled(Format::Json);
    let (settings, _) = settings(1);
    let (writer, mut producers) = start(stream, settings);
    producers[0].hand_over(nanos(5000), &mut rows(0, 0, 5000));
    drop(writer);
    wait_until("the thread goes on", || {
        producers[0].hand_over(nanos(5000), &mut rows(0, 0, 1)) == HandedOver::Refused(1)
    });
    drop(producers);
    // The pipe closes when the sink is gone.
    assert!(lines(reader).len() < 5000);
}
