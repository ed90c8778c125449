//! `netsniff lab certify`. What runs needs root; says so where it is missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use netsniff_lab::certificate::Statement;
use netsniff_lab::certificate::facts::Capture;
use netsniff_lab::host::machine::Machine;
use netsniff_lab::search::HighestRate;
use netsniff_lab::tools::Tool;
use serde_json::Value;

mod lab_bed;
mod lab_certificate;

use lab_bed::{alone, make};
use lab_certificate::{Files, MODEST, PRIVATE, PUBLIC, layout};
use netsniff_testing::{Need, has_program, skip};

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";

fn can(test: &str) -> bool {
    make(test, &layout()).is_some()
}

impl Files {
    /// Verifies it; the exit code and what is told.
    fn verify(&self, more: &[&str]) -> (Option<i32>, Value) {
        self.verify_of("certificate.json", more)
    }

    fn verify_of(&self, name: &str, more: &[&str]) -> (Option<i32>, Value) {
        let file = self.at(name);
        let words = ["--verify", &file, "--public", &self.at("key.pub.pem"), "--json"];
        let (code, output, errors) = certify(&[&words[..], more].concat());
        let value = serde_json::from_str(&output);
        (code, value.unwrap_or_else(|_| panic!("{output}{errors}")))
    }
}

fn certify(arguments: &[&str]) -> (Option<i32>, String, String) {
    // What else runs on this machine is not to keep the sender from its rate.
    let words = ["-n", "-20", NETSNIFF, "lab", "certify"];
    let out = Command::new("nice").args(words).args(arguments).output().unwrap();
    let [output, errors] = [out.stdout, out.stderr].map(|text| String::from_utf8(text).unwrap());
    (out.status.code(), output, errors)
}

fn reasons(found: &Value) -> Vec<&str> {
    found["reasons"].as_array().unwrap().iter().map(|reason| reason.as_str().unwrap()).collect()
}

/// Whether one of the reasons has these words in it.
fn says(found: &Value, words: &str) -> bool {
    reasons(found).iter().any(|reason| reason.contains(words))
}

/// A setting of the kernel that is put back, whatever happens to the test.
struct Worsened(String);

impl Worsened {
    fn backlog(value: &str) -> Option<Self> {
        let before = fs::read_to_string(BACKLOG).ok()?;
        let worsened = Self(before);
        fs::write(BACKLOG, value).ok()?;
        Some(worsened)
    }
}

impl Drop for Worsened {
    fn drop(&mut self) {
        let _ = fs::write(BACKLOG, &self.0);
    }
}

#[test]
fn what_cannot_be_certified_stands_there() {
    let _alone = alone();
    if !can("what_cannot_be_certified_stands_there") {
        return;
    }
    let files = Files::make("certify");
    let (key, out) = (files.at("key.pem"), files.at("out"));
    let words = ["--key", &key, "--sizes", "128,512", "--budget", "1s", "-o", &out];
    let (code, output, errors) = certify(&words);
    assert_eq!(code, Some(1), "{errors}");
    assert_eq!(output.matches("not certified: the budget is used up").count(), 2, "{output}");
    assert!(errors.contains("2 searches of record takes about"), "{errors}");
    let certificate = fs::read_to_string(Path::new(&out).join("certificate.json")).unwrap();
    let (statement, _) = Statement::verified(&certificate, None).unwrap();
    let sizes: Vec<_> = statement.sizes.iter().map(|size| (size.size, size.rate())).collect();
    assert_eq!(sizes, [(128, None), (512, None)]);
    assert!(statement.made.starts_with("20") && statement.made.ends_with('Z'));
    let machine = Machine::here(&[]);
    assert_eq!(statement.configuration.machine.kernel, machine.kernel);
    assert!(
        statement
            .configuration
            .tool
            .command
            .join(" ")
            .starts_with("netsniff --no-config record -i IFACE")
    );
    let (code, ..) = certify(&words);
    assert_eq!(code, Some(1), "the directory is there");

    let file = format!("{out}/certificate.json");
    let (code, output, _) = certify(&["--verify", &file, "--no-check"]);
    assert_eq!(code, Some(1));
    assert!(output.contains("It does not hold: it certifies no rate"), "{output}");
    assert!(output.contains("the one that the certificate names itself"), "{output}");
    let page = format!("{out}/certificate.html");
    let (code, output, _) = certify(&["--verify", &page, "--no-check"]);
    assert_eq!(code, Some(1));
    assert!(output.contains("The page says what was signed, and nothing else."), "{output}");
    assert!(output.contains("It does not hold: it certifies no rate"), "{output}");
    let svg =
        format!("{out}/plots/certificate-certified-rates-without-loss-by-size-of-frames-dark.svg");
    assert!(!Path::new(&svg).exists(), "nothing is drawn of no rate");
    others_can_verify(&files, &certificate);
}

