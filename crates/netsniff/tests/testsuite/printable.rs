//! Whatever the program writes for people or programs to read: no sign in it controls, hides, turns or separates, though
//! file names, arguments, captures and packets are full of such signs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::zeek::corpus::Scratch;
use netsniff_packet::{LinkType, Packet};
use netsniff_pcapfile::{Interface, PcapngWriter, Section};
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};

/// Of each kind one: C0, DEL, C1 (ECMA-48), signs of Unicode's UAX 9, and a separator of lines.
const SIGNS: &str = "\u{1b}[31m\u{8}\u{7f}\u{9b}31m\u{61c}\u{200e}\u{202e}\u{2066}\u{2028}";

/// Signs that are none of text, by the standards and not by the code.
fn signs_in(text: &str) -> Vec<char> {
    let is_one = |sign: &char| {
        let number = u32::from(*sign);
        sign.is_control() && !['\n', '\t'].contains(sign)
            || [0x61c, 0x200e, 0x200f].contains(&number)
            || (0x2028..=0x202e).contains(&number)
            || (0x2066..=0x2069).contains(&number)
    };
    text.chars().filter(is_one).collect()
}

/// What was written, and whether something of the signs was in it.
struct Written {
    what: String,
    text: String,
}

impl Written {
    /// The text has no sign that does anything, and it has what stands for one.
    #[track_caller]
    fn is_clean(&self) {
        let Self { what, text } = self;
        assert_eq!(signs_in(text), [], "{what}: {text:?}");
        let shown = [r"\xe2\x80\xae", r"\\xe2\\x80\\xae", r"\u202e"];
        assert!(shown.iter().any(|shown| text.contains(shown)), "{what} does not tell it: {text}");
    }
}

/// A capture that says such signs about itself, and whose packets have them.
fn capture() -> Vec<u8> {
    let named = || Some(format!("x{SIGNS}"));
    let section = Section {
        hardware: named(),
        os: named(),
        application: named(),
        comments: vec![format!("x{SIGNS}")],
    };
    let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
    let interface = Interface {
        name: named(),
        description: named(),
        ..Interface::new(LinkType::ETHERNET, 65_535)
    };
    writer.add_interface(&interface).unwrap();
    let mut dialogue = Dialogue::new(Setup::default());
    dialogue.connect();
    let request = format!("GET /a HTTP/1.1\r\nHost: h\r\nUser-Agent: {SIGNS}\r\n\r\n");
    dialogue.say(Side::Client, request.as_bytes());
    dialogue.say(Side::Server, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    dialogue.close(Side::Client).close(Side::Server).pause(Duration::ZERO);
    for seen in dialogue.finish().seen {
        let (data, wire_len) = (&seen.frame[..], seen.frame.len() as u32);
        let link_type = LinkType::ETHERNET;
        let timestamp = seen.timestamp;
        writer
            .write_packet(&Packet { timestamp, data, wire_len, link_type, interface: 0 })
            .unwrap();
    }
    writer.finish().unwrap()
}

struct Folder(Scratch);

impl Folder {
    fn new() -> Self {
        let scratch = Scratch::new("printable");
        fs::create_dir_all(scratch.path()).unwrap();
        Self(scratch)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(format!("{name}{SIGNS}")).to_str().unwrap().to_owned()
    }

    /// What a run prints and what it says, as far as it does.
    fn run(&self, code: i32, arguments: &[&str]) -> [Written; 2] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
        let output = command.args(arguments).current_dir(self.0.path()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        let what = |stream| format!("{stream} of {}", arguments.join(" ").escape_debug());
        [
            Written { what: what("output"), text: text(&output.stdout) },
            Written { what: what("errors"), text: errors },
        ]
    }

    fn log(&self, folder: &str, log: &str) -> Written {
        let path = Path::new(&self.path(folder)).join(log);
        let text = fs::read_to_string(&path).unwrap();
        Written { what: format!("{folder} {log}"), text }
    }
}

#[test]
fn logs_have_no_signs_that_do_anything() {
    let folder = Folder::new();
    let file = folder.path("a");
    fs::write(&file, capture()).unwrap();
    for (format, logs) in [("tsv", folder.path("tsv")), ("json", folder.path("json"))] {
        folder.run(0, &["analyze", "--format", format, "-o", &logs, &file]);
        folder.log(format, "http.log").is_clean();
        assert_eq!(signs_in(&folder.log(format, "conn.log").text), [], "{format}");
    }
    let text = folder.path("text");
    let [_, said] = folder.run(0, &["-v", "--format", "text", "-o", &text, &file]);
    said.is_clean();
    folder.log("text", "http.txt").is_clean();
    for format in ["json", "text"] {
        let [stream, _] = folder.run(0, &["analyze", "-d", "-", "--format", format, &file]);
        stream.is_clean();
    }
}

#[test]
fn reports_have_no_signs_that_do_anything() {
    let folder = Folder::new();
    let [file, cut] = [folder.path("a"), folder.path("cut")];
    let whole = capture();
    fs::write(&file, &whole).unwrap();
    fs::write(&cut, &whole[..whole.len() - 7]).unwrap();
    let [sorted, made, hosts] = ["sorted", "made", "hosts"].map(|name| folder.path(name));
    for arguments in [
        &["analyze", &file][..],
        &["analyze", "--json", &file],
        &["info", &file],
        &["info", "--json", &file],
        &["generate", "--rate", "1000", "--count", "10", "-w", &made],
        &["generate", "--json", "--rate", "1000", "--count", "10", "-w", &made],
        &["generate", "hosts", "--n", "2", "--sessions", "3", "-w", &hosts],
    ] {
        let [output, errors] = folder.run(0, arguments);
        output.is_clean();
        assert_eq!(errors.text, "", "{}", errors.what);
    }
    for arguments in [&["analyze", &cut][..], &["analyze", "--json", &cut]] {
        let [output, errors] = folder.run(3, arguments);
        output.is_clean();
        errors.is_clean();
    }
    for arguments in [&["info", &cut][..], &["info", "--json", &cut]] {
        folder.run(3, arguments)[0].is_clean();
    }
    folder.run(3, &["sort", &cut, &sorted])[1].is_clean();
}

#[test]
fn complaints_have_no_signs_that_do_anything() {
    let folder = Folder::new();
    let file = folder.path("a");
    fs::write(&file, capture()).unwrap();
    let [missing, option, word] = ["missing", "--option", "word"].map(|name| folder.path(name));
    let option = format!("--{}", option.rsplit("--").next().unwrap());
    for (code, arguments) in [
        (1, &["analyze", &missing][..]),
        (1, &["info", &missing]),
        (1, &["sort", &missing, "-"]),
        (1, &["anonymize", "--key", &missing, &file, "-"]),
        (2, &["analyze", &file, "-f", SIGNS]),
        (2, &["analyze", &file, &option]),
        (2, &["analyze", &file, "--format", &word]),
        // No command has such a name, so it is that of a file.
        (1, &[&word]),
        (2, &["schema", &word]),
    ] {
        let [output, errors] = folder.run(code, arguments);
        assert_eq!(output.text, "", "{}", output.what);
        errors.is_clean();
    }
}
