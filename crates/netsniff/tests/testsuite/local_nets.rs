//! `--local-nets`: whose hosts are local, in each column that tells.

use std::path::Path;
use std::process::Command;

use netsniff_testing::log::{self, Row};

use crate::generated::Folder;

/// Rows of logs of the recorded office, whose clients are in 192.0.2.0/24 and 2001:db8:1::/48.
fn rows(nets: &[&str], log: &str) -> Vec<Row> {
    let folder = Folder::new(&format!("local-nets-{log}-{}", nets.len()));
    let capture =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/office.pcapng");
    let mut netsniff = Command::new(env!("CARGO_BIN_EXE_netsniff"));
    netsniff.args(["analyze", "-q"]).args(nets).arg(capture).arg("-o").arg(folder.path("logs"));
    assert!(netsniff.status().unwrap().success());
    log::read(&folder.path("logs").join(format!("{log}.log"))).unwrap()
}

fn is_client(address: &str) -> bool {
    address.starts_with("192.0.2.") || address.starts_with("2001:db8:1:")
}

#[test]
fn networks_of_ones_own_are_told_from_others() {
    let nets = ["--local-nets", "only,192.0.2.0/24,2001:db8:1::/48"];
    let told = |is_local: bool| if is_local { "T" } else { "F" };
    let conn = rows(&nets, "conn");
    let local = conn.iter().filter(|row| row["local_orig"] == "T").count();
    assert!(local > 50 && conn.iter().any(|row| row["local_resp"] == "F"), "{local}");
    for row in &conn {
        assert_eq!(row["local_orig"], told(is_client(&row["id.orig_h"])), "{row:?}");
        assert_eq!(row["local_resp"], told(is_client(&row["id.resp_h"])), "{row:?}");
    }
    let files = rows(&nets, "files");
    assert!(files.len() > 10, "too few to be sure");
    for row in &files {
        let sender = if row["is_orig"] == "T" { "id.orig_h" } else { "id.resp_h" };
        assert_eq!(row["local_orig"], told(is_client(&row[sender])), "{row:?}");
    }
    let ssh = rows(&nets, "ssh");
    assert!(!ssh.is_empty() && ssh.iter().all(|row| row["direction"] == "OUTBOUND"), "{ssh:?}");
    // All of these addresses are those of documentation, which nobody routes.
    assert!(rows(&[], "conn").iter().all(|row| row["local_orig"] == "T"));
    assert!(rows(&[], "ssh").iter().all(|row| row["direction"] == "-"));
}
