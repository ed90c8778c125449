//! The arguments of `netsniff analyze`, and what they come to.

pub(super) mod depth;
mod extraction;
mod jobs;
mod modes;
mod notices;
mod parent;
mod rules;
mod series;
mod sigma;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use netsniff_analysis::file::{Bodies, HashKinds};
use netsniff_analysis::locality::LocalNets;
use netsniff_analysis::protocol::ProtocolSet;
use netsniff_analysis::{Limits, Options};
use netsniff_console::paths::is_stdin;
use netsniff_console::quantity::{at_least_one, interval, percentage, size, threads};
use netsniff_console::{UsageError, say};
use netsniff_output::{LogSet, RowStyle};
use netsniff_packet::decode::TunnelPorts;
use netsniff_packet::filter::Filter;
use netsniff_pipeline::Jobs;

use self::depth::DepthArg;
use self::extraction::ExtractionArgs;
use self::jobs::JobArgs;
use self::modes::{BodiesArg, Checksums, FirstOrLast, IfUnwritten, UrgentArg};
use self::notices::NoticeArgs;
use self::parent::ParentArgs;
use self::series::SeriesArgs;
use crate::commands::delivery::DeliveryArgs;
use crate::commands::filters;
use crate::commands::inputs::span::SpanArgs;
use crate::commands::live::CaptureArgs;
use crate::commands::protocols;
use crate::commands::pseudonyms::{PseudonymArgs, Pseudonyms};
use crate::commands::recording::RecordOutputArgs;
use crate::commands::rolling::RollArgs;
use crate::commands::row_output::{OutputArgs, Target};
use crate::commands::timeouts::{self, Timeouts};
use crate::config::INPUTS;

/// Analyse capture files or live traffic: connection logs, metrics and a summary
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff analyze capture.pcapng                    a summary; the word analyze may be left out\n  \
    netsniff analyze a.pcap.gz b.pcap -o logs/         two files as one traffic, logs in logs/\n  \
    netsniff analyze -r capture.pcap tcp port 80       some packets only\n  \
    netsniff analyze -v -i eth0 -o logs/               live traffic, and what becomes of it\n  \
    netsniff analyze capture.pcap --extract-files files/   what was transferred\n  \
    netsniff analyze capture.pcap -o logs/ -a -m cryptopan -k KEYFILE\n                                                       logs that name nobody\n  \
    ssh HOST tcpdump -U -w - | netsniff analyze - -o - | jq .\n                                                       JSON lines of all logs\n\n\
    Exit code: 0 fine; 1 failed, or nothing could be read, or a file could not be extracted; 2 wrong\n\
    usage; 3 an input was damaged, cut or unreadable, and all the rest was analysed; 4 below\n\
    --require-quality; 5 not all rows were delivered (--deliver)")]
