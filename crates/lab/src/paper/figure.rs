//! What is drawn of runs.

use super::options::quantity;
use crate::search::sweep::{Run, number};
use crate::testbed::{CAPTURE_CPU, Layout};
use crate::trial::Trial;

/// A picture of runs: quantities over something that was varied, a curve for each value of everything else.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it shows, with the paper's own number.
    pub title: &'static str,
    /// What the paper's has.
    pub caption: &'static str,
    /// The experiments whose runs are drawn.
    pub of: Vec<&'static str>,
    /// What the horizontal axis shows.
    pub across: Across,
    /// Upwards; several have curves of their own.
    pub quantities: Vec<Quantity>,
    /// What arithmetic says that the quantities come to, and the words for it.
    pub limits: Vec<(f64, String)>,
}

/// What the horizontal axis shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// Frames a second, as they were reached.
    Rate,
    /// Bytes of a frame.
    Size,
    /// Seconds of a run.
    Time,
    /// An option with numbers as values: of the tool, the sender or the testbed.
    Option(&'static str),
    /// An option with sizes as values, as `64M`, each often twice the one before.
    Bytes(&'static str),
    /// Milliseconds that a planted disk takes nothing at a time: 0 for none.
    Stall,
}

impl Across {
    /// Its value for a run; `None` where it has none.
    #[must_use]
    pub fn of(self, run: &Run) -> Option<f64> {
        match self {
            Self::Rate => run.trial.reached,
            Self::Size => Some(run.point.load.size.into()),
            Self::Time => Some(run.point.load.time.as_secs_f64()),
            Self::Option(name) | Self::Bytes(name) => number(super::results::option(run, name)?),
            Self::Stall => {
                let host = &run.point.host;
                let layout = Layout::default().with(host).ok()?;
                let stall = layout.disk.and_then(|disk| disk.stall);
                Some(stall.map_or(0.0, |stall| stall.length.as_secs_f64() * 1e3))
            }
        }
    }

    /// It with its unit.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Rate => "frames a second that were sent",
            Self::Size => "bytes of a frame",
            Self::Time => "seconds of the run",
            Self::Stall => "milliseconds that the disk takes nothing",
            Self::Option(name) | Self::Bytes(name) => quantity(name),
        }
    }

    /// The option that it is.
    #[must_use]
    pub const fn option(self) -> Option<&'static str> {
        match self {
            Self::Option(name) | Self::Bytes(name) => Some(name),
            Self::Stall => Some("disk-stall"),
            Self::Rate | Self::Size | Self::Time => None,
        }
    }
}

/// What is counted of a run: THE list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// What was lost of what was sent.
    Loss,
    /// What was lost before the tool's socket, of what was sent (PAPERS E-12).
    KernelLoss,
    /// What was lost at the tool's socket, of what came there (PAPERS E-12).
    ApplicationLoss,
    /// The share of a processor that the tool's threads took.
    Cpu,
    /// The most of it in any fifth of a second.
    CpuPeak,
    /// The share of the capture's processor that was not idle.
    Busy,
    /// The tool's most memory of its own, which its ring is no part of, in megabytes.
    MemoryPeak,
    /// That memory on average, in megabytes.
    MemoryMean,
    /// How often the tool asked the kernel for packets, for each that it captured.
    Polls,
    /// What of the captured packets came out of the order of time (PAPERS C15).
    OutOfOrder,
    /// By how many microseconds at most.
    Deepest,
    /// What of them netsniff could not put in order, since it came too late (PAPERS C16).
    Late,
    /// The share that the busiest of the threads that capture has of them (PAPERS E-9).
    LargestShare,
}

impl Quantity {
    /// Its value for a run; `None` where nobody knows.
    #[must_use]
    pub fn of(self, trial: &Trial) -> Option<f64> {
        match self {
            Self::Loss => trial.loss(),
            Self::KernelLoss => trial.kernel_loss(),
            Self::ApplicationLoss => trial.application_loss(),
            Self::Cpu => {
                let seconds = trial.sent as f64 / trial.reached.filter(|rate| *rate > 0.0)?;
                Some(trial.cpu_ns as f64 / 1e9 / seconds)
            }
            Self::CpuPeak => trial.cpu_peak,
            Self::Busy => trial.processors.get(CAPTURE_CPU).map(|busy| 1.0 - busy.idle),
            Self::MemoryPeak => Some(trial.own_peak? as f64 / 1e6),
            Self::MemoryMean => Some(trial.own_mean? as f64 / 1e6),
            Self::Polls => {
                let polls = trial.counted.books.as_ref()?["polls"].as_u64()?;
                Some(polls as f64 / trial.counted.captured?.max(1) as f64)
            }
            Self::OutOfOrder => of_captured(trial.counted.order?.inversions, trial),
            Self::Deepest => Some(trial.counted.order?.deepest_ns as f64 / 1e3),
            Self::Late => of_captured(trial.counted.late?, trial),
            Self::LargestShare => trial.counted.largest_share(),
        }
    }

