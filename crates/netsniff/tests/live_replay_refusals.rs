//! What `netsniff replay` refuses, leaves out or loses, and what it says of that. Needs root; says so where it is missing.

mod live_bed;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use live_bed::commands::{Captures, packets, replay};
use live_bed::{Bed, Run};
use netsniff_capture::Interface;
use netsniff_packet::LinkType;
use netsniff_testing::{Need, has_program, skip};
use netsniff_traffic::probe;

#[test]
fn what_cannot_be_sent_as_it_is_is_counted_and_told() {
    let Some(bed) = Bed::up("left") else { return };
    let captures = Captures::new("left");
    let frame = |len: usize| probe::frame(len + 4, 3).unwrap();
    let some = [
        (0, frame(100), 100),
        (10, frame(60), 400),
        (20, frame(1_514), 1_514),
        (30, frame(1_515), 1_515),
        (40, vec![2; 13], 13),
        (15, frame(200), 200),
    ];
    let capture = captures.write("some.pcap", LinkType::ETHERNET, &some);
    let run = Run::record(&bed, "left", "out.pcapng", &[]);
    let padded = replay(&bed, &[&capture], &[]);
    let done = run.end();
    assert_eq!(padded.code, Some(3), "{}", padded.errors);
    for line in [
        "Sent 4 frames (2.21 kB) on tx0",
        "1 frame: left out, longer than the MTU of tx0 allows (1500)",
        "1 frame: left out, shorter than an Ethernet header",
        "1 frame: not captured whole, sent with zeroes for what is missing",
    ] {
        assert!(padded.output.contains(line), "{line}\n{}", padded.output);
    }
    let came = packets(&done.file("out.pcapng"));
    let lens: Vec<usize> = came.iter().map(Vec::len).collect();
    assert_eq!(lens, [100, 400, 1_514, 200]);
    assert_eq!((&came[1][..60], &came[1][60..]), (&some[1].1[..], &[0; 340][..]));
    assert!(padded.output.contains("1 frame: with a time before"), "{}", padded.output);

    let skipped = replay(&bed, &[&capture], &["--cut", "skip", "--json"]);
    assert_eq!((skipped.code, &skipped.json()["frames"]), (Some(3), &3.into()));
    let refused = replay(&bed, &[&capture], &["--cut", "refuse"]);
    assert_eq!((refused.code, refused.output.as_str()), (Some(1), ""));
    assert!(refused.errors.contains("packet 2 was not captured whole"), "{}", refused.errors);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let Some(bed) = Bed::up("wrong") else { return };
    let captures = Captures::new("wrong");
    let capture = captures.frames("in.pcap", 10, 0);
    let said = |files: &[&Path], arguments: &[&str], code: i32, words: &str| {
        let replayed = replay(&bed, files, arguments);
        assert_eq!(replayed.code, Some(code), "{}", replayed.errors);
        assert!(replayed.errors.contains(words), "{}", replayed.errors);
    };
    let empty = captures.write("empty.pcap", LinkType::ETHERNET, &[]);
    said(&[&empty], &[], 1, "there is no packet to be sent");
    let raw = captures.write("raw.pcap", LinkType::RAW, &[(0, vec![0x45; 40], 40)]);
    said(&[&raw], &[], 1, "no packet could be sent: they have no Ethernet header");
    said(&[&captures.0.join("none")], &[], 1, "none: cannot open");
    said(&[&capture], &["--ignore-gaps"], 2, "the packets have all the same time");
    said(&[&capture], &["--loop", "0"], 2, "the packets have all the same time");
    said(&[&capture], &["--pps", "10", "--mbps", "10"], 2, "cannot be used with");
    said(&[&capture], &["--way", "pigeon"], 2, "there is no way pigeon; there are [\"af-xdp\"");
    // No machine sends so many.
    said(
        &[&capture],
        &["--pps", "1e9", "--loop", "1000", "--tolerance", "5"],
        4,
        "the rate was off by",
    );
    bed.ip(&["link", "set", "rx0", "down"]);
    // The kernel tells the other end some time later.
    let begin = Instant::now();
    while bed.in_sender(|| Interface::find("tx0").unwrap().has_carrier) {
        assert!(begin.elapsed() < Duration::from_secs(5), "there is a carrier");
        thread::sleep(Duration::from_millis(20));
    }
    said(&[&capture], &[], 1, "tx0 has no carrier: its cable is unplugged");
    bed.ip(&["link", "set", "rx0", "up"]);
    bed.in_sender(|| {
        let down = Command::new("ip").args(["link", "set", "tx0", "down"]).status().unwrap();
        assert!(down.success());
    });
    said(&[&capture], &[], 1, "tx0 is down; `ip link set tx0 up` brings it up");
    let out = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["replay", "-i", "none0"])
        .arg(&capture)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(errors.contains("there is no interface none0; `ip link` lists them"), "{errors}");
}

