//! `netsniff sort`: the order of reordercap, whatever the size, and nothing lost on the way.

use crate::generated;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use netsniff_packet::{Batch, LinkType, Packet, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{
    Counters, Interface, PcapWriter, PcapngWriter, Reader, Resolution, Section,
};
use netsniff_testing::{Need, folder, has_program};

use crate::generated::{Folder, read, run};

fn sort(arguments: &[&Path]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).arg("sort").args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// A small generator of random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Packets in disorder, many with equal times; each tells its number. Of two interfaces.
fn shuffled(path: &Path, count: u64, payload: usize) {
    let file = std::io::BufWriter::new(File::create(path).unwrap());
    let mut writer = PcapngWriter::new(file, &Section::default()).unwrap();
    for name in ["left", "right"] {
        let interface = Interface {
            name: Some(name.to_owned()),
            resolution: Resolution::NANOSECONDS,
            ..Interface::new(LinkType::ETHERNET, 0)
        };
        writer.add_interface(&interface).unwrap();
    }
    let mut random = Random(5);
    for number in 0..count {
        let mut data = number.to_be_bytes().to_vec();
        data.resize(8 + payload, 7);
        let nanos = number as i64 / 3 * 1000 - random.below(50) as i64 * 1000;
        let packet = Packet {
            timestamp: Timestamp::from_nanos(1_700_000_000_000_000_000 + nanos),
            data: &data,
            wire_len: data.len() as u32 + 4,
            link_type: LinkType::ETHERNET,
            interface: (number % 2) as u32,
        };
        if number % 1000 == 77 {
            writer.write_packet_after_loss(&packet, number).unwrap();
        } else {
            writer.write_packet(&packet).unwrap();
        }
    }
    let counters = Counters { received: Some(9 * count), ..Counters::NONE };
    writer.write_counters(1, Timestamp::from_nanos(1_700_000_000_000_000_000), &counters).unwrap();
    writer.finish().unwrap().flush().unwrap();
}

/// A packet of a file, with its bytes and what was lost right before it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    nanos: i64,
    data: Vec<u8>,
    wire_len: u32,
    interface: u32,
    lost: u64,
}

fn rows(path: &Path) -> (Vec<Row>, Vec<Interface>) {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let (mut rows, mut batch) = (Vec::new(), Batch::default());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        let mut losses = batch.losses.iter().peekable();
        for (at, packet) in batch.iter().enumerate() {
            let mut lost = 0;
            while let Some((_, loss)) = losses.next_if(|(place, _)| *place as usize <= at) {
                lost += loss.packets;
            }
            rows.push(Row {
                nanos: packet.timestamp.nanos(),
                data: packet.data.to_vec(),
                wire_len: packet.wire_len,
                interface: packet.interface,
                lost,
            });
        }
        if progress == Progress::End {
            break;
        }
    }
    assert_eq!(reader.damage(), []);
    (rows, reader.interfaces().to_vec())
}

#[test]
fn packets_come_in_the_order_of_reordercap_with_all_they_had() {
    let folder = Folder::new("sort-order");
    let [input, ours, theirs] =
        ["in.pcapng", "ours.pcapng", "theirs.pcapng"].map(|it| folder.path(it));
    shuffled(&input, 20_000, 40);
    let output = sort(&[&input, &ours]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let (mut expected, interfaces) = rows(&input);
    let (found, described) = rows(&ours);
    expected.sort_by_key(|row| row.nanos);
    assert!(found == expected, "the order, or something of a packet, differs");
    assert_eq!(described, interfaces);
    assert!(found.iter().any(|row| row.lost == 77) && found.iter().any(|row| row.lost == 19_077));
    let arguments = [input.to_str().unwrap(), theirs.to_str().unwrap()];
    let Some(reordercap) = run("reordercap", &arguments) else { return };
    assert!(reordercap.status.success(), "{reordercap:?}");
    assert!(found == rows(&theirs).0, "reordercap has another order");
    // Both count packets that are earlier than the one before.
    let counted = String::from_utf8_lossy(&reordercap.stdout).into_owned();
    let wrong = counted.trim().rsplit_once(", ").and_then(|(_, rest)| rest.split(' ').next());
    let wrong: u64 = wrong.unwrap().parse().unwrap_or_else(|_| panic!("{counted}"));
    let ours = said(&output).replace(',', "");
    assert!(ours.contains(&format!("earlier than the one before: {wrong} at most")), "{ours}");
}

#[test]
fn what_does_not_fit_into_memory_is_sorted_as_well() {
    let folder = Folder::new("sort-memory");
    let [input, small, large] =
        ["in.pcapng", "small.pcapng", "large.pcapng"].map(|it| folder.path(it));
    // 60 MB, in 2 MB and a part.
    shuffled(&input, 50_000, 1200);
    assert!(sort(&[&input, &large]).status.success());
    let output = sort(&[Path::new("--memory"), Path::new("16M"), &input, &small]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::read(&small).unwrap() == fs::read(&large).unwrap(), "the memory changes the order");
    let (found, _) = rows(&small);
    assert_eq!(found.len(), 50_000);
    assert!(found.windows(2).all(|pair| pair[0].nanos <= pair[1].nanos));
    assert_eq!(folder.files().len(), 3, "something else was left");
}

/// A pcap file of packets with these seconds, which tell a letter.
fn pcap(path: &Path, letter: u8, seconds: &[i64]) {
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0).unwrap();
    for second in seconds {
        let timestamp = Timestamp::from_secs_nanos(1_700_000_000 + second, 0);
        let data = [letter, *second as u8];
        let link_type = LinkType::ETHERNET;
        let packet = Packet { timestamp, data: &data, wire_len: 2, link_type, interface: 0 };
        writer.write_packet(&packet).unwrap();
    }
    fs::write(path, writer.finish().unwrap()).unwrap();
}

