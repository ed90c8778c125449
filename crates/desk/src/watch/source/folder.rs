//! A directory of logs, which may be written while it is read.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use netsniff_analysis::record::LogType;
use netsniff_analysis::rows::LOGS;
use netsniff_console::{DAMAGED, DONE, FAILED};

use super::growing::{GrowingFile, identity};
use super::{Ending, Listener, Told};
use crate::logs::{Folder, LogFile};
use crate::watch::data::row::LogRow;

/// How often files are looked at.
const PAUSE: Duration = Duration::from_millis(300);
/// After how many pauses the directory is looked at for logs that began.
const PAUSES: u64 = 10;
/// Faults that are kept.
const WRONGS: usize = 100;

/// A directory of logs.
struct Logs {
    directory: PathBuf,
    logs: Vec<Log>,
    /// What could not be read, each once.
    wrong: Vec<String>,
}

/// A log: its files in the order of their times, which are read one after the other.
struct Log {
    log: &'static LogType,
    /// Names without ending, of files that were read or wait.
    known: HashSet<String>,
    waiting: VecDeque<Waiting>,
    /// The file that is read, by the name under which it was found.
    open: Option<(PathBuf, GrowingFile)>,
    /// Whether its name was another's when it was looked at before.
    is_renamed: bool,
    /// Whether its file was removed, and another one has its name.
    is_replaced: bool,
}

/// A file that is not read yet. One that is being written is open already, since its name will be another's.
struct Waiting(PathBuf, Option<GrowingFile>);

/// Reads the logs of a directory; their rows are told. Where `follows`, it goes on with what is written later.
///
/// # Errors
///
/// When there is no log `series` in it.
pub(crate) fn start(directory: &Path, follows: bool, listener: Listener) -> anyhow::Result<()> {
    let logs = Logs::open(directory)?;
    if !logs.has_series() {
        let unread = Folder::open(directory)?.unread;
        let unread = unread.iter().find(|name| name.starts_with("series."));
        if let Some(name) = unread {
            anyhow::bail!(
                "{name} in {} is in a form that is not read here: write the logs in the format tsv or json",
                directory.display()
            );
        }
        anyhow::bail!(
            "{} has no log `series` that can be read, from which intervals are known: write the logs with --series 1s \
             --series-conns 50",
            directory.display()
        );
    }
    // Where nobody listens any more, nobody asks how it ended.
    let read = move || _ = follow(logs, follows, &listener);
    thread::Builder::new().name("rows".to_owned()).spawn(read)?;
    Ok(())
}

/// Reads all files, and goes on where it `follows`. `None` where nobody wants the rows any more.
fn follow(mut logs: Logs, follows: bool, listener: &Listener) -> Option<()> {
    let (mut pauses, mut is_told) = (0_u64, false);
    loop {
        if logs.read(listener)? {
            (pauses, is_told) = (0, false);
            continue;
        }
        if !follows {
            logs.end();
            return listener(Told::Ended(logs.ending()));
        }
        // Between its last line and another name of the file a moment passes.
        if pauses > 1 && !is_told && logs.are_closed() {
            listener(Told::Ended(logs.ending()))?;
            is_told = true;
        }
        thread::sleep(PAUSE);
        pauses += 1;
        if logs.are_anew() {
            listener(Told::Anew)?;
            match Logs::open(&logs.directory) {
                Ok(others) => logs = others,
                Err(error) => {
                    let ending = Ending { how: format!("{error:#}"), code: FAILED };
                    return listener(Told::Ended(ending));
                }
            }
        } else {
            let before = logs.wrong.len();
            logs.renew(pauses);
            if logs.wrong.len() > before {
                listener(Told::Said(logs.ending().how))?;
            }
        }
    }
}

