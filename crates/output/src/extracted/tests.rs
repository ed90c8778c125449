//! Tests of the directory that takes the content of files.

use std::sync::Mutex;

use super::*;

/// A directory of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("netsniff-extracted-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        let mut names: Vec<_> = fs::read_dir(&self.0).unwrap().map(|e| name(e).unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn name(number: u32) -> String {
    format!("extract-1317402178.000001-HTTP-F{number:017}")
}

fn silent(scratch: &Scratch) -> ExtractedFiles {
    ExtractedFiles::create(&scratch.0, 0, |said| panic!("{said}")).unwrap()
}

#[test]
fn pieces_and_holes_make_a_file_once_it_is_kept() {
    let scratch = Scratch::new("pieces");
    let files = silent(&scratch);
    let mut file = files.begin(&name(1)).unwrap();
    let mut expected = Vec::new();
    for number in 0..3000_u32 {
        let piece = number.to_string();
        file.write(expected.len() as u64, piece.as_bytes());
        expected.extend_from_slice(piece.as_bytes());
        if number % 700 == 0 {
            expected.resize(expected.len() + 40_000, 0);
        }
    }
    expected.resize(expected.len() + 5, 0);
    file.end(expected.len() as u64);
    assert_eq!(file.keep(), Stored::Whole);
    drop(file);
    assert_eq!(fs::read(scratch.0.join(name(1))).unwrap(), expected);
    assert_eq!(files.0.undecided_bytes.load(Ordering::Relaxed), 0);
    assert_eq!(files.0.undecided_files.load(Ordering::Relaxed), 0);
    assert!(!files.has_failed());
}

#[test]
fn what_is_not_kept_is_gone() {
    let scratch = Scratch::new("dropped");
    let files = silent(&scratch);
    let large = vec![7; 3 * BUFFER];
    for (number, ends) in [(1, false), (2, true)] {
        let mut file = files.begin(&name(number)).unwrap();
        file.write(0, &large);
        assert_eq!(scratch.files(), [name(number)]);
        if ends {
            file.end(large.len() as u64);
        }
        drop(file);
        assert!(scratch.files().is_empty());
    }
    // One that is refused ends all that are still being written, and none begins.
    let [mut refused, mut other] = [3, 4].map(|number| files.begin(&name(number)).unwrap());
    other.write(0, &large);
    refused.refuse();
    other.write(large.len() as u64, &large);
    other.end(5);
    assert_eq!((other.keep(), files.begin(&name(5)).is_none()), (Stored::Refused, true));
    assert!(scratch.files().is_empty());
    refused.write(0, b"late");
    drop((refused, other));
    assert_eq!(files.0.undecided_bytes.load(Ordering::Relaxed), 0);
}

#[test]
fn what_waits_for_its_verdict_is_bounded() {
    let scratch = Scratch::new("undecided");
    let files = silent(&scratch);
    let [mut first, mut second] = [1, 2].map(|number| files.begin(&name(number)).unwrap());
    first.write(0, b"first");
    // As if others had written as much.
    files.0.undecided_bytes.fetch_add(UNDECIDED_BYTES - 5, Ordering::Relaxed);
    second.write(0, b"second");
    first.end(5);
    second.end(6);
    assert_eq!((first.keep(), second.keep()), (Stored::Whole, Stored::Refused));
    files.0.undecided_files.store(UNDECIDED_FILES, Ordering::Relaxed);
    assert!(files.begin(&name(3)).is_none());
}