#[command(group = clap::ArgGroup::new("rows").multiple(true).args(["output", "deliver"]))]
#[command(group = clap::ArgGroup::new(INPUTS).multiple(true).args(["words", "read", "interfaces"]))]
pub struct AnalyzeArgs {
    /// Capture files, pcap or pcapng, also packed with gzip, zstd or lz4; `-` for standard input.
    /// Several files are merged by time. With `-r`, words of a filter instead
    #[arg(value_name = "FILES", allow_negative_numbers = true)]
    words: Vec<OsString>,
    /// Read this capture file; may be repeated. Words without a flag are then a filter
    #[arg(short, long = "read", value_name = "FILE")]
    read: Vec<PathBuf>,
    /// Read on while the file grows, or while captures come into the directory that is named, until Ctrl-C or SIGTERM
    #[arg(long, conflicts_with_all = ["interfaces", "index"])]
    follow: bool,
    /// Analyse only the packets that match, in the language of pcap-filter(7)
    #[arg(short, long, value_name = "EXPR")]
    filter: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Print neither summary nor progress
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Say on standard error what is opened, how it is analysed, and each log that is begun or ended, with its rows;
    /// live also the books, every --stats-interval
    #[arg(short, long, conflicts_with = "quiet")]
    verbose: bool,
    /// Sample the RTT of TCP connections at this interval into the log `rtt`: seconds, or with a
    /// unit as in 100ms
    #[arg(short = 's', long = "rtt-interval", value_name = "SECONDS", value_parser = interval)]
    rtt_interval: Option<Duration>,
    #[command(flatten)]
    series: SeriesArgs,
    /// The capture was taken on a gateway: hop counts are one lower
    #[arg(short, long)]
    gateway: bool,
    /// Write pseudonyms for addresses, names and users, in all logs and in the summary
    #[arg(short, long, group = "pseudonymized")]
    anonymize: bool,
    #[command(flatten)]
    span: SpanArgs,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    rolling: RollArgs,
    /// What to do where rows of logs cannot be written, since the disk is full or a reader has gone
    #[arg(long, value_enum, value_name = "WHAT", requires = "interfaces", default_value_t)]
    pub(super) if_unwritten: IfUnwritten,
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    pub(super) parent: ParentArgs,
    /// Analyse new flows as deep as --depth says also while the ring fills up, though packets may be lost
    #[arg(long, requires = "interfaces")]
    no_shed: bool,
    /// Analyse in another thread than the one that captures, with a bounded queue between
    #[arg(long, requires = "interfaces")]
    apart: bool,
    /// Record what is analysed to this file, too, as netsniff record does
    #[arg(long, value_name = "FILE", requires = "interfaces")]
    record: Option<PathBuf>,
    #[command(flatten)]
    pseudonyms: PseudonymArgs,
    /// UDP ports on which tunnels are looked for, beside the known ones: vxlan=PORT, geneve, gtpu, teredo,
    /// ayiya, gre and mpls likewise, with commas between. What comes there and is no tunnel stays UDP
    #[arg(long, value_name = "LIST")]
    tunnel_ports: Option<TunnelPorts>,
    /// Networks of your own, whose hosts are local in `local_orig`, `local_resp` and `direction`, beside those that are not
    /// routed globally: 192.0.2.0/24,2001:db8::/32. With `only` in the list those are not local
    #[arg(long, value_name = "NETS")]
    local_nets: Option<LocalNets>,
    /// The most that unparsed.pcapng may take, as 500M or 2G; what is left out is counted
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    unparsed: usize,
    /// What becomes of packets with wrong checksums
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    checksums: Checksums,
    /// How deep to analyse: how much is known of each packet. Less is faster, and the column `depth` of
    /// `conn` tells
    #[arg(long, value_enum, default_value_t)]
    depth: DepthArg,
    /// Application protocols to look for: `all`, `none` (which is --depth tcp), or names with commas between, as
    /// `netsniff protocols` lists them
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = protocols::parse)]
    protocols: ProtocolSet,
    /// Hashes of files to write to the log `files`: md5, sha1, sha256, with commas between
    #[arg(long, value_name = "LIST", default_value = "none", value_parser = hashes)]
    hashes: HashKinds,
    /// How much of bodies is decoded that were sent compressed: `head` is the first 4 KiB, which tell the kind. How long they
    /// are, the trailer of gzip tells then; rows say so in `partly_decoded`
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    bodies: BodiesArg,
    #[command(flatten)]
    extraction: ExtractionArgs,
    #[command(flatten)]
    notices: NoticeArgs,
    /// Also write an index beside each file, by which netsniff extract finds packets without reading all; the files are read
    /// once more. Options that change which connections there are exclude it
    #[arg(long, conflicts_with_all = ["interfaces", "from", "to", "filter", "anonymize", "max_flows", "memory", "checksums", "depth", "protocols"])]
    index: bool,
    /// Which bytes of a TCP stream count where segments that nobody read yet overlap and differ
    #[arg(long, value_enum, value_name = "WHICH", default_value_t)]
    overlap: FirstOrLast,
    /// Whether the receivers of TCP urgent data read it out of band, so that it is no part of the stream
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    urgent: UrgentArg,
    /// Threads that analyse; as many as processors unless told. Live, rings for each interface; 1 unless
    /// told
    #[arg(long, value_name = "N", value_parser = threads)]
    workers: Option<usize>,
    #[command(flatten)]
    jobs: JobArgs,
    /// Memory to stay within, as 500M or 2G. Some of it is for reading and for rows that wait, an
    /// eighth of the rest at most for what joins connections (DNS answers, certificates, DHCP), where
    /// the oldest is given up first, and all else for the table of connections; when that is full, the
    /// connection that would time out first ends early. All of it is counted
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<usize>,
    /// Connections that the table may hold; then as for --memory
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_flows: Option<usize>,
    /// Silences after which flows end, as tcp=15min,udp=2min; docs/timeouts.md has all names and defaults
    #[arg(long, value_name = "NAME=TIME,…", value_parser = timeouts::parse)]
    timeout: Option<Timeouts>,
    /// End with exit code 4 where the capture has less than this percentage of the packets (by its
    /// own drop counters), or where less than this percentage of the TCP connections that would show
    /// a loss have the quality `clean`; also where nothing tells
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    require_quality: Option<f64>,
}

