//! The command line of anonymisation: keys, what is told, and what is left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::zeek::corpus::Scratch;
use netsniff_packet::{LinkType, Packet, Timestamp};
use netsniff_pcapfile::{Counters, Interface, PcapngWriter, Reader, Resolution, Section};

fn office() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng")
}

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

struct Place(Scratch);

impl Place {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(name);
        fs::create_dir_all(scratch.path()).unwrap();
        Self(scratch)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

const KEY: &[u8] = b"00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210\n";

#[test]
fn what_is_wrong_with_a_key_is_told_with_what_to_do() {
    let place = Place::new("keys");
    let office = office();
    let analyze = |key: &str| {
        let run = netsniff(&["analyze", "-q", "-a", "-k", key, office.to_str().unwrap()]);
        said(&run)
    };
    let missing = place.path("missing");
    for (key, expected) in [
        (missing.clone(), "cannot open the key file"),
        (place.write("short", b"secret"), "6 bytes are no key"),
        (place.write("letters", &[b'x'; 64]), "character 1 is no hexadecimal digit"),
        (place.write("weak", &[7; 32]), "no random key"),
    ] {
        let (code, text) = analyze(&key);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains(expected) && text.contains(&key), "{text}");
        assert!(text.contains("head -c 32 /dev/urandom"), "{text}");
    }
    let good = place.write("good", KEY);
    let (code, text) = analyze(&good);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(&format!("chmod 600 {good}")) == cfg!(unix), "{text}");
    assert!(!text.contains("0011"), "the key is told: {text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&good, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(!analyze(&good).1.contains("chmod"));
    }
    for (arguments, expected) in [
        (&["analyze", "-m", "nullip", "x"][..], "were not provided:\n  <--anonymize>"),
        (&["analyze", "-a", "-m", "cryptopan", "x"], "add -k KEYFILE"),
        (&["analyze", "-a", "--keep", "office", "x"], "is no range of addresses"),
    ] {
        let (code, text) = said(&netsniff(arguments));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_file_is_not_written_over_itself() {
    let place = Place::new("itself");
    let copy = place.path("copy.pcapng");
    fs::copy(office(), &copy).unwrap();
    let (code, text) = said(&netsniff(&["anonymize", &copy, &copy]));
    assert_eq!(code, Some(2));
    assert!(text.contains("is both read and written"), "{text}");
    assert_eq!(fs::read(&copy).unwrap(), fs::read(office()).unwrap());
}

/// A switch that tells its name, and a TCP port unreachable to nobody.
fn capture() -> Vec<u8> {
    let section = Section {
        hardware: Some("hardware of alice".to_owned()),
        os: Some("system of alice".to_owned()),
        application: Some("program of alice".to_owned()),
        comments: vec!["comment of alice".to_owned()],
    };
    let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
    let text = |text: &str| Some(text.to_owned());
    for _ in 0..2 {
        let interface = Interface {
            resolution: Resolution::NANOSECONDS,
            name: text("wifi of alice"),
            description: text("home of alice"),
            filter: text("host alice"),
            os: text("system of alice"),
            hardware: text("card of alice"),
            ..Interface::new(LinkType::ETHERNET, 0)
        };
        writer.add_interface(&interface).unwrap();
    }
    let mut data = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xcc].to_vec();
    data.extend_from_slice(b"a switch of alice");
    let timestamp = Timestamp::from_nanos(1_700_000_000_123_456_789);
    let wire_len = data.len() as u32;
    let packet =
        Packet { timestamp, data: &data, wire_len, link_type: LinkType::ETHERNET, interface: 1 };
    writer.write_packet_with_comment(&packet, "alice did this").unwrap();
    writer.write_packet_after_loss(&packet, 5).unwrap();
    let counters = Counters { dropped_by_os: Some(7), ..Counters::NONE };
    writer.write_counters(1, timestamp, &counters).unwrap();
    writer.finish().unwrap()
}

#[test]
fn what_names_people_in_pcapng_is_left_out_and_losses_stay() {
    use netsniff_packet::{Batch, Progress, Source as _};
    let place = Place::new("pcapng");
    let (input, output) = (place.write("in.pcapng", &capture()), place.path("out.pcapng"));
    let run = netsniff(&["anonymize", &input, &output]);
    let told = String::from_utf8_lossy(&run.stdout).into_owned();
    assert_eq!(run.status.code(), Some(0));
    assert!(told.contains("packets written: 2\n  cut behind eth, not understood: 2\n"), "{told}");
    assert!(told.contains("anonymised: tcpdriv by a key of this run"), "{told}");
    let written = fs::read(&output).unwrap();
    assert!(!written.windows(5).any(|window| window == b"alice"));
    let mut reader = Reader::new(&written[..]).unwrap();
    let (mut batch, mut packets) = (Batch::default(), Vec::new());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        let facts = |packet: Packet<'_>| {
            let time = packet.timestamp.nanos();
            (packet.data.len(), packet.wire_len, packet.interface, time)
        };
        packets.extend(batch.iter().map(facts));
        if progress == Progress::End {
            break;
        }
    }
    assert_eq!(packets, [(14, 31, 1, 1_700_000_000_123_456_789); 2]);
    let [_, interface] = reader.interfaces() else { panic!("two interfaces") };
    assert_eq!(interface.counters.dropped_by_os, Some(7));
    assert_eq!(interface.counters.dropped_between_packets, Some(5));
    assert_eq!(interface.resolution, Resolution::NANOSECONDS);
}

#[test]
fn a_damaged_capture_is_written_as_far_as_it_goes() {
    let place = Place::new("damaged");
    let whole = fs::read(office()).unwrap();
    let cut = place.write("cut.pcapng", &whole[..whole.len() / 2]);
    let (code, text) = said(&netsniff(&["anonymize", "-q", &cut, &place.path("out.pcapng")]));
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("the file ends within"), "{text}");
    let (code, text) = said(&netsniff(&["anonymize", &place.path("none"), &place.path("never")]));
    assert_eq!(code, Some(1), "{text}");
    assert!(!Path::new(&place.path("never")).exists());
}

/// Every row of every log, whatever the number of workers; and what stays is what was to stay.
#[test]
fn anonymised_logs_do_not_depend_on_the_number_of_workers() {
    let place = Place::new("workers");
    let key = place.write("key", KEY);
    let office = office();
    let logs = |workers: &str, more: &[&str]| {
        let folder = place.path("logs");
        let all = ["analyze", "-q", "-a", "-k", &key, "--workers", workers, "-o", &folder];
        let run = netsniff(&[&all[..], more, &[office.to_str().unwrap()]].concat());
        assert_eq!(run.status.code(), Some(0), "{}", said(&run).1);
        let mut logs: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap()))
            .collect();
        logs.sort();
        fs::remove_dir_all(folder).unwrap();
        logs
    };
    let one = logs("1", &[]);
    assert!(one.len() >= 3);
    for workers in ["2", "3", "8"] {
        assert!(logs(workers, &[]) == one, "{workers} workers");
    }
    let conn = |logs: &[(std::ffi::OsString, Vec<u8>)]| {
        let log = logs.iter().find(|(name, _)| name == "conn.log").unwrap();
        String::from_utf8(log.1.clone()).unwrap()
    };
    assert!(!conn(&one).contains("192.0.2.11"));
    let kept = conn(&logs("2", &["--keep", "192.0.2.0/24"]));
    assert!(kept.contains("192.0.2.11") && !kept.contains("198.51.100.80"));
    let null = conn(&logs("2", &["-m", "nullip"]));
    assert!(null.contains("\t0.0.0.0\t") && null.contains("\t::\t"));
}
