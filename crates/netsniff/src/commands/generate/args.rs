//! The arguments of `generate`, and the frames and the plan that they ask for.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::commands::wire::WireArgs;
use anyhow::Context as _;
use netsniff_console::number::exact;
use netsniff_console::sizes::Sizes;
use netsniff_console::{UsageError, quantity};
use netsniff_packet::Timestamp;
use netsniff_traffic::pace::Late;
use netsniff_traffic::plan::{Even, Mean, Plan, Poisson, Rate};
use netsniff_traffic::probe::{FCS_LEN, PORT, Probes, Settings, Shape, Unfit};

/// Bytes of preamble and start delimiter before each frame (IEEE 802.3).
const PREAMBLE: u64 = 8;

/// Where frames go, and what is told of them.
#[derive(Debug, clap::Args)]
pub(super) struct OutputArgs {
    #[command(flatten)]
    pub(super) to: ToArgs,
    #[command(flatten)]
    pub(super) wire: WireArgs,
    /// When the file of -w begins, in seconds since 1970, as 1767225600.5; now where it is not given
    #[arg(long, value_name = "TIME", value_parser = quantity::time, requires = "write")]
    pub(super) start: Option<Timestamp>,
    /// By how much the rate may be off
    #[arg(long, value_name = "PERCENT", value_parser = quantity::percentage, requires = "interface",
        conflicts_with = "topspeed")]
    pub(super) tolerance: Option<f64>,
    /// Print the report as one line of JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Print no report
    #[arg(short, long, conflicts_with = "json")]
    pub(super) quiet: bool,
}

// Not `multiple = false`: clap takes what is in conflict with an argument for that argument where it is required.
#[derive(Debug, clap::Args)]
#[group(required = true)]
pub(super) struct ToArgs {
    /// The interface to send on
    #[arg(short, long, value_name = "IFACE")]
    pub(super) interface: Option<String>,
    /// Write a capture file instead, with the times of the plan: pcap or pcapng by its name, packed where that ends
    /// in .gz, .zst or .lz4; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) write: Option<PathBuf>,
}

/// The frames of a run.
#[derive(Debug, clap::Args)]
pub(super) struct FrameArgs {
    /// Bytes of each frame, frame check sequence included: a size, a range from:to:step, or several with commas
    /// between them, that frames have in turn
    #[arg(long, value_name = "BYTES", default_value = "64")]
    pub(super) size: Sizes,
    /// Frames to send, as 1000 or 10M
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    pub(super) count: Option<u64>,
    /// Time to send at most, as 90s or 5m
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    pub(super) duration: Option<Duration>,
    #[command(flatten)]
    rate: RateArgs,
    /// The speed of the link that --ifg is a gap on, as 1g
    #[arg(long, value_name = "SPEED", value_parser = quantity::link, requires = "ifg")]
    link: Option<f64>,
    /// Send so many frames together, at the same mean rate
    #[arg(long, value_name = "N", conflicts_with = "topspeed", default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..))]
    burst: u64,
    /// Random gaps with the same mean, as of many senders that know nothing of each other
    #[arg(long, conflicts_with = "topspeed")]
    poisson: bool,
    /// What to do about frames that are late
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    late: LateArg,
    /// Flows that frames belong to in turn; four of them have the same addresses
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    flows: u32,
    /// What frames carry
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    proto: ProtoArg,
    /// The version of IP
    #[arg(long, value_name = "4|6", default_value_t = 4, value_parser = clap::value_parser!(u8).range(4..=6))]
    ip: u8,
    /// The port that they are sent to; `netsniff receive` must know it
    #[arg(long, value_name = "PORT", default_value_t = PORT)]
    port: u16,
    /// The first address that they are sent from: flows count from here
    #[arg(long, value_name = "ADDRESS")]
    src_ip: Option<IpAddr>,
    /// The first address that they are sent to
    #[arg(long, value_name = "ADDRESS")]
    dst_ip: Option<IpAddr>,
    /// Sender's Ethernet address
    #[arg(long, value_name = "MAC", value_parser = quantity::mac)]
    src_mac: Option<[u8; 6]>,
    /// Receiver's Ethernet address; 02:00:00:00:00:99, which nobody has, where none is given
    #[arg(long, value_name = "MAC", value_parser = quantity::mac)]
    dst_mac: Option<[u8; 6]>,
    /// The number of the stream in the stamps, to tell the frames of several senders of one run apart
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) stream: u16,
    /// What payload and random gaps depend on: the same number gives the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// The mean rate, one of them.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct RateArgs {
    /// Frames a second, as 0.5, 1000, 300k or 1.5M
    #[arg(long, visible_alias = "pps", value_name = "RATE", value_parser = quantity::rate)]
    rate: Option<f64>,
    /// Million bits a second, of frames without frame check sequence, preamble and gap
    #[arg(long, value_name = "RATE", value_parser = quantity::rate)]
    mbps: Option<f64>,
    /// Bytes between two frames on a link of --link; 12 is its full speed
    #[arg(long, value_name = "BYTES", requires = "link")]
    ifg: Option<u64>,
    /// As fast as possible
    #[arg(long)]
    topspeed: bool,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum LateArg {
    /// Send them as fast as possible: the mean rate stays, bursts follow stalls
    CatchUp,
    /// Move all later ones as well: no bursts, but it takes longer
    #[default]
    Slip,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ProtoArg {
    /// UDP
    #[default]
    Udp,
    /// Segments of TCP connections that never began
    Tcp,
    /// Ethernet alone, of type 0x88b5
    Raw,
}

impl OutputArgs {
    /// Refuses to do two things at once.
    ///
    /// # Errors
    ///
    /// [`UsageError`].
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.to.interface.is_none() || self.to.write.is_none() {
            return Ok(());
        }
        Err(UsageError("frames go to an interface (-i) or to a file (-w)".to_owned()).into())
    }
}

