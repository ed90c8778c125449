//! Filters against tcpdump: the same packets for every expression and link type.
//!
//! Every verdict on a whole packet must be tcpdump's. On a packet that the capture cut, libpcap's
//! optimiser decides which fields are looked at before one lies outside the packet rejects it: there
//! tcpdump with its optimiser and without (`-O`) differ, and either verdict will do.
//!
//! `NETSNIFF_FILTER_RECORD=1 cargo test -p netsniff-packet --test filter_oracle` asks tcpdump anew
//! for its verdicts on the packets made here, and writes them to `tests/filter/verdicts.txt`.
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "an oracle is a file or a program, and only the crate itself is without I/O"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use netsniff_packet::{Filter, LinkType, Packet, Timestamp};
use netsniff_testing::filter::capture::{self, Frame, Scratch};
use netsniff_testing::filter::frames;
use netsniff_testing::{Need, folder, has_program};

const EXPRESSIONS: &str = include_str!("filter/expressions.txt");
const VERDICTS: &str = include_str!("filter/verdicts.txt");

fn expressions() -> impl Iterator<Item = &'static str> {
    EXPRESSIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Our verdicts, or `None` where the filter has no meaning for the link type.
fn ours(expression: &str, link_type: LinkType, frames: &[Frame]) -> Option<Vec<bool>> {
    let filter = Filter::parse(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let verdict = |frame: &Frame| {
        filter.matches(&Packet {
            timestamp: Timestamp::EPOCH,
            data: &frame.data,
            wire_len: frame.wire_len,
            link_type,
            interface: 0,
        })
    };
    let verdicts: Vec<_> = frames.iter().map(verdict).collect();
    match filter.check(link_type) {
        Ok(()) => Some(verdicts),
        Err(_) => {
            assert!(!verdicts.contains(&true), "{expression} matches {link_type} without meaning");
            None
        }
    }
}

/// tcpdump's verdicts with its optimiser, and without where they differ.
struct Oracle {
    optimised: Vec<bool>,
    plain: Option<Vec<bool>>,
}

impl Oracle {
    /// Asks tcpdump; `None` where it refuses the expression.
    fn ask(file: &Path, count: usize, expression: &str) -> Option<Self> {
        let optimised = capture::verdicts(file, count, expression, true)?;
        let plain = capture::verdicts(file, count, expression, false)?;
        let plain = (plain != optimised).then_some(plain);
        Some(Self { optimised, plain })
    }

    /// Number of the first frame on which `verdicts` are neither.
    fn contradicts(
        &self,
        verdicts: &[bool],
        link_type: LinkType,
        frames: &[Frame],
    ) -> Option<usize> {
        (0..frames.len()).find(|&number| {
            let is_cut = frames[number].data.len() < frames[number].wire_len as usize;
            // The byte order of NULL is not told here, so `ip` is two tests instead of one, and
            // the optimiser of libpcap can do more.
            let either = is_cut || link_type == LinkType::NULL;
            let plain = self.plain.as_ref().filter(|_| either).unwrap_or(&self.optimised);
            verdicts[number] != self.optimised[number] && verdicts[number] != plain[number]
        })
    }

    /// One field of the record: bits as hexadecimal digits.
    fn to_record(&self) -> String {
        let mut record = to_hex(&self.optimised);
        if let Some(plain) = &self.plain {
            record.push(' ');
            record.push_str(&to_hex(plain));
        }
        record
    }

    fn from_record(record: &str, count: usize) -> Option<Self> {
        if record == REFUSED {
            return None;
        }
        let mut fields = record.split(' ').map(|hex| from_hex(hex, count));
        Some(Self { optimised: fields.next()?, plain: fields.next() })
    }
}

const REFUSED: &str = "refused";

fn to_hex(verdicts: &[bool]) -> String {
    let mut hex = String::new();
    for nibble in verdicts.chunks(4) {
        let bits = (0..4).fold(0, |bits, at| bits << 1 | u8::from(nibble.get(at) == Some(&true)));
        let _ = write!(hex, "{bits:x}");
    }
    hex
}

fn from_hex(hex: &str, count: usize) -> Vec<bool> {
    let nibbles = hex.chars().map(|digit| digit.to_digit(16).unwrap());
    let mut bits: Vec<_> =
        nibbles.flat_map(|nibble| [8, 4, 2, 1].map(|bit| nibble & bit != 0)).collect();
    assert!(bits.len() >= count);
    bits.truncate(count);
    bits
}

#[test]
fn packets_made_here_match_as_recorded() {
    if std::env::var_os("NETSNIFF_FILTER_RECORD").is_some() {
        record();
        return;
    }
    let mut recorded: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    let mut section = "";
    for line in VERDICTS.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            section = name;
        } else if let Some((verdicts, expression)) = line.split_once('\t') {
            recorded.entry(section).or_default().insert(expression, verdicts);
        }
    }
    let mut tally = Tally::default();
    for (link_type, frames) in frames::all() {
        let section = &recorded[format!("{link_type}: {} frames", frames.len()).as_str()];
        for expression in expressions() {
            let oracle = Oracle::from_record(section[expression], frames.len());
            tally.compare(expression, link_type, &frames, oracle.as_ref());
        }
    }
    tally.finish();
}

