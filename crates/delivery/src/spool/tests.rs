//! Spools that are left, cut, damaged and full.

use std::time::Duration;

use super::*;
use crate::Identity;

/// A folder that goes at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("netsniff-spool-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self, bound: u64) -> Arc<Spool> {
        Spool::open(&self.0, bound, "target").unwrap()
    }

    fn segments(&self) -> Vec<PathBuf> {
        segment::numbers(&self.0)
            .unwrap()
            .iter()
            .map(|&number| segment::path(&self.0, number))
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const BOUNDS: BatchBounds = BatchBounds { rows: 10, bytes: 4096, linger: Duration::ZERO };

fn appender(spool: &Arc<Spool>, run: &str, on_full: OnFull) -> Appender {
    Appender::new(Arc::clone(spool), &Identity::new("s", run).unwrap(), on_full)
}

/// Takes rows until the spool has none left, as names with their JSON.
fn taken(spool: &Spool, most: usize) -> Vec<String> {
    let mut taken = Vec::new();
    while taken.len() < most
        && let Some(batch) = spool.next(&BOUNDS).unwrap()
    {
        for row in batch.rows() {
            let mut name = Vec::new();
            row.name(&mut name);
            taken.push(format!("{} {}", String::from_utf8(name).unwrap(), row.json.len()));
        }
        spool.settled(&batch, 0..batch.len(), 0);
    }
    taken
}

fn is_balanced(books: &Books) -> bool {
    books.found + books.made == books.delivered + books.spooled + books.refused()
}

#[test]
fn rows_come_out_as_they_went_in_and_files_go() {
    let folder = Folder::new("order");
    let spool = folder.open(LEAST_BYTES);
    let mut rows = appender(&spool, "a", OnFull::Refuse);
    for seq in 0..3000 {
        rows.row("conn", seq, 5, &vec![b'x'; seq as usize % 100]).unwrap();
    }
    rows.finish().unwrap();
    assert!(folder.segments().len() > 1, "{:?}", folder.segments());
    let expected: Vec<_> = (0..3000).map(|seq| format!("s:a:conn:{seq} {}", seq % 100)).collect();
    assert_eq!(taken(&spool, usize::MAX), expected);
    assert!(folder.segments().is_empty());
    let books = spool.books();
    assert!(is_balanced(&books) && books.delivered == 3000 && books.is_whole(), "{books:?}");
}

#[test]
fn what_is_left_is_delivered_by_the_next_run_first() {
    let folder = Folder::new("left");
    let spool = folder.open(LEAST_BYTES);
    let mut rows = appender(&spool, "a", OnFull::Refuse);
    for seq in 0..25 {
        rows.row("dns", seq, 5, b"{}").unwrap();
    }
    rows.flush().unwrap();
    assert_eq!(taken(&spool, 10).len(), 10);
    // A process that is killed ends nothing.
    let said = Spool::open(&folder.0, LEAST_BYTES, "target").unwrap_err().to_string();
    assert!(said.contains("in use"), "{said}");
    drop((rows, spool));
    let spool = folder.open(LEAST_BYTES);
    assert_eq!((spool.books().found, spool.books().spooled), (15, 15));
    let mut rows = appender(&spool, "b", OnFull::Refuse);
    rows.row("dns", 0, 5, b"{}").unwrap();
    rows.finish().unwrap();
    let all = taken(&spool, usize::MAX);
    assert_eq!(all.len(), 16);
    assert_eq!((all[0].as_str(), all[15].as_str()), ("s:a:dns:10 2", "s:b:dns:0 2"));
    assert!(is_balanced(&spool.books()) && spool.books().is_whole());
}

#[test]
fn a_row_that_was_written_half_was_never_promised() {
    let folder = Folder::new("torn");
    let spool = folder.open(LEAST_BYTES);
    let mut rows = appender(&spool, "a", OnFull::Refuse);
    for seq in 0..3 {
        rows.row("dns", seq, 5, b"{\"a\":1}").unwrap();
    }
    rows.flush().unwrap();
    drop((rows, spool));
    let path = folder.segments().remove(0);
    let whole = fs::read(&path).unwrap();
    let one = 8 + 8 + 8 + 1 + 3 + 7;
    let first = whole.len() - 3 * one;
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let spool = folder.open(LEAST_BYTES);
        let rows = (length.saturating_sub(first) / one) as u64;
        let books = spool.books();
        assert_eq!((books.found, books.damaged_bytes), (rows, 0), "{length} bytes");
        spool.close();
        if length < whole.len() {
            // What is behind it must come out as well.
            spool.lock().is_closed = false;
            let mut more = appender(&spool, "b", OnFull::Refuse);
            more.row("dns", 9, 5, b"{}").unwrap();
            more.finish().unwrap();
            let taken = taken(&spool, usize::MAX);
            assert_eq!(taken.len() as u64, rows + 1, "{length} bytes");
            assert_eq!(taken.last().unwrap(), "s:b:dns:9 2");
        }
        drop(spool);
        fs::remove_dir_all(&folder.0).unwrap();
        fs::create_dir(&folder.0).unwrap();
    }
}

