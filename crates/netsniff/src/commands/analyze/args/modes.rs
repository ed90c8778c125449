//! Values of options that are words, and what they come to.

use netsniff_analysis::ChecksumMode;
use netsniff_analysis::options::Urgent;
use netsniff_analysis::reassembly::piece::Overlap;
use netsniff_output::OnFailure;

/// What becomes of packets with wrong checksums.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(super) enum Checksums {
    /// They are analysed and counted
    #[default]
    Count,
    /// They are left out and counted, as Zeek does without -C
    Discard,
    /// Checksums are not looked at
    Ignore,
}

/// Which of several segments counts.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(super) enum FirstOrLast {
    /// The one that came first
    #[default]
    First,
    /// The one that came last
    Last,
}

/// How much of bodies is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum BodiesArg {
    /// All of it
    #[default]
    Whole,
    /// The first 4 KiB
    Head,
}

/// How receivers read urgent data.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(super) enum UrgentArg {
    /// Apart from the stream, as sockets do unless told otherwise
    #[default]
    Oob,
    /// In its place, as with SO_OOBINLINE
    Inline,
}

/// What becomes of a live run whose rows cannot be written.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(in crate::commands::analyze) enum IfUnwritten {
    /// It ends in good order, since its logs would have holes from there on
    #[default]
    End,
    /// It goes on. Rows that cannot be written are counted, and writing is tried again until it works
    GoOn,
}

impl From<IfUnwritten> for OnFailure {
    fn from(what: IfUnwritten) -> Self {
        match what {
            IfUnwritten::End => Self::End,
            IfUnwritten::GoOn => Self::GoOn,
        }
    }
}

impl From<Checksums> for ChecksumMode {
    fn from(checksums: Checksums) -> Self {
        match checksums {
            Checksums::Count => Self::Count,
            Checksums::Discard => Self::Discard,
            Checksums::Ignore => Self::Ignore,
        }
    }
}

impl From<FirstOrLast> for Overlap {
    fn from(which: FirstOrLast) -> Self {
        match which {
            FirstOrLast::First => Self::First,
            FirstOrLast::Last => Self::Last,
        }
    }
}

impl From<UrgentArg> for Urgent {
    fn from(how: UrgentArg) -> Self {
        match how {
            UrgentArg::Oob => Self::OutOfBand,
            UrgentArg::Inline => Self::Inline,
        }
    }
}