#[test]
fn an_interface_without_ethernet_is_refused() {
    let Some(bed) = Bed::up("tun") else { return };
    let captures = Captures::new("tun");
    let capture = captures.frames("in.pcap", 10, 0);
    let made = bed.in_sender(|| {
        Command::new("ip").args(["tuntap", "add", "dev", "tun0", "mode", "tun"]).output().unwrap()
    });
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        skip(
            Need::Kernel,
            format_args!("an_interface_without_ethernet_is_refused needs a tun device: {why}"),
        );
        return;
    }
    let out = Command::new("ip")
        .args(["netns", "exec", &bed.sender(), env!("CARGO_BIN_EXE_netsniff")])
        .args(["replay", "-i", "tun0"])
        .arg(&capture)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(1), "{errors}");
    assert!(errors.contains("frames can be sent on Ethernet alone"), "{errors}");
}

/// Only one tag of 802.1Q has four bytes more than the MTU; without its tag a frame may be too short for one.
#[test]
fn frames_that_the_kernel_would_refuse_are_left_out() {
    let Some(bed) = Bed::up("tags") else { return };
    let captures = Captures::new("tags");
    let tagged = |ethertype: [u8; 2], len: usize| {
        let mut frame = vec![2; 12];
        frame.extend([ethertype[0], ethertype[1], 0, 5, 0x88, 0xb5]);
        frame.resize(len, 7);
        (0, frame, len)
    };
    let frames = [tagged([0x81, 0], 1518), tagged([0x88, 0xa8], 1518), tagged([0x88, 0xa8], 1514)];
    let capture = captures.write("tags.pcap", LinkType::ETHERNET, &frames);
    for way in ["af-xdp", "tx-ring", "sendmmsg"] {
        let replayed = replay(&bed, &[&capture], &["--way", way, "--json"]);
        assert_eq!((replayed.code, &replayed.json()["frames"]), (Some(3), &2.into()), "{way}");
    }
    let short = captures.write("short.pcap", LinkType::ETHERNET, &[tagged([0x81, 0], 16)]);
    for way in ["tx-ring", "sendmmsg"] {
        let replayed = replay(&bed, &[&short, &capture], &["--way", way, "--strip-vlan", "--json"]);
        assert_eq!((replayed.code, &replayed.json()["frames"]), (Some(3), &3.into()), "{way}");
    }
    // Two tags more than any interface takes: without them it is a frame of the longest kind.
    let mut double = [&[2; 12][..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 0x88, 0xb5]].concat();
    double.resize(1522, 7);
    let double = captures.write("double.pcap", LinkType::ETHERNET, &[(0, double, 1522)]);
    for way in ["af-xdp", "tx-ring", "sendmmsg"] {
        let replayed = replay(&bed, &[&double], &["--way", way, "--strip-vlan", "--json"]);
        assert_eq!((replayed.code, &replayed.json()["bytes"]), (Some(0), &1514.into()), "{way}");
    }
    // What is padded is sent as it was asked for.
    let padded = captures.write("cut.pcap", LinkType::ETHERNET, &[(0, vec![2; 60], 200)]);
    assert_eq!(replay(&bed, &[&padded], &[]).code, Some(0));
}

/// What is wrong with a capture is told once, however often it is read.
#[test]
fn damage_is_told_once() {
    let Some(bed) = Bed::up("damage") else { return };
    let captures = Captures::new("damage");
    let capture = captures.frames("in.pcap", 20, 1_000);
    let bytes = fs::read(&capture).unwrap();
    fs::write(&capture, &bytes[..bytes.len() - 7]).unwrap();
    for arguments in [&["--memory", "100", "--loop", "3", "--hosts", "2"][..], &["--loop", "3"]] {
        let replayed = replay(&bed, &[&capture], arguments);
        assert_eq!(replayed.code, Some(3), "{}", replayed.errors);
        assert_eq!(replayed.errors.matches("in.pcap").count(), 1, "{}", replayed.errors);
    }
}

