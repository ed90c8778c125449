//! What a process that captures gives up: tried from within, and seen from outside. Most of it needs root,
//! and says so where that is missing.

mod live_bed;

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use clap::Parser as _;
use live_bed::{Bed, Log, Run, Sent};
use netsniff::sandbox::{Outputs, SafetyArgs};
use netsniff_testing::{Need, has_program, skip};
use nix::errno::Errno;

/// The overflow user and group, whom every system knows as nobody.
const NOBODY: u32 = 65_534;

/// Names the directory to a process that is to confine itself and to try what it can.
const CONFINED: &str = "NETSNIFF_TEST_CONFINED";

/// A directory of its own, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("netsniff-sandbox-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_root(test: &str) -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip(Need::Root, format_args!("{test} needs root, to see it given up"));
    }
    is_root
}

#[derive(clap::Parser)]
struct Arguments {
    /// Which the others ask for.
    #[arg(long = "interface", id = "interfaces", group = "opened")]
    _interfaces: Vec<String>,
    #[command(flatten)]
    safety: SafetyArgs,
}

/// What happened, as one word: `ok` or the number of the error.
fn word<T>(result: io::Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(error) => error.raw_os_error().map_or_else(|| error.to_string(), |n| n.to_string()),
    }
}

fn errno<T>(result: nix::Result<T>) -> String {
    word(result.map_err(io::Error::from))
}

/// What a process tries that was taken over. Prints a line for each.
fn try_all(directory: &Path) {
    let tell = |name: &str, result: String| println!("tried {name}: {result}");
    tell("write within", word(fs::write(directory.join("logs/within"), "x")));
    tell("read within", word(fs::read(directory.join("logs/within"))));
    tell(
        "rename within",
        word(fs::rename(directory.join("logs/within"), directory.join("logs/a"))),
    );
    tell("remove within", word(fs::remove_file(directory.join("logs/a"))));
    tell("link within", word(std::os::unix::fs::symlink("/", directory.join("logs/link"))));
    tell("read passwd", word(fs::File::open("/etc/passwd")));
    tell("read beside", word(fs::File::open(directory.join("beside"))));
    tell("write beside", word(fs::OpenOptions::new().write(true).open(directory.join("beside"))));
    tell("list", word(fs::read_dir("/")));
    tell("memory", word(fs::File::open("/proc/self/mem")));
    tell("exec", word(Command::new("/bin/true").stdin(Stdio::inherit()).status()));
    // Nobody is traced, so that without a filter it is ESRCH.
    tell("ptrace", errno(nix::sys::ptrace::cont(nix::unistd::getpid(), None)));
    tell("unshare", errno(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER)));
    tell("chroot", errno(nix::unistd::chroot("/")));
    let none: Option<&str> = None;
    let flags = nix::mount::MsFlags::empty();
    tell("mount", errno(nix::mount::mount(none, "/mnt", Some("tmpfs"), flags, none)));
    tell("listen", word(TcpListener::bind("127.0.0.1:0")));
    tell("thread", word(std::thread::Builder::new().spawn(|| ()).map(|it| it.join().is_ok())));
    tell("root", errno(nix::unistd::setuid(nix::unistd::Uid::from_raw(0))));
}

/// Does nothing unless it is called by [`confined`], in a process of its own.
#[test]
fn within() {
    let Some(directory) = std::env::var_os(CONFINED).map(PathBuf::from) else { return };
    let words = std::env::var("NETSNIFF_TEST_WORDS").unwrap();
    let words = ["test", "--interface", "lo"].into_iter().chain(words.split_whitespace());
    let arguments = Arguments::try_parse_from(words).unwrap();
    let outputs = Outputs::default().with_directory(&directory.join("logs"));
    let sandbox = arguments.safety.sandbox(outputs, false).unwrap();
    match sandbox.enter() {
        Ok(active) => println!("{}", active.text(false)),
        Err(error) => return println!("refused: {error:#}"),
    }
    try_all(&directory);
}

/// What a process says that confines itself as told, and tries what it can.
fn confined(place: &Place, words: &str) -> String {
    confined_by(place, words, None)
}

