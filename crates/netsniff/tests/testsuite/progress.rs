//! Progress in a terminal: it is there while a command works, and gone before anything else is.

use std::fs;
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use netsniff_testing::{Need, skip};

use crate::generated::Folder;
use crate::terminal::Tmux;

/// What runs.
const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");
/// Packets that keep a command busy for seconds.
const MANY: u32 = if cfg!(debug_assertions) { 800_000 } else { 6_000_000 };
/// Bytes of a packet with its record header.
const RECORD: usize = 16 + 60;

/// A capture of many packets of UDP, and how many bytes a line says that it has.
fn many(folder: &Folder) -> String {
    let mut file = fs::File::create(folder.path("many.pcap")).unwrap();
    let head = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1];
    file.write_all(&head.map(u32::to_le_bytes).concat()).unwrap();
    let mut frame = [0; 60];
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[17] = 46;
    frame[23] = 17;
    frame[26..34].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 1]);
    frame[34..40].copy_from_slice(&[0, 9, 0, 9, 0, 26]);
    let mut records = Vec::with_capacity(RECORD * 1000);
    for number in 0..MANY {
        let fields = [1_800_000_000 + number / 10_000, number % 10_000 * 100, 60, 60];
        records.extend(fields.map(u32::to_le_bytes).concat());
        frame[33] = number as u8;
        records.extend(frame);
        if number % 1000 == 999 {
            file.write_all(&records).unwrap();
            records.clear();
        }
    }
    format!(" of {}, ", netsniff_console::number::bytes(24 + RECORD as u64 * u64::from(MANY)))
}

/// Runs a line of a shell in that folder, in a terminal that goes on to tell the exit code.
fn run(name: &str, folder: &Folder, line: &str) -> Option<Tmux> {
    let folder = folder.path("").display().to_string();
    Tmux::start(name, &format!("cd {folder}; trap : INT; {line}; echo ended $?; sleep 100"))
}

#[test]
fn a_bar_is_there_while_files_are_read_and_not_afterwards() {
    let folder = Folder::new("progress");
    let size = many(&folder);
    for (name, line) in [
        ("analyze", "analyze -q many.pcap -o logs"),
        ("sort", "sort -q many.pcap many.pcap out.pcap"),
        ("anonymize", "anonymize -q many.pcap out.pcap"),
    ] {
        // Quiet ones show nothing at all.
        let loud = line.replace(" -q", "");
        let line = format!(
            "{NETSNIFF} {line}; echo quiet; {NETSNIFF} {loud} >said; {NETSNIFF} {loud} >said 2>errors"
        );
        let Some(tmux) = run(&format!("bar{name}"), &folder, &line) else { return };
        let size = if name == "sort" { " packets" } else { &size };
        let screen = tmux.await_screen(&["quiet", "#", "B of ", size, "B/s, ", " packets"]);
        let mut lines = screen.lines().filter(|line| !line.is_empty());
        assert_eq!(lines.next(), Some("quiet"), "{screen}");
        assert!(lines.next().unwrap().contains(" of ") && lines.next().is_none(), "{screen}");
        let screen = tmux.await_screen(&["ended 0"]);
        assert_eq!(screen.trim(), "quiet\nended 0");
        assert_eq!(fs::read(folder.path("errors")).unwrap(), b"", "{name}");
    }
}

#[test]
fn a_pipe_has_no_bar() {
    let folder = Folder::new("progress-pipe");
    let size = many(&folder);
    let slow = "{ head -c 3000000; sleep 1; head -c 3000000; sleep 1; cat; } < many.pcap";
    let Some(tmux) = run("pipe", &folder, &format!("{slow} | {NETSNIFF} info - >said")) else {
        return;
    };
    let screen = tmux.await_screen(&[" MB, ", "B/s, ", " packets"]);
    assert!(!screen.contains(" of ") && !screen.contains('#'), "{size} {screen}");
    let screen = tmux.await_screen(&["ended 0"]);
    assert_eq!(screen.trim(), "ended 0");
}

