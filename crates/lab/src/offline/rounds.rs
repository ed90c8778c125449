//! The rounds of a file: every subject once in each, in turn.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use netsniff_packet::{Batch, LinkType, Progress, Source as _};
use netsniff_pcapfile::{PcapWriter, Reader};
use netsniff_traffic::Random;

use super::peers::Peer;
use super::running::{Process, Scratch, run};
use super::subject::{OfflineSubject, Role, Stage};
use super::{OfflineRun, StoredCapture, StoredOutcome};
use crate::host::process;
use crate::stop::Stop;

/// Exit code of netsniff where an input is damaged or cut, and all that could be read was processed.
const DAMAGED: i32 = 3;

/// Memory as a directory.
const MEMORY: &str = "/dev/shm";

/// Lines of what a program says on standard error that are told where it fails.
const LINES: usize = 2;

/// How files are measured.
#[derive(Clone, Copy, Debug)]
pub struct Rounds<'a> {
    /// Rounds that count; there is one before them.
    pub number: u32,
    /// What is run in each.
    pub subjects: &'a [OfflineSubject],
    /// Where scratch files are.
    pub scratch: &'a Path,
    /// When it ends.
    pub stop: &'a Stop<'a>,
}

impl StoredCapture {
    /// What is in a file.
    ///
    /// # Errors
    ///
    /// Where it cannot be read again and again, is no capture, or has no packets, with what to do.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let whole = fs::canonicalize(path).with_context(|| format!("cannot open {name}"))?;
        let file = File::open(&whole).with_context(|| format!("cannot open {name}"))?;
        let metadata = file.metadata().with_context(|| format!("cannot read {name}"))?;
        ensure!(!metadata.is_dir(), "{name} is a directory: name the capture files in it");
        ensure!(
            metadata.is_file(),
            "{name} is no file that can be read several times: save the packets to a file first"
        );
        ensure!(metadata.len() > 0, "{name} is empty: there is nothing to measure");
        let mut reader = Reader::new(file)
            .with_context(|| format!("{name} is no capture file, of pcap or pcapng"))?;
        let mut capture = Self {
            path: whole,
            file_bytes: metadata.len(),
            packets: 0,
            wire_bytes: 0,
            captured_bytes: 0,
            damage: Vec::new(),
        };
        let mut batch = Batch::default();
        loop {
            let state = reader.read_batch(&mut batch);
            capture.packets += batch.packets.len() as u64;
            for packet in batch.iter() {
                capture.wire_bytes += u64::from(packet.wire_len);
                capture.captured_bytes += packet.data.len() as u64;
            }
            match state {
                Ok(Progress::End) => break,
                Ok(_) => {}
                Err(error) => {
                    capture.damage.push(error.to_string());
                    break;
                }
            }
        }
        capture.damage.extend(reader.damage().iter().map(ToString::to_string));
        ensure!(capture.packets > 0, "{name} has no packets: there is nothing to measure");
        Ok(capture)
    }
}

