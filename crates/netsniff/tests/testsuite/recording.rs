//! Recordings: what is written, in which files, and what becomes of what cannot be written.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use netsniff_packet::{Batch, Loss, Packet, Stage, Timestamp};
use netsniff_pcapfile::{Counters, Interface};
use netsniff_pipeline::recording::Recorder;
use netsniff_pipeline::recording::books::{State, Statistics};
use netsniff_pipeline::recording::naming::{CaptureFormat, packing_of_name};
use netsniff_pipeline::recording::options::Options;
use netsniff_pipeline::recording::rotation::Rotation;
use netsniff_testing::{Need, skip};

use crate::generated::{Folder, Found, GAP, START, bytes, options, packet, read, run, start};

const PATIENCE: Duration = Duration::from_secs(20);

/// Gives the packet of this number to the recorder.
fn give(recorder: &mut Recorder, number: u64) {
    recorder.packet(&packet(number, &bytes(number)));
}

/// Waits until the writing thread has caught up.
fn wait_for_room(recorder: &Recorder) {
    let deadline = Instant::now() + PATIENCE;
    while recorder.statistics().queued > 1 {
        assert!(Instant::now() < deadline, "the writing thread stands still");
        thread::sleep(Duration::from_micros(50));
    }
}

/// Waits until the recorder has a free buffer again for each of the packets, as files can be slower
/// than this loop.
fn give_all(recorder: &mut Recorder, numbers: core::ops::Range<u64>) {
    for number in numbers {
        give(recorder, number);
        wait_for_room(recorder);
    }
}

fn record(options: &Options, packets: u64) -> Statistics {
    let mut recorder = Recorder::start(options, start()).unwrap();
    give_all(&mut recorder, 0..packets);
    let finished = recorder.finish(PATIENCE);
    assert_eq!((finished.state, finished.failure), (State::Recording, None));
    let statistics = finished.statistics;
    assert_eq!((statistics.recorded.packets, statistics.refused.packets), (packets, 0));
    assert_eq!((statistics.delivered.packets, statistics.in_flight), (packets, 0));
    statistics
}

#[test]
fn every_format_and_packing_holds_every_packet() {
    let folder = Folder::new("formats");
    for format in [CaptureFormat::Pcap, CaptureFormat::Pcapng] {
        for packing in [None, Some("gzip"), Some("zstd:3"), Some("lz4")] {
            let packing = packing.map(|text| text.parse().unwrap());
            let path = folder.path("all");
            let options = Options { format, packing, ..options(path) };
            let statistics = record(&options, 3000);
            let [file] = folder.files().try_into().unwrap();
            assert_eq!(statistics.file_bytes, file.metadata().unwrap().len());
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            }
            let found = read(&file);
            assert_eq!(found.numbers, (0..3000).collect::<Vec<_>>(), "{format:?} {packing:?}");
            assert_eq!((found.damage, found.losses), (vec![], vec![]));
            assert_eq!(found.captured, statistics.recorded.bytes);
            if let Some(output) = run("capinfos", &["-Tmc", file.to_str().unwrap()]) {
                assert!(output.status.success());
                assert!(String::from_utf8_lossy(&output.stdout).ends_with(",3000\n"));
            }
            fs::remove_file(file).unwrap();
        }
    }
}

#[test]
fn a_file_says_where_it_was_made() {
    let folder = Folder::new("facts");
    let path = folder.path("facts.pcapng");
    let mut options = options(path.clone());
    options.section.comments = vec!["first".to_owned(), "zweiter".to_owned()];
    options.interfaces[0].speed = Some(10_000_000_000);
    options.interfaces[0].filter = Some("not port 22".to_owned());
    options.snaplen = 100;
    record(&options, 10);
    let interface = &read(&path).interfaces[0];
    assert_eq!(interface.name.as_deref(), Some("eth7"));
    assert_eq!(interface.filter.as_deref(), Some("not port 22"));
    assert_eq!((interface.snaplen, interface.speed), (Some(100), Some(10_000_000_000)));
    let Some(output) = run("capinfos", &[path.to_str().unwrap()]) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    for expected in ["first", "zweiter", "netsniff 0", "Name = eth7", "Filter string = not port 22"]
    {
        assert!(said.contains(expected), "no {expected} in\n{said}");
    }
    assert!(said.contains("Time precision = nanoseconds"), "{said}");
}

