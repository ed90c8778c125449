//! The arguments of commands that capture.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use netsniff_capture::backend::{BACKENDS, Backend, Path};
use netsniff_capture::options::{Direction, Options, Stamps, Wait};
use netsniff_console::UsageError;
use netsniff_console::quantity::{interval, size};
use netsniff_pipeline::live::IfGone;

use super::ring_size::{self, RingSize};
use crate::sandbox::SafetyArgs;

/// What to capture, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Live capture (with -i)")]
pub struct CaptureArgs {
    /// Capture on this interface; may be repeated
    #[arg(short, long = "interface", value_name = "IFACE", group = "opened")]
    pub interfaces: Vec<String>,
    /// The way that packets take: `tap` beside the system, `both` through a copying program before it, or
    /// `bypass`, which keeps what is captured from it
    #[arg(long, value_enum, value_name = "WAY", requires = "interfaces")]
    path: Option<PathArg>,
    /// How to capture; the first of the path unless told. `netsniff analyze -i IFACE --backend help`
    /// lists them
    #[arg(long, value_name = "NAME", requires = "interfaces")]
    backend: Option<String>,
    /// Bytes of the ring that packets wait in, as 64M, or `auto` for what the traffic of a second asks for; the kernel may
    /// grant less, which is said
    #[arg(long, value_name = "SIZE", requires = "interfaces", value_parser = ring_size::parse)]
    ring: Option<RingSize>,
    /// Bytes of each block of the ring
    #[arg(long, value_name = "SIZE", requires = "interfaces", value_parser = size)]
    block: Option<usize>,
    /// How long a block stays open for more packets, as 50ms: the delay of what is captured
    #[arg(long, value_name = "TIME", requires = "interfaces", value_parser = interval)]
    retire: Option<Duration>,
    /// Bytes of each packet that are kept; the kernel cuts
    #[arg(long, value_name = "BYTES", requires = "interfaces", value_parser = clap::value_parser!(u32).range(1..=262_144))]
    snaplen: Option<u32>,
    /// Capture packets that come in, that this machine sends, or both
    #[arg(long, value_enum, value_name = "WHICH", requires = "interfaces", default_value_t)]
    direction: DirectionArg,
    /// Capture only what is for this machine
    #[arg(long, requires = "interfaces")]
    no_promiscuous: bool,
    /// What to do while there is no packet
    #[arg(long, value_enum, value_name = "HOW", requires = "interfaces", default_value_t)]
    wait: WaitArg,
    /// Let waiting ask the driver itself for so long (SO_BUSY_POLL), as 50us
    #[arg(long, value_name = "TIME", requires = "interfaces", value_parser = interval)]
    busy_poll: Option<Duration>,
    /// Who stamps the packets
    #[arg(long = "ts", value_enum, value_name = "WHO", requires = "interfaces", default_value_t)]
    stamps: StampsArg,
    /// Capture only one in N pairs of addresses, as 1/8: all packets between two hosts or none
    #[arg(long, value_name = "1/N", requires = "interfaces", value_parser = sample)]
    sample: Option<NonZeroU32>,
    /// Join the fan-out group of this number, so that several processes share the packets of an interface
    #[arg(long, value_name = "N", requires = "interfaces")]
    fanout_group: Option<u16>,
    /// Processors to run on, as 1,2: the rings in turn, and on the last one what writes the logs
    #[arg(long, value_name = "LIST", requires = "interfaces", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// How long packets wait for earlier ones, as 200us, which is the default live; 0 for not at all, as for
    /// files
    #[arg(long, value_name = "TIME", value_parser = window)]
    reorder: Option<Duration>,
    /// End after so long, as 10s or 5min
    #[arg(long, value_name = "TIME", requires = "interfaces", value_parser = interval)]
    duration: Option<Duration>,
    /// End after so many packets
    #[arg(long, value_name = "N", requires = "interfaces", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How often the books are written, to the log `capture` and to --metrics
    #[arg(long, value_name = "TIME", requires = "interfaces", value_parser = interval, default_value = "10s")]
    stats_interval: Duration,
    /// Show the books to Prometheus at this address, as 127.0.0.1:9100 or, on loopback, 9100; beside /metrics there are
    /// /health and /ready
    #[arg(long, value_name = "ADDR", requires = "interfaces", value_parser = address)]
    metrics: Option<SocketAddr>,
    /// What to do where an interface is gone
    #[arg(long, value_enum, value_name = "WHAT", requires = "interfaces", default_value_t)]
    if_gone: IfGone,
    /// Write the number of the process to this file, and refuse to run while another one holds it
    #[arg(short, long = "pidfile", value_name = "FILE", help_heading = None::<&str>)]
    pub pidfile: Option<PathBuf>,
    #[command(flatten)]
    safety: SafetyArgs,
}

/// The way that packets take.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PathArg {
    /// The system takes the packets, and the capture a copy
    Tap,
    /// A program before the system copies the packets, and passes them on
    Both,
    /// The packets that are captured do not come to the system
    Bypass,
}

impl From<PathArg> for Path {
    fn from(path: PathArg) -> Self {
        match path {
            PathArg::Tap => Self::Tap,
            PathArg::Both => Self::Both,
            PathArg::Bypass => Self::Bypass,
        }
    }
}

/// Which packets are wanted.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum DirectionArg {
    /// Those that come in
    In,
    /// Those that this machine sends
    Out,
    /// Both
    #[default]
    Both,
}

/// What to do while there is no packet.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum WaitArg {
    /// Sleep until the kernel wakes the thread
    Poll,
    /// Look again and again, which takes a whole processor
    Busy,
    /// Look for a moment, sleep as rate and room allow, then as poll
    #[default]
    Adaptive,
}

