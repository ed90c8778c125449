//! `netsniff selftest`: everything works between two namespaces, and without rights it says what is missing. Needs root; says
//! so where it is missing.

use std::process::Command;

mod lab_bed;

use lab_bed::{alone, is_able};
use netsniff_testing::{Need, skip};
use serde_json::Value;

const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

#[test]
fn everything_works_between_namespaces() {
    let _alone = alone();
    if !is_able() {
        skip(Need::Root, "the self-test needs namespaces and two processors");
        return;
    }
    let out = Command::new(NETSNIFF).args(["selftest", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(0), "{said}{}", String::from_utf8_lossy(&out.stderr));
    let report: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(report["wire"], "through a veth pair between two network namespaces");
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() >= 12, "{said}");
    let broken: Vec<_> = checks.iter().filter(|check| check["works"] == false).collect();
    // XDP needs a kernel that has it; everything else needs none but Linux.
    let is_of_xdp = |check: &&Value| check["name"].as_str().unwrap().contains("xdp");
    assert!(broken.iter().all(is_of_xdp), "{broken:?}");
}

#[test]
fn an_ordinary_user_is_told_what_is_missing() {
    let _alone = alone();
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups", NETSNIFF, "selftest"];
    let out = Command::new("setpriv").args(nobody).output();
    let Some(out) = out.ok().filter(|out| !out.stdout.is_empty()) else {
        skip(Need::Program("setpriv"), "the self-test is not tried as an ordinary user");
        return;
    };
    let said = String::from_utf8_lossy(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("on the loopback interface"), "{said}");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines = said.lines().map(words);
    assert!(lines.any(|line| line.starts_with("NOT capture af-packet no permission")), "{said}");
}