#[test]
fn what_was_flushed_can_be_read_while_the_recording_goes_on() {
    let folder = Folder::new("flushed");
    for name in ["a.pcapng", "a.pcapng.gz", "a.pcapng.zst", "a.pcapng.lz4"] {
        let path = folder.path(name);
        let packing = packing_of_name(&path);
        let mut recorder =
            Recorder::start(&Options { packing, ..options(path.clone()) }, start()).unwrap();
        for (count, more) in [(50, 50), (1500, 1450)] {
            give_all(&mut recorder, count - more..count);
            recorder.flush();
            let deadline = Instant::now() + PATIENCE;
            while recorder.statistics().in_flight > 0 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(recorder.statistics().recorded.packets, count, "{name}");
            assert!(read(&path).numbers == (0..count).collect::<Vec<_>>(), "{name} at {count}");
        }
        assert_eq!(recorder.finish(PATIENCE).state, State::Recording);
    }
}

/// The numbers of the packets in each file.
fn contents(folder: &Folder, prefix: &str) -> Vec<Vec<u64>> {
    let named = |path: &Path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
    folder.files().iter().filter(|path| named(path)).map(|path| read(path).numbers).collect()
}

#[test]
fn files_end_where_editcap_ends_them() {
    let folder = Folder::new("editcap");
    record(&options(folder.path("whole.pcapng")), 2000);
    // A packet right at the end of editcap's time is not in its next file, and in ours.
    let cases = [
        ("packets", "-c", "300", Rotation { packets: Some(300), ..Rotation::default() }),
        (
            "duration",
            "-i",
            "0.349999",
            Rotation { duration: Some(349_999_000), ..Rotation::default() },
        ),
    ];
    for (name, flag, value, rotation) in cases {
        let theirs = folder.path(&format!("theirs-{name}.pcapng"));
        let whole = folder.path("whole.pcapng");
        let arguments = [flag, value, whole.to_str().unwrap(), theirs.to_str().unwrap()];
        let Some(output) = run("editcap", &arguments) else { return };
        assert!(output.status.success(), "{output:?}");
        record(&Options { rotation, ..options(folder.path(&format!("ours-{name}.pcapng"))) }, 2000);
        let ours = contents(&folder, &format!("ours-{name}"));
        assert!(ours.len() > 5, "{name}: {} files", ours.len());
        assert!(ours == contents(&folder, &format!("theirs-{name}")), "{name}");
    }
}

#[test]
fn files_are_named_by_number_and_time_and_each_is_complete() {
    let folder = Folder::new("names");
    // Half a second before the hour passes, at packet 1500.
    let rotation = Rotation { interval: Some(1_000_000_000), ..Rotation::default() };
    let options = Options { rotation, ..options(folder.path("a.pcapng")) };
    assert_eq!(record(&options, 2500).files, 3);
    let names: Vec<_> = folder
        .files()
        .iter()
        .map(|it| it.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        [
            "a_00001_20261122130000.pcapng",
            "a_00002_20261122130001.pcapng",
            "a_00003_20261122130002.pcapng"
        ]
    );
    let numbers = [(0..1000).collect(), (1000..2000).collect(), (2000..2500).collect::<Vec<u64>>()];
    assert_eq!(contents(&folder, "a_"), numbers);
    for path in folder.files() {
        let found = read(&path);
        assert_eq!((found.interfaces.len(), found.damage), (1, vec![]));
    }
}

#[test]
fn a_file_that_is_over_ends_while_nothing_comes() {
    let folder = Folder::new("idle");
    let rotation = Rotation { duration: Some(GAP * 10), ..Rotation::default() };
    let options = Options { rotation, ..options(folder.path("a.pcapng")) };
    let mut recorder = Recorder::start(&options, start()).unwrap();
    let at = |packets: i64| Timestamp::from_nanos(START + packets * GAP);
    // A file without packets is not over.
    recorder.advance(at(100));
    give(&mut recorder, 200);
    recorder.advance(at(209));
    give(&mut recorder, 201);
    recorder.advance(at(210));
    recorder.flush();
    let [file] = folder.files().try_into().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while recorder.statistics().in_flight > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    let counted = read(&file).interfaces[0].counters;
    assert_eq!((read(&file).numbers, counted), (vec![200, 201], Counters::NONE));
    give(&mut recorder, 202);
    assert_eq!(recorder.finish(PATIENCE).statistics.files, 2);
    assert_eq!(contents(&folder, "a_"), [vec![200, 201], vec![202]]);
}

