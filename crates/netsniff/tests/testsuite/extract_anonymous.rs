//! `netsniff extract -a`: packets by the names that anonymised logs have.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pcapfile::Reader;
use netsniff_testing::log;

use crate::generated::Folder;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The packets of a capture.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(File::open(path).unwrap()).unwrap();
    let (mut batch, mut all) = (Batch::default(), Vec::new());
    loop {
        let progress = reader.read_batch(&mut batch).unwrap();
        all.extend(batch.iter().map(|packet| packet.data.to_vec()));
        if progress == Progress::End {
            return all;
        }
    }
}

/// The rows of `conn` by what no pseudonym changes: time and ports.
fn rows(folder: &Folder, name: &str, more: &[&str]) -> BTreeMap<[String; 3], log::Row> {
    let logs = folder.path(name);
    let run = netsniff(&[&["analyze", "-q", OFFICE, "-o", logs.to_str().unwrap()], more].concat());
    assert!(run.status.success(), "{}", said(&run));
    let key = |row: &log::Row| ["ts", "id.orig_p", "id.resp_p"].map(|name| row[name].clone());
    log::read(&logs.join("conn.log")).unwrap().into_iter().map(|row| (key(&row), row)).collect()
}

#[test]
fn packets_are_found_by_the_names_of_anonymised_logs() {
    let folder = Folder::new("extract-anonymous");
    let (key, output) = (folder.path("key"), folder.path("out.pcapng"));
    fs::write(&key, (0..32).map(|it| it * 7 + 1).collect::<Vec<u8>>()).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let anonymous = ["-a", "-k", key.to_str().unwrap()];
    let (true_rows, rows) = (rows(&folder, "true", &[]), rows(&folder, "anonymous", &anonymous));
    let extract = |words: &[&str]| {
        let run =
            netsniff(&[&["extract", "-q", OFFICE, "-w", output.to_str().unwrap()], words].concat());
        (run.status.code(), packets(&output), said(&run))
    };
    for (at, row) in rows.iter().step_by(rows.len() / 4) {
        let of_true = &true_rows[at];
        assert!(row["uid"] != of_true["uid"] && row["id.orig_h"] != of_true["id.orig_h"]);
        let (_, expected, _) = extract(&["--uid", &of_true["uid"]]);
        let (code, found, told) = extract(&[&anonymous[..], &["--uid", &row["uid"]]].concat());
        assert!(code == Some(0) && found == expected && !found.is_empty(), "{told}");
        let (_, expected, _) = extract(&["--community-id", &of_true["community_id"]]);
        let id = ["--community-id", row["community_id"].as_str()];
        let (code, found, told) = extract(&[&anonymous[..], &id].concat());
        assert!(code == Some(0) && found == expected && !found.is_empty(), "{told}");
        // Without the key it is not there.
        let (code, _, told) = extract(&["--uid", &row["uid"]]);
        assert!(code == Some(1) && told.contains(&row["uid"]), "{told}");
    }
    let run = netsniff(&["extract", OFFICE, "-w", output.to_str().unwrap(), "-a", "-m", "tcpdriv"]);
    assert!(run.status.code() == Some(2) && said(&run).contains("-k KEYFILE"), "{}", said(&run));
    let run = netsniff(&["extract", OFFICE, "-w", output.to_str().unwrap(), "-m", "nullip"]);
    assert_eq!(run.status.code(), Some(2), "{}", said(&run));
}
