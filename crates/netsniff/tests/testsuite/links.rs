//! No link is followed that somebody put in the place of a file to be written, whether an argument or the program names it.
//! Links of the system are: `/dev/stdout` is one.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::zeek::corpus::Scratch;

fn office() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng")
}

/// What writes a file of one name, and the arguments before that name.
fn writers(office: &str) -> Vec<(&'static str, Vec<&str>)> {
    vec![
        ("anonymize", vec!["anonymize", "-q", office]),
        ("sort", vec!["sort", "-q", office]),
        ("generate", vec!["generate", "-q", "--rate", "1000", "--count", "10", "-w"]),
        ("hosts", vec!["generate", "hosts", "-q", "--n", "2", "--sessions", "3", "-w"]),
    ]
}

fn run(arguments: &[&str], output: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    command.args(arguments).arg(output).output().unwrap()
}

#[test]
fn a_link_in_place_of_a_file_is_refused_with_a_message() {
    let office = office();
    for (name, arguments) in writers(office.to_str().unwrap()) {
        for (target, content) in [("victim", Some("precious")), ("missing", None)] {
            let scratch = Scratch::new("links");
            fs::create_dir_all(scratch.path()).unwrap();
            let at = |name| scratch.path().join(name);
            if let Some(content) = content {
                fs::write(at(target), content).unwrap();
            }
            symlink(at(target), at("out.pcapng")).unwrap();
            let output = run(&arguments, at("out.pcapng").to_str().unwrap());
            let errors = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
            assert!(errors.contains("it is a symbolic link"), "{name}: {errors}");
            assert_eq!(fs::read_to_string(at(target)).ok().as_deref(), content, "{name}");
            assert!(at("out.pcapng").is_symlink(), "{name}");
        }
    }
}

#[test]
fn links_of_the_system_are_followed() {
    let office = office();
    for (name, arguments) in writers(office.to_str().unwrap()) {
        let piped = run(&arguments, "/dev/stdout");
        let errors = String::from_utf8_lossy(&piped.stderr);
        assert_eq!(piped.status.code(), Some(0), "{name}: {errors}");
        let dashed = run(&arguments, "-");
        assert!(piped.stdout.len() > 100, "{name}: {errors}");
        assert_eq!(piped.stdout.len(), dashed.stdout.len(), "{name}");
    }
}