#[test]
fn the_oldest_files_make_room() {
    let folder = Folder::new("ring");
    let rotation = Rotation { packets: Some(100), files: Some(3), ..Rotation::default() };
    let stranger = folder.path("a_00000_20261122120000.pcapng");
    fs::write(&stranger, "of another run").unwrap();
    let options = Options { rotation, ..options(folder.path("a.pcapng")) };
    let statistics = record(&options, 950);
    assert_eq!((statistics.files, statistics.files_removed), (10, 7));
    fs::remove_file(stranger).expect("what others wrote stays");
    let kept: Vec<u64> = (700..950).collect();
    assert_eq!(contents(&folder, "a_").concat(), kept);
}

#[test]
fn all_files_stay_within_their_quota() {
    let folder = Folder::new("quota");
    let quota = 400_000;
    let rotation = Rotation { quota: Some(quota), ..Rotation::default() };
    let options = Options { rotation, buffer_bytes: 16_384, ..options(folder.path("a.pcapng")) };
    let mut recorder = Recorder::start(&options, start()).unwrap();
    let mut most = 0;
    for round in 0..40 {
        give_all(&mut recorder, round * 100..(round + 1) * 100);
        // A file may be removed between its being listed and being looked at.
        let sizes = folder.files().into_iter().filter_map(|path| path.metadata().ok());
        most = most.max(sizes.map(|metadata| metadata.len()).sum::<u64>());
    }
    let statistics = recorder.finish(PATIENCE).statistics;
    let numbers = contents(&folder, "a_").concat();
    // The end of the last file is not waited for.
    assert!(most <= quota, "{most} bytes");
    assert!(most > quota / 2 && statistics.files_removed > 10, "{most} {statistics:?}");
    let first = numbers[0];
    assert!(first < 3700, "only {} packets stay", numbers.len());
    assert_eq!(numbers, (first..4000).collect::<Vec<_>>());
}

#[test]
fn a_file_ends_once_it_has_its_size() {
    let folder = Folder::new("size");
    let rotation = Rotation { file_bytes: Some(50_000), ..Rotation::default() };
    record(&Options { rotation, ..options(folder.path("a.pcapng")) }, 1000);
    let files = folder.files();
    assert!(files.len() > 8, "{} files", files.len());
    for path in files.iter().take(files.len() - 1) {
        let size = path.metadata().unwrap().len();
        // The packet that fills it is its last one, and its end follows.
        assert!((50_000..51_600).contains(&size), "{size}");
    }
    assert_eq!(contents(&folder, "a_").concat(), (0..1000).collect::<Vec<_>>());
}

/// Packets that a file says were lost.
fn reported_lost(found: &Found) -> u64 {
    found.losses.iter().map(|(_, loss)| loss.packets).sum()
}

/// A named pipe, or `None` where the system has none.
fn fifo(folder: &Folder) -> Option<std::path::PathBuf> {
    let path = folder.path("pipe");
    run("mkfifo", &[path.to_str()?])?.status.success().then_some(path)
}

