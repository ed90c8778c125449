//! `netsniff generate hosts`: sessions of hosts with servers.

use std::time::Duration;

use netsniff_console::number::things;
use netsniff_console::{DONE, UsageError, quantity};
use netsniff_packet::Timestamp;
use netsniff_pipeline::sending::drive::{Frames, Orders, SendStep, drive};
use netsniff_pipeline::sending::file;
use netsniff_pipeline::sending::report::{Report, UnsentFrames};
use netsniff_traffic::dialogue::Side;
use netsniff_traffic::impair::{Impaired, Impairing, Impairment};
use netsniff_traffic::pace::Late;
use netsniff_traffic::plan::{Outgoing, Plan, Recorded};
use netsniff_traffic::sessions::{Frame, Hosts, Kind, Profile, Settings};

use super::args::OutputArgs;
use super::{finish, print_report, start_of, stop, takes};

/// Nanoseconds of scaled gaps are counted in millionths of the factor.
const MILLION: f64 = 1e6;

/// The most bytes of a frame of a session, with frame check sequence.
const LARGEST: usize = 1518;

/// Send or write whole sessions of hosts with servers: handshakes, requests, answers, ends
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff generate hosts --n 30 -i eth1 --duration 1m\n  \
    netsniff generate hosts --n 500 --sessions 100k --think 100ms -w hosts.pcapng.zst\n  \
    netsniff generate hosts --profile papers --sessions 1000 -w papers.pcapng\n  \
    netsniff generate hosts --n 30 --mix http,http,dns -i eth1 --server-interface eth2 --sessions 1000\n  \
    netsniff generate hosts --sessions 1000 -w lossy.pcap --impair loss=1%,reorder=0.5%,dup=0.1%\n\n\
    Clients have addresses from 10.0.0.1 (2001:db8:0:c1::1) on, servers of 198.51.100.0/24 (2001:db8:0:5e::/64).")]
pub(super) struct HostsArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The interface on which servers send, while clients send on the other
    #[arg(long, value_name = "IFACE", requires = "interface")]
    server_interface: Option<String>,
    /// What sessions are like: usual, or papers, as one host of CAIA-TR-051004A had them: 870 bytes a packet and 350 packets
    /// a second on average
    #[arg(long, value_name = "usual|papers", value_parser = profile, default_value = "usual")]
    profile: Profile,
    /// Hosts at once [default: 30; of papers 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    n: Option<u32>,
    /// Their sessions, drawn at random: a kind that stands there twice is drawn twice as often [default: http, smtp, ftp,
    /// ssh, https, dns; of papers all but dns]
    #[arg(long, value_name = "KINDS", value_delimiter = ',', num_args = 1.., value_parser = kind)]
    mix: Option<Vec<Kind>>,
    /// Sessions in all, as 1000 or 1M
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    sessions: Option<u64>,
    /// Time after which no more is sent
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    duration: Option<Duration>,
    /// Mean time between two sessions of a host [default: 1s; of papers as their rate needs it]
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    think: Option<Duration>,
    /// The version of IP
    #[arg(long, value_name = "4|6", default_value = "4", value_parser = ["4", "6"])]
    ip: String,
    /// What happens to frames, as loss=1%,reorder=0.5%,dup=0.1%,delay=2ms: they are lost, up to the delay later than
    /// others, or come again up to the delay later
    #[arg(long, value_name = "WHAT", value_parser = impairment)]
    impair: Option<Impairment>,
    /// Where it happens
    #[arg(long, value_enum, value_name = "WHERE", requires = "impair", default_value_t)]
    impair_at: Place,
    /// So many times as fast
    #[arg(long, value_name = "FACTOR", value_parser = quantity::rate, default_value = "1", conflicts_with = "topspeed")]
    multiplier: f64,
    /// As fast as possible
    #[arg(long)]
    topspeed: bool,
    /// What everything depends on: the same number gives the same sessions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Place {
    /// In the network before the tap: hosts see it, and TCP sends again
    #[default]
    Network,
    /// Behind the tap: hosts see nothing of it, as where a capture loses packets
    Tap,
}

fn kind(text: &str) -> Result<Kind, String> {
    let names = || Kind::ALL.map(Kind::name).join(", ");
    Kind::from_name(text).ok_or_else(|| format!("there are {}", names()))
}

fn profile(text: &str) -> Result<Profile, String> {
    let names = || Profile::ALL.map(Profile::name).join(" and ");
    Profile::from_name(text).ok_or_else(|| format!("there are {}", names()))
}

fn impairment(text: &str) -> Result<Impairment, String> {
    let mut impairment =
        Impairment { max_delay: Duration::from_millis(1), ..Impairment::default() };
    for part in text.split(',') {
        let (name, value) =
            part.split_once('=').ok_or("expected as loss=1%,reorder=0.5%,dup=0.1%")?;
        let probability = || Ok::<_, String>(quantity::percentage(value)? / 100.0);
        match name {
            "loss" => impairment.loss = probability()?,
            "reorder" => impairment.reordering = probability()?,
            "dup" => impairment.duplication = probability()?,
            "delay" => impairment.max_delay = quantity::interval(value)?,
            _ => return Err(format!("{name:?} is none of loss, reorder, dup and delay")),
        }
    }
    Ok(impairment)
}