/// What people read is what was signed.
#[test]
fn a_page_is_verified_and_an_altered_one_refused() {
    let files = Files::make("page");
    files.certify(&[(128, HighestRate::Rate(MODEST))], |_| {});
    let (code, found) = files.verify_of("certificate.html", &["--no-check"]);
    assert_eq!((code, &found["page"]), (Some(0), &"as-signed".into()), "{found}");
    assert_eq!(files.verify(&["--no-check"]).1["page"], Value::Null);
    let page = fs::read_to_string(files.at("certificate.html")).unwrap();
    let verify = |page: &str| {
        files.write("changed.html", page, 0o644);
        let words = ["--verify", &files.at("changed.html"), "--public", &files.at("key.pub.pem")];
        let (code, output, errors) = certify(&[&words[..], &["--no-check"]].concat());
        assert_eq!((code, errors.as_str()), (Some(1), ""), "{output}");
        output
    };
    let said = verify(&page.replacen(">5,000<", ">9,000<", 1));
    assert!(said.contains("It does not hold: the page was altered"), "{said}");
    assert!(said.contains("  128           5,000 "), "what was signed is told: {said}");
    let said = verify(&page.replacen("eyJ", "eyK", 1).replacen("ewog", "ewoh", 1));
    assert!(said.contains("the signature is not valid"), "{said}");
    let said = verify(&page.replace("&quot;payload&quot;", "&quot;load&quot;"));
    assert!(said.contains("there is no envelope in the page"), "{said}");
    files.certify(&[(128, HighestRate::Rate(MODEST))], |it| {
        it.netsniff = "0.0.9\u{1b}[2J".to_owned();
        it.machine.kernel = Some("Linux 2.6.9".to_owned());
    });
    let said = verify(&fs::read_to_string(files.at("certificate.html")).unwrap());
    assert!(
        said.contains("only the statement in it is verified, not how the page tells"),
        "{said}"
    );
    assert!(said.contains("netsniff     0.0.9\u{fffd}[2J\nkernel       Linux 2.6.9\n"), "{said}");
    assert!(said.contains("certified is Linux 2.6.9") && !said.contains('\u{1b}'), "{said}");
}

/// The page tells how to look at the signature, and docs/lab.md the same.
#[test]
fn the_page_has_the_commands_of_the_documentation() {
    let files = Files::make("documented");
    files.certify(&[(128, HighestRate::Rate(MODEST))], |_| {});
    let page = fs::read_to_string(files.at("certificate.html")).unwrap();
    let text = include_str!("../../../docs/lab.md");
    let (_, text) = text.split_once("### The signature without netsniff").unwrap();
    let (_, text) = text.split_once("```console\n").unwrap();
    let (text, _) = text.split_once("```").unwrap();
    let commands: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    assert!(commands.len() > 4, "{text}");
    for command in commands {
        let escaped = command.replace('\'', "&#39;").replace('"', "&quot;");
        let escaped = escaped.replace('<', "&lt;").replace('>', "&gt;");
        assert!(page.contains(&(escaped + "\n")), "{command} is not in {page}");
    }
}