/// Where scratch files are unless told: in memory, where that is a directory.
#[must_use]
pub fn usual_scratch() -> PathBuf {
    let memory = Path::new(MEMORY);
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// What tells that a file is the same as before.
fn state(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let of = |it: Metadata| (it.ino(), it.len(), it.mtime(), it.mtime_nsec());
    fs::metadata(path).ok().map(of)
}

impl Rounds<'_> {
    /// Measures a file; `tell` hears of each round that is done, and how long it took.
    ///
    /// # Errors
    ///
    /// Where no scratch file can be written, or a process cannot be watched.
    pub fn measure(
        &self,
        capture: StoredCapture,
        tell: &mut dyn FnMut(u32, Duration),
    ) -> anyhow::Result<StoredOutcome> {
        let scratch = Scratch::make(self.scratch)?;
        let empty = scratch.path("empty.pcap");
        let bytes = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0)?.finish()?;
        fs::write(&empty, bytes).with_context(|| format!("cannot write {}", empty.display()))?;
        let allowed = process::allowed()?;
        let before = state(&capture.path);
        let mut outcome = StoredOutcome {
            capture,
            rounds: self.number,
            subjects: self.subjects.to_vec(),
            runs: Vec::new(),
            ended: None,
        };
        let mut took = Duration::ZERO;
        for round in 0..=self.number {
            if let Some(why) = self.stop.before(took) {
                outcome.ended = Some(why.words().to_owned());
                break;
            }
            let begin = Instant::now();
            let runs = self.round(round, &outcome, (&scratch, &empty), &allowed)?;
            if self.stop.is_set() {
                outcome.ended = Some("a signal".to_owned());
                break;
            }
            if state(&outcome.capture.path) != before {
                outcome.ended = Some(changed(&outcome.capture));
                break;
            }
            outcome.runs.extend(runs);
            took = begin.elapsed();
            tell(round, took);
        }
        Ok(outcome)
    }

    /// Runs every subject once, in an order of the round's own.
    fn round(
        &self,
        round: u32,
        outcome: &StoredOutcome,
        (scratch, empty): (&Scratch, &PathBuf),
        allowed: &[usize],
    ) -> anyhow::Result<Vec<OfflineRun>> {
        let mut runs = Vec::new();
        for at in order(round, self.subjects.len()) {
            let subject = &self.subjects[at];
            // What failed once fails again, and takes time from the others.
            if outcome.failure(subject).is_some() {
                continue;
            }
            let path = |path: &Path| path.display().to_string();
            let out = path(&scratch.path("out"));
            let words = subject.words(&path(&outcome.capture.path), &path(empty), &out);
            let processors = chosen(allowed, subject.processors());
            let process = run(&words, &processors, scratch, self.stop)?;
            if self.stop.is_set() {
                break;
            }
            runs.push(judged(round, subject, &outcome.capture, &process));
        }
        Ok(runs)
    }
}

fn changed(capture: &StoredCapture) -> String {
    let now = fs::metadata(&capture.path).map(|it| it.len());
    let now = now.map_or_else(|error| error.to_string(), |size| format!("{size} bytes"));
    format!(
        "the file changed while it was measured, from {} bytes to {now}: measure a copy of it",
        capture.file_bytes
    )
}

/// The processors of a run: the last ones, since the first one has the most to do for the rest of the machine.
fn chosen(allowed: &[usize], number: usize) -> Vec<usize> {
    allowed[allowed.len().saturating_sub(number.max(1))..].to_vec()
}

/// What a process came to as a run of a subject.
fn judged(
    round: u32,
    subject: &OfflineSubject,
    capture: &StoredCapture,
    process: &Process,
) -> OfflineRun {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let said = [&*process.output, &*process.errors].concat();
    let packets = match subject.role {
        Role::Peer => Peer::of(&subject.name).and_then(|peer| peer.counted(&said)),
        _ => read_by_us(&process.output).ok(),
    };
    OfflineRun {
        round,
        subject: subject.name.clone(),
        wall_ns: nanos(process.wall),
        user_ns: nanos(process.ended.user),
        system_ns: nanos(process.ended.system),
        peak_bytes: process.peak.ok(),
        peak_below: process.peak.err(),
        packets,
        failure: failure(subject, capture, process, packets),
    }
}

/// Packets that netsniff has read, by its summary.
fn read_by_us(output: &str) -> anyhow::Result<u64> {
    let summary: serde_json::Value = serde_json::from_str(output.trim())?;
    match summary["books"]["read"].as_u64() {
        Some(packets) => Ok(packets),
        None => bail!("the summary does not tell the packets that were read"),
    }
}

fn failure(
    subject: &OfflineSubject,
    capture: &StoredCapture,
    process: &Process,
    packets: Option<u64>,
) -> Option<String> {
    if process.is_late {
        return Some("it took longer than 15 minutes, and was killed".to_owned());
    }
    let is_ours = subject.role != Role::Peer;
    let code = process.ended.status.code();
    let is_fine = code == Some(0) || is_ours && code == Some(DAMAGED) && !capture.damage.is_empty();
    if !is_fine {
        let lines: Vec<_> = process.errors.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
        let said = if last.is_empty() { "it says nothing".to_owned() } else { last };
        return Some(format!("it failed ({}): {said}", process.ended.status));
    }
    let expected = match subject.role {
        Role::Peer => return None,
        Role::Stage(Stage::Start) => 0,
        _ => capture.packets,
    };
    match packets {
        Some(packets) if packets == expected => None,
        Some(packets) => Some(format!("it read {packets} packets, not {expected}")),
        None => Some("it does not tell how many packets it read".to_owned()),
    }
}

