//! `--path`: what the system still sees of packets that are captured, the books of XDP programs, and what they need.
//! Needs root; says so where it is missing.

mod live_bed;

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use live_bed::{Bed, Done, Last, Log, Run, Sent};
use netsniff_capture::backend::{BACKENDS, Path, Received};
use netsniff_capture::{Interface, Options};
use netsniff_packet::{LinkType, checksum};
use netsniff_testing::has_program;

const PATHS: [&str; 3] = ["tap", "both", "bypass"];

/// How long an answer may take; where none is to come, how long is waited.
const ANSWER: Duration = Duration::from_millis(400);

/// A port that somebody listens at, and the address that the receiving end gets.
const PORT: u16 = 5353;
const ADDRESS: &str = "10.99.0.1";

/// A frame to the receiving end: an IPv4 packet (RFC 791) of a protocol.
fn frame(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0, 10, 99, 0, 2, 10, 99, 0, 1];
    ip[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
    let sum = checksum::compute(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let ethernet = [2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa, 8, 0];
    [&ethernet[..], &ip, payload].concat()
}

/// An echo request (RFC 792).
fn echo_request(number: u8) -> Vec<u8> {
    let mut icmp = [vec![8, 0, 0, 0, 0x4e, 0x53, 0, number], vec![7; 32]].concat();
    let sum = checksum::compute(&icmp);
    icmp[2..4].copy_from_slice(&sum.to_be_bytes());
    frame(1, &icmp)
}

/// A datagram (RFC 768) to [`PORT`], without a checksum.
fn datagram(content: &[u8]) -> Vec<u8> {
    let mut udp = vec![0x30, 0x39, 0, 0, 0, 0, 0, 0];
    udp[2..4].copy_from_slice(&PORT.to_be_bytes());
    udp[4..6].copy_from_slice(&(8 + content.len() as u16).to_be_bytes());
    udp.extend(content);
    frame(17, &udp)
}

/// Whether the system at the other end answers an echo request.
fn answers_echo(bed: &Bed, number: u8) -> bool {
    bed.in_sender(|| {
        let interface = Interface::find("tx0").unwrap();
        assert_eq!(interface.link_type, LinkType::ETHERNET);
        let options = Options { ring_bytes: 1 << 20, block_bytes: 1 << 16, ..Options::default() };
        let mut receiver = BACKENDS[0].open(&interface, &options).unwrap();
        receiver.start().unwrap();
        bed.send_frames(&[echo_request(number)]);
        let (begin, mut is_answered) = (Instant::now(), false);
        while !is_answered && begin.elapsed() < ANSWER {
            if let Received::Packets(lent) = receiver.receive(ANSWER / 8).unwrap() {
                is_answered = lent.packets.iter().any(|packet| {
                    let data = &lent.data[packet.range()];
                    // An echo reply with our number.
                    data.len() > 41 && data[23] == 1 && data[34] == 0 && data[41] == number
                });
            }
        }
        is_answered
    })
}

/// The datagrams that a program at the other end got.
fn datagrams_seen(bed: &Bed, content: &[u8], count: usize) -> usize {
    bed.in_receiver(|| {
        let socket = UdpSocket::bind((ADDRESS, PORT)).unwrap();
        socket.set_read_timeout(Some(ANSWER)).unwrap();
        bed.send_frames(&vec![datagram(content); count]);
        let mut room = [0; 64];
        (0..count).take_while(|_| socket.recv_from(&mut room).is_ok()).count()
    })
}

/// A bed whose receiving end has an address.
fn addressed(test: &str) -> Option<Bed> {
    let bed = Bed::up(test)?;
    bed.ip(&["addr", "add", "10.99.0.1/24", "dev", "rx0"]);
    Some(bed)
}

/// The backend that a path chooses.
fn backend(path: &str) -> &'static str {
    BACKENDS.iter().find(|backend| backend.path.name() == path).unwrap().name
}

#[test]
fn the_system_answers_beside_a_capture_and_not_behind_a_bypass() {
    let Some(bed) = addressed("p-echo") else { return };
    assert!(answers_echo(&bed, 1), "nobody captures");
    for path in PATHS {
        let run = Run::start(&bed, &format!("p-echo-{path}"), &["--path", path]);
        assert_eq!(answers_echo(&bed, 2), path != "bypass", "{path}");
        let done = run.end();
        let chosen = format!("path {path}: ");
        assert!(done.errors.contains(&chosen), "{}", done.errors);
        assert!(done.errors.contains(&format!("rx0: {}, ", backend(path))), "{}", done.errors);
        let last = Last::read(&done.logs, "interface");
        // The request, and where the system has it and sent packets are captured, the answer.
        let expected = if path == "tap" { 2 } else { 1 };
        assert_eq!((last.text("unexplained"), last.number("delivered")), ("0", expected));
        assert!(answers_echo(&bed, 3), "after the run");
    }
}

