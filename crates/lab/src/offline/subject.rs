//! What is run over a file: netsniff up to each of its stages, with several workers and with other options; other programs.

use serde::{Deserialize, Serialize};

use super::peers::Peer;
use crate::tools::{ours, split};

/// The words of commands that stand for files: the capture, one without packets, and a directory for output.
pub(super) const FILE: &str = "FILE";
pub(super) const EMPTY: &str = "EMPTY";
pub(super) const OUT: &str = "OUT";

/// How far netsniff processes packets. Each stage is everything of the one before and one thing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The program starts, opens a file without packets, and ends.
    Start,
    /// Packets are read from the file.
    Read,
    /// Headers are decoded, fragments put together, tunnels entered, checksums verified; packets are counted by layer.
    Decode,
    /// Flows are found and counted.
    Flows,
    /// TCP streams are put together, with metrics and losses.
    Tcp,
    /// Application protocols are found and read.
    Protocols,
    /// Rows are made and written as logs.
    Rows,
}

impl Stage {
    /// All, from the first to the last.
    pub const ALL: [Self; 7] = [
        Self::Start,
        Self::Read,
        Self::Decode,
        Self::Flows,
        Self::Tcp,
        Self::Protocols,
        Self::Rows,
    ];

    /// The name of the run that ends behind it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Read => "read",
            Self::Decode => "decode",
            Self::Flows => "flows",
            Self::Tcp => "tcp",
            Self::Protocols => "protocols",
            Self::Rows => "rows",
        }
    }

    /// What it does beyond the stage before, for a table.
    #[must_use]
    pub const fn definition(self) -> &'static str {
        match self {
            Self::Start => "the program starts, opens a capture without packets, and ends",
            Self::Read => "packets are read from the file, and nothing is done with them",
            Self::Decode => {
                "headers are decoded, fragments put together, tunnels entered; packets are counted by layer (--depth packets)"
            }
            Self::Flows => "flows are found, counted and timed out (--depth flows)",
            Self::Tcp => "TCP streams are put together, with metrics and losses (--depth tcp)",
            Self::Protocols => "application protocols are found and read; no row is made",
            Self::Rows => "rows are made, put in order and written as logs (-o DIR)",
        }
    }

    /// What netsniff is told, without its name.
    fn words(self) -> &'static str {
        match self {
            Self::Start => "lab read EMPTY",
            Self::Read => "lab read FILE",
            Self::Decode => "analyze FILE --json --workers 1 --depth packets",
            Self::Flows => "analyze FILE --json --workers 1 --depth flows",
            Self::Tcp => "analyze FILE --json --workers 1 --depth tcp",
            Self::Protocols => "analyze FILE --json --workers 1 --depth protocols",
            Self::Rows => COMPLETE,
        }
    }
}

/// All that netsniff does with a file, with one worker.
const COMPLETE: &str = "analyze FILE --json --workers 1 -o OUT";

/// What a subject is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// netsniff with one worker, up to a stage; that with the last one is what others are compared with.
    Stage(Stage),
    /// All stages with so many workers.
    Workers(usize),
    /// All stages with one worker, and other options.
    Variant,
    /// Another program.
    Peer,
}

/// Something that is run once in each round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfflineSubject {
    /// Its name in tables, which no other subject has.
    pub name: String,
    /// What it is compared as.
    pub role: Role,
    /// Its command, with places for files; netsniff's own has the program's name in front.
    pub command: Vec<String>,
}

impl OfflineSubject {
    /// netsniff up to a stage; `program` is netsniff.
    #[must_use]
    pub fn stage(stage: Stage, program: &str) -> Self {
        Self::ours(stage.name(), Role::Stage(stage), stage.words(), program)
    }

    /// netsniff with so many workers.
    #[must_use]
    pub fn workers(number: usize, program: &str) -> Self {
        let words = COMPLETE.replace("--workers 1", &format!("--workers {number}"));
        Self::ours(&format!("rows, {number} workers"), Role::Workers(number), &words, program)
    }

    /// netsniff with one worker and other options.
    #[must_use]
    pub fn variant(variant: &Variant, program: &str) -> Self {
        let mut subject = Self::ours(&variant.name, Role::Variant, COMPLETE, program);
        subject.command.extend(variant.options.iter().cloned());
        subject
    }

    /// Another program.
    #[must_use]
    pub fn peer(peer: &Peer) -> Self {
        Self { name: peer.name.to_owned(), role: Role::Peer, command: split(peer.words) }
    }

