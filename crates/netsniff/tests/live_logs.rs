//! The files of a live run: they roll without losing or doubling a row, what was there stays, and what
//! cannot be written leaves no half row.

mod live;

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use netsniff_analysis::SortKey;
use netsniff_output::{Format, LiveSink as _, LogFiles, Roll, RowSink as _, SinkBooks};
use netsniff_testing::{Need, full_device, skip};

use live::{Directory, at, log, rows_of};

const START: i64 = 1_317_402_178;

fn live(directory: &Directory, format: Format, roll: Roll) -> LogFiles {
    LogFiles::live(&directory.0, format, roll, at(START)).unwrap()
}

/// Where a row belongs that a timer made.
fn key(seconds: i64) -> SortKey {
    SortKey::first_at(at(seconds))
}

fn written(books: &SinkBooks) -> [u64; 2] {
    [books.written.total(), books.refused.total()]
}

#[test]
fn no_row_is_lost_or_doubled_whenever_logs_roll() {
    const ROWS: usize = 8;
    const OF: [&str; 3] = ["conn", "dns", "conn"];
    let directory = Directory::new("moments");
    for format in [Format::Tsv, Format::Json] {
        // Every set of moments before, between and behind the rows, with and without a flush.
        for moments in 0..1_u32 << (ROWS + 1) {
            let place = Directory(directory.join(&moments.to_string()));
            fs::create_dir(&place.0).unwrap();
            let mut files = live(&place, format, Roll::default());
            let roll = |files: &mut LogFiles, moment: usize| {
                if moments >> moment & 1 == 1 {
                    files.roll(at(START + 5)).unwrap();
                } else if moments & 1 == 1 {
                    files.flush(at(START + 5)).unwrap();
                }
            };
            for number in 0..ROWS {
                roll(&mut files, number);
                let row = format!("{number}\n");
                files
                    .row(log(OF[number % 3]), &key(START + number as i64 / 4), row.as_bytes())
                    .unwrap();
            }
            roll(&mut files, ROWS);
            files.end(at(START + 9)).unwrap();
            assert_eq!(written(files.books()), [ROWS as u64, 0]);
            for path in ["conn", "dns"] {
                let rows = (0..ROWS).filter(|number| OF[number % 3] == path);
                let expected: Vec<String> = rows.map(|number| number.to_string()).collect();
                assert_eq!(place.rows(path), expected, "{format:?} {moments:b} {path}");
            }
            for path in place.files("conn").iter().filter(|_| format == Format::Tsv) {
                let text = fs::read_to_string(path).unwrap();
                assert!(text.starts_with("#separator") && text.contains("\n#close\t"), "{text}");
            }
        }
    }
}

#[test]
fn rolled_files_have_the_times_of_their_begin_and_end() {
    let directory = Directory::new("times");
    let mut files = live(&directory, Format::Tsv, Roll::default());
    files.row(log("ntp"), &key(START), b"first\n").unwrap();
    files.row(log("ntp"), &key(START + 1), b"second\n").unwrap();
    files.roll(at(START + 2)).unwrap();
    let rolled = fs::read_to_string(directory.join("ntp.2011-09-30-17-02-58.log")).unwrap();
    assert!(rolled.contains("#open\t2011-09-30-17-02-58\n"), "{rolled}");
    assert!(rolled.ends_with("\nfirst\nsecond\n#close\t2011-09-30-17-03-00\n"), "{rolled}");
    assert!(!directory.join("ntp.log").exists(), "a log without rows has no file");
    files.roll(at(START + 3)).unwrap();
    assert_eq!(directory.files("ntp").len(), 1, "there was nothing to roll");
    files.row(log("ntp"), &key(START), b"third\n").unwrap();
    files.roll(at(START + 4)).unwrap();
    assert_eq!(rows_of(&directory.join("ntp.2011-09-30-17-02-58-2.log")), ["third"]);
}