/// Writes tcpdump's verdicts to the source tree.
fn record() {
    let scratch = Scratch::new("filter-record");
    let mut text = String::from(
        "# Verdicts of tcpdump on the frames of frames.rs, one bit for each; see filter_oracle.rs.\n",
    );
    for (link_type, frames) in frames::all() {
        let file = scratch.file("frames.pcap");
        capture::write(&file, link_type, &frames);
        let _ = writeln!(text, "== {link_type}: {} frames", frames.len());
        for expression in expressions() {
            let oracle = Oracle::ask(&file, frames.len(), expression);
            let record = oracle.map_or(REFUSED.to_owned(), |oracle| oracle.to_record());
            let _ = writeln!(text, "{record}\t{expression}");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filter/verdicts.txt");
    std::fs::write(path, text).unwrap();
}

#[derive(Default)]
struct Tally {
    comparisons: usize,
    matches: usize,
    faults: Vec<String>,
}

impl Tally {
    fn compare(
        &mut self,
        expression: &str,
        link_type: LinkType,
        frames: &[Frame],
        oracle: Option<&Oracle>,
    ) {
        self.comparisons += 1;
        let fault = match (ours(expression, link_type, frames), oracle) {
            (None, None) => return,
            (Some(_), None) => "only tcpdump refuses it".to_owned(),
            (None, Some(_)) => "only we refuse it".to_owned(),
            (Some(ours), Some(oracle)) => {
                self.matches += ours.iter().filter(|verdict| **verdict).count();
                let Some(number) = oracle.contradicts(&ours, link_type, frames) else {
                    return;
                };
                format!("frame {number} is {} for us: {:02x?}", ours[number], frames[number])
            }
        };
        self.faults.push(format!("{link_type}: {expression}: {fault:.300}"));
    }

    fn finish(self) {
        let Self { comparisons, matches, faults } = self;
        eprintln!("{comparisons} comparisons of expressions, {matches} packets matched");
        assert!(
            faults.is_empty(),
            "{} of {comparisons} differ:\n{}",
            faults.len(),
            faults.join("\n")
        );
        assert!(comparisons > 1000 && matches > comparisons);
    }
}

#[test]
fn captures_of_others_match_as_in_tcpdump() {
    let Some(corpus) = folder(Need::Corpus, "no captures are compared with tcpdump") else {
        return;
    };
    if !has_program("tcpdump", "no captures are compared with it") {
        return;
    }
    let scratch = Scratch::new("filter-oracle");
    let mut tally = Tally::default();
    for (link_type, frames) in corpus_frames(Path::new(&corpus)) {
        let file = scratch.file("frames.pcap");
        capture::write(&file, link_type, &frames);
        let mut skipped = 0;
        for expression in expressions() {
            let oracle = Oracle::ask(&file, frames.len(), expression);
            if link_type == LinkType::IEEE802_11_RADIOTAP
                && ours(expression, link_type, &[]).is_none()
            {
                skipped += usize::from(oracle.is_some());
                continue;
            }
            tally.compare(expression, link_type, &frames, oracle.as_ref());
        }
        eprintln!("{link_type}: {} frames compared", frames.len());
        if skipped > 0 {
            eprintln!("left out: {skipped} expressions that only tcpdump supports on {link_type}");
        }
    }
    tally.finish();
}

/// Every packet of the corpus by link type, whole and then cut at a place that differs from packet
/// to packet.
fn corpus_frames(corpus: &Path) -> BTreeMap<LinkType, Vec<Frame>> {
    let mut by_link_type: BTreeMap<LinkType, Vec<Frame>> = BTreeMap::new();
    let (mut read, mut unread) = (0, 0);
    for path in capture_files(corpus) {
        match capture::convert(&path) {
            Ok((link_type, frames)) => {
                read += 1;
                by_link_type.entry(link_type).or_default().extend(frames);
            }
            Err(message) => {
                unread += 1;
                eprintln!("left out: {}: {}", path.display(), message.trim().replace('\n', "; "));
            }
        }
    }
    eprintln!("{read} captures read, {unread} skipped because tcpdump cannot read them");
    assert!(read > 0, "no capture was read");
    for frames in by_link_type.values_mut() {
        for number in 0..frames.len() {
            let cut = frames[number].cut(number * 37 % 79);
            frames.push(cut);
        }
    }
    by_link_type
}

fn capture_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("oracle") => {}
            Some("pcap" | "pcapng" | "cap") => files.push(path),
            _ if path.is_dir() => files.extend(capture_files(&path)),
            _ => {}
        }
    }
    files.sort();
    files
}