#[test]
fn what_cannot_be_written_is_refused_and_told_at_its_place() {
    let folder = Folder::new("stall");
    let Some(pipe) = fifo(&folder) else { return };
    let (path, copy) = (pipe.clone(), folder.path("copy.pcapng"));
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let reader = {
        let copy = copy.clone();
        thread::spawn(move || {
            let mut pipe = File::open(path).unwrap();
            wait.recv().unwrap();
            let mut file = File::create(copy).unwrap();
            std::io::copy(&mut pipe, &mut file).unwrap();
        })
    };
    let options = options(pipe);
    let mut recorder = Recorder::start(&options, start()).unwrap();
    let begun = Instant::now();
    for number in 0..2000 {
        give(&mut recorder, number);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "the capture waited");
    let stalled = recorder.statistics();
    assert!(stalled.refused.packets > 500, "{stalled:?}");
    assert_eq!(
        stalled.delivered.packets,
        stalled.recorded.packets + stalled.refused.packets + stalled.in_flight
    );
    assert_eq!((stalled.queue_high_water, stalled.buffers), (3, 4));
    thread::sleep(Duration::from_millis(300));
    go.send(()).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while recorder.statistics().queued > 0 && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    give_all(&mut recorder, 2000..2100);
    let statistics = recorder.finish(PATIENCE).statistics;
    reader.join().unwrap();
    assert_eq!(statistics.refused, stalled.refused);
    assert_eq!(statistics.recorded.packets + statistics.refused.packets, 2100);
    assert!(statistics.stalls >= 1 && statistics.slowest_write_nanos >= 10_000_000);
    assert!(statistics.stalled_nanos >= statistics.slowest_write_nanos);
    let found = read(&copy);
    assert_eq!(found.damage, vec![]);
    assert_eq!(found.numbers.len() as u64, statistics.recorded.packets);
    assert_eq!(reported_lost(&found), statistics.refused.packets);
    // Each hole in the numbers is told where it is, in its size.
    let mut holes = Vec::new();
    for (at, pair) in found.numbers.windows(2).enumerate() {
        if pair[1] != pair[0] + 1 {
            holes.push((at + 1, pair[1] - pair[0] - 1));
        }
    }
    let told: Vec<_> = found.losses.iter().map(|(at, loss)| (*at, loss.packets)).collect();
    assert!(!holes.is_empty());
    // Nothing is refused before the buffers are full, one of which has the begin of the file.
    let before_first: usize =
        found.numbers.iter().take(holes[0].0).map(|number| bytes(*number).len()).sum();
    assert!(before_first > 170_000, "{before_first} bytes before the first hole");
    assert_eq!(told, holes);
}

#[test]
fn a_pipe_that_is_closed_ends_the_recording() {
    let folder = Folder::new("closed");
    let Some(pipe) = fifo(&folder) else { return };
    let path = pipe.clone();
    let reader = thread::spawn(move || {
        File::open(path).unwrap().read_exact(&mut [0; 100]).unwrap();
    });
    let mut recorder = Recorder::start(&options(pipe), start()).unwrap();
    reader.join().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut number = 0;
    while recorder.state() == State::Recording && Instant::now() < deadline {
        give(&mut recorder, number);
        recorder.flush();
        number += 1;
    }
    let finished = recorder.finish(PATIENCE);
    assert_eq!((finished.state, finished.failure), (State::Closed, None));
    let statistics = finished.statistics;
    assert_eq!(statistics.recorded.packets + statistics.refused.packets, number);
}

/// A file system of 2 MB that is gone at the end.
struct SmallDisk(Folder);

impl SmallDisk {
    /// In memory, or where `is_disk` on a device, which is written past the page cache.
    fn new(is_disk: bool) -> Option<Self> {
        let folder = Folder::new("small");
        let (target, image) = (folder.path("disk"), folder.path("image"));
        fs::create_dir(&target).unwrap();
        let make = if is_disk {
            "truncate -s 3M $1 && mkfs.ext4 -q -F -m 0 -O ^has_journal $1 && mount -o loop $1 $0"
        } else {
            "mount -t tmpfs -o size=2m none $0"
        };
        let made = Command::new("sh").args(["-ec", make]).arg(&target).arg(image).output();
        if made.is_ok_and(|output| output.status.success()) {
            return Some(Self(folder));
        }
        skip(Need::Root, "no small disk could be mounted (only root can): nothing was filled");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path("disk")).output();
    }
}

#[test]
fn a_full_disk_keeps_what_is_written_and_the_rest_is_refused() {
    for (is_disk, packing) in
        [(false, None), (false, Some("gzip:0")), (true, None), (true, Some("gzip:0"))]
    {
        let Some(disk) = SmallDisk::new(is_disk) else { return };
        let path = disk.0.path("disk/full.pcapng");
        let packing = packing.map(|text: &str| text.parse().unwrap());
        let options = Options { packing, ..options(path) };
        let mut recorder = Recorder::start(&options, start()).unwrap();
        for number in 0..6000 {
            give(&mut recorder, number);
            if number % 500 == 0 {
                recorder.flush();
            }
            wait_for_room(&recorder);
        }
        let finished = recorder.finish(PATIENCE);
        assert_eq!(finished.state, State::Failed);
        let said = finished.failure.unwrap();
        assert!(said.contains("full.pcapng") && said.contains("free some space"), "{said}");
        let statistics = finished.statistics;
        assert_eq!(statistics.recorded.packets + statistics.refused.packets, 6000);
        let mut files = disk.0.path("disk").read_dir().unwrap().map(|entry| entry.unwrap().path());
        let file = files.find(|path| path.is_file()).unwrap();
        let found = read(&file);
        assert_eq!(found.numbers, (0..statistics.recorded.packets).collect::<Vec<_>>());
        assert!(statistics.recorded.packets > 2000, "{statistics:?}");
        // A packed stream lacks its end; all else is whole.
        assert_eq!(found.damage.is_empty(), packing.is_none(), "{:?}", found.damage);
        fs::remove_file(file).unwrap();
    }
}