#[test]
fn all_logs_roll_at_multiples_of_a_time_also_when_idle() {
    let directory = Directory::new("interval");
    let every = Some(Duration::from_secs(60));
    let mut files = live(&directory, Format::Tsv, Roll { every, size: None });
    files.row(log("dns"), &key(START), b"a\n").unwrap();
    files.row(log("conn"), &key(START), b"b\n").unwrap();
    files.flush(at(START + 1)).unwrap();
    assert_eq!(directory.files("dns"), [directory.join("dns.log")]);
    // 17:03:00 comes two seconds after 17:02:58, and nothing else does.
    files.flush(at(START + 2)).unwrap();
    for path in ["dns", "conn"] {
        let rolled = directory.join(&format!("{path}.2011-09-30-17-02-58.log"));
        assert_eq!(directory.files(path), [rolled]);
    }
    files.row(log("dns"), &key(START + 61), b"c\n").unwrap();
    files.flush(at(START + 61)).unwrap();
    assert_eq!(directory.files("dns").len(), 2);
    files.flush(at(START + 62)).unwrap();
    assert!(directory.join("dns.2011-09-30-17-03-59.log").exists());
    assert_eq!(directory.rows("dns"), ["a", "c"]);
}

#[test]
fn no_file_is_larger_than_the_size_unless_a_row_is() {
    let directory = Directory::new("size");
    const SIZE: u64 = 5000;
    for format in [Format::Tsv, Format::Json] {
        let place = Directory(directory.join(format.name()));
        let mut files = live(&place, format, Roll { every: None, size: Some(SIZE) });
        let mut expected = Vec::new();
        for number in 0..500 {
            let row = format!("{number}{}", "x".repeat(number * 7 % 90));
            files.row(log("http"), &key(START), format!("{row}\n").as_bytes()).unwrap();
            expected.push(row);
        }
        let long = "y".repeat(2 * SIZE as usize);
        for row in [long.as_str(), "short"] {
            files.row(log("http"), &key(START), format!("{row}\n").as_bytes()).unwrap();
            expected.push(row.to_owned());
        }
        files.end(at(START)).unwrap();
        assert_eq!(place.rows("http"), expected);
        let paths = place.files("http");
        let sizes: Vec<u64> = paths.iter().map(|it| fs::metadata(it).unwrap().len()).collect();
        let larger: Vec<_> = paths.iter().zip(&sizes).filter(|(_, size)| **size > SIZE).collect();
        assert_eq!(larger.len(), 1, "{sizes:?}");
        assert_eq!(rows_of(larger[0].0), [long]);
        // All but the two last and the one before them are as full as they can be.
        assert!(sizes[..sizes.len() - 3].iter().all(|&size| size > SIZE - 150), "{sizes:?}");
    }
}

#[test]
fn logs_of_an_earlier_run_get_the_time_of_their_last_change() {
    let directory = Directory::new("earlier");
    let changed = UNIX_EPOCH + Duration::from_secs(1_299_466_805);
    let write = |name: &str, text: &str| {
        fs::write(directory.join(name), text).unwrap();
        let file = File::options().append(true).open(directory.join(name)).unwrap();
        file.set_modified(changed).unwrap();
    };
    write("conn.log", "of the last run\n");
    write("conn.2011-03-07-03-00-05.log", "of the run before\n");
    write("conn.2011-03-07-03-00-05-2.log", "of another one\n");
    write("notes.log", "mine\n");
    let mut files = live(&directory, Format::Json, Roll::default());
    files.row(log("conn"), &key(START), b"{}\n").unwrap();
    files.end(at(START)).unwrap();
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    assert_eq!(read("conn.log"), "{}\n");
    assert_eq!(read("conn.2011-03-07-03-00-05.log"), "of the run before\n");
    assert_eq!(read("conn.2011-03-07-03-00-05-2.log"), "of another one\n");
    assert_eq!(read("conn.2011-03-07-03-00-05-3.log"), "of the last run\n");
    assert_eq!(read("notes.log"), "mine\n");
}

