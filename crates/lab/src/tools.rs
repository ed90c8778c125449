//! What captures: THE list of tools that are measured, with how each is started and how its packets are counted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize as _;

use crate::content::TrafficContent;
use crate::load::FCS_LEN;
use crate::packet_order::{self, PacketOrder};

/// A tool with its settings.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name in reports.
    pub name: String,
    /// One sentence for the list of tools.
    pub summary: String,
    /// The program that must be installed; `None` for netsniff.
    pub program: Option<String>,
    /// How it is started; see [`Tool::words`].
    arguments: Vec<String>,
    /// Its own names of options that others have under a long one.
    synonyms: &'static [Synonym],
    /// What it says once it captures; without that it gets a moment.
    pub ready: Option<&'static str>,
    /// The memory of its ring, where that is known, and how packets lie in it.
    pub ring: Option<u64>,
    /// Bytes of a packet that it keeps at most.
    snaplen: Option<u32>,
    /// How long packets may lie in its ring.
    pub tail: Duration,
    counts: Counts,
}

/// An option that a tool calls otherwise than netsniff does.
#[derive(Clone, Copy, Debug)]
struct Synonym {
    /// The name of the setting, as netsniff's long option has it.
    name: &'static str,
    /// The option of the tool that sets the same.
    flag: &'static str,
    /// Bytes of the unit that it has values in.
    unit: Option<u64>,
}

const fn synonym(name: &'static str, flag: &'static str, unit: Option<u64>) -> Synonym {
    Synonym { name, flag, unit }
}

const TCPDUMP_SYNONYMS: &[Synonym] = &[synonym("ring", "-B", Some(1 << 10)), SNAPLEN];
const DUMPCAP_SYNONYMS: &[Synonym] = &[synonym("ring", "-B", Some(MIB)), SNAPLEN];
const SNAPLEN: Synonym = synonym("snaplen", "-s", None);

/// How packets are counted.
#[derive(Clone, Copy, Debug)]
enum Counts {
    /// By the JSON that netsniff prints: what was delivered, recorded, or worked on.
    Delivered,
    Recorded,
    Worked,
    /// By the packets of the file it writes, and what it says of the kernel's drops.
    File(fn(&str) -> Option<u64>),
}

/// What a tool captured.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Counted {
    /// Packets that it has; `None` where that cannot be told.
    pub captured: Option<u64>,
    /// Packets that came to its socket and were dropped since it was too slow, as it says: by the kernel, or by itself where
    /// its own buffers were full.
    pub dropped: Option<u64>,
    /// Those of them that came out of its ring and were refused, since what writes its file fell behind; `None` where it does
    /// not tell.
    #[serde(default)]
    pub refused: Option<u64>,
    /// Nanoseconds after its first packet, between which the first one was dropped at its ring; `None` where none was, or it
    /// does not tell.
    #[serde(default)]
    pub first_drop_ns: Option<[u64; 2]>,
    /// Packets that arrived and stand nowhere in its books.
    pub unexplained: Option<i64>,
    /// How far packets were out of order as the kernel handed them to the tool: as netsniff says, of each ring by itself,
    /// or as they stand in the file that another tool wrote.
    #[serde(default)]
    pub order: Option<PacketOrder>,
    /// Packets that netsniff still had behind a later one when it recorded or analysed them, since they came too late to be
    /// put in order.
    #[serde(default)]
    pub late: Option<u64>,
    /// Packets that came to each of its threads that capture, where it tells.
    #[serde(default)]
    pub threads: Option<Vec<u64>>,
    /// What else netsniff says of the capture.
    pub books: Option<serde_json::Value>,
}

impl Counted {
    /// The share that the busiest of its threads has of what came to all of them; `None` where it does not tell.
    #[must_use]
    pub fn largest_share(&self) -> Option<f64> {
        packet_order::largest_share(self.threads.as_deref()?)
    }
}

/// An option of a tool and its value.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting {
    /// The long name of the option.
    pub name: String,
    /// The value of the option.
    pub value: String,
}

/// The value of an option that has none.
pub const FLAG: &str = "on";

const MIB: u64 = 1 << 20;

/// How netsniff captures unless told.
const USUAL_BACKEND: &str = "af-packet";
const USUAL_PATH: &str = "tap";

/// Blocks of libpcap 1.10 stay open for as long as this, and none of them is read after the signal that ends it.
const LIBPCAP_TAIL: Duration = Duration::from_millis(1300);

const NETSNIFF_TAIL: Duration = Duration::from_millis(300);