/// Who stamps the packets.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum StampsArg {
    /// The kernel
    #[default]
    Auto,
    /// The kernel
    Sw,
    /// The interface, where it can
    Hw,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let told = match text.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => text.parse(),
    };
    told.map_err(|_| "expected ADDRESS:PORT, as 127.0.0.1:9100".to_owned())
}

fn sample(text: &str) -> Result<NonZeroU32, String> {
    let number = text.strip_prefix("1/").unwrap_or(text);
    number.parse().map_err(|_| "expected 1/N, as 1/8".to_owned())
}

fn window(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { interval(text) }
}

fn named(name: &str) -> Result<&'static Backend, UsageError> {
    BACKENDS.iter().find(|backend| backend.name == name).ok_or_else(|| {
        let list = BACKENDS
            .iter()
            .map(|of| format!("\n  {:<14}{} (--path {})", of.name, of.summary, of.path.name()));
        UsageError(format!("there is no backend {name}; there are{}", list.collect::<String>()))
    })
}

/// The backend that is chosen for a path.
fn first_of(path: Path) -> Result<&'static Backend, UsageError> {
    let of_path = BACKENDS.iter().find(|backend| backend.path == path);
    of_path.ok_or_else(|| UsageError(format!("there is no backend for --path {}", path.name())))
}

impl CaptureArgs {
    /// Whether packets come from an interface.
    pub fn is_live(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// The way to capture that was chosen.
    ///
    /// # Errors
    ///
    /// Where there is none of that name, which the sentence lists; where it is of another path; and where it
    /// cannot wait for an interface as it was told to.
    pub fn backend(&self) -> Result<&'static Backend, UsageError> {
        let path = self.path.map(Path::from);
        let backend = match &self.backend {
            Some(name) => named(name)?,
            None => first_of(path.unwrap_or(BACKENDS[0].path))?,
        };
        if let Some(path) = path.filter(|path| *path != backend.path) {
            return Err(UsageError(format!(
                "--backend {} is of --path {}, not of {}",
                backend.name,
                backend.path.name(),
                path.name()
            )));
        }
        if self.if_gone == IfGone::Wait && !backend.reopens {
            return Err(UsageError(format!(
                "{} puts a program into the kernel, for which a running capture has no rights any more: leave \
                 out --if-gone wait, or choose --path tap",
                backend.name
            )));
        }
        Ok(backend)
    }

    /// How to capture with each of `rings` rings; the filter is another's business.
    ///
    /// # Errors
    ///
    /// Values that do not fit each other.
    pub fn options(&self, rings: usize) -> Result<Options, UsageError> {
        let default = Options::default();
        let ring = self.ring.unwrap_or(RingSize::Bytes(default.ring_bytes));
        let block_bytes = self.block.unwrap_or(default.block_bytes);
        if block_bytes < 4096 || !block_bytes.is_multiple_of(4096) || block_bytes > 1 << 30 {
            let said = "--block must be a multiple of 4096 bytes up to 1G";
            return Err(UsageError(said.to_owned()));
        }
        Ok(Options {
            ring_bytes: ring.bytes(&self.interfaces, default.ring_bytes, !self.no_promiscuous)
                / rings.max(1),
            block_bytes,
            retire: self.retire.unwrap_or(default.retire),
            snaplen: self.snaplen.unwrap_or(default.snaplen),
            direction: self.direction(),
            promiscuous: !self.no_promiscuous,
            wait: match self.wait {
                WaitArg::Poll => Wait::Poll,
                WaitArg::Busy => Wait::Busy,
                WaitArg::Adaptive => Wait::Adaptive,
            },
            busy_poll: self.busy_poll,
            stamps: match self.stamps {
                StampsArg::Auto => Stamps::Auto,
                StampsArg::Sw => Stamps::Software,
                StampsArg::Hw => Stamps::Hardware,
            },
            ..default
        })
    }

    /// The bytes of each packet that are kept, where that was asked for.
    #[must_use]
    pub const fn snaplen(&self) -> Option<u32> {
        self.snaplen
    }

    /// Which packets are wanted, by the side they come from.
    const fn direction(&self) -> Direction {
        match self.direction {
            DirectionArg::In => Direction::In,
            DirectionArg::Out => Direction::Out,
            DirectionArg::Both => Direction::Both,
        }
    }

    /// How long packets wait for earlier ones.
    pub fn window(&self) -> Duration {
        self.reorder.unwrap_or(netsniff_pipeline::live::WINDOW)
    }

    /// The same for files, if it is wanted.
    pub fn file_window(&self) -> Option<Duration> {
        self.reorder.filter(|window| !window.is_zero())
    }

    /// One in so many pairs of addresses is wanted.
    #[must_use]
    pub const fn sample(&self) -> Option<NonZeroU32> {
        self.sample
    }

    /// Where to listen for who asks for the books.
    #[must_use]
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The fan-out group to join.
    #[must_use]
    pub const fn fanout_group(&self) -> Option<u16> {
        self.fanout_group
    }

    /// Processors to run on; any where there are none.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// When the run ends by itself.
    #[must_use]
    pub const fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// Packets after which the run ends.
    #[must_use]
    pub const fn count(&self) -> Option<u64> {
        self.count
    }

    /// How often the books are made.
    #[must_use]
    pub const fn stats_interval(&self) -> Duration {
        self.stats_interval
    }

    /// What to give up once everything is open.
    #[must_use]
    pub const fn safety(&self) -> &SafetyArgs {
        &self.safety
    }

    /// What to do where an interface is gone.
    #[must_use]
    pub const fn if_gone(&self) -> IfGone {
        self.if_gone
    }
}