/// Memory for everything but flows: the program, what is read, fragments, counts for the summary, and
/// rows that wait for the end of their tick. Measured by `benches/flood.sh` where flows begin and end
/// five million times a second; slower ones leave much of it unused.
const BUFFERS: usize = 128 << 20;
/// The same for each worker.
const BUFFERS_PER_WORKER: usize = 32 << 20;
/// With less for flows and what joins them, neither is of any use.
const LEAST_BYTES: usize = 16 << 20;
/// Of what is beyond that, one of so many parts is for the allocator: it rounds sizes up by an eighth at
/// most, and flows count what they asked for. What the least needs of that is in the buffers.
const ROUNDING_SHARE: usize = 9;
/// One of so many parts is for what joins flows at most: DNS answers, certificates, exchanges of DHCP.
const JOINS_SHARE: usize = 8;

/// What is read, and which packets of it are wanted.
pub(super) struct Request {
    pub(super) paths: Vec<PathBuf>,
    pub(super) filters: Vec<Filter>,
}

impl AnalyzeArgs {
    /// Tells files from words of a filter.
    pub(super) fn request(&self) -> Result<Request, UsageError> {
        let mut filters = Vec::new();
        if let Some(text) = self.filter.as_ref().filter(|text| !text.trim().is_empty()) {
            filters.push(filters::parse(text)?);
        }
        let paths = if self.read.is_empty() {
            self.words.iter().map(PathBuf::from).collect()
        } else {
            filters.extend(self.trailing_filter()?);
            self.read.clone()
        };
        if paths.is_empty() {
            let said = "no capture file is named; for example: netsniff analyze capture.pcapng";
            return Err(UsageError(said.to_owned()));
        }
        if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
            return Err(UsageError("standard input (-) can be read only once".to_owned()));
        }
        if self.follow && (paths.len() > 1 || paths.iter().any(|path| is_stdin(path))) {
            let said = "--follow takes one file, or one directory; standard input is read as it comes without it";
            return Err(UsageError(said.to_owned()));
        }
        if self.index && !filters.is_empty() {
            let said = "--index needs all packets: leave the filter out";
            return Err(UsageError(said.to_owned()));
        }
        Ok(Request { paths, filters })
    }

    fn trailing_filter(&self) -> Result<Option<Filter>, UsageError> {
        if self.words.is_empty() {
            return Ok(None);
        }
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        filters::parse(&words.join(" ")).map(Some).map_err(|UsageError(mut said)| {
            if let Some(word) = words.iter().find(|word| Path::new(word.as_ref()).is_file()) {
                said += &format!(
                    "\n{word} is a file, and words after -r are a filter: give each file a -r of \
                     its own"
                );
            }
            UsageError(said)
        })
    }

    /// The filters of a live capture.
    pub(super) fn live_filters(&self) -> Result<Vec<Filter>, UsageError> {
        if !self.read.is_empty() {
            let said = "-i and -r exclude each other: packets come from an interface or from files";
            return Err(UsageError(said.to_owned()));
        }
        let mut filters = Vec::new();
        if let Some(text) = self.filter.as_ref().filter(|text| !text.trim().is_empty()) {
            filters.push(filters::parse(text)?);
        }
        filters.extend(self.trailing_filter()?);
        Ok(filters)
    }

    /// Whether what is read may grow.
    pub(super) const fn follows(&self) -> bool {
        self.follow
    }

    /// Of which times packets are wanted.
    pub(super) const fn span(&self) -> &SpanArgs {
        &self.span
    }

    /// What to capture, if anything.
    pub(super) const fn capture(&self) -> &CaptureArgs {
        &self.capture
    }

    /// Whether new flows get less depth while the ring fills up.
    pub(super) const fn sheds(&self) -> bool {
        !self.no_shed
    }

    /// Whether to analyse in another thread.
    pub(super) const fn is_apart(&self) -> bool {
        self.apart
    }

    /// Where to record what is analysed.
    pub(super) fn record(&self) -> Option<RecordOutputArgs> {
        self.record.clone().map(RecordOutputArgs::to)
    }

    /// Where rows are delivered to.
    pub(super) const fn delivery(&self) -> &DeliveryArgs {
        &self.delivery
    }

    /// What records are looked through for.
    pub(super) const fn notices(&self) -> &NoticeArgs {
        &self.notices
    }

    /// When the logs roll.
    pub(super) const fn rolling(&self) -> &RollArgs {
        &self.rolling
    }

    /// What to do about a missing file that looks like the begin of a filter.
    pub(super) fn hint(&self, missing: &Path) -> Option<String> {
        let name = missing.to_string_lossy();
        if name.starts_with("netflow://") || name.starts_with("ipfix://") {
            return Some(format!(
                "flow exports have a command of their own: netsniff collect {name}"
            ));
        }
        let at = self.words.iter().position(|word| Path::new(word) == missing)?;
        let words: Vec<_> = self.words.get(at..)?.iter().map(|w| w.to_string_lossy()).collect();
        let text = words.join(" ");
        let is_filter = self.read.is_empty() && Filter::parse(&text).is_ok();
        is_filter.then(|| format!("if that is a filter, say: -f '{text}'"))
    }

    pub(super) fn target(&self) -> Result<Target<'_>, UsageError> {
        self.output.target(self.json, self.delivery.is_wanted())
    }

    /// How rows are rendered, which are written to a target or delivered alone.
    pub(super) fn style(&self, target: &Target<'_>) -> Result<Option<RowStyle>, UsageError> {
        self.output.style(target, self.delivery.is_wanted())
    }

    /// The logs that are wanted.
    pub(super) fn logs(&self) -> LogSet {
        self.output.logs()
    }

    pub(super) fn limits(&self) -> Result<Limits, UsageError> {
        let limits = self.extraction.bound(Limits::default())?;
        let limits = self.timeout.as_ref().map_or(limits, |timeouts| timeouts.set(limits));
        let limits = Limits { flows: self.max_flows.unwrap_or(limits.flows), ..limits };
        let Some(memory) = self.memory else { return Ok(limits) };
        let rest = self.beyond_buffers(memory)?;
        let limits = limits.with_join_bytes(rest / JOINS_SHARE);
        let (limits, series) = self.series.bound(limits, rest);
        let others = limits.join_bytes() + series + self.notices.bytes(rest);
        Ok(Limits { flow_bytes: rest - others, ..limits })
    }

    /// What is left of some memory for flows and what joins them.
    fn beyond_buffers(&self, memory: usize) -> Result<usize, UsageError> {
        let workers = self.jobs.engines().unwrap_or_else(|| self.workers());
        let buffers = BUFFERS.saturating_add(workers.saturating_mul(BUFFERS_PER_WORKER));
        match memory.checked_sub(buffers) {
            Some(rest) if rest >= LEAST_BYTES => Ok(rest - (rest - LEAST_BYTES) / ROUNDING_SHARE),
            _ => Err(UsageError(format!(
                "--memory is too small: with {} it must be at least {}M",
                self.jobs
                    .threads()
                    .map_or(format!("--workers {workers}"), |jobs| format!("--jobs {jobs}")),
                (buffers + LEAST_BYTES).div_ceil(1 << 20)
            ))),
        }
    }

    /// The options, unless they contradict each other.
    pub(super) fn options(&self) -> Result<Options, UsageError> {
        let depth = self.depth.depth(self.rtt_interval.is_some(), self.extraction.is_wanted())?;
        let rest = self.memory.map(|memory| self.beyond_buffers(memory)).transpose()?;
        let finding_bytes = rest.map(|rest| self.notices.bytes(rest));
        let options = Options {
            depth,
            rtt_interval: self.rtt_interval,
            series: self.series.options(),
            gateway: self.gateway,
            tunnel_ports: Arc::new(self.tunnel_ports.clone().unwrap_or_default()),
            local_nets: Arc::new(self.local_nets.clone().unwrap_or_default()),
            checksums: self.checksums.into(),
            overlap: self.overlap.into(),
            urgent: self.urgent.into(),
            protocols: self.protocols,
            hashes: self.hashes,
            bodies: self.bodies()?,
            ..Options::default()
        };
        let watch = self.notices.watch(finding_bytes, self.anonymize, &options)?;
        Ok(Options { watch, ..options })
    }

    /// How much of bodies is decoded, unless something wants all of them.
    fn bodies(&self) -> Result<Bodies, UsageError> {
        if self.bodies == BodiesArg::Whole {
            return Ok(Bodies::Whole);
        }
        let unfit = if self.hashes != HashKinds::default() {
            "--hashes"
        } else if self.extraction.is_wanted() {
            "--extract-files"
        } else {
            return Ok(Bodies::Head);
        };
        Err(UsageError(format!(
            "{unfit} needs bodies that are decoded as a whole: leave --bodies head out, or {unfit}"
        )))
    }

    /// The limits and options by which netsniff extract finds connections again, if indexes are to be written.
    pub(super) fn index(&self) -> Option<(Limits, Options)> {
        let limits = Limits::default();
        let limits = self.timeout.as_ref().map_or(limits, |timeouts| timeouts.set(limits));
        let tunnel_ports = Arc::new(self.tunnel_ports.clone().unwrap_or_default());
        self.index.then(|| (limits, Options { tunnel_ports, ..Options::default() }))
    }

    /// The most bytes of `unparsed.pcapng`.
    pub(super) const fn unparsed(&self) -> u64 {
        self.unparsed as u64
    }

    /// The pseudonyms that are to be written, if any.
    pub(super) fn pseudonyms(&self) -> anyhow::Result<Option<Pseudonyms>> {
        self.anonymize.then(|| self.pseudonyms.pseudonyms()).transpose()
    }

    /// Where the content of files goes, if it is wanted.
    pub(super) fn extraction(&self) -> Result<Option<&Path>, UsageError> {
        self.extraction.directory(self.anonymize)
    }

    pub(super) fn workers(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.or(self.jobs.workers()).unwrap_or_else(processors)
    }

    /// How files are to be analysed side by side, if they are.
    pub(super) fn jobs(&self, options: &Options) -> Result<Option<Jobs>, UsageError> {
        let waiting = self.memory.map(|_| BUFFERS_PER_WORKER / 2);
        self.jobs.jobs(options, self.extraction.is_wanted(), waiting)
    }

    /// Rings for each interface. More than one costs sharing out, and pays where one thread is too slow.
    pub(super) fn rings(&self) -> usize {
        self.workers.unwrap_or(1)
    }

    pub(super) const fn json(&self) -> bool {
        self.json
    }

    pub(super) const fn quiet(&self) -> bool {
        self.quiet
    }

    pub(super) const fn verbose(&self) -> bool {
        self.verbose
    }

    /// Where sentences go that only a verbose run says.
    pub(super) fn tell(&self) -> fn(&str) {
        if self.verbose { say } else { |_| {} }
    }

    /// The least percentage that is good enough.
    pub(super) const fn required_quality(&self) -> Option<f64> {
        self.require_quality
    }
}

