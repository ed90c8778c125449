//! Tests of the hand-off to the thread that extracts files.

use std::fs;
use std::path::PathBuf;

use super::*;

/// A directory of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("netsniff-extracting-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// A thread that writes here, and what hands over to it.
    fn writer(&self, bounds: ContentBounds) -> (ExtractionWriter, Extracting) {
        let directory = ExtractedFiles::create(&self.0, 0, |said| panic!("{said}")).unwrap();
        let writer = ExtractionWriter::start(directory, bounds).unwrap();
        let extracting = Extracting(Arc::clone(&writer.hand_off));
        (writer, extracting)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const QUICK: ContentBounds = ContentBounds {
    bytes: 8 * BUFFER,
    lag: Duration::from_millis(150),
    end_wait: Duration::from_millis(300),
};

fn name(number: u32) -> String {
    format!("extract-1317402178.000001-HTTP-F{number:017}")
}

fn undecided(writer: &ExtractionWriter) -> (u64, u64) {
    writer.hand_off.directory.undecided()
}

#[test]
fn files_that_another_thread_writes_are_whole() {
    let scratch = Scratch::new("whole");
    let (writer, extracting) = scratch.writer(ContentBounds::default());
    let mut files: Vec<_> = (0..20).map(|n| extracting.file(&name(n)).unwrap()).collect();
    let mut expected = vec![Vec::new(); 20];
    for round in 0..900_u32 {
        for (number, (file, content)) in files.iter_mut().zip(&mut expected).enumerate() {
            let piece = (round * 31 + number as u32).to_string().repeat(number * 50 + 1);
            if round == 500 {
                // A hole.
                content.resize(content.len() + 70_000, 0);
            }
            file.write(content.len() as u64, piece.as_bytes());
            content.extend_from_slice(piece.as_bytes());
        }
    }
    for (file, content) in files.iter_mut().zip(&mut expected) {
        content.resize(content.len() + 9, 0);
        file.end(content.len() as u64);
        assert_eq!(file.keep(), Stored::Whole);
    }
    drop(files);
    assert_eq!(writer.news(), [""; 0]);
    let hand_off = Arc::clone(&writer.hand_off);
    let outcome = writer.finish();
    assert_eq!(outcome, ExtractionOutcome::default());
    for (number, content) in (0..).zip(&expected) {
        assert!(fs::read(scratch.0.join(name(number))).unwrap() == *content, "{number}");
    }
    assert_eq!(hand_off.directory.undecided(), (0, 0));
    assert_eq!(hand_off.lock().held_bytes, 0);
}

/// The disk hangs in the middle of a file: others are refused and counted, at once after the first, and
/// all works again behind it.
#[test]
fn a_disk_that_hangs_costs_files_and_no_time() {
    let scratch = Scratch::new("hangs");
    let (writer, extracting) = scratch.writer(QUICK);
    let [mut stuck, mut large, mut small] = [1, 2, 3].map(|n| extracting.file(&name(n)).unwrap());
    let hung = Arc::clone(stuck.file.as_ref().unwrap());
    let hangs = hung.output.lock().unwrap();
    let piece = vec![7; BUFFER];
    stuck.write(0, &piece);
    let begin = Instant::now();
    for at in 0..100 {
        large.write(at * BUFFER as u64, &piece);
    }
    assert!(large.file.is_none(), "the queue has no room for it");
    let news = writer.news();
    assert!(news.len() == 1 && news[0].contains("faster than the disk"), "{news:?}");
    small.write(0, b"small");
    small.end(5);
    stuck.end(BUFFER as u64);
    large.end(100 * BUFFER as u64);
    assert!(begin.elapsed() < QUICK.lag, "nobody waits: {:?}", begin.elapsed());
    // The logs wait once.
    assert_eq!(large.keep(), Stored::Overrun);
    assert_eq!(stuck.keep(), Stored::Overrun);
    assert!((2 * QUICK.lag..8 * QUICK.lag).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    let once = Instant::now();
    assert_eq!(small.keep(), Stored::Overrun);
    assert!(once.elapsed() < QUICK.lag, "{:?}", once.elapsed());
    assert!(writer.hand_off.lock().held_bytes <= QUICK.bytes);

    drop(hangs);
    drop((hung, stuck, large, small));
    let behind = Instant::now();
    while writer.hand_off.lock().lag().is_some() && behind.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(scratch.files().is_empty(), "{:?}", scratch.files());
    assert_eq!(undecided(&writer), (0, 0));
    let mut again = extracting.file(&name(5)).unwrap();
    again.write(0, b"again");
    again.end(5);
    assert_eq!(again.keep(), Stored::Whole);
    drop(again);
    assert_eq!(writer.news(), [""; 0], "told once");
    assert_eq!(writer.finish(), ExtractionOutcome::default());
    assert_eq!(scratch.files(), [name(5)]);
}

/// There is room, but what waits has waited for so long that the logs would, too.
#[test]
fn a_disk_that_lags_gets_no_more() {
    let scratch = Scratch::new("lags");
    let (writer, extracting) = scratch.writer(ContentBounds { bytes: 64 << 20, ..QUICK });
    let [mut stuck, mut early, mut late] = [1, 2, 3].map(|n| extracting.file(&name(n)).unwrap());
    let hung = Arc::clone(stuck.file.as_ref().unwrap());
    let hangs = hung.output.lock().unwrap();
    let piece = vec![7; BUFFER];
    stuck.write(0, &piece);
    early.write(0, &piece);
    std::thread::sleep(QUICK.lag);
    late.write(0, &piece);
    assert!(early.file.is_some() && late.file.is_none());
    drop(hangs);
    drop(hung);
    early.end(BUFFER as u64);
    assert_eq!((early.keep(), late.keep()), (Stored::Whole, Stored::Overrun));
    drop((stuck, early, late));
    let outcome = writer.finish();
    assert_eq!((outcome.untold, outcome.failure), (1, None));
    assert_eq!(scratch.files(), [name(2)]);
}

#[test]
fn a_disk_that_hangs_at_the_end_is_given_up() {
    let scratch = Scratch::new("end");
    let (writer, extracting) = scratch.writer(QUICK);
    let mut stuck = extracting.file(&name(1)).unwrap();
    let hung = Arc::clone(stuck.file.as_ref().unwrap());
    let hangs = hung.output.lock().unwrap();
    stuck.write(0, b"stuck");
    stuck.end(5);
    drop(stuck);
    let begin = Instant::now();
    let outcome = writer.finish();
    assert!((QUICK.end_wait..3 * QUICK.end_wait).contains(&begin.elapsed()));
    assert!(outcome.has_failed && outcome.failure.unwrap().contains("in time"));
    drop(hangs);
}

/// Its row was refused on the way to the logs: nothing of it stays.
#[test]
fn what_no_row_tells_of_is_removed_and_counted() {
    let scratch = Scratch::new("untold");
    let (writer, extracting) = scratch.writer(ContentBounds::default());
    for (number, ends) in [(1, true), (2, false)] {
        let mut file = extracting.file(&name(number)).unwrap();
        file.write(0, &vec![1; 5 * BUFFER]);
        if ends {
            file.end(5 * BUFFER as u64);
        }
    }
    let outcome = writer.finish();
    assert_eq!((outcome.untold, outcome.has_failed), (2, false));
    assert!(scratch.files().is_empty());
}

#[test]
fn a_bound_is_told_at_once_and_ends_what_is_on_its_way() {
    let scratch = Scratch::new("bound");
    let (writer, extracting) = scratch.writer(ContentBounds::default());
    let [mut first, mut second] = [1, 2].map(|n| extracting.file(&name(n)).unwrap());
    first.write(0, b"first");
    first.end(5);
    first.refuse();
    second.write(0, b"second");
    second.end(6);
    assert_eq!(second.keep(), Stored::Refused);
    assert!(extracting.file(&name(3)).is_none());
    let news = writer.news();
    assert!(news.len() == 1 && news[0].contains("--extract-total"), "{news:?}");
    drop((first, second));
    assert_eq!(writer.finish(), ExtractionOutcome::default());
    assert!(scratch.files().is_empty());
}

/// As when too much lies on the disk that is not decided yet.
#[test]
fn a_bound_that_the_writing_thread_meets_is_told_too() {
    let scratch = Scratch::new("met");
    let (writer, extracting) = scratch.writer(ContentBounds::default());
    let mut file = extracting.file(&name(1)).unwrap();
    writer.hand_off.directory.close();
    file.write(0, b"too much");
    file.end(8);
    assert_eq!(file.keep(), Stored::Refused);
    assert_eq!(writer.news().len(), 1);
    drop(file);
    assert_eq!(writer.finish(), ExtractionOutcome::default());
}

#[test]
fn what_cannot_be_written_has_failed() {
    let scratch = Scratch::new("failed");
    let directory = ExtractedFiles::create(&scratch.0, 0, |_| {}).unwrap();
    let writer = ExtractionWriter::start(directory, ContentBounds::default()).unwrap();
    let mut file = writer.extract().begin(&name(1)).unwrap();
    fs::remove_dir_all(&scratch.0).unwrap();
    file.write(0, b"lost");
    file.end(4);
    assert_eq!(file.keep(), Stored::Failed);
    drop(file);
    let outcome = writer.finish();
    assert_eq!((outcome.has_failed, outcome.failure), (true, None));
}
