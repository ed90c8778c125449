//! `netsniff analyze -i … --extract DIR` on a veth pair of this machine. Needs root; says so where it is missing.

mod live_bed;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use live_bed::hosts::{Answer, noise};
use live_bed::{Bed, Done, Log, Run};

/// The files in a directory: name and bytes.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

fn sha256(path: &Path) -> String {
    let out = Command::new("sha256sum").arg(path).output().unwrap();
    assert!(out.status.success(), "{}", path.display());
    String::from_utf8(out.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

/// What the summary tells of extracted files.
fn counts(done: &Done) -> serde_json::Value {
    let summary: serde_json::Value = serde_json::from_str(&done.output).unwrap();
    summary["extracted"].clone()
}

#[test]
fn what_is_downloaded_is_extracted_as_from_a_file() {
    let large = noise(3_000_000, 1);
    let answers = [
        Answer::whole(b"a short one"),
        Answer::whole(&large),
        // The server gives up on the way.
        Answer { announced: 500_000, body: &large[..300_000] },
    ];
    for sandbox in ["on", "strict"] {
        let Some(bed) = Bed::up("x-http") else { return };
        bed.address();
        let arguments = ["--sandbox", sandbox, "--extract", "EXTRACTED", "--record", "RECORDING"];
        let arguments = [&arguments[..], &["--hashes", "sha256", "--json"]].concat();
        let run = Run::start(&bed, &format!("x-http-{sandbox}"), &arguments);
        bed.download(&answers);
        let done = run.end();
        assert_eq!(done.code, 0, "{}", done.errors);
        assert!(done.errors.contains("EXTRACTED"), "what can be written is said: {}", done.errors);

        let extracted = done.file("EXTRACTED");
        let found = files(&extracted);
        let rows = Log::read(&done.logs.join("files.log"));
        assert_eq!((found.len(), rows.len()), (3, 3));
        let owner = fs::metadata(&done.logs).unwrap().uid();
        for (row, Answer { announced, body }) in (0..).zip(&answers) {
            let name = rows.value(row, "extracted");
            assert!(found[name].starts_with(body), "{name} is not what was sent");
            assert_eq!(rows.value(row, "extracted_size"), found[name].len().to_string());
            if *announced == body.len() {
                assert_eq!(found[name].len(), body.len());
                assert_eq!(rows.value(row, "sha256"), sha256(&extracted.join(name)));
            }
            assert_eq!(fs::metadata(extracted.join(name)).unwrap().uid(), owner);
        }
        let counts = counts(&done);
        assert_eq!((&counts["files"], &counts["overrun"]), (&3.into(), &0.into()));

        let (again, files_again) = (done.file("again"), done.file("files-again"));
        let status = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["analyze", "-q", "--hashes", "sha256", "--workers", "1", "-r"])
            .arg(done.file("RECORDING"))
            .args(["-o".as_ref(), again.as_os_str(), "--extract".as_ref(), files_again.as_os_str()])
            .status()
            .unwrap();
        assert!(status.success());
        assert!(found == files(&files_again), "not the files that the recording has");
        let of = |logs: &Path| -> Vec<String> {
            let text = fs::read_to_string(logs.join("files.log")).unwrap();
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        assert_eq!(of(&done.logs), of(&again));
    }
}

#[test]
fn a_bound_of_all_files_is_said_while_the_run_goes_on() {
    let Some(bed) = Bed::up("x-bound") else { return };
    bed.address();
    let arguments = ["--extract", "EXTRACTED", "--extract-files", "1", "--json"];
    let run = Run::start(&bed, "x-bound", &arguments);
    let body = noise(100_000, 2);
    bed.download(&[Answer::whole(b"first"), Answer::whole(&body), Answer::whole(b"third")]);
    // Rows are merged, and the bound is said, before the end.
    std::thread::sleep(Duration::from_millis(600));
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);
    let said = done.errors.matches("a bound of all extracted files was reached").count();
    assert_eq!(said, 1, "{}", done.errors);
    let found = files(&done.file("EXTRACTED"));
    assert_eq!(found.into_values().collect::<Vec<_>>(), [b"first"]);
    let counts = counts(&done);
    assert_eq!((&counts["files"], &counts["refused"]), (&1.into(), &2.into()));
    assert_eq!(Log::read(&done.logs.join("files.log")).len(), 3);
}

/// Nobody reads the rows, which are given up at the end. No file is kept then that no row tells of.
#[test]
fn no_file_stays_without_a_row() {
    let Some(bed) = Bed::up("x-untold") else { return };
    bed.address();
    let often = ["--workers", "24", "--ring", "1M", "--block", "256K", "--stats-interval", "20ms"];
    let arguments = [&often[..], &["--no-shed", "--extract", "EXTRACTED"]].concat();
    let run = Run::start_without_reader(&bed, "x-untold", &arguments);
    // Rows of the books are more than a pipe takes.
    std::thread::sleep(Duration::from_secs(2));
    bed.download(&[Answer::whole(b"first"), Answer::whole(b"second")]);
    let done = run.end();
    assert!(done.errors.contains("2 files not kept, since no row"), "{}", done.errors);
    assert_eq!(files(&done.file("EXTRACTED")).len(), 0);
}

/// The disk of the files is full: files are lost, and neither packets nor rows.
#[test]
fn a_full_disk_loses_files_and_nothing_else() {
    let Some(bed) = Bed::up("x-full") else { return };
    bed.address();
    let run = Run::start_on_small_disk(&bed, "x-full", &["--extract", "EXTRACTED", "--json"]);
    let large = noise(300_000, 3);
    bed.download(&[Answer::whole(b"first"), Answer::whole(&large), Answer::whole(b"third")]);
    let done = run.end();
    assert_eq!(done.code, 1, "{}", done.errors);
    assert!(done.errors.contains("No space left"), "{}", done.errors);
    let rows = Log::read(&done.logs.join("files.log"));
    let sizes: Vec<_> = (0..3).map(|row| rows.value(row, "extracted_size")).collect();
    assert_eq!(sizes, ["5", "-", "5"]);
    let counts = counts(&done);
    assert_eq!((&counts["files"], &counts["failed"]), (&2.into(), &1.into()));
    let last = live_bed::Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!(last.number("analysed"), last.number("arrived"));
}