impl Tool {
    /// The list of all tools that can be measured, an entry each.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let ours = |name: &str, summary: &str, words: &str, counts| Self {
            name: name.to_owned(),
            summary: summary.to_owned(),
            program: None,
            arguments: split(words),
            synonyms: &[],
            ready: Some("capturing;"),
            ring: Some(64 * MIB),
            snaplen: None,
            tail: NETSNIFF_TAIL,
            counts,
        };
        let other = |name: &str, summary: &str, words: &str, ready, ring, said, synonyms| Self {
            name: name.to_owned(),
            summary: summary.to_owned(),
            program: words.split(' ').next().map(str::to_owned),
            arguments: split(words),
            synonyms,
            ready,
            ring: Some(ring),
            snaplen: None,
            tail: LIBPCAP_TAIL,
            counts: Counts::File(said),
        };
        let (listening, file) = (Some("listening on"), Some("File: "));
        vec![
            ours("record", "netsniff record, to a pcap file", RECORD, Counts::Recorded),
            ours("analyze", "netsniff analyze, all protocols, to logs", ANALYZE, Counts::Delivered),
            ours("count", "netsniff analyze, packets counted alone", COUNT, Counts::Delivered),
            ours(
                "work",
                "netsniff lab work, as heavy as --vary zip=6 makes it",
                WORK,
                Counts::Worked,
            ),
            other(
                "tcpdump",
                "tcpdump with a ring of 64 MiB",
                TCPDUMP,
                listening,
                64 * MIB,
                tcpdump,
                TCPDUMP_SYNONYMS,
            ),
            other(
                "tcpdump-default",
                "tcpdump",
                TCPDUMP_DEFAULT,
                listening,
                2 * MIB,
                tcpdump,
                TCPDUMP_SYNONYMS,
            ),
            other(
                "dumpcap",
                "dumpcap with a ring of 64 MiB",
                DUMPCAP,
                file,
                64 * MIB,
                dumpcap,
                DUMPCAP_SYNONYMS,
            ),
            other(
                "dumpcap-default",
                "dumpcap",
                DUMPCAP_DEFAULT,
                file,
                2 * MIB,
                dumpcap,
                DUMPCAP_SYNONYMS,
            ),
            other("netsniff-ng", "netsniff-ng with a ring of 64 MiB", NG, None, 64 * MIB, ng, &[]),
        ]
    }

    /// A tool of the user's: a command with IFACE and FILE in it, where FILE is a capture that it writes.
    ///
    /// # Errors
    ///
    /// A sentence, where it has no such words.
    pub fn of_command(text: &str) -> Result<Self, String> {
        let (name, command) = text.split_once('=').ok_or("expected NAME=COMMAND")?;
        let words = split(command);
        for needed in ["IFACE", "FILE"] {
            if !words.iter().any(|word| word.contains(needed)) {
                return Err(format!("the command has no {needed} in it"));
            }
        }
        Ok(Self {
            name: name.to_owned(),
            summary: command.to_owned(),
            program: words.first().cloned(),
            arguments: words,
            synonyms: &[],
            ready: None,
            ring: None,
            snaplen: None,
            tail: LIBPCAP_TAIL,
            counts: Counts::File(|_| None),
        })
    }

    /// The command, for an interface and a directory of scratch files; `netsniff` is our own program.
    #[must_use]
    pub fn words(&self, netsniff: &Path, interface: &str, scratch: &Path) -> Vec<String> {
        let file = self.file(scratch).display().to_string();
        let directory = scratch.join("logs").display().to_string();
        let word = |word: &String| {
            word.replace("IFACE", interface).replace("FILE", &file).replace("LOGS", &directory)
        };
        let program = match self.program {
            None => ours(&netsniff.display().to_string()),
            Some(_) => Vec::new(),
        };
        program.into_iter().chain(self.arguments.iter().map(word)).collect()
    }

    /// The same tool with other values of its options, by their long names: netsniff's `ring`, say, which tcpdump and
    /// dumpcap have, too. Other tools have theirs where `{name}` stands in their command.
    ///
    /// # Errors
    ///
    /// A sentence, where it has no such option.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, String> {
        let mut tool = self.clone();
        for setting in settings {
            tool.set(setting)?;
        }
        Ok(tool)
    }

    fn set(&mut self, Setting { name, value }: &Setting) -> Result<(), String> {
        let place = format!("{{{name}}}");
        let synonym = self.synonyms.iter().find(|synonym| synonym.name == name);
        if self.arguments.iter().any(|word| word.contains(&place)) {
            self.arguments.iter_mut().for_each(|word| *word = word.replace(&place, value));
        } else if let Some(Synonym { flag, unit, .. }) = synonym {
            let value = match unit {
                None => value.clone(),
                Some(unit) => {
                    let size = bytes(value).ok_or_else(|| format!("{value:?} is no size"))?;
                    let units = size / unit;
                    if units == 0 || !size.is_multiple_of(*unit) {
                        let said = format!("{} has its {name} in units of {unit} bytes", self.name);
                        return Err(format!("{said}, which {value} are not"));
                    }
                    units.to_string()
                }
            };
            self.option(flag, &value);
        } else if self.program.is_none() {
            self.option(&format!("--{name}"), value);
        } else {
            return Err(format!("the command of {} has no {place} in it", self.name));
        }
        match name.as_str() {
            "ring" => self.ring = bytes(value),
            "snaplen" => self.snaplen = value.parse().ok().filter(|snaplen| *snaplen > 0),
            // Packets lie in blocks, each behind the one before, in the usual way alone.
            "backend" if value != USUAL_BACKEND => self.ring = None,
            "path" if value != USUAL_PATH => self.ring = None,
            _ => {}
        }
        Ok(())
    }

    /// Bytes that it keeps of a frame of so many, both with the frame check sequence.
    #[must_use]
    pub fn kept(&self, size: u32) -> u32 {
        self.snaplen.map_or(size, |snaplen| size.min(snaplen.saturating_add(FCS_LEN)))
    }

    /// Gives an option a value, instead of the one that it has.
    fn option(&mut self, option: &str, value: &str) {
        match self.arguments.iter().position(|word| word == option) {
            Some(at) => {
                let old = self.arguments.get_mut(at + 1);
                old.into_iter().for_each(|word| value.clone_into(word));
            }
            None if value == FLAG => self.arguments.push(option.to_owned()),
            None => self.arguments.extend([option.to_owned(), value.to_owned()]),
        }
    }

    /// Whether it is installed.
    #[must_use]
    pub fn is_here(&self) -> bool {
        let Some(program) = &self.program else { return true };
        program.contains('/') || on_path(program)
    }

    /// The capture file that it writes, if it writes one.
    pub(crate) fn file(&self, scratch: &Path) -> PathBuf {
        scratch.join("out.pcap")
    }

    /// What it captured, by what it said on standard output and standard error, and by its file.
    ///
    /// # Errors
    ///
    /// Where netsniff said nothing that can be read.
    pub fn counted(&self, output: &str, errors: &str, scratch: &Path) -> anyhow::Result<Counted> {
        self.counted_by(output, errors, || {
            let content = TrafficContent::of(&self.file(scratch)).ok();
            (content.map(|content| content.packets), content.map(|content| content.order))
        })
    }

    /// Likewise, where something else tells the packets of its file, and how far they are out of order.
    ///
    /// # Errors
    ///
    /// As [`Self::counted`].
    pub(crate) fn counted_by(
        &self,
        output: &str,
        errors: &str,
        content: impl FnOnce() -> (Option<u64>, Option<PacketOrder>),
    ) -> anyhow::Result<Counted> {
        let Counts::File(said) = self.counts else { return self.of_json(output) };
        let (captured, order) = content();
        Ok(Counted { captured, dropped: said(errors), order, ..Counted::default() })
    }

    /// Whether it writes a capture file.
    pub(crate) fn writes_file(&self) -> bool {
        self.arguments.iter().any(|word| word.contains("FILE"))
    }

    fn of_json(&self, output: &str) -> anyhow::Result<Counted> {
        let report: serde_json::Value = serde_json::from_str(output.trim())
            .with_context(|| format!("{} printed no report", self.name))?;
        let books = &report["capture"][0];
        let recording = &report["recording"];
        let captured = match self.counts {
            Counts::Recorded => &recording["recorded"]["packets"],
            Counts::Worked => &report["work"]["packets"],
            _ => &books["delivered"],
        };
        let refused = match self.counts {
            Counts::Recorded => recording["refused"]["packets"].as_u64(),
            _ => Some(0),
        };
        Ok(Counted {
            captured: captured.as_u64(),
            dropped: books["ring_dropped"].as_u64().zip(refused).map(|(ring, own)| ring + own),
            refused: refused.filter(|_| matches!(self.counts, Counts::Recorded)),
            first_drop_ns: <[u64; 2]>::deserialize(&books["first_drop_ns"]).ok(),
            unexplained: books["unexplained"].as_i64(),
            order: order_of(books),
            late: match self.counts {
                Counts::Recorded => recording["out_of_order"].as_u64(),
                _ => books["late"].as_u64(),
            },
            threads: threads_of(&report["capture"]),
            books: Some(books.clone()),
        })
    }
}

