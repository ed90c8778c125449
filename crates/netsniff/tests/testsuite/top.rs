//! `netsniff top` on files and logs: what a screen says is what the logs have, and in a terminal keys do what they say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::recorded::recorded;
use crate::terminal::Tmux;
use crate::zeek::corpus::{Scratch, analyze};
use crate::zeek::log;

fn top(path: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.env("LC_ALL", "C.UTF-8");
    command.arg("top").arg(path).args(arguments).output().unwrap()
}

/// The rows of the table on a screen that is large enough for all of them.
fn table(path: &Path, arguments: &[&str]) -> Vec<Vec<String>> {
    let out = top(path, &[&["--once", "--size", "200x400"], arguments].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    let rows = text.lines().skip(7).take_while(|line| !line.is_empty());
    rows.map(|row| row.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn hosts_and_connections_are_those_of_the_logs() {
    for name in ["office.pcapng", "protocols.pcapng"] {
        let scratch = Scratch::new("top-once");
        let all = ["--series", "1s", "--series-hosts", "100000", "--series-conns", "100000"];
        analyze(&recorded(name), scratch.path(), &all);
        let conn = log::read(&scratch.path().join("conn.log")).unwrap();
        let uids: BTreeSet<_> = conn.iter().map(|row| row["uid"].clone()).collect();
        let shown = table(&recorded(name), &["--view", "connections"]);
        // Behind it is the process, which no file tells.
        assert!(shown.iter().all(|row| row.last().unwrap() == "-"));
        let uid = shown.iter().filter_map(|row| row.iter().nth_back(1).cloned());
        assert_eq!(uid.collect::<BTreeSet<_>>(), uids, "{name}");
        let series = log::read(&scratch.path().join("series.log")).unwrap();
        let hosts = table(&recorded(name), &[]);
        let mut compared = 0;
        for row in hosts {
            let of_host = series.iter().filter(|it| it["kind"] == "host" && it["host"] == row[0]);
            let packets = |it: &log::Row, column: &str| it[column].parse::<u64>().unwrap();
            let sum: u64 = of_host
                .map(|it| packets(it, "sent_packets") + packets(it, "received_packets"))
                .sum();
            if sum < 10_000 {
                assert_eq!(row[5], sum.to_string(), "{name} {row:?}");
                compared += 1;
            }
        }
        assert!(compared >= 10, "{name}: {compared} hosts");
        // The logs give the same screens as the capture.
        for view in ["hosts", "services", "connections"] {
            let arguments = ["--view", view];
            assert_eq!(
                table(&recorded(name), &arguments),
                table(scratch.path(), &arguments),
                "{name} {view}"
            );
        }
    }
}

#[test]
fn few_rows_are_told_to_be_the_least() {
    let all = table(&recorded("office.pcapng"), &[]);
    let some = table(&recorded("office.pcapng"), &["--hosts", "2"]);
    assert!(all.iter().flatten().all(|cell| !cell.starts_with('≥')), "{all:?}");
    assert!(some.iter().flatten().any(|cell| cell.starts_with('≥')), "{some:?}");
    for row in some.iter().filter(|row| !row[5].starts_with('≥')) {
        assert!(all.iter().any(|it| it[..6] == row[..6]), "{row:?} is said to be all");
    }
}

#[test]
fn what_cannot_be_shown_is_said() {
    let capture = recorded("office.pcapng");
    let empty = Scratch::new("top-empty");
    fs::create_dir_all(empty.path()).unwrap();
    let cases: [(&Path, &[&str], i32, &str); 5] = [
        (&capture, &[], 2, "is no terminal: --once prints"),
        (&capture, &["--once", "--where", "nothing = 3"], 2, "has no column \"nothing\""),
        (&capture, &["--once", "--sort", "nothing"], 2, "there is no column \"nothing\""),
        (empty.path(), &["--once"], 1, "has no log `series`"),
        (Path::new("/nonexistent.pcap"), &["--once"], 1, "cannot open"),
    ];
    for (path, arguments, code, said) in cases {
        let out = top(path, arguments);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(code), "{errors}");
        assert!(errors.contains(said), "{errors}");
        assert!(out.stdout.is_empty());
    }
}

/// What has an effect on live traffic alone, or on packets alone, is not passed over where there is none.
#[test]
fn what_has_no_effect_is_refused() {
    let capture = recorded("office.pcapng");
    let scratch = Scratch::new("top-refused");
    analyze(&capture, scratch.path(), &["--series", "1s", "--series-conns", "50"]);
    for path in [&*capture, scratch.path()] {
        let cases: [(&[&str], &str); 2] = [
            (&["--duration", "5s"], "'[FILES]...' cannot be used with '--duration <TIME>'"),
            (&["--view", "processes"], "is for live traffic, so name -i"),
        ];
        for (arguments, said) in cases {
            refused(path, arguments, said);
        }
    }
    let for_packets: [&[&str]; 5] = [
        &["-f", "tcp"],
        &["--interval", "2s"],
        &["--hosts", "5"],
        &["--conns", "5"],
        &["--", "--depth", "tcp"],
    ];
    for arguments in for_packets {
        refused(scratch.path(), arguments, "so name captures or -i");
        let out = top(&capture, &[&["--once"], arguments].concat());
        assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

fn refused(path: &Path, arguments: &[&str], said: &str) {
    let out = top(path, &[&["--once"], arguments].concat());
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{arguments:?}: {errors}");
    assert!(errors.contains(said), "{arguments:?}: {errors}");
    assert!(out.stdout.is_empty());
}

/// A screen has signs beyond ASCII where the locale has them, and so has the terminal.
#[test]
fn signs_are_those_that_can_be_shown() {
    let capture = recorded("office.pcapng");
    let once = |locale: [(&str, &str); 3]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.arg("top").arg(&capture).args(["--once", "--hosts", "2", "--size", "160x40"]);
        let out = command.env("TERM", "linux").envs(locale).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    let unicode = once([("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")]);
    assert!(unicode.contains("▼SENT") && unicode.contains('≥') && unicode.contains('█'));
    let ascii = once([("LC_ALL", "C"), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C.UTF-8")]);
    assert!(ascii.is_ascii() && ascii.contains("-SENT") && ascii.contains(">="), "{ascii}");
    let width = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
    assert_eq!(width(&unicode), width(&ascii));
    for term in ["linux", "dumb"] {
        let command =
            format!("TERM={term} {} top {}", env!("CARGO_BIN_EXE_netsniff"), capture.display());
        let Some(tmux) = Tmux::start(&format!("signs{term}"), &command) else { return };
        let screen = tmux.await_screen(&["read to its end", "23 hosts", "-SENT"]);
        assert!(screen.is_ascii(), "{term}: {screen}");
    }
}

#[test]
fn the_exit_code_is_that_of_the_analysis() {
    let scratch = Scratch::new("top-cut");
    fs::create_dir_all(scratch.path()).unwrap();
    let whole = fs::read(recorded("office.pcapng")).unwrap();
    let cut = scratch.path().join("cut.pcapng");
    fs::write(&cut, &whole[..whole.len() / 2 + 1]).unwrap();
    let out = top(&cut, &["--once"]);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{errors}");
    assert!(errors.contains("cut.pcapng"), "{errors}");
    assert!(String::from_utf8_lossy(&out.stdout).contains("SENT"));
}

#[test]
fn packed_logs_give_the_same_screen() {
    let scratch = Scratch::new("top-packed");
    let capture = recorded("office.pcapng");
    let options = ["--series", "1s", "--series-conns", "200", "--series-hosts", "200"];
    analyze(&capture, scratch.path(), &options);
    let shown = table(scratch.path(), &[]);
    for name in ["series.log", "conn.log"] {
        let path = scratch.path().join(name);
        let plain = fs::read(&path).unwrap();
        assert!(Command::new("gzip").arg(&path).status().unwrap().success());
        assert_eq!(table(scratch.path(), &[]), shown);
        fs::remove_file(path.with_extension("log.gz")).unwrap();
        fs::write(path.with_extension("log.zst"), zstd::encode_all(&*plain, 19).unwrap()).unwrap();
        assert_eq!(table(scratch.path(), &[]), shown);
    }
    fs::rename(scratch.path().join("series.log.zst"), scratch.path().join("series.log.xz"))
        .unwrap();
    let out = top(scratch.path(), &["--once"]);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(errors.contains("series.log.xz") && errors.contains("a form that is not"), "{errors}");
}

#[test]
fn keys_in_screens_out() {
    let scratch = Scratch::new("top-extract");
    fs::create_dir_all(scratch.path()).unwrap();
    let command = format!(
        "cd {}; {} top {}; echo ended $?; stty -a | grep -ow -e '-*icanon' -e '-*echo'; sleep 100",
        scratch.path().display(),
        env!("CARGO_BIN_EXE_netsniff"),
        recorded("office.pcapng").display()
    );
    let Some(tmux) = Tmux::start("top", &command) else { return };
    let first = tmux.await_screen(&["read to its end", "23 hosts", "▼SENT", "2001:db8:2::80"]);
    assert_eq!(first.lines().count(), 24);
    tmux.keys(&["Down", "Enter"]);
    tmux.await_screen(&["16 connections of 193, where id.orig_h = '198.51.100.80'"]);
    tmux.keys(&["Enter"]);
    tmux.await_screen(&["10 rows of C0xKprc12Yk5xOCE9a", "▲TIME"]);
    tmux.keys(&["p"]);
    tmux.await_screen(&["packets of C0xKprc12Yk5xOCE9a", "eth:ip:tcp", "[SYN]", "0000  02 00"]);
    tmux.keys(&["Escape", "e", "Enter"]);
    tmux.await_screen(&["extracted to C0xKprc12Yk5xOCE9a.pcapng"]);
    let extracted = scratch.path().join("C0xKprc12Yk5xOCE9a.pcapng");
    let again = table(&extracted, &["--view", "connections"]);
    assert_eq!(again.len(), 1);
    assert!(again[0].contains(&"C0xKprc12Yk5xOCE9a".to_owned()));
    tmux.keys(&["Escape", "Escape", "2"]);
    tmux.await_screen(&["12 services", "http"]);
    tmux.keys(&["4"]);
    tmux.await_screen(&["dropped, as the capture tells", "unavailable", "18.8 kB"]);
    tmux.keys(&["?"]);
    tmux.await_screen(&["Keys and signs"]);
    tmux.keys(&["x", "3", "/", "id.resp_p = 22", "Enter"]);
    tmux.await_screen(&["10 connections of 193, where id.resp_p = 22"]);
    tmux.call(&["resize-window", "-x", "160", "-y", "50"]);
    tmux.await_screen(&["UID", "QUALITY", "DURATION"]);
    tmux.keys(&["C-c"]);
    let last = tmux.await_screen(&["ended 0"]);
    assert!(
        !last.contains("-icanon") && !last.contains("-echo") && last.contains("icanon"),
        "{last}"
    );
    assert!(fs::metadata(extracted).unwrap().len() > 1000);
}