fn order(path: &Path) -> String {
    rows(path).0.iter().map(|row| format!("{}{} ", char::from(row.data[0]), row.data[1])).collect()
}

#[test]
fn equal_times_stay_in_the_order_of_the_inputs() {
    let folder = Folder::new("sort-stable");
    let [a, b, out] = ["a.pcap", "b.pcap", "out.pcap.zst"].map(|it| folder.path(it));
    pcap(&a, b'a', &[5, 3, 3, 9]);
    pcap(&b, b'b', &[3, 5]);
    let output = sort(&[&a, &b, &out]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert_eq!(order(&out), "a3 a3 b3 a5 b5 a9 ");
    assert!(fs::read(&out).unwrap().starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let told = said(&output);
    assert!(told.contains("packets written: 6\n"), "{told}");
    assert!(told.contains("earlier than the one before: 1, at most 2.00 s behind"), "{told}");
    assert!(sort(&[&b, &a, &out]).status.success());
    assert_eq!(order(&out), "b3 a3 a3 b5 a5 a9 ");
}

#[test]
fn interfaces_of_several_inputs_get_numbers_of_their_own() {
    let folder = Folder::new("sort-interfaces");
    let [one, two, out] = ["one.pcapng", "two.pcapng", "out.pcapng"].map(|it| folder.path(it));
    shuffled(&one, 10, 4);
    shuffled(&two, 10, 6);
    assert!(sort(&[&one, &two, &out]).status.success());
    let (found, interfaces) = rows(&out);
    let names: Vec<_> = interfaces.iter().filter_map(|it| it.name.as_deref()).collect();
    assert_eq!(names, ["left", "right", "left", "right"]);
    assert_eq!(interfaces[1].counters.received, Some(90));
    for row in &found {
        let number = u64::from_be_bytes(*row.data.first_chunk().unwrap());
        let input = u32::from(row.data.len() == 14);
        assert_eq!(u64::from(row.interface), number % 2 + 2 * u64::from(input));
    }
    assert_eq!(found.len(), 20);
}

#[test]
fn standard_input_and_output_are_captures_too() {
    let folder = Folder::new("sort-pipes");
    let (input, out) = (folder.path("in.pcap"), folder.path("out.pcapng"));
    pcap(&input, b'a', &[2, 1]);
    let output = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["sort", "-", "-"])
        .stdin(File::open(&input).unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("packets written: 2"));
    fs::write(&out, &output.stdout).unwrap();
    assert_eq!(order(&out), "a1 a2 ");
}

#[test]
fn a_damaged_input_is_sorted_up_to_its_end_and_told() {
    let folder = Folder::new("sort-damaged");
    let (input, out) = (folder.path("in.pcap"), folder.path("out.pcap"));
    pcap(&input, b'a', &[4, 2, 3]);
    let whole = fs::read(&input).unwrap();
    fs::write(&input, &whole[..whole.len() - 1]).unwrap();
    let output = sort(&[&input, &out]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(said(&output).contains("packet 3 at byte 60: the file ends within it"));
    assert_eq!(order(&out), "a2 a4 ");
}

#[test]
fn a_failure_leaves_what_was_there() {
    let folder = Folder::new("sort-failure");
    let (input, out) = (folder.path("in.pcap"), folder.path("out.pcap"));
    pcap(&input, b'a', &[1]);
    fs::write(&out, "precious").unwrap();
    let missing = folder.path("missing.pcap");
    for (arguments, code, expected) in [
        (vec![&*input, &missing, &out], 1, "cannot open"),
        (vec![&input, &input], 2, "is both read and written"),
        (vec![Path::new("--memory"), Path::new("1M"), &input, &out], 2, "at least 16M"),
        (vec![&input], 2, "required"),
    ] {
        let output = sort(&arguments);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    assert_eq!(folder.files().len(), 2);
    // Two link types do not fit pcap, but only if both have packets.
    let mixed = folder.path("mixed.pcapng");
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    for link_type in [LinkType::ETHERNET, LinkType::RAW] {
        writer.add_interface(&Interface::new(link_type, 0)).unwrap();
    }
    let timestamp = Timestamp::from_secs_nanos(1_700_000_000, 0);
    let raw = LinkType::RAW;
    let packet = Packet { timestamp, data: &[1, 2], wire_len: 2, link_type: raw, interface: 1 };
    writer.write_packet(&packet).unwrap();
    fs::write(&mixed, writer.finish().unwrap()).unwrap();
    assert!(sort(&[&mixed, &out]).status.success());
    let mut reader = Reader::new(File::open(&out).unwrap()).unwrap();
    reader.read_batch(&mut Batch::default()).unwrap();
    assert_eq!(reader.interfaces()[0].link_type, raw);
    let output = sort(&[&mixed, &input, &out]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("write pcapng"), "{}", said(&output));
}

#[test]
fn what_others_recorded_is_sorted_as_reordercap_does() {
    let Some(root) = folder(Need::Corpus, "nothing of others was sorted") else { return };
    if !has_program("reordercap", "nothing of others was sorted") {
        return;
    }
    let folder = Folder::new("sort-corpus");
    let [ours, theirs] = ["ours.pcapng", "theirs.pcapng"].map(|it| folder.path(it));
    let (mut compared, mut in_disorder) = (0, 0);
    for path in captures(Path::new(&root)) {
        // What it does not take as a whole cannot be compared.
        let arguments = [path.to_str().unwrap(), theirs.to_str().unwrap()];
        let reordercap = run("reordercap", &arguments).unwrap();
        if !reordercap.status.success() {
            continue;
        }
        let output = sort(&[&path, &ours]);
        if output.status.code() != Some(0) {
            continue;
        }
        let (ours, theirs) = (rows(&ours).0, rows(&theirs).0);
        let same = ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(a, b)| (a.nanos, &a.data) == (b.nanos, &b.data));
        assert!(same, "{}: {} and {} packets", path.display(), ours.len(), theirs.len());
        compared += 1;
        in_disorder += u64::from(said(&output).contains("earlier than"));
    }
    eprintln!("{compared} captures, {in_disorder} of them in disorder");
    assert!(compared > 50 && in_disorder > 0, "{compared} captures, {in_disorder} in disorder");
}

/// The captures of the corpus that are not too long.
fn captures(root: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for folder in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let files = entries.map(|entry| entry.unwrap().path());
        found.extend(files.filter(|path| {
            let size = path.metadata().ok().filter(fs::Metadata::is_file).map(|it| it.len());
            let kind = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
            size.is_some_and(|size| size < 3_000_000)
                && ["pcap", "pcapng", "trace", "cap"].contains(&kind)
        }));
    }
    found.sort();
    found
}

#[test]
fn generated_packets_are_read_as_they_were() {
    // The reader of recordings and this file's agree on what a packet is.
    let folder = Folder::new("sort-generated");
    let (input, out) = (folder.path("in.pcapng"), folder.path("out.pcapng"));
    let mut recorder = netsniff_pipeline::recording::Recorder::start(
        &generated::options(input.clone()),
        generated::start(),
    )
    .unwrap();
    for number in [5, 3, 4, 1] {
        let data = generated::bytes(number);
        recorder.packet(&generated::packet(number, &data));
    }
    assert_eq!(recorder.finish(std::time::Duration::from_secs(20)).statistics.recorded.packets, 4);
    assert!(sort(&[&input, &out]).status.success());
    assert_eq!(read(&out).numbers, [1, 3, 4, 5]);
}