#[test]
fn a_disk_that_is_full_from_the_begin_is_told() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return skip(Need::Kernel, "there is no /dev/full");
    }
    let mut recorder = Recorder::start(&options(full.to_owned()), start()).unwrap();
    give(&mut recorder, 0);
    let finished = recorder.finish(PATIENCE);
    assert_eq!(finished.state, State::Failed);
    assert_eq!((finished.statistics.recorded.packets, finished.statistics.refused.packets), (0, 1));
    let missing = Recorder::start(&options("/no/such/folder/a.pcapng".into()), start());
    let error = missing.map(|_| ()).unwrap_err();
    assert!(format!("{error:#}").contains("cannot create /no/such/folder/a.pcapng"));
}

#[test]
fn losses_of_the_capture_come_back_where_they_were() {
    let folder = Folder::new("losses");
    let path = folder.path("a.pcapng");
    let mut recorder = Recorder::start(&options(path.clone()), start()).unwrap();
    let mut batch = Batch::default();
    let loss = |packets| Loss { before: None, after: start(), packets, stage: Stage::System };
    for number in 0..10 {
        batch.push(&packet(number, &bytes(number)));
        if number % 4 == 1 {
            batch.push_loss(loss(number + 1));
        }
    }
    batch.push_loss(loss(100));
    recorder.batch(&batch);
    let counters = Counters {
        received: Some(500),
        dropped_by_os: Some(112),
        dropped_by_interface: Some(3),
        ..Counters::NONE
    };
    recorder.counters(0, Timestamp::from_nanos(START + 10 * GAP), &counters);
    assert_eq!(recorder.finish(PATIENCE).statistics.lost_before, 2 + 6 + 10 + 100);
    let found = read(&path);
    let told: Vec<_> =
        found.losses.iter().map(|(at, loss)| (*at, loss.packets, loss.stage)).collect();
    // Those behind the last packet stand in the totals, which tell 112 of the system's 118 so far.
    let expected = [
        (2, 2, Stage::Unknown),
        (6, 6, Stage::Unknown),
        (10, 3, Stage::Interface),
        (10, 104, Stage::System),
    ];
    assert_eq!(told, expected);
    assert_eq!(found.interfaces[0].counters.received, Some(500));
}

#[test]
fn each_file_tells_its_own_losses() {
    let folder = Folder::new("shares");
    let rotation = Rotation { packets: Some(10), ..Rotation::default() };
    let options = Options { rotation, ..options(folder.path("a.pcapng")) };
    let mut recorder = Recorder::start(&options, start()).unwrap();
    let (mut lost, mut received) = (0, 0);
    for number in 0..60 {
        received += 1;
        if number % 7 == 3 {
            recorder.lose(0, number + 1);
            lost += number + 1;
            received += number + 1;
        }
        give(&mut recorder, number);
        if number % 5 == 4 {
            let time = packet(number, &[]).timestamp;
            let counters =
                Counters { received: Some(received), dropped_by_os: Some(lost), ..Counters::NONE };
            recorder.counters(0, time, &counters);
        }
    }
    assert_eq!(recorder.finish(PATIENCE).state, State::Recording);
    let found: Vec<Found> = folder.files().iter().map(|path| read(path)).collect();
    assert_eq!(found.len(), 6);
    let sum = |counter: fn(&Counters) -> Option<u64>| -> u64 {
        found.iter().map(|it| counter(&it.interfaces[0].counters).unwrap()).sum()
    };
    assert_eq!(sum(|counters| counters.received), received);
    assert_eq!(sum(|counters| counters.dropped_by_os), lost);
    assert_eq!(found.iter().map(reported_lost).sum::<u64>(), lost);
}

