//! `netsniff extcap`: what Wireshark is told, and extractions that the real tshark reads.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use netsniff_testing::{has_program, log};

use crate::generated::Folder;

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn office() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng").to_owned()
}

/// Wireshark runs a link of any name, with options alone, and with values behind equals signs or apart.
#[test]
fn a_link_of_another_name_answers_wireshark() {
    let folder = Folder::new("extcap-link");
    let link = folder.path("sniffer");
    symlink(NETSNIFF, &link).unwrap();
    let ask = |words: &[&str]| Command::new(&link).args(words).output().unwrap();
    let told = said(&ask(&["--extcap-interfaces", "--extcap-version=4.2"]));
    assert!(told.starts_with("extcap {version="), "{told}");
    assert!(told.contains("interface {value=netsniff-extract}"), "{told}");
    assert!(told.contains("interface {value=netsniff-live-lo}"), "{told}");
    for interface in
        [&["--extcap-interface", "netsniff-extract"][..], &["--extcap-interface=netsniff-extract"]]
    {
        let told = said(&ask(&[&["--extcap-config"], interface].concat()));
        assert!(told.contains("{call=--where}") && told.contains("{call=--file}"), "{told}");
        assert!(
            said(&ask(&[&["--extcap-dlts"], interface].concat())).starts_with("dlt {number=1}")
        );
        // Whatever is printed says that a filter is none.
        let filter =
            |text: &'static str| ask(&[interface, &["--extcap-capture-filter", text]].concat());
        assert_eq!(said(&filter("tcp port 80")), "");
        assert!(said(&filter("tcp prt 80")).contains("prt"));
    }
    let run = ask(&["--extcap-config", "--extcap-interface", "eth0"]);
    assert!(run.status.code() == Some(2) && said(&run).contains("there is no interface eth0"));
    let run = Command::new(NETSNIFF).arg("extcap").output().unwrap();
    assert!(run.status.code() == Some(2) && said(&run).contains("--install"));
}

/// TShark with a folder of programs of its own, and no settings of the user.
fn tshark(home: &Path, words: &[&str]) -> Output {
    let config = home.join("config");
    Command::new("tshark")
        .args(words)
        .envs([("XDG_CONFIG_HOME", &config), ("HOME", &home.to_owned())])
        .output()
        .unwrap()
}

#[test]
fn tshark_lists_the_interfaces_once_they_are_installed() {
    if !has_program("tshark", "nobody asked netsniff extcap") {
        return;
    }
    let folder = Folder::new("extcap-install");
    let home = folder.path("");
    let install = |word: &str| {
        let run = Command::new(NETSNIFF)
            .args(["extcap", word])
            .envs([("XDG_CONFIG_HOME", home.join("config")), ("HOME", home.clone())])
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", said(&run));
        said(&run)
    };
    assert!(!said(&tshark(&home, &["-D"])).contains("netsniff-extract"));
    let told = install("--install");
    assert!(told.contains(home.to_str().unwrap()) && told.contains(" leads to "), "{told}");
    let listed = said(&tshark(&home, &["-D"]));
    assert!(listed.contains("netsniff-extract (netsniff: packets of connections)"), "{listed}");
    assert!(listed.contains("netsniff-live-lo (netsniff: lo with its losses)"), "{listed}");
    let types = said(&tshark(&home, &["-L", "-i", "netsniff-live-lo"]));
    assert!(types.contains("ETHERNET"), "{types}");
    assert!(install("--uninstall").contains("is removed"));
    assert!(!said(&tshark(&home, &["-D"])).contains("netsniff-extract"));
}

/// The packets that tshark gets are those that `netsniff extract` writes, with their comments.
#[test]
fn tshark_reads_the_packets_of_connections() {
    if !has_program("tshark", "nobody read an extraction by extcap") {
        return;
    }
    let folder = Folder::new("extcap-extract");
    let home = folder.path("");
    let programs = home.join("config/wireshark/extcap");
    let run = Command::new(NETSNIFF)
        .args(["extcap", "--install", "--dir"])
        .arg(&programs)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", said(&run));
    let (logs, office) = (folder.path("logs"), office());
    let words = ["analyze", "-q", &office, "-o", logs.to_str().unwrap()];
    assert!(Command::new(NETSNIFF).args(words).status().unwrap().success());
    let rows = log::read(&logs.join("conn.log")).unwrap();
    let is_dns = |row: &&_| log_field(row, "service") == "dns";
    let fields =
        ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len", "-e", "frame.comment"];
    for (setting, value, option, argument) in [
        ("uid", log_field(&rows[5], "uid").to_owned(), "--uid", None),
        ("communityid", log_field(&rows[9], "community_id").to_owned(), "--community-id", None),
        (
            "where",
            "service = 'dns'".to_owned(),
            "--where",
            Some(rows.iter().filter(is_dns).count()),
        ),
    ] {
        let written = folder.path("out.pcapng");
        let words = ["extract", "-q", &office, "-w", written.to_str().unwrap(), option, &value];
        assert!(Command::new(NETSNIFF).args(words).status().unwrap().success(), "{option}");
        let expected = tshark(&home, &[&["-r", written.to_str().unwrap()], &fields[..]].concat());
        let file = format!("extcap.netsniff_extract.file:{office}");
        let set = format!("extcap.netsniff_extract.{setting}:{value}");
        let live = ["-Q", "-i", "netsniff-extract", "-o", &file, "-o", &set];
        let found = tshark(&home, &[&live, &fields[..]].concat());
        let lines = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(lines(&expected).contains("uid=C"), "{option}: {}", said(&expected));
        assert_eq!(lines(&found), lines(&expected), "{option}: {}", said(&found));
        if let Some(connections) = argument {
            assert!(lines(&found).lines().count() >= connections && connections > 3);
        }
    }
    // A filter of the capture chooses among them; errors are told.
    let file = format!("extcap.netsniff_extract.file:{office}");
    let live = ["-Q", "-i", "netsniff-extract", "-o", &file, "-f", "udp port 53 and greater 100"];
    let found = tshark(&home, &[&live[..], &["-T", "fields", "-e", "frame.len"]].concat());
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let sizes: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(sizes.len() > 3 && sizes.iter().all(|size| *size >= 100), "{}", said(&found));
}

fn log_field<'a>(row: &'a log::Row, name: &str) -> &'a str {
    row.get(name).map_or("-", String::as_str)
}

#[test]
fn a_folder_without_what_to_do_with_it_is_refused() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap();
        (output.status.code(), said(&output))
    };
    let (code, text) = run(&["extcap", "--dir", "/nowhere"]);
    assert!(code == Some(2) && text.contains("--install"), "{text}");
    let (code, text) = run(&["extcap", "--install", "--uninstall", "--dir", "/nowhere"]);
    assert!(code == Some(2) && text.contains("cannot be used with"), "{text}");
}
