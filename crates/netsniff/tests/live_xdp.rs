//! Captures by an XDP program that copies, from the command line and in the sandbox, on a veth pair of this machine.
//! Needs root; says so where it is missing.

mod live_bed;

use live_bed::{Bed, Last, Log, Run, Sent};
use netsniff_testing::{Need, skip};

const COPY: [&str; 2] = ["--backend", "xdp-copy"];

#[test]
fn what_the_filter_refuses_is_counted_and_the_books_close() {
    let Some(bed) = Bed::up("xdpbooks") else { return };
    let run = Run::start(&bed, "xdpbooks", &[&COPY[..], &["-f", "host 198.18.0.3"]].concat());
    bed.send(&Sent { count: 2560, size: 512, rate: 50_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let books = Last::read(&done.logs, "interface");
    let (arrived, filtered) = (books.number("arrived"), books.number("filtered"));
    assert_eq!((arrived, books.number("delivered"), filtered), (2560, 40, 2520));
    books.closes();
    let conn = Log::read(&done.logs.join("conn.log"));
    assert_eq!(conn.len(), 4, "four flows have this address");
    for word in ["XDP program in the driver (native)", "filter in the kernel", "xdp-copy"] {
        assert!(done.errors.contains(word), "{word} in {}", done.errors);
    }
}

#[test]
fn drops_of_the_ring_are_in_the_books_and_in_the_gaps() {
    let Some(bed) = Bed::up("xdpstall") else { return };
    let run = Run::start(&bed, "xdpstall", &[&COPY[..], &["--ring", "128K"]].concat());
    bed.send(&Sent { count: 200, size: 200, rate: 10_000 });
    run.pause();
    bed.send(&Sent { count: 5000, size: 200, rate: 50_000 });
    run.resume();
    std::thread::sleep(std::time::Duration::from_millis(300));
    bed.send(&Sent { count: 200, size: 200, rate: 10_000 });
    let done = run.end();
    let books = Last::read(&done.logs, "interface");
    let dropped = books.number("ring_dropped");
    books.closes();
    assert_eq!(books.number("arrived"), 5400);
    assert!(dropped > 3000, "{dropped}");
    let gaps = Log::read(&done.logs.join("gaps.log"));
    let told = (0..gaps.len()).map(|row| gaps.value(row, "packets").parse::<u64>().unwrap());
    assert_eq!(told.sum::<u64>(), dropped, "each lost packet has its place");
}

#[test]
fn a_recording_has_every_packet() {
    let Some(bed) = Bed::up("xdprecord") else { return };
    let run = Run::record(&bed, "xdprecord", "out.pcapng", &COPY);
    bed.send(&Sent { count: 3000, size: 300, rate: 30_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let file = std::fs::File::open(done.file("out.pcapng")).unwrap();
    let mut reader = netsniff_pcapfile::Reader::new(file).unwrap();
    let (mut batch, mut packets) = (netsniff_packet::Batch::default(), 0);
    loop {
        use netsniff_packet::{Progress, Source as _};
        let progress = reader.read_batch(&mut batch).unwrap();
        packets += batch.iter().count();
        if progress == Progress::End {
            break;
        }
    }
    assert_eq!((packets, reader.damage_count()), (3000, 0));
}

#[test]
fn what_cannot_be_done_is_said_before_anything_begins() {
    let run = |more: &[&str]| {
        let arguments = [&["analyze", "-i", "lo"][..], &COPY, more].concat();
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(!out.status.success());
        String::from_utf8_lossy(&out.stderr).into_owned()
    };
    let gone = run(&["--if-gone", "wait"]);
    assert!(gone.contains("leave out --if-gone wait"), "{gone}");
    let workers = run(&["--workers", "2"]);
    assert!(workers.contains("leave out --workers"), "{workers}");
    let out = run(&["--direction", "out"]);
    assert!(out.contains("leave out --direction out"), "{out}");
}

/// Runs an analysis for a second with these capabilities and those that becoming another user takes, and returns
/// the last books of the interface; `None`, said loudly, where that cannot be tried here.
fn with_rights(bed: &Bed, test: &str, rights: &str, arguments: &[&str]) -> Option<Last> {
    let rights = format!("--bounding-set=-all,+chown,+fowner,+setuid,+setgid,{rights}");
    let logs = std::env::temp_dir().join(format!("nst-{test}-{}", std::process::id()));
    let out = std::process::Command::new("ip")
        .args(["netns", "exec", &bed.receiver(), "setpriv", &rights, "--inh-caps=-all"])
        .arg(env!("CARGO_BIN_EXE_netsniff"))
        .args(["analyze", "-i", "rx0", "--duration", "1s", "-o"])
        .arg(&logs)
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    if said.contains("setpriv") {
        skip(Need::Program("setpriv"), format_args!("{test} needs setpriv: {said}"));
        return None;
    }
    assert!(out.status.success(), "{said}");
    let last = Last::read(&logs, "interface");
    std::fs::remove_dir_all(&logs).unwrap();
    Some(last)
}

#[test]
fn the_rights_that_are_named_are_enough() {
    let Some(bed) = Bed::up("xdprights") else { return };
    let filter = ["-f", "udp port 53 or vlan 7"];
    let xdp = "+bpf,+net_admin,+net_raw";
    let arguments = [&COPY[..], &filter].concat();
    if let Some(last) = with_rights(&bed, "xdprights", xdp, &arguments) {
        assert_eq!((last.text("filtered"), last.text("unexplained")), ("0", "0"));
    }
    // A packet socket counts what its filter refuses with CAP_BPF, and works without.
    if let Some(last) = with_rights(&bed, "bpfrights", "+net_raw,+bpf", &filter) {
        assert_eq!((last.text("filtered"), last.text("unexplained")), ("0", "0"));
    }
    if let Some(last) = with_rights(&bed, "rawrights", "+net_raw", &filter) {
        assert_eq!((last.text("filtered"), last.text("unexplained")), ("-", "-"));
    }
}