/// The same, as if that user had called sudo.
fn confined_by(place: &Place, words: &str, sudo: Option<u32>) -> String {
    fs::write(place.path("beside"), "x").unwrap();
    fs::set_permissions(place.path("beside"), fs::Permissions::from_mode(0o666)).unwrap();
    let Output { status, stdout, stderr } = Command::new(std::env::current_exe().unwrap())
        .args(["within", "--exact", "--nocapture"])
        .env(CONFINED, &place.0)
        .env("NETSNIFF_TEST_WORDS", words)
        .env("SUDO_UID", sudo.unwrap_or_default().to_string())
        .env("SUDO_GID", sudo.unwrap_or_default().to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned();
    assert!(status.success(), "{said}{}", String::from_utf8_lossy(&stderr));
    said
}

fn tried(said: &str, name: &str) -> String {
    let begin = format!("tried {name}: ");
    let found = said.lines().find_map(|line| line.split_once(&begin));
    found.unwrap_or_else(|| panic!("{name} was not tried: {said}")).1.to_owned()
}

fn number(errno: Errno) -> String {
    (errno as i32).to_string()
}

/// Landlock answers EACCES, seccomp EPERM: each is seen at work.
#[test]
fn neither_other_files_nor_other_programs_can_be_had() {
    if !is_root("neither_other_files_nor_other_programs_can_be_had") {
        return;
    }
    for words in ["", "--sandbox strict", "--no-drop"] {
        let place = Place::new(&format!("confined{}", words.len()));
        let said = confined(&place, words);
        for name in ["write within", "read within", "rename within", "remove within", "thread"] {
            assert_eq!(tried(&said, name), "ok", "{words}: {name}: {said}");
        }
        if said.contains("Landlock NOT active") {
            skip(Need::Kernel, "this kernel has no Landlock, and files are not looked at");
        } else {
            for name in ["read passwd", "read beside", "write beside", "list", "memory"] {
                assert_eq!(tried(&said, name), number(Errno::EACCES), "{words}: {name}: {said}");
            }
            // A strict filter answers first.
            assert_ne!(tried(&said, "link within"), "ok", "{words}: {said}");
            assert_ne!(tried(&said, "listen"), "ok", "{words}: {said}");
        }
        for name in ["exec", "ptrace", "unshare", "chroot", "mount"] {
            assert_eq!(tried(&said, name), number(Errno::EPERM), "{words}: {name}: {said}");
        }
        if words != "--no-drop" {
            assert_eq!(tried(&said, "root"), number(Errno::EPERM), "{said}");
            assert!(said.contains(&format!("({NOBODY}:{NOBODY})")), "{said}");
        }
        let logs = fs::metadata(place.path("logs")).unwrap();
        let owner = if words == "--no-drop" { 0 } else { NOBODY };
        assert_eq!(logs.uid(), owner, "the directory that was made is the user's");
    }
}

/// The tries above succeed where nothing forbids them, so that they prove something.
#[test]
fn without_a_sandbox_the_same_can_be_had() {
    if !is_root("without_a_sandbox_the_same_can_be_had") {
        return;
    }
    let place = Place::new("off");
    let said = confined(&place, "--sandbox off --no-drop");
    for name in ["read passwd", "read beside", "write beside", "list", "exec", "listen"] {
        assert_eq!(tried(&said, name), "ok", "{name}: {said}");
    }
    assert_eq!(tried(&said, "ptrace"), number(Errno::ESRCH), "{said}");
    // Capabilities are gone all the same.
    assert_eq!(tried(&said, "chroot"), number(Errno::EPERM), "{said}");
    assert!(said.contains("--sandbox off") && said.contains("no capabilities"), "{said}");
}

#[test]
fn outputs_that_the_user_cannot_write_are_told_with_what_mends_it() {
    if !is_root("outputs_that_the_user_cannot_write_are_told_with_what_mends_it") {
        return;
    }
    let place = Place::new("refused");
    fs::create_dir(place.path("logs")).unwrap();
    let said = confined(&place, "");
    let logs = place.path("logs");
    let mends = format!("sudo chown {NOBODY} {}", logs.display());
    assert!(said.contains("refused:") && said.contains(&mends), "{said}");
    // The command does it.
    std::os::unix::fs::chown(&logs, Some(NOBODY), None).unwrap();
    assert!(confined(&place, "").contains("safety: user"));

    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o700)).unwrap();
    let said = confined(&place, "");
    assert!(said.contains(&format!("sudo chmod o+x {}", place.0.display())), "{said}");
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o711)).unwrap();
    assert!(confined(&place, "").contains("safety: user"));
}

#[test]
fn sudo_goes_on_as_its_caller_where_the_outputs_are_theirs() {
    if !is_root("sudo_goes_on_as_its_caller_where_the_outputs_are_theirs") {
        return;
    }
    const CALLER: u32 = 4_000_001;
    let place = Place::new("sudo");
    let said = confined_by(&place, "", Some(CALLER));
    assert!(said.contains(&format!("({NOBODY}:{NOBODY})")), "the place is not theirs: {said}");
    fs::remove_dir(place.path("logs")).unwrap();
    std::os::unix::fs::chown(&place.0, Some(CALLER), Some(CALLER)).unwrap();
    let said = confined_by(&place, "", Some(CALLER));
    assert!(said.contains(&format!("user {CALLER}:{CALLER};")), "{said}");
    assert_eq!(fs::metadata(place.path("logs")).unwrap().gid(), CALLER);
    let said = confined_by(&place, "--user nobody", Some(CALLER));
    assert!(said.contains("refused:"), "who was named goes before who called: {said}");
}