    /// It with its unit.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Loss => "lost, of what was sent",
            Self::KernelLoss => "lost before the socket, of what was sent",
            Self::ApplicationLoss => "lost at the socket, of what came there",
            Self::Cpu => "of a processor, the tool, mean",
            Self::CpuPeak => "of a processor, the tool, most in 0.2 s",
            Self::Busy => "busy, of the capture's processor",
            Self::MemoryPeak => "most memory without the ring, MB",
            Self::MemoryMean => "mean memory without the ring, MB",
            Self::Polls => "questions to the kernel for each packet",
            Self::OutOfOrder => "out of order, of what was captured",
            Self::Deepest => "out of order by at most, microseconds",
            Self::Late => "too late to order, of what was captured",
            Self::LargestShare => "of what was captured, the busiest thread",
        }
    }

    /// What it is in.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Loss | Self::KernelLoss | Self::ApplicationLoss => "share of packets",
            Self::OutOfOrder | Self::Late | Self::LargestShare => "share of packets",
            Self::Cpu | Self::CpuPeak | Self::Busy => "share of a processor",
            Self::MemoryPeak | Self::MemoryMean => "MB",
            Self::Polls => "questions for each packet",
            Self::Deepest => "microseconds",
        }
    }

    /// Whether it is told in percent.
    #[must_use]
    pub const fn is_share(self) -> bool {
        !matches!(self, Self::MemoryPeak | Self::MemoryMean | Self::Polls | Self::Deepest)
    }
}

fn of_captured(packets: u64, trial: &Trial) -> Option<f64> {
    Some(packets as f64 / trial.counted.captured?.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::machine::Busy;
    use crate::packet_order::PacketOrder;
    use crate::tools::Counted;

    #[test]
    fn quantities_are_of_their_own_unit() {
        let books = serde_json::json!({"polls": 50});
        let counted = Counted {
            captured: Some(100),
            dropped: Some(100),
            books: Some(books),
            order: Some(PacketOrder { inversions: 10, deepest_ns: 2500 }),
            late: Some(5),
            threads: Some(vec![75, 25]),
            unexplained: None,
            ..Counted::default()
        };
        let busy = |idle| Busy { idle, ..Busy::default() };
        let trial = Trial {
            sent: 400,
            arrived: 200,
            reached: Some(200.0),
            cpu_ns: 500_000_000,
            cpu_peak: Some(0.75),
            own_peak: Some(3_000_000),
            own_mean: Some(1_000_000),
            processors: vec![busy(1.0), busy(0.75)],
            counted,
            ..Trial::default()
        };
        let of = |quantity: Quantity| quantity.of(&trial).unwrap();
        assert_eq!((of(Quantity::Loss), of(Quantity::KernelLoss)), (0.75, 0.5));
        assert_eq!((of(Quantity::ApplicationLoss), of(Quantity::Cpu)), (0.5, 0.25));
        assert_eq!((of(Quantity::Busy), of(Quantity::Polls)), (0.25, 0.5));
        assert_eq!(of(Quantity::CpuPeak), 0.75);
        assert_eq!((of(Quantity::MemoryPeak), of(Quantity::MemoryMean)), (3.0, 1.0));
        assert_eq!((of(Quantity::OutOfOrder), of(Quantity::Deepest)), (0.1, 2.5));
        assert_eq!((of(Quantity::Late), of(Quantity::LargestShare)), (0.05, 0.75));
        for unknown in
            [Quantity::OutOfOrder, Quantity::Deepest, Quantity::Late, Quantity::LargestShare]
        {
            assert_eq!(unknown.of(&Trial::default()), None);
        }
        assert_eq!(Quantity::Cpu.of(&Trial::default()), None);
        assert_eq!(Quantity::MemoryPeak.of(&Trial::default()), None);
    }
}