#[test]
fn damage_costs_what_is_behind_it_in_its_file_and_is_said() {
    let folder = Folder::new("damage");
    let spool = folder.open(LEAST_BYTES);
    let mut rows = appender(&spool, "a", OnFull::Refuse);
    for seq in 0..20 {
        rows.row("dns", seq, 5, b"{\"a\":1}").unwrap();
    }
    rows.flush().unwrap();
    drop((rows, spool));
    let path = folder.segments().remove(0);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.len() - 3;
    bytes[at - 35 * 9] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let spool = folder.open(LEAST_BYTES);
    spool.close();
    let books = spool.books();
    assert_eq!(books.found, 10);
    assert!(books.damaged_bytes == 350 && !books.is_whole(), "{books:?}");
    assert_eq!(taken(&spool, usize::MAX).len(), 10);
    assert!(is_balanced(&spool.books()));
}

#[test]
fn beyond_its_bound_a_spool_refuses_and_counts_or_makes_wait() {
    let folder = Folder::new("bound");
    let spool = folder.open(LEAST_BYTES);
    let mut rows = appender(&spool, "a", OnFull::Refuse);
    let json = vec![b'x'; 1000];
    for seq in 0..3000 {
        rows.row("conn", seq, 5, &json).unwrap();
    }
    rows.finish().unwrap();
    let books = spool.books();
    assert!(is_balanced(&books) && books.refused_full > 1000 && books.spooled > 800, "{books:?}");
    let size: u64 = folder.segments().iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!((LEAST_BYTES * 7 / 8..=LEAST_BYTES).contains(&size), "{size}");
    assert_eq!(taken(&spool, usize::MAX).len() as u64, books.spooled);

    let spool = {
        drop((rows, spool));
        folder.open(LEAST_BYTES)
    };
    let mut rows = appender(&spool, "b", OnFull::Wait);
    let made = std::thread::spawn(move || {
        for seq in 0..3000 {
            rows.row("conn", seq, 5, &json).unwrap();
        }
        rows.finish().unwrap();
    });
    std::thread::sleep(Duration::from_millis(200));
    assert!(!made.is_finished(), "nothing waits for room");
    assert_eq!(taken(&spool, usize::MAX).len(), 3000);
    made.join().unwrap();
    assert!(is_balanced(&spool.books()) && spool.books().is_whole());
}

#[test]
fn garbage_of_any_size_takes_no_memory_and_is_counted() {
    let folder = Folder::new("garbage");
    drop(folder.open(LEAST_BYTES));
    let size = 1 << 40;
    // A valid begin, one row, and then nothing for a long while.
    let mut whole = segment::header(&Identity::new("s", "a").unwrap());
    record::Record { time: 5, seq: 0, log: "dns", json: b"{}" }.append(&mut whole);
    for (number, begin) in [(1, &whole[..]), (2, b"")] {
        let file = segment::path(&folder.0, number);
        fs::write(&file, begin).unwrap();
        File::options().write(true).open(&file).unwrap().set_len(size).unwrap();
    }
    let spool = folder.open(LEAST_BYTES);
    spool.close();
    let books = spool.books();
    assert_eq!((books.found, books.damaged_bytes), (1, 2 * size - whole.len() as u64));
    assert_eq!(taken(&spool, usize::MAX), ["s:a:dns:0 2"]);
    assert!(is_balanced(&spool.books()) && folder.segments().is_empty());
}

#[test]
fn no_link_leads_out_of_a_spool() {
    let folder = Folder::new("links");
    let elsewhere = folder.0.with_extension("elsewhere");
    for name in ["lock", "position", "00000000000000000007.rows"] {
        let _ = fs::remove_dir_all(&folder.0);
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(&elsewhere, "mine").unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.0.join(name)).unwrap();
        assert!(Spool::open(&folder.0, LEAST_BYTES, "target").is_err(), "{name}");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
    }
    fs::remove_file(elsewhere).unwrap();
}
