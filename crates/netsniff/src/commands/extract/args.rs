//! The arguments of `netsniff extract`, and what they come to.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use netsniff_analysis::key::community_id::CommunityId;
use netsniff_analysis::rows::LOGS;
use netsniff_analysis::{Limits, Options, Uid};
use netsniff_console::paths::{is_same_file, is_stdin};
use netsniff_console::{UsageError, quantity};
use netsniff_output::condition::Condition;
use netsniff_packet::decode::TunnelPorts;
use netsniff_pipeline::carving::choice::{FlowChoice, PacketChoice};
use netsniff_pipeline::recording::naming::{CaptureFormat, files_of};

use crate::commands::filters::filters;
use crate::commands::inputs::span::{Span, SpanArgs};
use crate::commands::pseudonyms::PseudonymArgs;
use crate::commands::timeouts::{self, Timeouts};

/// The log whose rows are connections.
const CONNECTIONS: &str = "conn";

/// Write the packets of chosen connections, as the logs name them, to a capture
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff extract in.pcapng -w out.pcapng --uid C0Uu1dTkqKSZqk4Kvm\n                                                       \
    the packets of one row of conn.log\n  \
    netsniff extract day/*.pcapng.zst -w out.pcapng --uid C0Uu1dTkqKSZqk4Kvm --uid C2lSSYfEVP5xkcvqhm\n  \
    netsniff extract in.pcap -w - --community-id 1:LQU9qZlK+B5F3KDmev6m5PMibrg= | tshark -r -\n  \
    netsniff extract in.pcap -w out.pcapng --fuid F1kWmnrJUkBmBSGb0d\n                                                       \
    what carried a file of files.log\n  \
    netsniff extract in.pcap -w out.pcapng --where \"id.orig_h IN '10.0.0.0/8' AND duration > 60\"\n  \
    netsniff extract in.pcap -w out.pcapng --from 2026-11-28T10:00:00Z --to 2026-11-28T10:05:00Z -f 'host 192.0.2.1'\n\n\
    All conditions must hold; a packet or connection matches those of one kind if it matches any of them.\n\
    Each packet has a comment uid=..., for each of its connections; pcap cannot hold it. Analysed again,\n\
    the output gives the same rows.\n\n\
    Exit code: 0 fine; 1 failed, or a uid or file was not found; 2 wrong usage; 3 an input was damaged,\n\
    and all that could be read was searched")]
pub struct ExtractArgs {
    /// Capture files, pcap or pcapng, also packed with gzip, zstd or lz4, merged by time as by analyze; of a directory
    /// all captures in it; by the name that netsniff record -b was given, its files; `-` for standard input
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<PathBuf>,
    /// Where to write; packed where the suffix says so; `-` for standard output
    #[arg(short = 'w', long = "write", value_name = "OUT")]
    output: PathBuf,
    /// Format to write; as the suffix of OUT tells, or else pcapng
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<CaptureFormat>,
    /// Connections by the column `uid`; may be repeated, or have commas between
    #[arg(short, long = "uid", value_name = "UID", value_delimiter = ',', value_parser = uid)]
    uids: Vec<Uid>,
    /// Connections by the column `community_id`; may be repeated
    #[arg(long = "community-id", value_name = "ID", value_parser = community_id)]
    community_ids: Vec<CommunityId>,
    /// Connections that carried a file of the log `files`, by the column `fuid`; may be repeated. The input is read
    /// twice
    #[arg(long = "fuid", value_name = "FUID", value_delimiter = ',', value_parser = fuid)]
    fuids: Vec<Uid>,
    /// Connections whose row of the log `conn` meets a condition, as "id.resp_p = 443 AND orig_bytes > 1e6 AND service LIKE
    /// '%ssl%'"; docs/extract.md has the language. The input is read twice
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    #[command(flatten)]
    span: SpanArgs,
    /// Packets that match, in the language of pcap-filter(7). Connections are those of all packets
    #[arg(short, long, value_name = "EXPR")]
    filter: Option<String>,
    /// UDP ports on which tunnels are looked for, beside the known ones, as for netsniff analyze
    #[arg(long, value_name = "LIST")]
    tunnel_ports: Option<TunnelPorts>,
    /// Silences after which flows end, as for netsniff analyze
    #[arg(long, value_name = "NAME=TIME,…", value_parser = timeouts::parse)]
    timeout: Option<Timeouts>,
    /// Uids, fuids and Community IDs are those of logs that netsniff analyze -a wrote by the same -k, -m and --keep. The
    /// packets are written as they are, and --where and -f see true addresses
    #[arg(short, long = "anonymized", group = "pseudonymized")]
    anonymized: bool,
    #[command(flatten)]
    pseudonyms: PseudonymArgs,
    /// Read all of the captures, also where indexes (netsniff index) tell where the packets are
    #[arg(long)]
    no_index: bool,
    /// Memory for packets that wait: fragments for the rest of their datagram, and packets behind them
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "256M")]
    hold: usize,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress, and nothing of what was done
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

fn uid(text: &str) -> Result<Uid, String> {
    if text.starts_with('F') {
        return Err("it names a file: use --fuid".to_owned());
    }
    text.parse().map_err(|error: netsniff_analysis::key::uid::NoUid| error.to_string())
}

fn fuid(text: &str) -> Result<Uid, String> {
    if text.starts_with('C') {
        return Err("it names a connection: use --uid".to_owned());
    }
    text.parse().map_err(|error: netsniff_analysis::key::uid::NoUid| error.to_string())
}

fn community_id(text: &str) -> Result<CommunityId, String> {
    let what = "it is no Community ID of version 1, which is 1: and 28 characters of base 64";
    CommunityId::from_text(text).ok_or_else(|| what.to_owned())
}

impl ExtractArgs {
    /// What is read, each once.
    pub(super) fn inputs(&self) -> Result<Vec<PathBuf>, UsageError> {
        let paths = expanded(&self.inputs)?;
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(UsageError("standard input (-) can be read only once".to_owned()));
        }
        if self.reads_twice() && paths.iter().any(|path| is_stdin(path)) {
            let said = "standard input (-) can be read only once, and --fuid and --where have to \
                        read twice: write it to a file first";
            return Err(UsageError(said.to_owned()));
        }
        if let Some(input) = paths.iter().find(|input| is_same_file(input, &self.output)) {
            let same = input.display();
            let said = format!("{same} is both read and written: name another file to write to");
            return Err(UsageError(said));
        }
        Ok(paths)
    }

    /// Whether it is known only after the rows were made which connections are wanted.
    pub(super) fn reads_twice(&self) -> bool {
        !self.fuids.is_empty() || self.condition.is_some()
    }

    /// What rows of connections are to meet, if anything.
    pub(super) fn condition(&self) -> Result<Option<Condition>, UsageError> {
        let Some(text) = &self.condition else { return Ok(None) };
        let conn = LOGS.iter().find(|log| log.path == CONNECTIONS);
        let conn = conn.ok_or_else(|| UsageError("there is no log of connections".to_owned()))?;
        let parsed = Condition::parse(text, conn);
        parsed.map(Some).map_err(|error| UsageError(format!("--where: {error}")))
    }

    pub(super) fn fuids(&self) -> &[Uid] {
        &self.fuids
    }

    /// Connections that are wanted, as far as arguments name them.
    pub(super) fn flows(&self) -> FlowChoice {
        let mut choice = FlowChoice::default();
        if !self.uids.is_empty() {
            choice.named(self.uids.iter().copied());
        }
        if !self.community_ids.is_empty() {
            choice.communities(self.community_ids.iter().copied());
        }
        choice
    }

    /// Packets that are wanted of them.
    pub(super) fn packets(&self) -> Result<PacketChoice, UsageError> {
        let Span { from, to } = self.span.span()?.unwrap_or_default();
        let filters = filters([self.filter.as_deref()])?;
        Ok(PacketChoice { from, to, filters })
    }

    /// The options of the analysis that names connections.
    ///
    /// # Errors
    ///
    /// Where pseudonyms are wanted that nobody can make again, and where their key cannot be read.
    pub(super) fn options(&self) -> anyhow::Result<Options> {
        let tunnel_ports = Arc::new(self.tunnel_ports.clone().unwrap_or_default());
        if !self.anonymized {
            return Ok(Options { tunnel_ports, ..Options::default() });
        }
        if !self.pseudonyms.are_known_again() {
            let said = "-a needs the key of the logs: add -k KEYFILE, as netsniff analyze -a had it. Without -k that drew a key, \
                        which nobody knows: such logs name no packets";
            return Err(UsageError(said.to_owned()).into());
        }
        let anonymizer = Some(Arc::new(self.pseudonyms.pseudonyms()?.anonymizer));
        Ok(Options { tunnel_ports, anonymizer, ..Options::default() })
    }

    pub(super) fn limits(&self) -> Limits {
        let limits = Limits::default();
        self.timeout.as_ref().map_or(limits, |timeouts| timeouts.set(limits))
    }

    pub(super) const fn uses_indexes(&self) -> bool {
        !self.no_index
    }

    pub(super) const fn hold(&self) -> usize {
        self.hold
    }

    pub(super) fn output(&self) -> &Path {
        &self.output
    }

    pub(super) fn format(&self) -> CaptureFormat {
        self.format.or(CaptureFormat::of_name(&self.output)).unwrap_or_default()
    }

    pub(super) const fn json(&self) -> bool {
        self.json
    }

    pub(super) const fn quiet(&self) -> bool {
        self.quiet
    }
}

/// Files, for directories the captures in them, and for the name of a recording its files; each once.
///
/// # Errors
///
/// A directory that cannot be read, or has no capture.
pub(super) fn expanded(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, UsageError> {
    let mut paths = Vec::new();
    for input in inputs {
        if input.is_dir() {
            paths.extend(captures_in(input)?);
        } else if !is_stdin(input) && !input.exists() {
            // What is neither a file nor a recording is told where it is opened.
            let files = files_of(input).unwrap_or_default();
            paths.extend(if files.is_empty() { vec![input.clone()] } else { files });
        } else {
            paths.push(input.clone());
        }
    }
    let mut seen = HashSet::new();
    // A file that is named twice, or also by its directory, is read once. Standard input is told where it is refused.
    paths.retain(|path| {
        is_stdin(path) || !path.canonicalize().is_ok_and(|it| it.is_file() && !seen.insert(it))
    });
    Ok(paths)
}

/// The captures of a directory, by name.
fn captures_in(directory: &Path) -> Result<Vec<PathBuf>, UsageError> {
    let unreadable = |error| UsageError(format!("{}: cannot read: {error}", directory.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let is_hidden =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.is_file() && !is_hidden && CaptureFormat::of_name(&path).is_some() {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() {
        let said = "no capture in it: names end in .pcap, .cap or .pcapng, packed or not";
        return Err(UsageError(format!("{}: {said}", directory.display())));
    }
    Ok(found)
}
