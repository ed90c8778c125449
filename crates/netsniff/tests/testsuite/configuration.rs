//! The configuration file as a user meets it: what it sets, what stands above it, and what is wrong in it.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

/// A directory of its own, removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("netsniff-configuration-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("xdg/netsniff")).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Exit code, output and errors of a run here, whose user has a directory of configuration in this one.
    fn run(&self, variable: Option<&str>, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        command.args(args).stdin(Stdio::null()).current_dir(&self.0);
        command.env("XDG_CONFIG_HOME", self.0.join("xdg")).env_remove("NETSNIFF_CONFIG");
        command.envs(variable.map(|value| ("NETSNIFF_CONFIG", value)));
        let out = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
    }

    /// The output of a run that reads this file; it must end well and say nothing else.
    fn told(&self, file: &str, args: &[&str]) -> String {
        let (code, output, errors) = self.run(None, &[&["--config", file], args].concat());
        assert_eq!((code, errors.as_str()), (0, ""), "{args:?}");
        output
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What all other tests rely on: none of them reads a file of the machine.
#[test]
fn tests_read_no_file_of_the_machine() {
    let value = std::env::var_os("NETSNIFF_CONFIG");
    assert!(
        value.is_some_and(|value| value.is_empty()),
        "run tests by cargo in the project's tree: its .cargo/config.toml sets NETSNIFF_CONFIG to nothing"
    );
}

#[test]
fn the_usual_places_stand_below_the_variable_and_that_below_the_option() {
    let here = Directory::new("places");
    here.file("xdg/netsniff/netsniff.toml", "[sort]\nmemory = \"11M\"\n");
    let of_variable = here.file("variable.toml", "[sort]\nmemory = \"12M\"\n");
    let of_option = here.file("option.toml", "[sort]\nmemory = \"13M\"\n");
    let shown =
        |variable, args: &[&str]| here.run(variable, &[args, &["config", "--show"]].concat()).1;
    let usual = shown(None, &[]);
    assert!(
        usual.contains("memory = \"11M\"") && usual.contains("xdg/netsniff/netsniff.toml:2:1"),
        "{usual}"
    );
    assert!(shown(Some(&of_variable), &[]).contains("12M"));
    assert!(shown(Some(&of_variable), &["--config", &of_option]).contains("13M"));
    for none in [shown(Some(""), &[]), shown(Some(&of_variable), &["--no-config"])] {
        assert!(none.starts_with("# no configuration file sets anything"), "{none}");
    }
    let (code, _, errors) = here.run(None, &["--config", "absent.toml", "info", OFFICE]);
    assert!(code == 2 && errors.contains("absent.toml: cannot read"), "{errors}");
    let (code, _, errors) = here.run(Some("absent.toml"), &["info", OFFICE]);
    assert!(code == 2 && errors.contains("absent.toml: cannot read"), "{errors}");
}

#[test]
fn what_is_typed_stands_above_a_file() {
    let here = Directory::new("typed");
    let file = here.file(
        "c.toml",
        "[analyze]\nquiet = true\nformat = \"json\"\nworkers = 1\nring = \"64M\"\nduration = 5\n\
         [info]\njson = true\n",
    );
    // The file's own flag, without what needs an interface or a directory.
    assert_eq!(here.told(&file, &["analyze", OFFICE]), "");
    // One that excludes it, and the same one switched off.
    assert!(here.told(&file, &["analyze", "--json", OFFICE]).starts_with('{'));
    assert!(here.told(&file, &["analyze", "--quiet=false", OFFICE]).contains("4090 packets"));
    assert!(here.told(&file, &["info", OFFICE]).starts_with('{'));
    assert!(here.told(&file, &["info", "--json=false", OFFICE]).contains("format "));
    let keeps = here.file("keeps.toml", "[analyze]\nmethod = \"nullip\"\n");
    assert!(here.told(&keeps, &["analyze", OFFICE]).contains("192.0.2.11"));
    assert!(!here.told(&keeps, &["analyze", "-a", OFFICE]).contains("192.0.2.11"));
    // What needs a directory comes into force with it.
    here.told(&file, &["analyze", "-o", "logs", OFFICE]);
    assert!(fs::read_to_string(here.0.join("logs/conn.log")).unwrap().starts_with('{'));
    here.told(&file, &["analyze", "-o", "tsv", "--format", "tsv", OFFICE]);
    assert!(fs::read_to_string(here.0.join("tsv/conn.log")).unwrap().starts_with("#separator"));
}

#[test]
fn what_a_command_works_on_is_replaced_as_a_whole() {
    let here = Directory::new("inputs");
    let file = here.file("c.toml", "[analyze]\nread = [\"a.pcap\", \"b.pcap\"]\n");
    let (code, _, errors) = here.run(None, &["--config", &file, "analyze"]);
    assert!(code != 0 && errors.contains("a.pcap") && errors.contains("b.pcap"), "{errors}");
    for typed in [&["analyze", OFFICE][..], &["analyze", "-r", OFFICE]] {
        assert!(here.told(&file, typed).contains("4090 packets"), "{typed:?}");
    }
    // Files that are typed are no filter for an interface of the file.
    let file = here.file("i.toml", "[analyze]\ninterface = \"nosuch0\"\nduration = \"1s\"\n");
    assert!(here.told(&file, &["analyze", OFFICE]).contains("4090 packets"));
    let (code, _, errors) = here.run(None, &["--config", &file, "analyze"]);
    assert!(code != 0 && errors.contains("nosuch0"), "{errors}");
}

#[test]
fn files_supply_what_is_required_and_options_that_need_each_other() {
    let here = Directory::new("required");
    let file = here.file(
        "c.toml",
        "[generate]\nwrite = \"made.pcap\"\ncount = 7\nifg = 12\nlink = \"1g\"\ncpu = 0\njson = true\n",
    );
    let report: serde_json::Value = serde_json::from_str(&here.told(&file, &["generate"])).unwrap();
    assert_eq!(report["frames"], 7);
    let made = here.told(&file, &["info", "made.pcap"]);
    assert!(made.contains("packets     7"), "{made}");
    // What is said of arguments that make no sense tells which of them were not typed.
    let (code, _, errors) = here.run(None, &["--config", &file, "generate", "--queue", "3"]);
    assert!(code == 2 && errors.contains("--interface"), "{errors}");
    let (code, _, errors) = here.run(None, &["--config", &file, "generate", "--size", "1"]);
    assert!(code == 2 && errors.contains("set by configuration files: --write ("), "{errors}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let here = Directory::new("faults");
    for (text, said) in [
        (
            "[analyze]\n wokers = 2",
            "2:2: netsniff analyze has no option wokers; did you mean workers?",
        ),
        (
            "[analyze]\nrtt_interval = 2",
            "2:1: netsniff analyze has no option rtt_interval; did you mean rtt-interval?",
        ),
        (
            "[analyze]\nworkers = 0",
            "2:11: workers: invalid value '0' for '--workers <N>': 1 is the least",
        ),
        ("[analyze]\njson = 1", "2:8: json: expected true or false, found a number"),
        ("[analyze]\nring = [1]", "2:8: ring: expected one text or number, found a list"),
        ("[analyze]\nread = []", "2:8: read: an empty list sets nothing"),
        (
            "[analyze]\nread = [\"\u{e4}\", true]",
            "2:14: read: expected a text or a number, found a boolean",
        ),
        ("[analyze]\nfiles = \"x\"", "2:1: files is what netsniff analyze works on"),
        ("[analyze]\nhelp = true", "2:1: help is asked of one run"),
        ("[analyze]\no = \"x\"", "2:1: o is another name of output: write output"),
        ("[generate]\npps = 1", "2:1: pps is another name of rate: write rate"),
        ("[anlyze]\n", "1:2: there is no command netsniff anlyze; did you mean analyze?"),
        ("[[sort]]\n", "1:3: sort is a command, whose options stand once in a table, under [sort]"),
        ("[lab.warden]\n", "1:6: there is no command netsniff lab warden"),
        ("[completions]\n", "1:2: no file sets anything of netsniff completions"),
        ("workers = 1", "1:1: workers stands outside of all tables"),
        ("[sort]\nmemory = 1\nmemory = 2", "3:1: duplicate key"),
        ("[sort]\nmemory = 1\0", "2:10: string values must be quoted"),
        (
            "[analyze]\nquiet = true\njson = true",
            "3:1: the argument '--quiet' cannot be used with '--json'",
        ),
        (
            "[replay]\npps = 1\ntopspeed = true",
            "3:1: the argument '--pps <RATE>' cannot be used with '--topspeed'",
        ),
    ] {
        let file = here.file("c.toml", text);
        for args in [&["config", "--check", &file][..], &["--config", &file, "info", OFFICE]] {
            let (code, output, errors) = here.run(Some(""), args);
            let wanted = format!("netsniff: {file}:{said}");
            assert!(
                code == 2 && output.is_empty() && errors.starts_with(&wanted),
                "{text:?}: {errors}"
            );
        }
    }
    // All at once, in order; and the words of the command line.
    let file = here.file("c.toml", "[info]\njson = 1\n[analyze]\nring = \"1 mile\"\n");
    let (_, _, errors) = here.run(None, &["config", "--check", &file]);
    let lines: Vec<_> = errors.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].contains(":2:8: json") && lines[1].contains(":4:8: ring"),
        "{errors}"
    );
    let (_, _, typed) = here.run(None, &["--no-config", "analyze", "-i", "x", "--ring", "1 mile"]);
    let typed = typed.lines().next().unwrap().trim_start_matches("error: ");
    assert!(lines[1].ends_with(typed), "{errors}\n{typed}");
}