#[test]
#[cfg(target_os = "linux")]
fn many_files_at_once_take_few_descriptors() {
    let scratch = Scratch::new("many");
    let files = silent(&scratch);
    let mut open: Vec<_> = (0..500).map(|number| files.begin(&name(number)).unwrap()).collect();
    let piece = |round: u8, number: usize| vec![round.wrapping_mul(31) ^ number as u8; BUFFER + 1];
    let mut most = 0;
    for round in 0..4 {
        for (number, file) in open.iter_mut().enumerate() {
            let piece = piece(round, number);
            file.write(u64::from(round) * piece.len() as u64, &piece);
        }
        let ours = |entry: io::Result<fs::DirEntry>| {
            fs::read_link(entry.unwrap().path()).is_ok_and(|path| path.starts_with(&scratch.0))
        };
        most = most.max(fs::read_dir("/proc/self/fd").unwrap().map(ours).filter(|is| *is).count());
    }
    assert!((1..=96).contains(&most), "{most} open at once");
    for (number, mut file) in open.into_iter().enumerate() {
        file.end(4 * (BUFFER as u64 + 1));
        assert_eq!(file.keep(), Stored::Whole);
        let expected: Vec<u8> = (0..4).flat_map(|round| piece(round, number)).collect();
        assert!(fs::read(scratch.0.join(name(number as u32))).unwrap() == expected, "{number}");
    }
}

#[test]
#[cfg(unix)]
fn neither_links_nor_other_files_are_written_to() {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let scratch = Scratch::new("links");
    let outside = Scratch::new("outside");
    let target = outside.0.join("target");
    fs::write(&target, b"precious").unwrap();
    let link = |number| std::os::unix::fs::symlink(&target, scratch.0.join(name(number))).unwrap();
    link(1);
    let tell = |said: &str| SAID.lock().unwrap().push(said.to_owned());
    let files = ExtractedFiles::create(&scratch.0, 0, tell).unwrap();
    let mut file = files.begin(&name(1)).unwrap();
    file.write(0, b"evil");
    file.end(4);
    assert_eq!(file.keep(), Stored::Failed);
    drop(file);
    assert!(files.has_failed());
    // One that takes the place of a file later.
    let mut open: Vec<_> = (2..200).map(|number| files.begin(&name(number)).unwrap()).collect();
    let large = vec![7; BUFFER];
    open.iter_mut().for_each(|file| file.write(0, &large));
    fs::remove_file(scratch.0.join(name(2))).unwrap();
    link(2);
    open[0].write(BUFFER as u64, &large);
    open[0].end(2 * BUFFER as u64);
    assert_eq!(open[0].keep(), Stored::Failed);
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    let said = SAID.lock().unwrap();
    assert_eq!(said.len(), 1, "only the first is told: {said:?}");
    assert!(said[0].starts_with("cannot write ") && said[0].contains("exists"), "{said:?}");
}

#[test]
fn files_of_an_earlier_run_are_gone_and_others_stay() {
    let scratch = Scratch::new("again");
    let others = ["extract-notes", "extract-1.000000-HTTP-Fshort", "conn.log", "x-extract-1"];
    for name in others.iter().copied().chain([name(1).as_str()]) {
        fs::write(scratch.0.join(name), b"old").unwrap();
    }
    fs::create_dir(scratch.0.join(name(2))).unwrap();
    let _ = silent(&scratch);
    let mut expected: Vec<String> = others.iter().map(|&name| name.to_owned()).collect();
    expected.push(name(2));
    expected.sort();
    assert_eq!(scratch.files(), expected);
}

#[test]
fn names_are_told_from_others() {
    for name in [&name(1), "extract--5.000001-FTP_DATA-FAbcdefghijklmnop9"] {
        assert!(is_extracted(name), "{name}");
    }
    for name in [
        "",
        "extract-",
        "extract-1317402178.000001-HTTP-C0000000000000000a",
        "extract-1317402178.000001--F0000000000000000a",
        "extract-1317402178.1-HTTP-F0000000000000000a",
        "extract-.000001-HTTP-F0000000000000000a",
        "extract-1317402178.000001-HTTP-F0000000000000000a.bak",
        "extract-1317402178.000001-../etc-F0000000000000000a",
    ] {
        assert!(!is_extracted(name), "{name}");
    }
}