fn hashes(text: &str) -> Result<HashKinds, String> {
    let mut kinds = HashKinds::default();
    for name in text.split(',').map(str::trim).filter(|&name| name != "none") {
        match name {
            "md5" => kinds.md5 = true,
            "sha1" => kinds.sha1 = true,
            "sha256" => kinds.sha256 = true,
            _ => return Err(format!("unknown hash {name:?}; there are md5, sha1 and sha256")),
        }
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        analyze: AnalyzeArgs,
    }

    fn parsed(words: &[&str]) -> AnalyzeArgs {
        let words = ["analyze", "file"].iter().chain(words);
        <Command as clap::Parser>::parse_from(words).analyze
    }

    #[test]
    fn heads_of_bodies_have_no_hashes_and_no_content() {
        assert_eq!(parsed(&[]).options().unwrap().bodies, Bodies::Whole);
        let heads = parsed(&["--bodies", "head"]).options().unwrap();
        assert_eq!(heads.bodies, Bodies::Head);
        for other in [["--hashes", "md5"], ["--extract", "files"]] {
            assert!(parsed(&other).options().is_ok());
            let error = parsed(&["--bodies", "head", other[0], other[1]]).options().unwrap_err();
            assert!(error.to_string().starts_with(other[0]), "{error}");
        }
    }

    #[test]
    fn memory_is_shared_out_to_the_last_byte() {
        let limits = |memory| parsed(&["--workers", "2", "--memory", memory]).limits();
        let least = limits("208M").unwrap();
        assert_eq!(least.flow_bytes + least.join_bytes(), 16 << 20);
        assert!((1 << 20..=2 << 20).contains(&least.join_bytes()), "{}", least.join_bytes());
        let ample = limits("8G").unwrap();
        assert_eq!(ample.join_bytes(), Limits::default().join_bytes());
        let rest = (8 << 30) - (192 << 20);
        let counted = ample.flow_bytes + ample.join_bytes();
        // The sizes of the allocator lie an eighth apart.
        let beyond = counted - (16 << 20);
        assert!((rest - 1..=rest).contains(&(counted + beyond / 8)), "{counted} of {rest}");
        assert!(limits("207M").is_err());
        let words = ["--memory", "208M", "--workers", "2", "-o", "logs", "--series", "1s"];
        let with_series = parsed(&words).limits().unwrap();
        let series = with_series.series_bytes();
        assert!(series > (1 << 19) && series <= 1 << 20, "{series}");
        assert_eq!(with_series.flow_bytes + with_series.join_bytes() + series, 16 << 20);
        let words = ["--memory", "208M", "--workers", "2", "-o", "logs", "--notices"];
        let with_findings = parsed(&words).limits().unwrap();
        assert_eq!(with_findings.flow_bytes + with_findings.join_bytes() + (1 << 20), 16 << 20);
    }
}