#[test]
fn hostile_files_end_with_a_sentence() {
    let here = Directory::new("hostile");
    let deep = format!("[analyze]\nread = {}", "[".repeat(100_000));
    let long = format!("[analyze]\nread = \"{}\"", "x".repeat(2 << 20));
    let keys = format!("{}.x = 1", "a.".repeat(50_000).trim_end_matches('.'));
    for text in [deep, long, keys, "= = =\n\u{feff}[".to_owned(), "\"\\u0000\" = 1".to_owned()] {
        let file = here.file("c.toml", &text);
        let (code, _, errors) = here.run(None, &["config", "--check", &file]);
        let shown: String = errors.chars().take(300).collect();
        assert!(code == 2 && errors.starts_with(&format!("netsniff: {file}:")), "{code}: {shown}");
    }
    fs::write(here.0.join("c.toml"), b"[info]\n# \xff\n").unwrap();
    let (code, _, errors) = here.run(None, &["config", "--check", "c.toml"]);
    assert_eq!((code, errors.as_str()), (2, "netsniff: c.toml:2: this is no UTF-8 text\n"));
    let (code, _, errors) = here.run(None, &["config", "--check", "."]);
    assert!(code == 2 && errors.contains("is a regular file, and this is none"), "{errors}");
}

#[cfg(target_os = "linux")]
#[test]
fn root_reads_no_file_that_others_can_write() {
    use std::os::unix::fs::PermissionsExt as _;

    if !nix::unistd::geteuid().is_root() {
        netsniff_testing::skip(
            netsniff_testing::Need::Root,
            "only root must not trust files of others",
        );
        return;
    }
    let here = Directory::new("trust");
    let file = here.file("c.toml", "[info]\njson = true\n");
    assert!(here.told(&file, &["info", OFFICE]).starts_with('{'));
    let refused = |said: &str| {
        let (code, _, errors) = here.run(None, &["--config", &file, "info", OFFICE]);
        let is_said = errors.contains("netsniff runs as root") && errors.contains(said);
        assert!(code == 2 && is_said, "{said}: {errors}");
    };
    let allow = |path: &str, mode| {
        fs::set_permissions(here.0.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    allow("c.toml", 0o646);
    refused("c.toml can be written by everybody. Say `chmod o-w");
    allow("c.toml", 0o644);
    allow(".", 0o777);
    refused("can be written by everybody. Say `chmod o-w");
    allow(".", 0o755);
    nix::unistd::chown(file.as_str(), Some(nix::unistd::Uid::from_raw(65_534)), None).unwrap();
    refused("belongs to the user with the number 65534. Say `chown root");
    // The folder of a user is left to the user.
    let own = |of: &Path, user| {
        nix::unistd::chown(of, Some(nix::unistd::Uid::from_raw(user)), None).unwrap();
    };
    own(Path::new(&file), 0);
    own(&here.0, 65_534);
    refused(
        "belongs to the user with the number 65534. Choose a place that is root's alone, or --no-config",
    );
}

#[test]
fn a_file_is_checked_and_shown() {
    let here = Directory::new("shown");
    let file = here.file(
        "c.toml",
        "[record]\nring = \"64M\"\n[analyze]\ninterface = [\"eth0\", \"eth1\"]\njson = true\n",
    );
    let (code, output, _) = here.run(None, &["config", "--check", &file]);
    let wanted = format!(
        "{file}: no errors, 3 options set\n  netsniff record: ring = \"64M\"\n  \
         netsniff analyze: interface = [\"eth0\", \"eth1\"]\n  netsniff analyze: json = true\n"
    );
    assert_eq!((code, output), (0, wanted));
    let shown = here.told(&file, &["config", "--show"]);
    assert!(shown.starts_with("[analyze]\ninterface = [\"eth0\", \"eth1\"]"), "{shown}");
    // What is shown is a file that sets the same.
    let again = here.file("again.toml", &shown);
    let plain = |text: String| -> Vec<String> {
        text.lines().map(|line| line.split('#').next().unwrap().trim_end().to_owned()).collect()
    };
    assert_eq!(plain(here.told(&again, &["config", "--show"])), plain(shown));
    let (code, _, errors) = here.run(None, &["config"]);
    assert!(code == 2 && errors.contains("--print-default"), "{errors}");
    let complete = here.file("complete.toml", &here.run(None, &["config", "--print-default"]).1);
    let (code, _, errors) = here.run(None, &["config", "--check", &complete]);
    assert_eq!((code, errors.as_str()), (0, ""));
}

/// A service says what is wrong before it captures, and what it would run.
#[test]
fn a_service_is_what_the_file_says() {
    let here = Directory::new("service");
    let run = |text: &str, args: &[&str]| {
        let file = here.file("service.toml", text);
        here.run(None, &[&["run", "-c", &file, "--check"], args].concat())
    };
    let (code, output, errors) =
        run("[analyze]\ninterface = \"lo\"\noutput = \"logs\"\nroll = \"1h\"\n", &[]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(output.contains(" analyze --interface=lo --output=logs --roll=1h"), "{output}");
    let both = "[analyze]\ninterface = \"lo\"\noutput = \"l\"\n[record]\ninterface = \"lo\"\nwrite = \"x\"\n";
    let (code, output, _) = run(both, &["--command", "record"]);
    assert!(code == 0 && output.contains(" record --interface=lo --write=x"), "{output}");
    let (code, output, _) = run(&format!("{both}[run]\ncommand = \"record\"\n"), &[]);
    assert!(code == 0 && output.contains(" record --interface=lo --write=x"), "{output}");
    for (text, said) in [
        (both, "both [analyze] and [record] name an interface"),
        ("", "names no interface to capture on"),
        ("[analyze]\ninterface = \"lo\"\n", "sets no output in [analyze]"),
        ("[record]\ninterface = \"lo\"\n", "sets no write in [record]"),
        (
            "[record]\ninterface = \"lo\"\nwrite = \"x\"\ntunnel-ports = \"vxlan=1\"\n",
            "service.toml:4:1: tunnel-ports has no effect here",
        ),
        ("[analyze]\ninterfaces = \"lo\"\n", "did you mean interface"),
    ] {
        let (code, _, errors) = run(text, &[]);
        assert!(code == 2 && errors.contains(said), "{said}: {errors}");
    }
    let (code, _, errors) = here.run(Some(""), &["run"]);
    assert!(code == 2 && errors.contains("there is no configuration file"), "{errors}");
}
