//! `netsniff report` writes over nothing that it reads, counts no row twice, and believes no summary that is not of its
//! logs.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::zeek::corpus::Scratch;

const OFFICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/recorded/office.pcapng");

fn netsniff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netsniff")).args(arguments).output().unwrap()
}

/// A directory of logs with the summary of their run.
fn analysed(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    let output = netsniff(&["analyze", OFFICE, "--json", "-o", scratch.path().to_str().unwrap()]);
    assert!(output.status.success());
    fs::write(scratch.path().join("summary.json"), output.stdout).unwrap();
    scratch
}

fn report(input: &Path, output: &Path) -> (i32, String) {
    let output = netsniff(&["report", input.to_str().unwrap(), "-o", output.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), said)
}

fn page(logs: &Path) -> String {
    let output = netsniff(&["report", logs.to_str().unwrap(), "-o", "-"]);
    assert!(output.status.code().is_some_and(|code| [0, 3].contains(&code)), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const TRUSTED: &str = "as the capture tells";
const OTHER: &str = "nothing it says is counted as good";

#[test]
fn what_is_read_is_not_written_over() {
    let scratch = analysed("report-over");
    let capture = scratch.path().join("x.pcapng");
    fs::copy(OFFICE, &capture).unwrap();
    for (input, output) in [
        (capture.as_path(), "x.pcapng"),
        (scratch.path(), "conn.log"),
        (scratch.path(), "summary.json"),
    ] {
        let output = scratch.path().join(output);
        let before = fs::read(&output).unwrap();
        let (code, said) = report(input, &output);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains("both read and written"), "{said}");
        assert!(fs::read(&output).unwrap() == before, "{}", output.display());
    }
    // Another file of the directory is replaced by a whole page, and nothing else is left there.
    let files = || fs::read_dir(scratch.path()).unwrap().count();
    let output = scratch.path().join("page.html");
    fs::write(&output, "old").unwrap();
    let before = files();
    assert_eq!(report(scratch.path(), &output).0, 0);
    assert!(fs::read_to_string(&output).unwrap().ends_with("</html>"));
    assert_eq!(files(), before);
}

/// The table of services of a page, if it has one.
fn services(page: &str) -> Option<&str> {
    let begin = page.find("<table id=\"t-services\"")?;
    page[begin..].split("</table>").next()
}

#[test]
fn packed_logs_have_the_same_rows() {
    let scratch = analysed("report-packed");
    let alone = page(scratch.path());
    assert!(services(&alone).is_some());
    let path = scratch.path().join("conn.log");
    let plain = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let packed = zstd::encode_all(&*plain, 3).unwrap();
    for (name, whole) in [
        ("conn.log.zst", true),
        ("conn.2026-11-21-22-09-03.log.zst", true),
        ("conn.log.zst", false),
    ] {
        let to = scratch.path().join(name);
        fs::write(&to, if whole { &*packed } else { &packed[..packed.len() - 5] }).unwrap();
        let page = page(scratch.path());
        assert_eq!(services(&page) == services(&alone), whole, "{name}");
        assert_eq!(page.contains("incomplete frame"), !whole, "{name}");
        fs::remove_file(to).unwrap();
    }
}

#[test]
fn a_log_in_two_forms_counts_once() {
    let scratch = analysed("report-twice");
    let alone = page(scratch.path());
    fs::copy(scratch.path().join("conn.log"), scratch.path().join("conn.log.gz")).unwrap();
    let both = page(scratch.path());
    assert!(both.contains("Not read: conn.log.gz."));
    assert_eq!(services(&alone), services(&both));
}

#[test]
fn a_summary_lends_trust_to_its_own_logs_alone() {
    let scratch = analysed("report-stale");
    let of_run = page(scratch.path());
    assert!(!of_run.contains(OTHER) && of_run.contains("does not tell how many packets were"));
    let path = scratch.path().join("conn.log");
    let whole = fs::read_to_string(&path).unwrap();
    // Half of the rows are gone, and the last line is there.
    let lines: Vec<_> = whole.lines().collect();
    let half: Vec<_> = lines.iter().take(100).chain(lines.last()).copied().collect();
    fs::write(&path, half.join("\n") + "\n").unwrap();
    let cut = page(scratch.path());
    assert!(cut.contains("The summary tells of 193 connections, and conn has 92"), "{cut}");
    assert!(cut.contains("Some of it is incomplete") && !cut.contains(TRUSTED));
    // A run of the same size at another time.
    let summary = scratch.path().join("summary.json");
    let other = fs::read_to_string(&summary).unwrap().replace("\"last\": 17", "\"last\": 15");
    fs::write(&summary, other).unwrap();
    fs::write(&path, whole).unwrap();
    assert!(page(scratch.path()).contains("Connections lie outside of the time of the summary"));
    for text in ["", "{}", "[1]", "{\"flows\": 1}"] {
        fs::write(&summary, text).unwrap();
        let page = page(scratch.path());
        assert!(page.contains("The file summary.json is left out: "), "{text}");
        assert!(!page.contains("The capture tells"), "{text}");
    }
}

#[test]
fn the_books_of_a_live_run_show_that_rows_are_gone() {
    let scratch = Scratch::new("report-books");
    fs::create_dir_all(scratch.path()).unwrap();
    let said = |analysed: u64| {
        let books = format!(
            "#fields\tscope\tinterface\tfinal\tverdict\tanalysed\n\
             interface\teth0\tT\tgood\t{analysed}\n#close\t-\n"
        );
        let conn = "#fields\tuid\tquality\torig_pkts\tresp_pkts\nC1\tclean\t3\t2\n#close\t-\n";
        fs::write(scratch.path().join("capture.log"), books).unwrap();
        fs::write(scratch.path().join("conn.log"), conn).unwrap();
        page(scratch.path())
    };
    assert!(said(11).contains("tell of 11 packets that were analysed, and rows of conn have 5:"));
    let whole = said(10);
    assert!(!whole.contains("packets that were analysed, and"), "{whole}");
    assert!(whole.contains("Nothing shows a loss by the capture"));
}

#[test]
fn few_rows_that_tell_are_told_as_few() {
    let scratch = Scratch::new("report-few");
    fs::create_dir_all(scratch.path()).unwrap();
    let mut log = "#fields\tuid\tproto\tquality\n".to_owned();
    for at in 0..100 {
        let quality = if at == 0 { "clean" } else { "-" };
        log += &format!("C{at}\ttcp\t{quality}\n");
    }
    fs::write(scratch.path().join("conn.log"), log + "#close\t-\n").unwrap();
    let page = page(scratch.path());
    assert!(page.contains("Connections that would show a loss: 1 of 100, all clean."), "{page}");
    assert!(page.contains("Of 100 connections 99 do not tell their quality."), "{page}");
}

#[test]
fn certificates_without_a_fingerprint_stay_apart() {
    let scratch = Scratch::new("report-x509");
    fs::create_dir_all(scratch.path()).unwrap();
    let log = "#fields\tid\tcertificate.subject\tcertificate.issuer\tcertificate.serial\n\
        F1\tCN=one\tCN=ca\t01\nF2\tCN=one\tCN=ca\t01\nF3\tCN=two\tCN=ca\t02\n\
        -\tCN=three\t-\t-\n-\tCN=four\t-\t-\n#close\t-\n";
    fs::write(scratch.path().join("x509.log"), log).unwrap();
    let page = page(scratch.path());
    for name in ["CN=one", "CN=two", "CN=three", "CN=four"] {
        assert_eq!(page.matches(&format!(">{name}<")).count(), 1, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_capture() {
    let scratch = Scratch::new("report-pipe");
    fs::create_dir_all(scratch.path()).unwrap();
    let output = scratch.path().join("page.html");
    let (code, said) = report(Path::new("/dev/null"), &output);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("captures must be files"), "{said}");
}

#[test]
fn whoever_reads_the_page_may_have_enough() {
    let scratch = analysed("report-enough");
    let mut child = Command::new(env!("CARGO_BIN_EXE_netsniff"))
        .args(["report", scratch.path().to_str().unwrap(), "-o", "-"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut begin = [0; 16];
    // Pipes hold less than a page.
    child.stdout.take().unwrap().read_exact(&mut begin).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