#[test]
fn a_bypass_keeps_from_the_system_what_its_filter_wants_and_nothing_else() {
    let Some(bed) = addressed("p-filter") else { return };
    let filter = format!("udp port {PORT}");
    let mut seen = Vec::new();
    for path in PATHS {
        let run = Run::start(&bed, &format!("p-filter-{path}"), &["--path", path, "-f", &filter]);
        assert!(answers_echo(&bed, 4), "{path}");
        seen.push(datagrams_seen(&bed, b"to whom it may concern", 5));
        let done = run.end();
        let conn = Log::read(&done.logs.join("conn.log"));
        assert_eq!((conn.len(), conn.value(0, "orig_pkts")), (1, "5"), "{path}");
        let last = Last::read(&done.logs, "interface");
        assert_eq!(last.number("delivered"), 5, "{path}");
        if path != "tap" {
            last.closes();
            assert_eq!((last.number("arrived"), last.number("filtered")), (6, 1), "{path}");
        }
    }
    assert_eq!(seen, [5, 5, 0], "what a program at the end of each path got");
}

/// No loss, drops at the ring, and a filter: all of it adds up.
#[test]
fn the_books_of_xdp_programs_close() {
    let Some(bed) = Bed::up("p-books") else { return };
    for path in ["both", "bypass"] {
        let start = |name: &str, more: &[&str]| {
            let arguments = [&["--path", path, "--no-shed"], more].concat();
            Run::start(&bed, &format!("p-{name}-{path}"), &arguments)
        };
        let books = |done: &Done| {
            let last = Last::read(&done.logs, "interface");
            last.closes();
            assert_eq!(last.text("backend"), backend(path));
            assert_eq!(last.text("direction"), "in");
            let columns = ["arrived", "filtered", "ring_dropped", "analysed"];
            columns.map(|column| last.number(column))
        };
        let run = start("all", &["--record", "RECORDING"]);
        bed.send(&Sent { count: 3000, size: 200, rate: 20_000 });
        let done = run.end();
        assert_eq!(books(&done), [3000, 0, 0, 3000], "{path}: {}", done.errors);
        let place = if path == "both" { "(native), for" } else { "(native), copy mode, for" };
        assert!(done.errors.contains(place), "{}", done.errors);

        // One of 256 flows, and a snapshot length.
        let run = start("flow", &["-f", "host 198.18.0.3", "--snaplen", "100"]);
        bed.send(&Sent { count: 2560, size: 200, rate: 50_000 });
        let done = run.end();
        let [arrived, filtered, dropped, analysed] = books(&done);
        assert_eq!((arrived, dropped, analysed), (2560, 0, 2560 - filtered), "{path}");
        assert!(filtered > 2000 && analysed > 0, "{path}: {filtered} filtered");
        assert_eq!(Last::read(&done.logs, "interface").number("cut"), analysed, "{path}");

        let run = start("drops", &["--ring", "128K"]);
        bed.send(&Sent { count: 200, size: 200, rate: 10_000 });
        run.pause();
        bed.send(&Sent { count: 5000, size: 200, rate: 100_000 });
        run.resume();
        thread::sleep(Duration::from_millis(300));
        bed.send(&Sent { count: 200, size: 200, rate: 10_000 });
        let done = run.end();
        let [arrived, filtered, dropped, analysed] = books(&done);
        assert_eq!((arrived, filtered, analysed), (5400, 0, 5400 - dropped), "{path}");
        assert!(dropped > 3000, "{path}: {dropped} dropped");
        let gaps = Log::read(&done.logs.join("gaps.log"));
        let told = (0..gaps.len()).map(|row| gaps.value(row, "packets").parse::<u64>().unwrap());
        assert_eq!(told.sum::<u64>(), dropped, "{path}: each lost packet has its place");
    }
}

/// Under the sandbox that allows least, with each way to wait, and where the interface goes down.
#[test]
fn xdp_programs_work_once_rights_are_given_up() {
    let Some(bed) = Bed::up("p-strict") else { return };
    for path in ["both", "bypass"] {
        for wait in ["poll", "busy", "adaptive"] {
            let arguments = ["--path", path, "--sandbox", "strict", "--wait", wait];
            let run = Run::start(&bed, &format!("p-strict-{path}-{wait}"), &arguments);
            bed.send(&Sent { count: 500, size: 300, rate: 20_000 });
            bed.ip(&["link", "set", "rx0", "down"]);
            thread::sleep(Duration::from_millis(200));
            bed.ip(&["link", "set", "rx0", "up"]);
            thread::sleep(Duration::from_millis(200));
            bed.send(&Sent { count: 500, size: 300, rate: 20_000 });
            let done = run.end();
            assert_eq!(done.code, 0, "{}", done.errors);
            let last = Last::read(&done.logs, "interface");
            last.closes();
            assert_eq!(last.number("analysed"), 1000, "{path} {wait}: {}", done.errors);
        }
    }
    let run = Run::start(&bed, "p-busy", &["--path", "bypass", "--busy-poll", "50us"]);
    bed.send(&Sent { count: 1000, size: 300, rate: 20_000 });
    let done = run.end();
    assert!(done.errors.contains("busy polling for 50"), "{}", done.errors);
    assert_eq!(Last::read(&done.logs, "interface").number("analysed"), 1000);
}

