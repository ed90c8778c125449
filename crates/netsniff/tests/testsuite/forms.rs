//! The command line of NetSniff: an analysis without the name of a command, `-v` and `-p`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");
/// What begins the sentence about an interface of this name.
const NO_INTERFACE: &str = "nosuchif0";

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("netsniff-forms-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Exit code, output and errors of a run in a folder.
fn run(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    let run = command.args(words).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

/// The logs of a folder, by name.
fn logs(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let log = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    files.map(log).collect()
}

#[test]
fn every_form_without_a_command_is_an_analysis() {
    let folder = Folder::new("forms");
    fs::copy(OFFICE, folder.0.join("office.pcapng")).unwrap();
    // A name that a command could have.
    fs::copy(OFFICE, folder.0.join("office-1")).unwrap();
    let analyze = |words: &[&str]| {
        let _ = fs::remove_dir_all(folder.0.join("logs"));
        let (code, output, errors) = run(&folder.0, words);
        assert_eq!((code, errors.as_str()), (0, ""), "{words:?}");
        assert!(output.is_empty() || output.starts_with("INPUT\n"), "{words:?}: {output}");
        logs(&folder.0.join("logs"))
    };
    let whole = analyze(&["analyze", "office.pcapng", "-o", "logs"]);
    let part = analyze(&["analyze", "-r", "office.pcapng", "-o", "logs", "udp", "port", "53"]);
    assert!(whole.len() > 10 && whole["conn.log"] != part["conn.log"]);
    for (words, expected) in [
        (&["office.pcapng", "-o", "logs"] as &[&str], &whole),
        (&["office-1", "-d", "logs"], &whole),
        (&["./office.pcapng", "-q", "-d", "logs"], &whole),
        (&["-r", "office.pcapng", "-d", "logs"], &whole),
        (&["-d", "logs", "-r", "office.pcapng", "udp", "port", "53"], &part),
        (&["-q", "-p", "pid", "-d", "logs", "-r", "office.pcapng"], &whole),
        (&["--output", "logs", "--", "office.pcapng"], &whole),
    ] {
        assert!(&analyze(words) == expected, "{words:?}");
    }
    let all = &["-ag", "-m", "nullip", "-s", "1", "-d", "logs", "-r", "office.pcapng", "tcp"];
    let told = &analyze(all)["conn.log"];
    assert!(told.contains("\t0.0.0.0\t") && !told.contains("192.0.2.11"), "{told}");
}

#[test]
fn a_command_stays_one_and_a_mistyped_one_is_told() {
    let folder = Folder::new("words");
    // A file does not take the place of a command of its name.
    for name in ["info", "schema"] {
        fs::copy(OFFICE, folder.0.join(name)).unwrap();
    }
    let (code, output, _) = run(&folder.0, &["schema", "--help"]);
    assert!(code == 0 && output.contains("netsniff schema"), "{output}");
    let (code, output, _) = run(&folder.0, &["./info"]);
    assert!(code == 0 && output.starts_with("INPUT\n  ./info, pcapng"), "{output}");
    for (words, code, expected) in [
        (&["analyse"] as &[&str], 2, "a similar subcommand exists: 'analyze'"),
        (&["capture"], 2, "unrecognized subcommand 'capture'"),
        (&["missing.pcap"], 1, "missing.pcap: cannot open: No such file"),
        (&["./missing"], 1, "./missing: cannot open: No such file"),
        (&["."], 1, "a directory, not a capture file"),
        (&["-v"], 2, "no capture file is named"),
        (&["-r", "info", "udp", "and", "tpc"], 2, "column 9"),
        (&["-r", "info", "-i", NO_INTERFACE], 2, "-i and -r exclude each other"),
        (&["-i", NO_INTERFACE, "tcp", "prt", "80"], 2, "found \"prt\""),
        (&["-i", NO_INTERFACE], 1, NO_INTERFACE),
        (&["-qv", "info"], 2, "cannot be used with"),
        (&["--no-such", "info"], 2, "unexpected argument '--no-such'"),
        (&[], 2, "netsniff [OPTIONS] FILES"),
    ] {
        let (found, output, errors) = run(&folder.0, words);
        assert_eq!((found, output.as_str()), (code, ""), "{words:?}: {errors}");
        assert!(errors.contains(expected), "{words:?} says {errors}");
    }
    let version = run(&folder.0, &["-V"]);
    assert!(version.0 == 0 && version.1.starts_with("netsniff "), "{version:?}");
}

#[test]
fn a_verbose_run_says_what_it_opens_and_each_log_with_its_rows() {
    let folder = Folder::new("verbose");
    let (code, output, errors) =
        run(&folder.0, &["-v", "--workers", "2", "-d", "logs", "-r", OFFICE, "tcp", "port", "80"]);
    assert_eq!(code, 0);
    assert!(output.starts_with("INPUT\n"), "{output}");
    let lines: Vec<_> = errors.lines().collect();
    assert!(lines.iter().all(|line| line.starts_with("netsniff: ")), "{errors}");
    for expected in [
        "office.pcapng: pcapng, 2.47 MB",
        "netsniff: filter: tcp port 80",
        "netsniff: analysing in 2 threads, to the depth protocols; up to ",
        "netsniff: logs go to logs as tsv",
        "netsniff: writing logs/http.log",
    ] {
        assert!(errors.contains(expected), "{expected}: {errors}");
    }
    for (name, log) in logs(&folder.0.join("logs")).iter().filter(|(name, _)| name.ends_with("log"))
    {
        let rows = log.lines().filter(|line| !line.starts_with('#')).count();
        let said = format!("netsniff: wrote logs/{name}: {rows} row");
        assert_eq!(errors.matches(&said).count(), 1, "{said}: {errors}");
    }
    let (_, _, errors) = run(&folder.0, &["-va", "-d", "-", "-r", OFFICE, "host", "192.0.2.11"]);
    assert!(errors.contains("rows of all logs go to standard output as json"), "{errors}");
    assert!(errors.contains("netsniff: pseudonyms: "), "{errors}");
    assert!(!errors.contains("192.0.2.11"), "{errors}");
}

#[test]
fn a_pidfile_is_held_while_files_are_read() {
    for words in [&["-r"] as &[&str], &["analyze"], &["receive"]] {
        let folder = Folder::new("pid");
        let pipe = folder.0.join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.args(words).args(["pipe", "-p", "pid", "-q"]).current_dir(&folder.0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // Opening waits for the reader, which has written its number by then.
        let writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        let pid = fs::read_to_string(folder.0.join("pid")).unwrap();
        assert_eq!(pid, format!("{}\n", child.id()), "{words:?}");
        let (code, _, errors) = run(&folder.0, &["-r", OFFICE, "-p", "pid"]);
        let expected = format!("the process {} runs already and holds pid", child.id());
        assert!(code == 1 && errors.contains(&expected), "{errors}");
        drop(writer);
        // An empty file is no capture.
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(!folder.0.join("pid").exists(), "{words:?}");
    }
}