impl Logs {
    fn open(directory: &Path) -> anyhow::Result<Self> {
        let log = |log: &&'static LogType| Log {
            log,
            known: HashSet::new(),
            waiting: VecDeque::new(),
            open: None,
            is_renamed: false,
            is_replaced: false,
        };
        let logs = LOGS.iter().map(log).collect();
        let directory = directory.to_owned();
        let mut all = Self { directory, logs, wrong: Vec::new() };
        let folder = Folder::open(&all.directory)?;
        all.look(&folder);
        Ok(all)
    }

    fn has_series(&self) -> bool {
        let has = |log: &Log| log.open.is_some() || !log.waiting.is_empty();
        self.logs.iter().any(|log| log.log.path == "series" && has(log))
    }

    fn note(&mut self, wrong: Vec<String>) {
        for wrong in wrong {
            if self.wrong.len() < WRONGS && !self.wrong.contains(&wrong) {
                self.wrong.push(wrong);
            }
        }
    }

    /// Hands over the rows of the next pieces. Returns whether there were any; `None` where nobody wants them.
    fn read(&mut self, listener: &Listener) -> Option<bool> {
        let (mut has_read, mut wrong, mut rows) = (false, Vec::new(), Vec::new());
        for log in &mut self.logs {
            has_read |= log.read(&mut rows, &mut wrong);
            if !rows.is_empty() {
                listener(Told::Rows(std::mem::take(&mut rows)))?;
            }
        }
        self.note(wrong);
        Some(has_read)
    }

    /// Goes on with files that have come in place of those that were renamed, and with logs that began.
    fn renew(&mut self, pauses: u64) {
        // Each is looked at: it is told by two looks.
        let left = self.logs.iter_mut().filter_map(|log| log.is_left().then_some(())).count();
        if left > 0 || pauses.is_multiple_of(PAUSES) {
            match Folder::open(&self.directory) {
                Ok(folder) => self.look(&folder),
                Err(error) => self.note(vec![format!("{error:#}")]),
            }
        }
    }

    fn look(&mut self, folder: &Folder) {
        let mut wrong = Vec::new();
        for (name, files) in folder.logs() {
            let log = self.logs.iter_mut().find(|log| log.log.path == name);
            log.into_iter().for_each(|log| log.look(files, &mut wrong));
        }
        self.note(wrong);
    }

    fn are_closed(&self) -> bool {
        let mut open = self.logs.iter().filter_map(|log| log.open.as_ref());
        open.all(|(path, file)| file.is_closed() && identity(path) == Some(file.identity()))
    }

    fn are_anew(&self) -> bool {
        let is_anew = |log: &Log| log.open.as_ref().is_some_and(|(_, file)| file.is_anew());
        self.logs.iter().any(|log| log.is_replaced || is_anew(log))
    }

    /// Lets all files go.
    fn end(&mut self) {
        let mut wrong = Vec::new();
        self.logs.iter_mut().for_each(|log| log.let_go(&mut wrong));
        self.note(wrong);
    }

    fn ending(&self) -> Ending {
        let Some(last) = self.wrong.last() else {
            return Ending { how: "read to its end".to_owned(), code: DONE };
        };
        let others = match self.wrong.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} more"),
        };
        Ending { how: format!("not all could be read: {last}{others}"), code: DAMAGED }
    }
}

impl Log {
    /// Adds the rows of the next piece. Returns whether there is more to be read.
    fn read(&mut self, rows: &mut Vec<LogRow>, wrong: &mut Vec<String>) -> bool {
        if let Some((path, file)) = &mut self.open {
            let goes_on = file.read(rows);
            let complaints = file.complaints();
            wrong.extend(complaints.iter().map(|why| format!("{}: {why}", path.display())));
            if goes_on {
                return true;
            }
        }
        self.next(wrong)
    }