/// Those of the same time are in order, and one behind the latest is not, whatever came between.
#[test]
fn packets_behind_later_ones_are_counted() {
    let folder = Folder::new("late");
    let path = folder.path("a.pcapng");
    let mut recorder = Recorder::start(&options(path.clone()), start()).unwrap();
    let numbers = [1, 5, 3, 4, 5, 6];
    numbers.iter().for_each(|number| give(&mut recorder, *number));
    assert_eq!(recorder.statistics().out_of_order, 2);
    let statistics = recorder.finish(PATIENCE).statistics;
    assert_eq!((statistics.recorded.packets, statistics.out_of_order), (6, 2));
    assert_eq!(read(&path).numbers, numbers);
}

#[test]
fn packets_of_unknown_interfaces_are_refused() {
    let folder = Folder::new("unknown");
    let path = folder.path("a.pcap");
    let two = vec![Interface::new(netsniff_packet::LinkType::ETHERNET, 0); 2];
    let base = Options { format: CaptureFormat::Pcap, ..options(path.clone()) };
    let mut recorder =
        Recorder::start(&Options { interfaces: two, ..base.clone() }, start()).unwrap();
    let data = bytes(0);
    for interface in [0, 1, 2] {
        recorder.packet(&Packet { interface, ..packet(0, &data) });
    }
    let raw = netsniff_packet::LinkType::RAW;
    recorder.packet(&Packet { link_type: raw, ..packet(0, &data) });
    let statistics = recorder.finish(PATIENCE).statistics;
    assert_eq!((statistics.recorded.packets, statistics.refused.packets), (2, 2));
    assert_eq!(read(&path).numbers, [0, 0]);
    let mixed = vec![
        Interface::new(netsniff_packet::LinkType::ETHERNET, 0),
        Interface::new(netsniff_packet::LinkType::RAW, 0),
    ];
    let error = Recorder::start(&Options { interfaces: mixed, ..base }, start()).map(|_| ());
    assert!(error.unwrap_err().to_string().contains("write pcapng"));
}

#[test]
fn snaplen_and_cut_off_shorten_packets_and_the_balance_holds() {
    use netsniff_packet::wire::tcp::TcpHeader;
    use netsniff_traffic::frame::{Host, tcp_frame};
    let folder = Folder::new("cut");
    let path = folder.path("a.pcapng");
    let options = Options { snaplen: 600, flow_cutoff: Some(20_000), ..options(path.clone()) };
    let mut recorder = Recorder::start(&options, start()).unwrap();
    let host = |last, port| Host::new(std::net::IpAddr::from([10, 0, 0, last]), port);
    let header = TcpHeader {
        source_port: 0,
        destination_port: 0,
        sequence: 1,
        acknowledgement: 1,
        flags: 0x18,
        window: 1000,
        checksum: 0,
        urgent_pointer: 0,
        options: &[],
    };
    let (mut wire, mut snapped, mut small) = (0, 0, 0);
    for number in 0..100_u64 {
        // One flow of long packets, and another of few short ones.
        let (port, payload) = if number % 10 == 0 { (1, 50) } else { (2, 1000) };
        let frame = tcp_frame(&host(1, port), &host(2, 80), 1, &header, &vec![7; payload]).unwrap();
        recorder.packet(&packet(number, &frame));
        wire += frame.len() as u64;
        snapped += frame.len().min(600) as u64;
        small += u64::from(port == 1);
    }
    let statistics = recorder.finish(PATIENCE).statistics;
    assert_eq!(statistics.delivered.bytes, wire);
    assert_eq!(statistics.recorded.bytes + statistics.cut.bytes, snapped);
    assert_eq!((statistics.snapped.packets, statistics.snapped.bytes), (90, wire - snapped));
    // 19 packets of 1054 bytes are below the cut-off, the 20th begins below it.
    assert_eq!((statistics.cut.packets, small), (90 - 19, 10));
    let mut reader = netsniff_pcapfile::Reader::new(File::open(&path).unwrap()).unwrap();
    let mut batch = Batch::default();
    netsniff_packet::Source::read_batch(&mut reader, &mut batch).unwrap();
    let sum: u64 = batch.iter().map(|packet| u64::from(packet.wire_len)).sum();
    assert_eq!(sum, wire);
    assert_eq!(batch.iter().filter(|packet| packet.data.len() == 54).count(), 90 - 19);
}