#[test]
fn what_comes_to_lie_at_the_name_of_a_log_is_kept_too() {
    let directory = Directory::new("between");
    let mut files = live(&directory, Format::Json, Roll::default());
    fs::write(directory.join("conn.log"), "somebody else's\n").unwrap();
    files.row(log("conn"), &key(START), b"{}\n").unwrap();
    files.end(at(START)).unwrap();
    assert_eq!(directory.rows("conn"), ["somebody else's", "{}"]);
}

#[test]
fn a_flush_shows_all_rows_so_far_and_whole_ones() {
    let directory = Directory::new("flush");
    let mut files = live(&directory, Format::Tsv, Roll::default());
    let mut expected = Vec::new();
    for number in 0..20_000 {
        let row = format!("{number}{}", "z".repeat(number % 50));
        files.row(log("tcp"), &key(START), format!("{row}\n").as_bytes()).unwrap();
        expected.push(row);
        if number % 1999 == 0 {
            files.flush(at(START)).unwrap();
            assert_eq!(directory.rows("tcp"), expected);
        }
    }
    // More than the buffer holds goes out by itself, and in whole rows.
    let shown = directory.rows("tcp").len();
    assert!(shown > 18_000 && shown < 20_000, "{shown}");
}

#[test]
fn a_file_that_logrotate_moved_is_ended_and_a_new_one_begun() {
    let directory = Directory::new("logrotate");
    let mut files = live(&directory, Format::Tsv, Roll::default());
    files.row(log("ssh"), &key(START), b"one\n").unwrap();
    files.flush(at(START)).unwrap();
    fs::rename(directory.join("ssh.log"), directory.join("moved")).unwrap();
    files.row(log("ssh"), &key(START), b"two\n").unwrap();
    files.roll(at(START)).unwrap();
    files.row(log("ssh"), &key(START), b"three\n").unwrap();
    files.end(at(START)).unwrap();
    assert_eq!(rows_of(&directory.join("moved")), ["one", "two"]);
    assert!(fs::read_to_string(directory.join("moved")).unwrap().contains("\n#close\t"));
    assert_eq!(directory.files("ssh"), [directory.join("ssh.log")]);
    assert_eq!(directory.rows("ssh"), ["three"]);
}

#[test]
fn rows_that_wait_for_a_file_that_was_removed_go_to_a_new_one() {
    let directory = Directory::new("removed");
    let mut files = live(&directory, Format::Tsv, Roll::default());
    files.row(log("ssh"), &key(START), b"one\n").unwrap();
    files.flush(at(START)).unwrap();
    files.row(log("ssh"), &key(START), b"two\n").unwrap();
    fs::remove_file(directory.join("ssh.log")).unwrap();
    files.flush(at(START)).unwrap();
    assert_eq!(directory.rows("ssh"), ["two"]);
    files.row(log("ssh"), &key(START), b"three\n").unwrap();
    files.end(at(START)).unwrap();
    assert_eq!(directory.rows("ssh"), ["two", "three"]);
}

#[test]
fn a_directory_that_was_removed_is_told_and_rows_are_refused_until_it_is_back() {
    let directory = Directory::new("gone");
    let mut files = live(&directory, Format::Tsv, Roll::default());
    files.row(log("ssh"), &key(START), b"one\n").unwrap();
    files.flush(at(START)).unwrap();
    files.row(log("ssh"), &key(START), b"two\n").unwrap();
    fs::remove_dir_all(&directory.0).unwrap();
    let error = format!("{:#}", files.flush(at(START)).unwrap_err());
    let expected = format!("cannot create {}: ", directory.join("ssh.log").display());
    assert!(error.starts_with(&expected), "{error}");
    assert!(files.row(log("ssh"), &key(START), b"three\n").is_ok(), "it was told already");
    assert_eq!(written(files.books()), [1, 2]);
    fs::create_dir(&directory.0).unwrap();
    files.flush(at(START)).unwrap();
    files.row(log("ssh"), &key(START), b"four\n").unwrap();
    files.end(at(START)).unwrap();
    assert_eq!(directory.rows("ssh"), ["four"]);
    assert_eq!(written(files.books()), [2, 2]);
}