impl FrameArgs {
    /// What to do about late frames.
    pub(super) const fn late(&self) -> Late {
        match self.late {
            LateArg::CatchUp => Late::CatchUp,
            LateArg::Slip => Late::Slip,
        }
    }

    /// The frames.
    ///
    /// # Errors
    ///
    /// Sizes that no frame has, and addresses of another version.
    pub(super) fn probes(&self) -> anyhow::Result<Probes> {
        let shape = match (self.proto, self.ip) {
            (ProtoArg::Raw, _) => Shape::Raw,
            (ProtoArg::Udp, 4) => Shape::Udp4,
            (ProtoArg::Tcp, 4) => Shape::Tcp4,
            (ProtoArg::Udp, 6) => Shape::Udp6,
            (ProtoArg::Tcp, 6) => Shape::Tcp6,
            _ => return Err(UsageError("--ip is 4 or 6".to_owned()).into()),
        };
        let usual = Settings::new(shape);
        let address = |given: Option<IpAddr>, usual: IpAddr| {
            let address = given.unwrap_or(usual);
            if address.is_ipv4() == usual.is_ipv4() {
                return Ok(address);
            }
            Err(UsageError(format!("{address} is no address of IPv{}", self.ip)))
        };
        let settings = Settings {
            macs: (self.src_mac.unwrap_or(usual.macs.0), self.dst_mac.unwrap_or(usual.macs.1)),
            addresses: (
                address(self.src_ip, usual.addresses.0)?,
                address(self.dst_ip, usual.addresses.1)?,
            ),
            port: self.port,
            flows: self.flows,
            seed: self.seed,
            ..usual
        };
        let probes = Probes::new(&settings, self.size.as_slice());
        probes.map_err(|unfit| UsageError(self.unfit(unfit)).into())
    }

    fn unfit(&self, unfit: Unfit) -> String {
        let what = match self.proto {
            ProtoArg::Raw => "frames without IP".to_owned(),
            ProtoArg::Udp => format!("frames of UDP over IPv{}", self.ip),
            ProtoArg::Tcp => format!("frames of TCP over IPv{}", self.ip),
        };
        match unfit {
            Unfit::Small(least) => {
                format!("{what} have at least {least} bytes, frame check sequence included")
            }
            Unfit::Large(most) => format!("{what} have at most {} bytes", exact(most as i128)),
        }
    }

    /// The plan, `None` for as fast as possible, and what it is in words.
    ///
    /// # Errors
    ///
    /// A rate that is too low.
    pub(super) fn plan(&self) -> anyhow::Result<(Option<Plan>, String)> {
        let per_second = |units: f64| Rate::per_second(units).context("this rate is too low");
        let (mean, rate) = match (&self.rate, self.link) {
            (RateArgs { rate: Some(rate), .. }, _) => {
                (Mean::Frames(per_second(*rate)?), format!("{rate} frames/s"))
            }
            (RateArgs { mbps: Some(mbps), .. }, _) => {
                (Mean::bits(per_second(mbps * 1e6)?), format!("{mbps} Mbit/s"))
            }
            (RateArgs { ifg: Some(ifg), .. }, Some(link)) => {
                let overhead = FCS_LEN as u64 + PREAMBLE + ifg.min(&(1 << 32));
                let gap = format!("{ifg} bytes between frames at {} Mbit/s", link / 1e6);
                (Mean::Bits { rate: per_second(link)?, overhead }, gap)
            }
            (RateArgs { topspeed: true, .. }, _) => {
                return Ok((None, "as fast as possible".to_owned()));
            }
            _ => {
                let said = "a rate is needed: --rate, --mbps, --ifg with --link, or --topspeed";
                return Err(UsageError(said.to_owned()).into());
            }
        };
        let bursts = match self.burst {
            1 => String::new(),
            burst => format!(", bursts of {}", exact(burst.into())),
        };
        Ok(if self.poisson {
            let plan = Plan::Poisson(Poisson::new(mean, self.burst, self.seed));
            (Some(plan), format!("{rate}, random gaps (Poisson){bursts}"))
        } else {
            (Some(Plan::Even(Even::new(mean, self.burst))), format!("{rate}, even gaps{bursts}"))
        })
    }
}