#[test]
fn a_recorder_takes_every_packet_by_every_path() {
    let Some(bed) = Bed::up("p-record") else { return };
    for path in PATHS {
        let run = Run::record(&bed, &format!("p-record-{path}"), "t.pcap", &["--path", path]);
        bed.send(&Sent { count: 800, size: 150, rate: 20_000 });
        let done = run.end();
        assert_eq!(done.code, 0, "{}", done.errors);
        let bytes = std::fs::metadata(done.file("t.pcap")).unwrap().len();
        assert_eq!(bytes, 24 + 800 * (16 + 146), "{path}");
    }
}

/// A process that is killed leaves no program behind, and the next one gets the queue.
#[test]
fn a_program_leaves_with_its_process() {
    let Some(bed) = addressed("p-kill") else { return };
    for path in ["both", "bypass", "bypass"] {
        let run = Run::start(&bed, "p-kill", &["--path", path]);
        assert_eq!(answers_echo(&bed, 5), path != "bypass");
        run.signal("KILL");
        run.wait();
        let begin = Instant::now();
        while !answers_echo(&bed, 6) {
            assert!(begin.elapsed() < Duration::from_secs(5), "the program of {path} stays");
        }
    }
    let first = Run::start(&bed, "p-first", &["--path", "bypass"]);
    let (code, said) = analyze(&bed, &[], &["--path", "both", "--duration", "1s"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("another XDP program is at rx0"), "{said}");
    first.end();
}

/// Runs `analyze -i rx0` in the receiving namespace, by another command, until it ends.
fn analyze(bed: &Bed, by: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
    let out = Command::new("ip")
        .args(["netns", "exec", &bed.receiver()])
        .args(by)
        .args([env!("CARGO_BIN_EXE_netsniff"), "analyze", "-i", "rx0"])
        .args(arguments)
        .output()
        .unwrap();
    (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn missing_rights_are_named_and_a_limit_of_locked_memory_is_kept() {
    let Some(bed) = Bed::up("p-rights") else { return };
    if !has_program("setpriv", "rights of XDP programs need setpriv") {
        return;
    }
    let second = ["--path", "bypass", "--duration", "1s"];
    for lacking in ["-bpf,-sys_admin", "-net_admin,-sys_admin"] {
        for path in ["both", "bypass"] {
            let by = ["setpriv", "--bounding-set", lacking];
            let (code, said) = analyze(&bed, &by, &["--path", path, "--duration", "1s"]);
            assert_eq!(code, Some(1), "{lacking}: {said}");
            let setcap = "sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep";
            assert!(said.contains(setcap), "{lacking} {path}: {said}");
        }
    }
    let limited = |kib: &str| {
        let limit = format!("ulimit -l {kib}; exec \"$0\" \"$@\"");
        analyze(&bed, &["setpriv", "--bounding-set", "-ipc_lock", "bash", "-c", &limit], &second)
    };
    let (code, said) = limited("8192");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("cannot lock 65536 KiB for an XDP socket: raise the limit"), "{said}");
    let (code, said) = limited("16");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ulimit -l") && said.contains("CAP_IPC_LOCK"), "{said}");
}

#[test]
fn what_a_path_cannot_do_is_said() {
    assert_eq!(Path::ALL.map(Path::name), PATHS);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        let out = command.args(["analyze", "-i", "lo"]).args(arguments).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    for (arguments, code, expected) in [
        (["--path", "bypass", "--backend", "af-packet"], 2, "is of --path tap, not of bypass"),
        (["--path", "tap", "--backend", "xdp-copy"], 2, "is of --path both, not of tap"),
        (["--path", "bypass", "--if-gone", "wait"], 2, "choose --path tap"),
        (["--path", "both", "--if-gone", "wait"], 2, "choose --path tap"),
        (["--path", "bypass", "--direction", "out"], 1, "--direction out"),
        (["--path", "bypass", "--workers", "2"], 1, "--workers 1"),
        (["--path", "bypass", "--ts", "hw"], 1, "--ts hw"),
        (["--path", "bypass", "--duration", "1s"], 1, "lower the MTU"),
    ] {
        let (got, said) = run(&arguments);
        assert_eq!((got, said.contains(expected)), (Some(code), true), "{arguments:?}: {said}");
    }
}

/// Filters that the kernel cannot run are asked in user space: of packets that the system has, too.
#[test]
fn a_filter_in_user_space_is_refused_with_a_bypass() {
    let Some(bed) = Bed::up("p-user") else { return };
    let hosts: Vec<_> = (0..2500).map(|n| format!("192.0.{}.{}", n / 250, n % 250)).collect();
    let filter = format!("host 198.18.0.3 or host {}", hosts.join(" or host "));
    let arguments = ["--path", "bypass", "--duration", "1s", "-f", &filter];
    let (code, said) = analyze(&bed, &[], &arguments);
    assert_eq!((code, said.contains("choose --path tap")), (Some(2), true), "{said}");
    let run = Run::start(&bed, "p-user", &["--path", "both", "-f", &filter]);
    bed.send(&Sent { count: 2560, size: 64, rate: 50_000 });
    let done = run.end();
    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!((last.number("filtered_late"), last.number("analysed")), (2520, 40));
}