#[test]
fn users_are_named_or_numbered() {
    let sandbox = |words: &str| {
        let words = ["test", "--interface", "lo"].into_iter().chain(words.split_whitespace());
        let arguments = Arguments::try_parse_from(words).unwrap();
        let sandbox = arguments.safety.sandbox(Outputs::default(), false);
        sandbox.map(|it| it.identity.to_string()).map_err(|error| error.to_string())
    };
    for (words, said) in [
        ("--user no-such-user-here", "there is no such user"),
        ("--user 1:x", "expected the numbers UID:GID"),
        ("--user 4294967295:0", "expected the numbers UID:GID"),
    ] {
        assert!(sandbox(words).unwrap_err().contains(said), "{words}");
    }
    if nix::unistd::geteuid().is_root() {
        assert_eq!(sandbox("--user 4000001:4000002").unwrap(), "4000001:4000002");
        assert_eq!(sandbox("--user root").unwrap(), "root (0:0)");
        assert_eq!(sandbox("--no-drop").unwrap(), "root (0:0)");
    } else {
        assert!(sandbox("--user root").unwrap_err().contains("only root"));
    }
}

/// Of each thread of a process: its name, and a line of what /proc says of it.
fn threads(pid: u32, line: &str) -> Vec<(String, String)> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of = |task: io::Result<fs::DirEntry>| {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let find = |name: &str| {
            let found = status.lines().find_map(|text| text.strip_prefix(name)?.strip_prefix(':'));
            found.unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        (find("Name"), find(line))
    };
    tasks.map(of).collect()
}