const RECORD: &str = "record -i IFACE --ring 64M --format pcap -w FILE --json";
const ANALYZE: &str = "analyze -i IFACE --ring 64M --no-shed -o LOGS --json";
const COUNT: &str = "analyze -i IFACE --ring 64M --depth packets --json";
const WORK: &str = "lab work -i IFACE --ring 64M --json";
const TCPDUMP: &str = "tcpdump -Z root -i IFACE -B 65536 -w FILE";
const TCPDUMP_DEFAULT: &str = "tcpdump -Z root -i IFACE -w FILE";
const DUMPCAP: &str = "dumpcap -P -i IFACE -B 64 -w FILE";
const DUMPCAP_DEFAULT: &str = "dumpcap -P -i IFACE -w FILE";
const NG: &str = "netsniff-ng --silent -i IFACE -S 64MiB --out FILE";

/// How our own program is started: what is measured are its arguments, whatever stands in the configuration file of whoever
/// measures.
pub(crate) fn ours(program: &str) -> Vec<String> {
    [program, "--no-config"].map(str::to_owned).to_vec()
}

/// Whether a program of a name is in one of the directories that programs are looked for in.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|at| at.join(program).is_file())
}

pub(crate) fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

/// `64M` as netsniff's sizes are.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(char::is_alphabetic);
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_shl(shift)
}