#[test]
fn messages_stand_above_it() {
    let folder = Folder::new("progress-message");
    many(&folder);
    let line = format!(
        "head -c 10000000 many.pcap >cut.pcap; {NETSNIFF} sort many.pcap many.pcap cut.pcap many.pcap out.pcap >said"
    );
    let Some(tmux) = run("message", &folder, &line) else { return };
    let screen = tmux.await_screen(&["netsniff: cut.pcap: ", "#", " left"]);
    let lines: Vec<_> = screen.lines().filter(|line| !line.is_empty()).collect();
    let (last, above) = lines.split_last().unwrap();
    assert!(last.starts_with('#') && above[0].starts_with("netsniff: cut.pcap"), "{screen}");
    assert!(above.iter().all(|line| !line.contains('#')), "{screen}");
    let screen = tmux.await_screen(&["ended 3"]);
    assert!(screen.starts_with("netsniff: cut.pcap") && !screen.contains('#'), "{screen}");
}

#[test]
fn signals_take_it_away() {
    let folder = Folder::new("progress-signal");
    let size = many(&folder);
    for (name, arguments) in
        [("analyze", "analyze many.pcap -o logs"), ("anonymize", "anonymize many.pcap out.pcap")]
    {
        let line = format!("{NETSNIFF} {arguments} >said");
        let Some(tmux) = run(&format!("signal{name}"), &folder, &line) else { return };
        tmux.await_screen(&["#", &size]);
        tmux.keys(&["C-c"]);
        let screen = tmux.await_screen(&["ended 130"]);
        assert!(!screen.contains('#') && !screen.contains(" of "), "{screen}");
    }
}

/// A report reads captures twice, and both times a bar tells how far it is.
#[test]
fn a_report_has_a_bar_before_it_analyses() {
    let folder = Folder::new("progress-report");
    many(&folder);
    let scratch = folder.path("scratch");
    fs::create_dir(&scratch).unwrap();
    let captures = "many.pcap ".repeat(10);
    let line = format!("TMPDIR={} {NETSNIFF} report {captures} -o page.html", scratch.display());
    let Some(tmux) = run("report", &folder, &line) else { return };
    let logs = || fs::read_dir(&scratch).unwrap().count();
    let screen = tmux.await_screen(&["#", " of ", "B/s, ", " packets"]);
    assert_eq!(logs(), 0, "the analysis has begun: {screen}");
    // That of the analysis begins anew.
    while logs() == 0 {
        thread::sleep(Duration::from_millis(50));
    }
    tmux.await_screen(&["#", " of ", "B/s, ", " packets"]);
    tmux.keys(&["C-c"]);
    let screen = tmux.await_screen(&["ended 130"]);
    assert!(!screen.contains('#') && !screen.contains(" of "), "{screen}");
    assert_eq!(logs(), 0);
}

/// What does not fit into memory is read once before it is sent where its own rate must be known, and that takes long.
#[test]
fn a_replay_of_more_than_fits_has_a_bar_before_it_sends() {
    if !nix::unistd::geteuid().is_root() {
        skip(Need::Root, "the bar of a replay was not looked at");
        return;
    }
    let folder = Folder::new("progress-replay");
    many(&folder);
    let captures = "many.pcap ".repeat(10);
    let of = |options: &str| {
        let replay = format!(
            "{NETSNIFF} replay -i none0 --memory 4K --pps 1000 --keep-gaps {options} {captures} >said"
        );
        let wire = "ip link add none0 type veth peer name none1 && ip link set none0 up && ip link set none1 up";
        format!("unshare -n sh -c '{wire} && exec {replay}'")
    };
    let Some(tmux) = run("replay", &folder, &of("")) else { return };
    tmux.await_screen(&["#", " of ", "B/s, ", " packets"]);
    tmux.keys(&["C-c"]);
    let screen = tmux.await_screen(&["ended 130"]);
    assert!(!screen.contains('#') && !screen.contains(" of "), "{screen}");
    // Nothing is told where that is asked for.
    let Some(tmux) = run("replayquiet", &folder, &of("-q")) else { return };
    thread::sleep(Duration::from_secs(2));
    assert_eq!(tmux.call(&["capture-pane", "-p"]).trim(), "");
    tmux.keys(&["C-c"]);
    tmux.await_screen(&["ended 130"]);
}