#[test]
#[cfg(unix)]
fn a_link_that_comes_between_two_rolls_is_not_written_through() {
    let directory = Directory::new("link");
    fs::write(directory.join("kept"), "before\n").unwrap();
    let mut files = live(&directory, Format::Tsv, Roll::default());
    files.row(log("conn"), &key(START), b"1\n").unwrap();
    files.roll(at(START)).unwrap();
    std::os::unix::fs::symlink(directory.join("kept"), directory.join("conn.log")).unwrap();
    let error = format!("{:#}", files.row(log("conn"), &key(START), b"2\n").unwrap_err());
    assert!(error.contains("symbolic link"), "{error}");
    fs::remove_file(directory.join("conn.log")).unwrap();
    files.flush(at(START)).unwrap();
    files.row(log("conn"), &key(START), b"3\n").unwrap();
    files.end(at(START)).unwrap();
    assert_eq!(fs::read(directory.join("kept")).unwrap(), b"before\n");
    assert_eq!(written(files.books()), [2, 1]);
}

#[test]
#[cfg(unix)]
fn a_pipe_without_a_reader_refuses_until_there_is_one() {
    let directory = Directory::new("pipe");
    let path = directory.join("conn.log");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    let mut files = live(&directory, Format::Tsv, Roll::default());
    let error = format!("{:#}", files.row(log("conn"), &key(START), b"1\n").unwrap_err());
    assert!(error.ends_with("nobody reads the pipe"), "{error}");
    files.row(log("conn"), &key(START), b"2\n").unwrap();
    let reader = {
        let path = path.clone();
        std::thread::spawn(move || {
            let mut text = String::new();
            File::open(path).unwrap().read_to_string(&mut text).unwrap();
            text
        })
    };
    // The reader waits for a writer, which comes with a row behind a flush.
    let mut number = 3;
    while files.books().written.total() == 0 {
        files.flush(at(START)).ok();
        files.row(log("conn"), &key(START), format!("{number}\n").as_bytes()).ok();
        files.flush(at(START)).ok();
        number += 1;
        assert!(number < 2000, "no reader came");
        std::thread::sleep(Duration::from_millis(5));
    }
    files.end(at(START)).unwrap();
    drop(files);
    let text = reader.join().unwrap();
    assert!(text.starts_with("#separator") && text.contains("\n#close\t"), "{text}");
    assert!(text.contains(&format!("\n{}\n#close", number - 1)), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_full_device_does_not_take_is_refused_and_its_log_rests_until_a_flush() {
    let directory = Directory::new("device");
    if !full_device(&directory.join("conn.log"), "no log was written to it") {
        return;
    }
    let mut files = live(&directory, Format::Json, Roll::default());
    let mut errors = Vec::new();
    for _ in 0..3 {
        for number in 0..10 {
            let row = format!("{{{number}}}\n");
            errors.extend(files.row(log("conn"), &key(START), row.as_bytes()).err());
        }
        errors.extend(files.flush(at(START)).err());
        errors.extend(files.row(log("conn"), &key(START), b"rests\n").err());
        files.row(log("dns"), &key(START), b"{}\n").unwrap();
    }
    files.end(at(START)).ok();
    // The second flush ends the rest that began with the first one.
    assert_eq!(errors.len(), 2);
    let path = directory.join("conn.log");
    let said = format!("{:#}", errors[0]);
    assert_eq!(
        said,
        format!("cannot write {}: No space left on device (os error 28)", path.display())
    );
    assert_eq!(written(files.books()), [3, 33]);
    assert_eq!(directory.rows("dns"), ["{}", "{}", "{}"]);
}

/// A file system in memory that is full soon, for tests that run as root.
#[cfg(target_os = "linux")]
struct Tiny(Directory);

#[cfg(target_os = "linux")]
impl Tiny {
    fn mount(name: &str, options: &str) -> Option<Self> {
        let directory = Directory::new(name);
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&directory.0)
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            skip(Need::Root, "a full disk was not tried, since only root may mount a small one");
            return None;
        }
        Some(Self(directory))
    }
}