/// The order of so many runs in a round: drawn anew for each, so that none is measured behind the same one again and again.
fn order(round: u32, number: usize) -> Vec<usize> {
    let mut random = Random::new(round.into());
    let mut order: Vec<_> = (0..number).collect();
    for last in (1..number).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::ExitStatus;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use netsniff_capture::Ended;
    use netsniff_packet::{Packet, Timestamp};

    use super::super::peers::PEERS;
    use super::*;

    fn file(packets: i64) -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0).unwrap();
        for second in 0..packets {
            let (timestamp, link_type) =
                (Timestamp::from_secs_nanos(second, 0), LinkType::ETHERNET);
            let data = &[0; 40];
            let packet = Packet { timestamp, data, wire_len: 100, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        writer.finish().unwrap()
    }

    fn directory(name: &str) -> PathBuf {
        let name = format!("netsniff-rounds-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_a_reason() {
        let directory = directory("refused");
        let said = |name: &str, content: &[u8]| {
            let path = directory.join(name);
            fs::write(&path, content).unwrap();
            StoredCapture::read(&path).map_err(|error| error.to_string())
        };
        let whole = said("whole", &file(3)).unwrap();
        assert_eq!((whole.packets, whole.wire_bytes, whole.captured_bytes), (3, 300, 120));
        assert_eq!((whole.file_bytes, whole.damage.len()), (24 + 3 * 56, 0));
        let cut = said("cut", &file(3)[..24 + 3 * 56 - 1]).unwrap();
        assert_eq!((cut.packets, cut.damage.len()), (2, 1), "{cut:?}");
        for (name, content, words) in [
            ("nothing", &b""[..], "nothing is empty: there is nothing to measure"),
            ("text", b"no capture at all, but text", "text is no capture file, of pcap or pcapng"),
            ("none", &file(0), "none has no packets: there is nothing to measure"),
        ] {
            let error = said(name, content).unwrap_err();
            assert!(error.ends_with(words), "{error}");
        }
        let error = StoredCapture::read(&directory).unwrap_err().to_string();
        assert!(error.ends_with("is a directory: name the capture files in it"), "{error}");
        let error = StoredCapture::read(Path::new("/dev/null")).unwrap_err().to_string();
        assert!(error.contains("/dev/null is no file that can be read several times"), "{error}");
        let error = StoredCapture::read(Path::new("/no/such")).unwrap_err().to_string();
        assert_eq!(error, "cannot open /no/such");
        fs::remove_dir_all(directory).unwrap();
    }

    /// A subject that runs a script of the shell.
    fn script(name: &str, words: &str) -> OfflineSubject {
        let command = ["sh", "-c", words, "sh", "FILE"].map(str::to_owned).to_vec();
        OfflineSubject { name: name.to_owned(), role: Role::Peer, command }
    }

    fn measured(name: &str, subjects: &[OfflineSubject], number: u32) -> StoredOutcome {
        let directory = directory(name);
        let path = directory.join("a.pcap");
        fs::write(&path, file(2)).unwrap();
        let signal = Arc::new(AtomicBool::new(false));
        let stop = Stop::new(&signal, None);
        let rounds = Rounds { number, subjects, scratch: &directory, stop: &stop };
        let outcome = rounds.measure(StoredCapture::read(&path).unwrap(), &mut |_, _| {});
        fs::remove_dir_all(directory).unwrap();
        outcome.unwrap()
    }

    #[test]
    fn no_run_always_follows_the_same() {
        let number = 7;
        let mut behind = vec![vec![0; number]; number];
        for round in 0..350 {
            let order = order(round, number);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..number).collect::<Vec<_>>());
            order.windows(2).for_each(|pair| behind[pair[0]][pair[1]] += 1);
        }
        // Of 350 rounds, 50 on average.
        let pairs = (0..number).flat_map(|one| (0..number).map(move |other| (one, other)));
        for (one, other) in pairs.filter(|(one, other)| one != other) {
            assert!((25..=75).contains(&behind[one][other]), "{one} {other} {behind:?}");
        }
    }

    #[test]
    fn every_round_has_every_subject_that_works() {
        let subjects =
            [script("a", "cat \"$1\""), script("b", "true"), script("c", "echo x >&2; exit 4")];
        let outcome = measured("turns", &subjects, 2);
        for (round, expected) in [(0, "abc"), (1, "ab"), (2, "ab")] {
            let runs = outcome.runs.iter().filter(|run| run.round == round);
            let mut names: Vec<_> = runs.map(|run| run.subject.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names.concat(), expected, "what failed is not tried again");
        }
        let failure = outcome.failure(&subjects[2]).unwrap();
        assert_eq!(failure, "it failed (exit status: 4): x");
        assert_eq!((outcome.failure(&subjects[0]), &outcome.ended), (None, &None));
        assert!(outcome.runs.iter().all(|run| run.wall_ns > 0));
    }

    #[test]
    fn a_file_that_changes_ends_it() {
        let grows = script("grows", "echo x >>\"$1\"");
        let outcome = measured("grows", &[grows], 2);
        let said = outcome.ended.unwrap();
        assert!(said.contains("from 136 bytes to 138 bytes: measure a copy"), "{said}");
        assert!(outcome.runs.is_empty(), "nobody knows what the round has read");
    }

    #[test]
    fn a_run_is_judged_by_its_exit_code_and_by_what_it_read() {
        let of = |subject: &OfflineSubject, code: i32, output: &str, damage: &[&str]| {
            let ended = Ended {
                status: ExitStatus::from_raw(code << 8),
                user: Duration::from_millis(2),
                system: Duration::from_millis(1),
                peak_bytes: 9,
            };
            let process = Process {
                ended,
                wall: Duration::from_millis(4),
                peak: Err(9),
                output: output.to_owned(),
                errors: "one\n\ntwo\nthree\n".to_owned(),
                is_late: false,
            };
            let capture = StoredCapture {
                path: "a".into(),
                file_bytes: 1,
                packets: 7,
                wire_bytes: 1,
                captured_bytes: 1,
                damage: damage.iter().map(|&place| place.to_owned()).collect(),
            };
            judged(1, subject, &capture, &process)
        };
        let read = |number: u32| format!("{{\"books\": {{\"read\": {number}}}}}\n");
        let all = OfflineSubject::stage(Stage::Rows, "n");
        let fine = of(&all, 0, &read(7), &[]);
        assert_eq!((fine.failure, fine.packets, fine.wall_ns), (None, Some(7), 4_000_000));
        assert_eq!((fine.peak_bytes, fine.peak_below), (None, Some(9)));
        let fail = |subject: &OfflineSubject, code, output: &str, damage: &[&str]| {
            of(subject, code, output, damage).failure.unwrap_or_default()
        };
        assert_eq!(fail(&all, 0, &read(6), &[]), "it read 6 packets, not 7");
        assert_eq!(fail(&all, 0, "", &[]), "it does not tell how many packets it read");
        assert_eq!(fail(&all, 3, &read(7), &["cut"]), "");
        assert_eq!(fail(&all, 3, &read(7), &[]), "it failed (exit status: 3): two; three");
        let start = OfflineSubject::stage(Stage::Start, "n");
        assert_eq!(fail(&start, 0, &read(0), &[]), "");
        let peer = OfflineSubject::peer(&PEERS[2]);
        let run = of(&peer, 0, "Packets processed: 6\n", &[]);
        assert_eq!((run.failure, run.packets), (None, Some(6)), "others may leave packets out");
        assert!(fail(&peer, 3, "", &["cut"]).starts_with("it failed"));
    }

    #[test]
    fn runs_are_on_the_last_processors() {
        assert_eq!(chosen(&[0, 1, 2, 3], 1), [3]);
        assert_eq!(chosen(&[0, 1, 2, 3], 3), [1, 2, 3]);
        assert_eq!((chosen(&[5], 4), chosen(&[0, 1], 0)), (vec![5], vec![1]));
    }
}
