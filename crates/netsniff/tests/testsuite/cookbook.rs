//! `docs/cookbook.md` is true: each command in it is run, and prints what stands there.
//!
//! `UPDATE_GOLDEN=1` writes the page anew.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use netsniff_testing::has_program;

use crate::generated::Folder;

/// Programs beside those of POSIX that recipes use.
const PROGRAMS: [&str; 1] = ["jq"];
/// The captures that recipes read, all of them in the repository.
const CAPTURES: [&str; 2] = ["office", "protocols"];

/// Runs a line of a shell in a folder, and returns all that it prints.
fn printed(line: &str, folder: &Path) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_netsniff")).parent().unwrap().to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([own].into_iter().chain(env::split_paths(&path))).unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {line}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The page with what its commands print now, the number of commands, and how many were left out.
fn run(page: &str, folder: &Path) -> (String, usize, usize) {
    let (mut now, mut commands, mut left_out) = (String::new(), 0, 0);
    let mut blocks = page.split("```console\n");
    now.push_str(blocks.next().unwrap());
    for block in blocks {
        now.push_str("```console\n");
        let (shown, rest) = block.split_once("```\n").expect("a block has an end");
        let missing = PROGRAMS.iter().find(|&&program| {
            shown.contains(program) && !has_program(program, "a recipe of docs/cookbook.md")
        });
        if missing.is_some() {
            left_out += 1;
            now.push_str(shown);
        } else {
            for line in shown.lines().filter_map(|line| line.strip_prefix("$ ")) {
                commands += 1;
                now.push_str(&format!("$ {line}\n{}", printed(line, folder)));
            }
        }
        now.push_str("```\n");
        now.push_str(rest);
    }
    (now, commands, left_out)
}

#[test]
fn every_recipe_prints_what_the_page_shows() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let path = root.join("docs/cookbook.md");
    let page = fs::read_to_string(&path).unwrap();
    let folder = Folder::new("cookbook");
    for name in CAPTURES.map(|name| format!("{name}.pcapng")) {
        fs::copy(root.join("fixtures/recorded").join(&name), folder.path(&name)).unwrap();
    }
    let (now, commands, left_out) = run(&page, &folder.path(""));
    assert!(commands + left_out >= 20, "only {commands} commands were run");
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, now).unwrap();
        return;
    }
    for (shown, printed) in page.lines().zip(now.lines()) {
        assert_eq!(
            printed, shown,
            "docs/cookbook.md shows something else (UPDATE_GOLDEN=1 writes it anew)"
        );
    }
    assert_eq!(now.len(), page.len(), "docs/cookbook.md shows less or more than is printed");
}