#[test]
fn no_thread_has_rights_but_the_one_that_opens_again() {
    const NET_RAW: &str = "0000000000002000";
    let Some(bed) = Bed::up("rights") else { return };
    for if_gone in ["end", "wait"] {
        let record = ["--if-gone", if_gone, "--record", "RECORDING"];
        let run = Run::start(&bed, &format!("rights-{if_gone}"), &record);
        let pid = run.pid();
        let all = |line: &str, wanted: &str| {
            for (name, value) in threads(pid, line) {
                assert_eq!(value, wanted, "{line} of the thread {name}");
            }
        };
        let nobody = [NOBODY; 4].map(|number| number.to_string()).join(" ");
        all("Uid", &nobody);
        all("Gid", &nobody);
        all("NoNewPrivs", "1");
        all("Seccomp", "2");
        all("CapInh", "0000000000000000");
        all("CapAmb", "0000000000000000");
        if if_gone == "wait" {
            // A thread gives itself its name, some time after it began.
            let begin = Instant::now();
            while !threads(pid, "CapEff").iter().any(|(name, _)| name == "reopen") {
                assert!(begin.elapsed() < Duration::from_secs(5), "no thread opens again");
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        for line in ["CapEff", "CapPrm"] {
            let with_rights: Vec<_> = threads(pid, line)
                .into_iter()
                .filter(|(_, value)| value != "0000000000000000")
                .collect();
            let expected = match if_gone {
                "wait" => vec![("reopen".to_owned(), NET_RAW.to_owned())],
                _ => Vec::new(),
            };
            assert_eq!(with_rights, expected, "{line}");
        }
        assert!(threads(pid, "Name").len() >= 4, "ring, logs and recorder have threads");
        let done = run.end();
        assert_eq!(done.code, 0, "{}", done.errors);
        assert!(done.errors.contains("safety: user "), "{}", done.errors);
        assert_eq!(done.errors.contains("opens interfaces again"), if_gone == "wait");
    }
}

/// Where others work, too, a directory for recordings is asked for, and the command makes it.
#[test]
fn recordings_that_the_user_cannot_write_are_told_with_what_mends_it() {
    let Some(bed) = Bed::up("unwritten") else { return };
    let place = Place::new("unwritten");
    let record = |file: &Path| {
        let out = Command::new("ip")
            .args(["netns", "exec", &bed.receiver(), env!("CARGO_BIN_EXE_netsniff")])
            .args(["record", "-i", "rx0", "--duration", "200ms", "-w"])
            .arg(file)
            .env_remove("SUDO_UID")
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (code, said) = record(&place.path("out.pcapng"));
    let captures = place.path("captures");
    let mends = format!("install -d -o {NOBODY} {}", captures.display());
    assert_eq!((code, said.contains(&format!("sudo {mends} "))), (Some(2), true), "{said}");
    assert!(!place.path("out.pcapng").exists());
    assert!(Command::new("sh").args(["-c", &mends]).status().unwrap().success());
    let file = captures.join("out.pcapng");
    let (code, said) = record(&file);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::metadata(&file).unwrap().uid(), NOBODY);
    // One that is there, of another user.
    std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    let (code, said) = record(&file);
    let mends = format!("sudo chown {NOBODY} {}", file.display());
    assert_eq!((code, said.contains(&mends)), (Some(2), true), "{said}");
    // A device is written where it is.
    let (code, said) = record(Path::new("/dev/null"));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn strict_runs_a_whole_capture() {
    let Some(bed) = Bed::up("strict") else { return };
    let run = Run::start(
        &bed,
        "strict",
        &[
            "--sandbox",
            "strict",
            "--if-gone",
            "wait",
            "--record",
            "RECORDING",
            "--pidfile",
            "PIDFILE",
            "--stats-interval",
            "200ms",
            "--workers",
            "2",
            "--metrics",
            "9185",
            "--cpus",
            "0",
        ],
    );
    bed.send(&Sent { count: 1000, size: 200, rate: 20_000 });
    std::thread::sleep(Duration::from_millis(300));
    run.signal("HUP");
    std::thread::sleep(Duration::from_millis(300));
    let page = bed.fetch("127.0.0.1:9185", "/metrics");
    assert!(page.contains("netsniff_capture_arrived_packets_total"), "{page}");
    bed.renew();
    std::thread::sleep(Duration::from_millis(500));
    bed.send(&Sent { count: 500, size: 200, rate: 10_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    assert!(done.errors.contains("seccomp allows"), "{}", done.errors);
    let conn = Log::read(&done.logs.join("conn.log"));
    let packets: u64 =
        (0..conn.len()).map(|row| conn.value(row, "orig_pkts").parse::<u64>().unwrap()).sum();
    assert_eq!(packets, 1500);
    assert!(done.file("RECORDING").exists() && !done.file("PIDFILE").exists());
    let logs = fs::read_dir(&done.logs).unwrap();
    let rolled = logs.filter(|log| {
        let name = log.as_ref().unwrap().file_name().into_string().unwrap();
        name.starts_with("capture.2")
    });
    assert_eq!(rolled.count(), 1, "{}", done.errors);

    let rules = ["--sandbox", "strict", "-b", "packets:100", "-b", "files:2"];
    let run = Run::record(&bed, "strict-record", "out.pcapng.zst", &rules);
    bed.send(&Sent { count: 500, size: 200, rate: 20_000 });
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let files = fs::read_dir(done.directory()).unwrap().count();
    assert_eq!(files, 2, "older files were removed");
}

/// An unprivileged user with this one capability captures, promiscuous included; without it the way to
/// give it is told.
#[test]
fn one_capability_is_enough() {
    let Some(bed) = Bed::up("netraw") else { return };
    if !has_program("setpriv", "one_capability_is_enough needs setpriv of util-linux") {
        return;
    }
    let place = Place::new("netraw");
    fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777)).unwrap();
    // Where the program lies may be shut to others.
    let program = place.path("netsniff");
    fs::copy(env!("CARGO_BIN_EXE_netsniff"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |capabilities: &str, duration: &str| {
        let user = NOBODY.to_string();
        Command::new("ip")
            .args(["netns", "exec", &bed.receiver(), "setpriv", "--clear-groups"])
            .args(["--reuid", &user, "--regid", &user])
            .args(["--inh-caps", capabilities, "--ambient-caps", capabilities])
            .args(["--bounding-set", capabilities])
            .arg(&program)
            .args(["record", "-i", "rx0", "--duration", duration, "-w"])
            .arg(place.path("out.pcapng"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let child = run("-all,+net_raw", "2s");
    std::thread::sleep(Duration::from_millis(800));
    let show = ["-n", &bed.receiver(), "-d", "link", "show", "rx0"];
    let link = Command::new("ip").args(show).output().unwrap();
    let link = String::from_utf8_lossy(&link.stdout).into_owned();
    for (name, value) in threads(child.id(), "CapEff") {
        assert_eq!(value, "0000000000000000", "of the thread {name}");
    }
    bed.send(&Sent { count: 300, size: 200, rate: 10_000 });
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(link.contains("promiscuity 1"), "{link}");
    let recorded = fs::metadata(place.path("out.pcapng")).unwrap();
    assert!(recorded.len() > 300 * 196 && recorded.uid() == NOBODY, "{recorded:?}: {said}");

    let out = run("-all", "1s").wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("CAP_NET_RAW") && said.contains("setcap cap_net_raw+ep"), "{said}");
}