/// What comes through a pipe comes but once, and so must fit.
#[test]
fn a_pipe_is_replayed_where_it_fits() {
    let Some(bed) = Bed::up("pipe") else { return };
    let captures = Captures::new("pipe");
    let capture = captures.frames("in.pcap", 20, 1_000);
    let fifo = captures.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let run = |arguments: &[&str]| {
        thread::scope(|scope| {
            let (from, to) = (&capture, &fifo);
            // Whoever reads may have enough before the end.
            scope.spawn(move || fs::write(to, fs::read(from).unwrap()));
            replay(&bed, &[&fifo], arguments)
        })
    };
    let whole = run(&["--json", "--loop", "2"]);
    assert_eq!((whole.code, &whole.json()["frames"]), (Some(0), &40.into()), "{}", whole.errors);
    let refused = run(&["--memory", "100"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.errors.contains("comes through a pipe exceeds --memory"), "{}", refused.errors);
}

/// The other end of the pair takes no long frames. An XDP socket loses them, and only the interface counts that; by
/// other ways the kernel says so, and they are offered again.
#[test]
fn frames_that_the_interface_loses_are_told() {
    let Some(bed) = Bed::up("lossy") else { return };
    let captures = Captures::new("lossy");
    let capture = captures.frames("in.pcap", 40, 1_000);
    bed.ip(&["link", "set", "rx0", "mtu", "1000"]);
    let run = |way: &str| {
        let replayed = replay(&bed, &[&capture], &["--way", way]);
        (replayed.code, format!("{}{}", replayed.output, replayed.errors))
    };
    let (code, said) = run("af-xdp");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("counted 10 fewer, refused or dropped 10"), "{said}");
    assert!(said.contains("10 frames did not get onto the wire: tx0 has not counted"), "{said}");
    assert!(said.contains("lost       10 frames, refused by the interface"), "{said}");
    for way in ["tx-ring", "sendmmsg"] {
        let (code, said) = run(way);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("Sent 2 frames") && said.contains("counted every frame"), "{said}");
        assert!(said.contains("the kernel takes no more frames for 2 s"), "{said}");
    }
}

/// A frame that the kernel has no room for is offered again while the next one is not due, and given up in time.
#[test]
fn a_refused_frame_does_not_wait_for_the_next_one() {
    let Some(bed) = Bed::up("refused") else { return };
    let captures = Captures::new("refused");
    let frame = |len: usize| probe::frame(len + 4, 3).unwrap();
    let minute = 60_000_000_000;
    let frames = [(0, frame(1_400), 1_400), (minute, frame(100), 100)];
    let capture = captures.write("in.pcap", LinkType::ETHERNET, &frames);
    bed.ip(&["link", "set", "rx0", "mtu", "1000"]);
    for way in ["tx-ring", "sendmmsg"] {
        let begin = Instant::now();
        let replayed = replay(&bed, &[&capture], &["--way", way]);
        assert_eq!(replayed.code, Some(1), "{}", replayed.errors);
        assert!(replayed.errors.contains("takes no more frames for 2 s"), "{}", replayed.errors);
        assert!(begin.elapsed() < Duration::from_secs(20), "{way}: {:?}", begin.elapsed());
    }
}

/// Whose interface goes away gets a report of what was sent until then.
#[test]
fn an_interface_that_goes_away_ends_the_run_with_its_report() {
    let Some(bed) = Bed::up("away") else { return };
    let captures = Captures::new("away");
    let capture = captures.frames("in.pcap", 100, 1_000_000);
    thread::scope(|scope| {
        let replayed =
            scope.spawn(|| replay(&bed, &[&capture], &["--loop", "0", "--duration", "20s"]));
        thread::sleep(Duration::from_secs(1));
        bed.ip(&["link", "del", "rx0"]);
        let replayed = replayed.join().unwrap();
        assert_eq!(replayed.code, Some(1), "{}", replayed.errors);
        assert!(replayed.errors.contains("cannot send"), "{}", replayed.errors);
        // The bytes of frames that were made and not taken are not counted as sent.
        assert!(replayed.output.contains(" on tx0, and "), "{}", replayed.output);
        assert!(!replayed.output.contains("  rate "), "{}", replayed.output);
        assert!(
            replayed.output.contains("gone: what it counted is not known"),
            "{}",
            replayed.output
        );
    });
}

#[test]
fn without_the_right_to_it_the_way_to_get_it_is_told() {
    let Some(bed) = Bed::up("right") else { return };
    if !has_program(
        "setpriv",
        "without_the_right_to_it_the_way_to_get_it_is_told needs setpriv of util-linux",
    ) {
        return;
    }
    let captures = Captures::new("right");
    let capture = captures.frames("in.pcap", 10, 1_000);
    let run = |capabilities: &str| {
        let out = Command::new("ip")
            .args(["netns", "exec", &bed.sender(), "setpriv", "--inh-caps", capabilities])
            .args(["--bounding-set", capabilities, env!("CARGO_BIN_EXE_netsniff")])
            .args(["replay", "-i", "tx0"])
            .arg(&capture)
            .output()
            .unwrap();
        (
            out.status.code(),
            String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned(),
        )
    };
    let (code, said) = run("-all");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("CAP_NET_RAW") && said.contains("setcap cap_net_raw+ep"), "{said}");
    let (code, said) = run("-all,+net_raw");
    assert_eq!(code, Some(0), "one right is enough: {said}");
}