/// How far the rings of an interface were out of order, by its books.
fn order_of(books: &serde_json::Value) -> Option<PacketOrder> {
    let (inversions, deepest) = (&books["inversions"], &books["deepest_inversion_ns"]);
    Some(PacketOrder { inversions: inversions.as_u64()?, deepest_ns: deepest.as_u64()? })
}

/// What came out of each ring: each has a thread of its own.
fn threads_of(capture: &serde_json::Value) -> Option<Vec<u64>> {
    let rings = capture.as_array()?.iter().filter(|books| books["ring"].is_u64());
    let threads: Vec<u64> = rings.map(|ring| ring["delivered"].as_u64()).collect::<Option<_>>()?;
    (!threads.is_empty()).then_some(threads)
}

/// `5 packets dropped by kernel`.
fn tcpdump(errors: &str) -> Option<u64> {
    let line = errors.lines().find(|line| line.ends_with("dropped by kernel"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// `Packets received/dropped on interface 'rx0': 995/5 (pcap:5/dumpcap:0/flushed:0/ps_ifdrop:0) (99.5%)`.
fn dumpcap(errors: &str) -> Option<u64> {
    let line = errors.lines().find(|line| line.starts_with("Packets received/dropped"))?;
    let counts = line.split_once("': ")?.1;
    counts.split_once('/')?.1.split_whitespace().next()?.parse().ok()
}

/// `           5  packets failed filter (out of space)`.
fn ng(errors: &str) -> Option<u64> {
    let line = errors.lines().find(|line| line.contains("out of space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_say_is_understood() {
        let said =
            "10 packets captured\n15 packets received by filter\n5 packets dropped by kernel\n";
        assert_eq!(tcpdump(said), Some(5));
        let said = "Packets captured: 995\nPackets received/dropped on interface 'rx0': 995/5 \
                    (pcap:5/dumpcap:0/flushed:0/ps_ifdrop:0) (99.5%)\n";
        assert_eq!(dumpcap(said), Some(5));
        let said = "\r          995  packets incoming (0 unread on exit)\n\
                    \r          990  packets passed filter\n\r            5  packets failed filter (out of space)\n";
        assert_eq!(ng(said), Some(5));
        assert_eq!((tcpdump(""), dumpcap("x"), ng("")), (None, None, None));
    }

    #[test]
    fn rings_hold_what_is_kept_of_frames() {
        let tool = Tool::all().into_iter().find(|tool| tool.name == "dumpcap").unwrap();
        let short = Setting { name: "snaplen".to_owned(), value: "96".to_owned() };
        let short = tool.with(&[short]).unwrap();
        assert_eq!((tool.kept(1518), short.kept(1518), short.kept(64)), (1518, 100, 64));
    }

    #[test]
    fn commands_have_their_places() {
        let tool = Tool::of_command("mine=/usr/bin/cat IFACE -w FILE").unwrap();
        let words = tool.words(Path::new("/ns"), "rx0", Path::new("/s"));
        assert_eq!(words, ["/usr/bin/cat", "rx0", "-w", "/s/out.pcap"]);
        assert!(Tool::of_command("x").is_err() && Tool::of_command("x=y FILE").is_err());
        let record = &Tool::all()[0];
        let words = record.words(Path::new("/ns"), "rx0", Path::new("/s"));
        assert_eq!(words[..5], ["/ns", "--no-config", "record", "-i", "rx0"]);
        let setting = |name: &str, value: &str| Setting { name: name.into(), value: value.into() };
        let small = record.with(&[setting("ring", "2M"), setting("snaplen", "96")]).unwrap();
        let words = small.words(Path::new("/ns"), "rx0", Path::new("/s")).join(" ");
        assert!(words.contains(" --ring 2M ") && words.ends_with(" --snaplen 96"), "{words}");
        assert_eq!(small.ring, Some(2 << 20));
        let of_tcpdump = |settings: &[Setting]| {
            let tool = Tool::all().into_iter().find(|tool| tool.name == "tcpdump").unwrap();
            tool.with(settings)
        };
        let tcpdump = of_tcpdump(&[setting("ring", "2M"), setting("snaplen", "96")]).unwrap();
        let words = tcpdump.words(Path::new("/ns"), "rx0", Path::new("/s")).join(" ");
        assert!(words.contains(" -B 2048 ") && words.ends_with(" -s 96"), "{words}");
        assert_eq!(tcpdump.ring, Some(2 << 20));
        assert!(of_tcpdump(&[setting("ring", "1000")]).is_err());
        assert!(of_tcpdump(&[setting("wait", "poll")]).is_err());
        let dial = Tool::of_command("mine=x -s {snaplen} IFACE FILE").unwrap();
        let words = dial.with(&[setting("snaplen", "96")]).unwrap();
        assert_eq!(words.words(Path::new("/ns"), "rx0", Path::new("/s"))[..3], ["x", "-s", "96"]);
        assert!(dial.with(&[setting("ring", "2M")]).is_err());
        let is_written =
            |name: &str| Tool::all().iter().any(|tool| tool.name == name && tool.writes_file());
        assert!(is_written("record") && is_written("netsniff-ng") && dial.writes_file());
        assert!(!["analyze", "count", "work"].into_iter().any(is_written));
    }

    #[test]
    fn what_a_recorder_refuses_is_dropped_as_what_its_ring_has_no_room_for() {
        let record = &Tool::all()[0];
        let said = r#"{"capture": [{"delivered": 90, "ring_dropped": 10, "unexplained": 0}],
                       "recording": {"recorded": {"packets": 60}, "refused": {"packets": 30}}}"#;
        let counted = record.counted(said, "", Path::new("/")).unwrap();
        assert_eq!((counted.captured, counted.dropped), (Some(60), Some(40)));
        assert_eq!(counted.refused, Some(30));
        let count = Tool::all().into_iter().find(|tool| tool.name == "count").unwrap();
        let counted = count.counted(said, "", Path::new("/")).unwrap();
        assert_eq!((counted.captured, counted.dropped), (Some(90), Some(10)));
        assert_eq!(counted.refused, None);
    }

    #[test]
    fn order_and_threads_are_told_by_books() {
        let said = r#"{"capture": [
            {"ring": null, "delivered": 90, "first_drop_ns": [50, 70], "inversions": 7, "deepest_inversion_ns": 43000, "late": 2},
            {"ring": 0, "delivered": 60, "inversions": 5, "deepest_inversion_ns": 43000, "late": 1},
            {"ring": 1, "delivered": 30, "inversions": 2, "deepest_inversion_ns": 9, "late": 1},
            {"ring": null, "delivered": null}],
            "recording": {"recorded": {"packets": 90}, "out_of_order": 3}}"#;
        let all = Tool::all();
        let of = |name: &str, said: &str| {
            let tool = all.iter().find(|tool| tool.name == name).unwrap();
            tool.counted(said, "", Path::new("/")).unwrap()
        };
        let count = of("count", said);
        assert_eq!(count.order, Some(PacketOrder { inversions: 7, deepest_ns: 43_000 }));
        assert_eq!(count.first_drop_ns, Some([50, 70]));
        assert_eq!((count.late, count.threads), (Some(2), Some(vec![60, 30])));
        assert_eq!(of("record", said).late, Some(3), "what stands so in its file");
        // What is not told is not 0.
        let mute = r#"{"capture": [{"delivered": 9, "first_drop_ns": null, "inversions": null, "late": null}]}"#;
        for name in ["work", "record", "analyze"] {
            let counted = of(name, mute);
            assert_eq!((counted.order, counted.late, counted.threads), (None, None, None));
            assert_eq!(counted.first_drop_ns, None);
        }
        let unread = of("tcpdump", "");
        assert_eq!((unread.captured, unread.order, unread.threads), (None, None, None));
    }
}