    /// netsniff with all stages, one worker and no other option, and each of these variants: what tells their cost.
    #[must_use]
    pub fn of_variants(variants: &[Variant], program: &str) -> Vec<Self> {
        let variants = variants.iter().map(|variant| Self::variant(variant, program));
        std::iter::once(Self::stage(Stage::Rows, program)).chain(variants).collect()
    }

    fn ours(name: &str, role: Role, words: &str, program: &str) -> Self {
        let command = ours(program).into_iter().chain(split(words)).collect();
        Self { name: name.to_owned(), role, command }
    }

    /// Threads that it has work for, as far as that is told.
    #[must_use]
    pub const fn processors(&self) -> usize {
        match self.role {
            Role::Workers(number) => number,
            Role::Stage(_) | Role::Variant | Role::Peer => 1,
        }
    }

    /// The command for these files.
    pub(super) fn words(&self, file: &str, empty: &str, out: &str) -> Vec<String> {
        let word = |word: &String| match word.as_str() {
            FILE => file.to_owned(),
            EMPTY => empty.to_owned(),
            // Some programs want the name of a file in the directory.
            _ => match word.strip_prefix(OUT) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => out.to_owned() + rest,
                _ => word.clone(),
            },
        };
        self.command.iter().map(word).collect()
    }
}

/// Options of `netsniff analyze` whose cost is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in tables.
    pub name: String,
    /// The options, as words.
    pub options: Vec<String>,
}

impl Variant {
    /// It of `NAME=OPTIONS`, or of options alone, which are the name then.
    ///
    /// # Errors
    ///
    /// A sentence, where there is no option in it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, options) = match text.split_once('=') {
            Some((name, options)) if !name.trim_start().starts_with('-') => (name, options),
            _ => (text, text),
        };
        let (name, options) = (name.trim().to_owned(), split(options));
        if name.is_empty() || !options.first().is_some_and(|word| word.starts_with('-')) {
            return Err(
                "expected NAME=OPTIONS, with options of netsniff analyze, as hashes=--hashes sha256"
                    .to_owned(),
            );
        }
        Ok(Self { name, options })
    }

    /// The words that netsniff gets with it, for a file that is there only in name.
    #[must_use]
    pub fn trial_words(&self) -> Vec<String> {
        split(COMPLETE).into_iter().chain(self.options.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_options_with_a_name() {
        let of = |text| Variant::parse(text).map(|it| (it.name, it.options.join("|")));
        let said = |name: &str, options: &str| Ok((name.to_owned(), options.to_owned()));
        assert_eq!(of("full=-a -m nullip"), said("full", "-a|-m|nullip"));
        assert_eq!(of("--hashes sha256"), said("--hashes sha256", "--hashes|sha256"));
        assert_eq!(of("--timeout=udp=1s"), said("--timeout=udp=1s", "--timeout=udp=1s"));
        assert_eq!(of("x=--timeout=udp=1s"), said("x", "--timeout=udp=1s"));
        for wrong in ["", "x", "x=", "=-a", "x=file.pcap"] {
            assert!(of(wrong).unwrap_err().starts_with("expected NAME=OPTIONS"), "{wrong}");
        }
    }

    #[test]
    fn places_are_filled_in() {
        let words =
            |subject: &OfflineSubject| subject.words("/c/FILE.pcap", "/s/e", "/s/out").join(" ");
        let stage = |stage| words(&OfflineSubject::stage(stage, "/bin/ns"));
        assert_eq!(stage(Stage::Start), "/bin/ns --no-config lab read /s/e");
        let complete = "/bin/ns --no-config analyze /c/FILE.pcap --json --workers 1 -o /s/out";
        assert_eq!(stage(Stage::Rows), complete);
        let two = OfflineSubject::workers(2, "/bin/ns");
        assert_eq!(words(&two), complete.replace("workers 1", "workers 2"));
        assert_eq!((two.processors(), two.name.as_str()), (2, "rows, 2 workers"));
        let variant = Variant::parse("a=-a -m nullip").unwrap();
        let subject = OfflineSubject::variant(&variant, "/bin/ns");
        assert_eq!(words(&subject), format!("{complete} -a -m nullip"));
        assert_eq!(variant.trial_words()[..2], ["analyze", "FILE"]);
        let peer = OfflineSubject {
            name: "p".to_owned(),
            role: Role::Peer,
            command: split("p -r FILE -l OUT -w OUT/p OUTSIDE"),
        };
        assert_eq!(words(&peer), "p -r /c/FILE.pcap -l /s/out -w /s/out/p OUTSIDE");
    }

    #[test]
    fn stages_have_names_of_their_own() {
        let mut names = Stage::ALL.map(Stage::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Stage::ALL.len());
    }
}