/// The signature, as docs/lab.md tells to look at it without netsniff.
fn others_can_verify(files: &Files, certificate: &str) {
    files.write("c.json", certificate, 0o644);
    let script = r#"set -e
        field() { sed -n "s/.*\"$1\": \"\([^\"]*\)\".*/\1/p" c.json; }
        field payload | base64 -d > statement.json
        field sig | base64 -d > signature
        type=$(field payloadType)
        printf 'DSSEv1 %d %s %d ' ${#type} "$type" $(wc -c < statement.json) > signed
        cat statement.json >> signed
        openssl pkeyutl -verify -pubin -inkey key.pub.pem -rawin -in signed -sigfile signature
        printf x >> signed
        ! openssl pkeyutl -verify -pubin -inkey key.pub.pem -rawin -in signed -sigfile signature"#;
    if !has_program("openssl", "verifies the signature too, is not installed") {
        return;
    }
    let out = Command::new("sh").args(["-c", script]).current_dir(&files.0).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn a_certificate_holds_until_something_is_worsened() {
    let _alone = alone();
    if !can("a_certificate_holds_until_something_is_worsened") {
        return;
    }
    let files = Files::make("worsened");
    files.certify(&[(128, HighestRate::Rate(MODEST))], |_| {});
    let (code, found) = files.verify(&["--check", "5s"]);
    if says(&found, "was not proved") {
        skip(
            Need::Quiet,
            format_args!("this machine is too busy to send so few frames evenly: {found}"),
        );
    } else {
        assert_eq!((code, &found["holds"]), (Some(0), &Value::Bool(true)), "{found}");
        assert_eq!(found["check"][0]["verdict"], "holds");
        let trial = &found["check"][0]["trials"][0];
        assert!(trial["sent"].as_u64().unwrap() > 5000, "{found}");
    }

    // What would take longer than there is time is not begun.
    let (code, found) = files.verify(&["--check", "5s", "--budget", "1s"]);
    assert_eq!((code, &found["check"][0]["ended"]), (Some(1), &"budget".into()), "{found}");
    assert!(says(&found, "was not checked: the budget is used up"), "{found}");

    // A capture that gets next to nothing.
    let (code, found) =
        files.verify(&["--check", "5s", "--quota", "10", "--set", "ring=256K", "--quiet"]);
    assert_eq!(code, Some(1), "{found}");
    assert!(says(&found, "--quota is 10 %, certified is none"), "{found}");
    assert!(says(&found, "the command of the capture is netsniff --no-config record"), "{found}");

    // A backlog of one frame, where 32 leave together.
    let Some(worsened) = Worsened::backlog("1") else {
        skip(Need::Kernel, format_args!("{BACKLOG} cannot be changed here"));
        return;
    };
    let (code, found) = files.verify(&["--check", "5s"]);
    drop(worsened);
    assert_ne!(fs::read_to_string(BACKLOG).unwrap().trim(), "1");
    assert_eq!((code, &found["holds"]), (Some(1), &Value::Bool(false)), "{found}");
    assert!(says(&found, "net.core.netdev_max_backlog is 1, certified is "), "{found}");
    assert_ne!(found["check"][0]["verdict"], "holds", "{found}");
    let trials = found["check"][0]["trials"].as_array().unwrap();
    assert!(trials.iter().any(|trial| trial["backlog_dropped"].as_u64() > Some(0)), "{found}");
}

/// A rate that the sender does not come to is not taken for one at which nothing is lost.
#[test]
fn a_rate_that_nobody_reaches_does_not_hold() {
    let _alone = alone();
    if !can("a_rate_that_nobody_reaches_does_not_hold") {
        return;
    }
    let files = Files::make("beyond");
    files.certify(&[(1518, HighestRate::Rate(50e6)), (512, HighestRate::AtLeast(50e6))], |_| {});
    let (code, found) = files.verify(&["--check", "8s"]);
    assert_eq!(code, Some(1), "{found}");
    for (at, size) in [(0, "1518 bytes at 50,000,000 frames/s "), (1, "512 bytes at 50,000,000 ")] {
        assert_ne!(found["check"][at]["verdict"], "holds", "{found}");
        assert!(says(&found, size), "{found}");
    }
}

#[test]
fn other_machines_keys_and_bytes_do_not_hold() {
    let files = Files::make("facts");
    let rates = [(128, HighestRate::Rate(MODEST))];
    files.certify(&rates, |_| {});
    let (code, found) = files.verify(&["--no-check"]);
    assert_eq!((code, reasons(&found)), (Some(0), vec![]), "{found}");
    assert_eq!((&found["check"], &found["signature"]["is_given"]), (&Value::Null, &true.into()));

    files.certify(&rates, |it| it.machine.memory = Some(1));
    let (code, found) = files.verify(&["--no-check"]);
    assert_eq!((code, found["differences"].as_array().unwrap().len()), (Some(0), 1), "{found}");
    files.certify(&rates, |it| it.machine.kernel = Some("Linux 2.6.9".to_owned()));
    let (code, found) = files.verify(&["--no-check"]);
    assert_eq!(code, Some(1));
    assert!(says(&found, "certified is Linux 2.6.9"), "{found}");
    // What a certificate says of its testbed is what is run, so that it is no difference.
    files.certify(&rates, |it| it.testbed.quota = Some(0.5));
    assert_eq!(files.verify(&["--no-check"]).0, Some(0));
    assert_eq!(files.verify(&["--no-check", "--quota", "40"]).0, Some(1));
    assert_eq!(files.verify(&["--no-check", "--quota", "50%"]).0, Some(0));
    let (code, found) = files.verify(&["--no-check", "--quota", "100"]);
    assert_eq!(code, Some(1), "{found}");
    assert!(says(&found, "--quota is none, certified is 50 %"), "{found}");

    let text = fs::read_to_string(files.at("certificate.json")).unwrap();
    files.write(
        "certificate.json",
        &text.replacen("eyJ", "eyK", 1).replacen("ewog", "ewoh", 1),
        0o644,
    );
    let (code, found) = files.verify(&["--no-check"]);
    assert_eq!((code, &found["signature"]["is_valid"]), (Some(1), &false.into()));
    assert!(says(&found, "the signature is not valid"), "{found}");
    files.write("certificate.json", &text, 0o644);
    files.write("key.pub.pem", &PUBLIC.replace("AO0fb", "AO0fc"), 0o644);
    let file = files.at("certificate.json");
    let (code, output, errors) =
        certify(&["--verify", &file, "--public", &files.at("key.pub.pem"), "--no-check"]);
    let is_told =
        output.contains("the signature is not valid") || errors.contains("no Ed25519 key");
    assert!(code == Some(1) && is_told, "{output}{errors}");
}

/// A certificate may be from anybody: nothing that it names is run.
#[test]
fn no_command_of_a_certificate_is_run() {
    let files = Files::make("foreign");
    let touched = files.at("touched");
    let command = format!("evil=touch {touched} IFACE FILE");
    let tool = Tool::of_command(&command).unwrap();
    files.certify(&[(128, HighestRate::Rate(MODEST))], |it| {
        it.tool = Capture::of(&tool);
        it.machine = Machine::here(&["touch".to_owned()]);
    });
    let file = files.at("certificate.json");
    let (code, _, errors) = certify(&["--verify", &file]);
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("there is no tool evil") && errors.contains("--command"), "{errors}");
    assert!(!Path::new(&touched).exists());
    let (code, output, _) = certify(&["--verify", &file, "--command", &command, "--no-check"]);
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn what_is_wrong_is_said() {
    let files = Files::make("wrong");
    let (key, out) = (files.at("key.pem"), files.at("out"));
    let is = |arguments: &[&str], expected: i32, words: &str| {
        let (code, _, errors) = certify(arguments);
        assert_eq!(code, Some(expected), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    files.write("open.pem", PRIVATE, 0o640);
    let open = files.at("open.pem");
    // Nothing is begun in that time, if it should not be refused.
    is(&["--key", &open, "-o", &out, "--budget", "1ms"], 1, &format!("chmod 600 {open}"));
    files.write("public.pem", PUBLIC, 0o600);
    is(&["--key", &files.at("public.pem"), "-o", &out], 1, "that is a public key");
    is(&["--key", &files.at("none.pem"), "-o", &out], 1, "openssl genpkey -algorithm ed25519");
    is(&["--key", &key], 2, "--output");
    is(&["-o", &out], 2, "--key");
    for option in [&["--check", "5s"][..], &["--no-check"], &["--json"], &["--public", "x"]] {
        is(&[&["--key", &key, "-o", &out], option].concat(), 2, option[0]);
    }
    for option in [&["--sizes", "64"][..], &["--tool", "count"], &["-o", "x"]] {
        is(&[&["--verify", "c.json"], option].concat(), 2, "cannot be used with");
    }
    is(&["--verify", "c.json", "--no-check", "--check", "5s"], 2, "cannot be used with");
    is(&["--key", &key, "-o", &out, "--sizes", "63"], 2, "frames have 64 to 1518 bytes");
    for quota in ["0.01", "101"] {
        let words = ["--key", &key, "-o", &out, "--quota", quota];
        is(&words, 2, "is no share of a processor from 0.1 to 100 percent");
    }
    is(&["--key", &key, "-o", &out, "--tool", "pigeon"], 2, "there is no tool pigeon");
    let tcpdump = ["--key", &key, "-o", &out, "--tool", "tcpdump", "--set", "blocks=8"];
    is(&tcpdump, 2, "has no {blocks} in it");
    is(&["--verify", &files.at("none.json")], 1, "cannot open");
    assert!(!Path::new(&out).exists());
}