/// Frames of hosts, as a tap has them.
enum Source {
    Whole(Hosts),
    Impaired(Box<Impairing<Hosts>>),
}

/// The same for sending.
struct Sessions {
    source: Source,
    frame: Option<Frame>,
    /// Whether servers have a wire of their own.
    has_sides: bool,
}

impl Frames for Sessions {
    fn advance(&mut self) -> anyhow::Result<SendStep> {
        self.frame = match &mut self.source {
            Source::Whole(hosts) => hosts.next(),
            Source::Impaired(impairing) => impairing.next(),
        };
        Ok(self.frame.as_ref().map_or(SendStep::End, |frame| {
            SendStep::Frame(Outgoing { recorded: frame.timestamp, len: frame.data.len() })
        }))
    }

    fn write(&mut self, _buffer: usize, room: &mut [u8], _sent: u64) -> usize {
        // The interface was asked whether it takes the longest of them.
        let Some(frame) = &self.frame else { return 0 };
        let Some(room) = room.get_mut(..frame.data.len()) else { return 0 };
        room.copy_from_slice(&frame.data);
        frame.data.len()
    }

    fn wire(&self) -> usize {
        let is_server = self.frame.as_ref().is_some_and(|frame| frame.from == Side::Server);
        usize::from(self.has_sides && is_server)
    }
}

impl Sessions {
    /// What was done to frames on purpose.
    fn left(&self) -> Vec<UnsentFrames> {
        let Source::Impaired(impairing) = &self.source else { return Vec::new() };
        let Impaired { lost, doubled, late } = impairing.counts();
        let left = |frames, what: &str| UnsentFrames { frames, what: format!("{what} (--impair)") };
        vec![left(lost, "lost behind the tap"), left(doubled, "doubled"), left(late, "late")]
    }
}

impl HostsArgs {
    fn source(&self, start: Timestamp) -> Source {
        let impairment = self.impair.unwrap_or_default();
        let is_network = self.impair_at == Place::Network;
        let hosts = Hosts::new(Settings {
            hosts: self.hosts(),
            mix: self.mix().to_vec(),
            profile: self.profile,
            think: self.think.unwrap_or(self.profile.think()),
            sessions: self.sessions,
            is_ipv6: self.ip == "6",
            network: if is_network { impairment } else { Impairment::default() },
            seed: self.seed,
            start,
        });
        match self.impair {
            Some(impairment) if !is_network => {
                Source::Impaired(Box::new(Impairing::new(hosts, impairment, self.seed)))
            }
            _ => Source::Whole(hosts),
        }
    }

    fn hosts(&self) -> u32 {
        self.n.unwrap_or(self.profile.hosts())
    }

    fn mix(&self) -> &[Kind] {
        self.mix.as_deref().unwrap_or(self.profile.mix())
    }

    /// As it is timed, in words.
    fn timing(&self) -> String {
        let (hosts, kinds) =
            (things(self.hosts().into(), "host"), self.mix().iter().map(|kind| kind.name()));
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let speed = match self.multiplier {
            _ if self.topspeed => "as fast as possible".to_owned(),
            1.0 => "as sessions have it".to_owned(),
            factor => format!("{factor} times as fast as sessions have it"),
        };
        format!("{hosts} with {kinds}; {speed}")
    }
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// As [`super::run`].
pub(super) fn run(args: &HostsArgs) -> anyhow::Result<u8> {
    args.output.check()?;
    let stop = stop()?;
    let output = &args.output;
    let start = start_of(output);
    let has_sides = args.server_interface.is_some();
    let mut frames = Sessions { source: args.source(start), frame: None, has_sides };
    let factor = (args.multiplier * MILLION).round() as u64;
    let plan = Plan::Recorded(Recorded::new(MILLION as u64, factor, None));
    let (most, late) = (u64::MAX, Late::CatchUp);
    let plan = (!args.topspeed).then_some(plan);
    let orders = Orders { plan, late, most, duration: args.duration };
    if let Some(path) = &output.to.write {
        if args.topspeed || args.sessions.is_none() && args.duration.is_none() {
            let said = "a file needs times, and --sessions or --duration";
            return Err(UsageError(said.to_owned()).into());
        }
        let written = file::write(&mut frames, orders, path, start, &stop)?;
        let written = written.with_left_out(frames.left());
        print_report(output, path, &if output.json { written.json()? } else { written.text() })?;
        return Ok(DONE);
    }
    let interface = output.to.interface.as_deref().unwrap_or_default();
    let mut wires = output.wire.options().open(interface, args.server_interface.as_deref())?;
    wires.iter().try_for_each(|wire| takes(wire, LARGEST))?;
    let sent = drive(&mut frames, orders, &mut wires, &stop)?;
    let report = Report::new(&sent, &mut wires, args.timing(), late, frames.left());
    finish(output, &sent, &report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impairments_are_percentages() {
        let all = impairment("loss=1%,reorder=0.5%,dup=0.1,delay=2ms").unwrap();
        assert_eq!((all.loss, all.reordering, all.duplication), (0.01, 0.005, 0.001));
        assert_eq!(all.max_delay, Duration::from_millis(2));
        for wrong in ["", "loss", "loss=101%", "los=1", "delay=0", "loss=1%,"] {
            assert!(impairment(wrong).is_err(), "{wrong}");
        }
    }
}