    /// Goes on with the next file that waits. Returns whether there is one.
    fn next(&mut self, wrong: &mut Vec<String>) -> bool {
        let Some(Waiting(path, file)) = self.waiting.pop_front() else { return false };
        self.let_go(wrong);
        match file.map_or_else(|| GrowingFile::open(&path, self.log), Ok) {
            Ok(file) => self.open = Some((path, file)),
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
        true
    }

    fn let_go(&mut self, wrong: &mut Vec<String>) {
        self.is_renamed = false;
        if let Some((path, file)) = self.open.take()
            && file.ends_cut()
        {
            wrong.push(format!("{}: it ends within a row", path.display()));
        }
    }

    /// Whether the name of the file is another's, and was before: whoever writes it has had the time to end it.
    fn is_left(&mut self) -> bool {
        let Some((path, file)) = &self.open else { return false };
        let was_renamed = self.is_renamed;
        self.is_renamed = identity(path) != Some(file.identity());
        self.is_renamed && was_renamed
    }

    /// Looks for files that are not known yet, once all others were read.
    fn look(&mut self, files: &[LogFile], wrong: &mut Vec<String>) {
        let own = self.open.as_ref().map(|(_, file)| file.identity());
        let is_in_place = self.open.as_ref().is_none_or(|(path, _)| identity(path) == own);
        if !self.waiting.is_empty() || (!is_in_place && !self.is_renamed) {
            return;
        }
        let is_here = files.iter().any(|file| identity(&file.path) == own);
        // Where no name is that of the file any more, it is what was packed under the first new one.
        let mut is_packed = own.is_some() && !is_here;
        let mut names = HashSet::new();
        for file in files {
            let stem = file.stem().to_owned();
            // The same rows may be there in two forms.
            let is_double = !names.insert(stem.clone());
            let is_rolled = file.is_rolled();
            if is_double || (is_rolled && self.known.contains(&stem)) {
                continue;
            }
            if own.is_some() && identity(&file.path) == own {
                continue;
            }
            if is_rolled && std::mem::take(&mut is_packed) {
                continue;
            }
            let opened = if is_rolled {
                None
            } else {
                match GrowingFile::open(&file.path, self.log) {
                    Ok(opened) => Some(opened),
                    Err(error) => {
                        wrong.push(format!("{}: {error}", file.path.display()));
                        continue;
                    }
                }
            };
            self.waiting.push_back(Waiting(file.path.clone(), opened));
        }
        self.known = names;
        // It was removed, and the new one does not go on where it ended.
        self.is_replaced = is_packed && !self.waiting.is_empty();
        if self.is_replaced {
            self.waiting.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::watch::data::row::log_named;

    /// A directory that goes with this value.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nstop-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn write(&self, name: &str, rows: &[u64]) {
            fs::write(self.0.join(name), text(rows)).unwrap();
        }

        fn append(&self, name: &str, rows: &[u64]) {
            let file = fs::OpenOptions::new().append(true).open(self.0.join(name));
            file.unwrap().write_all(text(rows).as_bytes()).unwrap();
        }

        fn rename(&self, from: &str, to: &str) {
            fs::rename(self.0.join(from), self.0.join(to)).unwrap();
        }

        fn read(&self) -> (Vec<u64>, Ending) {
            let (sender, events) = sync_channel(64);
            start(&self.0, false, listener(sender)).unwrap();
            let (mut rows, mut ending) = (Vec::new(), None);
            for event in events {
                match event {
                    Told::Ended(how) => ending = Some(how),
                    other => rows.extend(times(&other)),
                }
            }
            (rows, ending.unwrap())
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn text(rows: &[u64]) -> String {
        rows.iter().map(|at| format!("{{\"ts\":{at}}}\n")).collect()
    }

    fn listener(sender: SyncSender<Told>) -> Listener {
        Box::new(move |told| sender.send(told).ok())
    }

    fn times(event: &Told) -> Vec<u64> {
        let Told::Rows(rows) = event else { panic!("{event:?}") };
        let time = |row: &LogRow| u64::try_from(row.nanos("ts")? / 1_000_000_000).ok();
        rows.iter().map(|row| time(row).unwrap()).collect()
    }

    fn await_rows(events: &Receiver<Told>, wanted: &[u64]) {
        let mut rows = Vec::new();
        while rows.len() < wanted.len() {
            rows.extend(times(&events.recv_timeout(Duration::from_secs(20)).unwrap()));
        }
        assert_eq!(rows, wanted);
    }

    #[test]
    fn no_row_is_lost_when_files_are_renamed() {
        let place = Place::new("roll");
        place.write("series.2026-11-29-00-00-00.log", &[1]);
        place.write("series.log", &[2, 3]);
        let (sender, events) = sync_channel(64);
        start(&place.0, true, listener(sender)).unwrap();
        await_rows(&events, &[1, 2, 3]);
        // What is written at the last moment, two files on, and what whoever renamed it writes behind that.
        place.append("series.log", &[4]);
        place.rename("series.log", "series.2026-11-29-00-00-01.log");
        place.write("series.log", &[6]);
        place.append("series.2026-11-29-00-00-01.log", &[5]);
        place.rename("series.log", "series.2026-11-29-00-00-01-2.log");
        place.write("series.log", &[7]);
        await_rows(&events, &[4, 5, 6, 7]);
        place.append("series.log", &[8]);
        await_rows(&events, &[8]);
        place.rename("series.log", "series.2026-11-29-00-00-02.log");
        place.write("series.log", &[9]);
        await_rows(&events, &[9]);
    }

    #[test]
    fn a_log_that_is_written_anew_begins_again() {
        let place = Place::new("anew");
        place.write("series.log", &[1, 2, 3]);
        let (sender, events) = sync_channel(64);
        start(&place.0, true, listener(sender)).unwrap();
        await_rows(&events, &[1, 2, 3]);
        for (rows, is_removed) in [(&[4][..], false), (&[5, 6, 7, 8], false), (&[1, 2], true)] {
            if is_removed {
                fs::remove_file(place.0.join("series.log")).unwrap();
            }
            place.write("series.log", rows);
            // What was read while it was written does not count.
            while !matches!(events.recv_timeout(Duration::from_secs(20)).unwrap(), Told::Anew) {}
            await_rows(&events, rows);
        }
    }

    #[test]
    fn files_are_read_in_the_order_of_their_times_packed_or_not() {
        let place = Place::new("order");
        place.write("series.log", &[12]);
        for (at, number) in [(1, ""), (2, "-2"), (10, "-10")] {
            let name = format!("series.2026-11-29-00-00-00{number}.log");
            place.write(&name, &[at]);
        }
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        let many: Vec<u64> = (100..60_100).collect();
        packed.write_all(text(&many).as_bytes()).unwrap();
        let gzip = packed.finish().unwrap();
        let zstd = zstd::encode_all(text(&many).as_bytes(), 3).unwrap();
        for (packed, suffix) in [(gzip, "gz"), (zstd, "zst")] {
            let name = place.0.join(format!("series.2026-11-29-00-00-01.log.{suffix}"));
            fs::write(&name, &packed).unwrap();
            let (rows, ending) = place.read();
            let expected = [&[1, 2, 10][..], &many, &[12]].concat();
            assert!(rows == expected, "{} rows", rows.len());
            assert_eq!(ending.code, DONE);
            fs::write(&name, &packed[..packed.len() / 2]).unwrap();
            let (rows, ending) = place.read();
            assert!(rows.len() > 1000 && rows.len() < expected.len());
            assert_eq!(ending.code, DAMAGED);
            assert!(ending.how.ends_with("it ends within a row"), "{}", ending.how);
            fs::remove_file(&name).unwrap();
        }
    }

    #[test]
    fn lines_that_are_no_rows_are_told_once() {
        let place = Place::new("lines");
        let lines = "#fields\tts\tkind\n1.0\ttotal\ntoo few\n2.0\ttotal\none\tmore\tthan\n";
        fs::write(place.0.join("series.log"), lines).unwrap();
        let (rows, ending) = place.read();
        assert_eq!((rows, ending.code), (vec![1, 2], DAMAGED));
        assert!(
            ending.how.ends_with("series.log: it has lines that are no rows"),
            "{}",
            ending.how
        );
    }

    #[test]
    fn a_form_that_is_not_read_is_the_reason() {
        let place = Place::new("form");
        place.write("series.parquet", &[1]);
        let (sender, _events) = sync_channel(1);
        let said = start(&place.0, false, listener(sender)).unwrap_err().to_string();
        assert!(said.starts_with("series.parquet in "), "{said}");
        assert!(said.contains("in a form that is not read here"), "{said}");
    }

    #[test]
    fn values_that_cannot_be_understood_are_told_at_the_end() {
        let place = Place::new("values");
        place.write("series.log", &[1]);
        for (value, is_told) in [("5.0", true), ("-7", true), ("null", false), ("5", false)] {
            let row = format!("{{\"ts\":1,\"orig_bytes\":{value}}}\n");
            fs::write(place.0.join("conn.log"), row).unwrap();
            let (rows, ending) = place.read();
            let says = ending.how.ends_with("conn.log: it has values that cannot be understood");
            let code = if is_told { DAMAGED } else { DONE };
            assert_eq!((rows, says, ending.code), (vec![1, 1], is_told, code), "{value}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let place = Place::new("pipe");
        place.write("series.log", &[1]);
        let pipe = place.0.join("dns.log");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        assert_eq!(place.read().0, [1]);
        assert!(GrowingFile::open(&pipe, log_named("dns").unwrap()).is_err());
    }
}