#[cfg(target_os = "linux")]
impl Drop for Tiny {
    fn drop(&mut self) {
        // A child of another test has all open files for a moment, until it becomes another program.
        for _ in 0..100 {
            let unmounted = Command::new("umount").arg(&self.0.0).output();
            if unmounted.is_ok_and(|output| output.status.success()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_whole_rows_and_goes_on_when_there_is_room() {
    let Some(tiny) = Tiny::mount("tiny", "size=64k") else { return };
    let directory = &tiny.0;
    fs::write(directory.join("ballast"), vec![0; 20_000]).unwrap();
    let mut files = live(directory, Format::Tsv, Roll::default());
    let (mut errors, mut number) = (Vec::new(), 0);
    let mut fill = |files: &mut LogFiles, rows: usize| {
        for _ in 0..rows {
            for path in ["conn", "dns"] {
                let row = format!("{number} {}\n", "r".repeat(number * 31 % 200));
                errors.extend(files.row(log(path), &key(START), row.as_bytes()).err());
                number += 1;
            }
            if number % 20 == 0 {
                errors.extend(files.flush(at(START)).err());
            }
        }
    };
    fill(&mut files, 500);
    let [full, refused] = written(files.books());
    assert!(full > 200 && refused > 300, "{full} {refused}");
    let on_disk = |directory: &Directory| {
        ["conn", "dns"].map(|path| directory.rows(path).len() as u64).iter().sum::<u64>()
    };
    assert_eq!(on_disk(directory), full);
    fs::remove_file(directory.join("ballast")).unwrap();
    fill(&mut files, 40);
    errors.extend(files.end(at(START)).err());
    let [more, refused] = written(files.books());
    assert!(more > full, "nothing was written once there was room");
    assert_eq!(more + refused, 2 * 540);
    assert_eq!(on_disk(directory), more);
    for path in ["conn", "dns"] {
        let numbers = directory.rows(path);
        let numbers = numbers.iter().map(|row| row.split(' ').next().unwrap().parse().unwrap());
        assert!(numbers.collect::<Vec<u64>>().is_sorted_by(|a, b| a < b), "{path}");
    }
    let said = format!("{:#}", errors[0]);
    assert!(said.ends_with(".log: No space left on device (os error 28)"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_log_that_cannot_be_renamed_goes_on_and_loses_nothing() {
    // There are as many files as there may be, so that none can get another name.
    let Some(tiny) = Tiny::mount("names", "size=1m,nr_inodes=2") else { return };
    let mut files = live(&tiny.0, Format::Tsv, Roll { every: None, size: Some(4096) });
    let mut errors = Vec::new();
    for number in 0..200 {
        let row = format!("{number} {}\n", "r".repeat(100));
        errors.extend(files.row(log("conn"), &key(START), row.as_bytes()).err());
    }
    errors.extend(files.roll(at(START)).err());
    assert_eq!(errors.len(), 2, "{errors:?}");
    let said = format!("{:#}", errors[0]);
    assert!(said.starts_with("cannot rename") && said.contains("No space left"), "{said}");
    files.end(at(START)).unwrap();
    assert_eq!(tiny.0.rows("conn").len(), 200);
    assert_eq!(written(files.books()), [200, 0]);
}

#[test]
fn files_of_captures_do_not_roll() {
    let directory = Directory::new("offline");
    fs::write(directory.join("conn.log"), "old\n").unwrap();
    let mut files = LogFiles::create(&directory.0, Format::Json).unwrap();
    for second in 0..10_000 {
        files.row(log("conn"), &key(START + second), b"{}\n").unwrap();
    }
    files.finish(at(START)).unwrap();
    assert_eq!(directory.files("conn"), [Path::new(&directory.join("conn.log"))]);
    assert_eq!(directory.rows("conn").len(), 10_000);
}
