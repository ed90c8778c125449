//! What a capture will lose at a load that was never tried (PAPERS E-25).
//!
//! One processor captures. What the kernel does for each frame that arrives comes first, and the application gets what is
//! left of the processor; so service slows as the rate rises, and beyond a rate there is none. A frame that finds no room
//! in the ring costs the kernel less than one that does. Hence two numbers for each size of frames and each application:
//! what the processor does for every frame ([`Costs::frame`]), and what it does in addition for each that is kept
//! ([`Costs::kept`]). Without loss a processor manages 1 / (frame + kept) frames a second; above, of frames that come at a
//! rate λ, (1 - λ frame) / kept are kept.
//!
//! The ring is one of blocks: one of them is read, and cannot be filled meanwhile, so that one less than all is room, and
//! a ring of one block stands still while it is read. Before the ring is the processor's backlog. And machines stand still,
//! now and then: how often and how long is measured, and happens in the model as it did. An application that has nothing to
//! read sleeps, and reads on a little later than it could.
//!
//! | module | concern |
//! |---|---|
//! | [`fit`] | costs, from runs that lost something |
//! | [`raw`] | what an application costs without a capture |
//! | [`stalls`] | when the machine stood still |
//! | [`wakes`] | how an application waits, and how long it takes until it reads on |
//! | [`mod@simulate`] | backlog, ring and application, step by step |
//! | [`predict`] | losses with an interval, the rate without loss, bursts that are survived |
//! | [`bursts`] | bursts that know nothing of each other, to try how long they may be |
//! | [`calibrate`] | the runs that the costs come from |
//! | [`traffic`] | a capture as traffic |
//! | [`plan`] | points that a model is tried on |
//! | [`ledger`] | every prediction, and what came |

pub mod bursts;
pub mod calibrate;
pub mod fit;
pub mod ledger;
pub mod plan;
pub mod predict;
pub mod raw;
pub mod simulate;
mod squares;
pub mod stalls;
pub mod traffic;
pub mod wakes;

use self::fit::{Fit, Observation, Variant};
use self::raw::Raw;
use self::simulate::Clock;
use self::stalls::Stalls;
use self::traffic::Traffic;
use self::wakes::Wakes;
use crate::testbed::Layout;
use crate::tools::Setting;
use crate::work::Cost;

/// A host with an application that captures.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Model {
    /// Name of the tool that captures.
    pub tool: String,
    /// How sender and capture are joined.
    pub layout: Layout,
    /// The capture whose frames it is of; `None` for stamped ones.
    #[serde(default)]
    pub traffic: Option<Traffic>,
    /// What frames cost: where it was tried with several settings of the application, with the first of them.
    pub fit: Fit,
    /// What they cost with each of the settings that it was tried with. Models of earlier versions have none: they are of
    /// the application as it comes.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Sizes of frames, and how many nanoseconds they are apart at the sender's full speed.
    pub gaps: Vec<(u32, f64)>,
    /// When the machine stood still.
    pub stalls: Stalls,
    /// How long it took until who slept went on; earlier versions do not know.
    #[serde(default)]
    pub wakes: Wakes,
    /// Frames that the processor's backlog holds.
    pub backlog: u64,
    /// When the kernel closes blocks.
    #[serde(default)]
    pub clock: Clock,
    /// What the application takes by itself; nothing where that is not known, or was not looked at by an earlier version.
    #[serde(default)]
    pub services: Vec<Service>,
    /// What the fit comes from.
    pub observations: Vec<Observation>,
    /// Runs that are missing in it, since the time of the calibration was over.
    #[serde(default)]
    pub left_out: u32,
    /// How long it took to find all that.
    pub seconds: f64,
}

/// What an application takes by itself for each frame of a size.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Service {
    /// Settings of the application that its cost depends on.
    pub settings: Vec<Setting>,
    /// What it does for each packet.
    pub cost: Cost,
    /// Frame size in bytes.
    pub size: u32,
    /// What frames of that size cost.
    pub raw: Raw,
}

impl Model {
    /// What frames cost where the application has these settings; `None` where it was not tried with them, or lost nothing
    /// then.
    #[must_use]
    pub fn fit_with(&self, settings: &[Setting]) -> Option<Fit> {
        if self.variants.is_empty() {
            return settings.is_empty().then_some(self.fit);
        }
        let found = self.variants.iter().find(|variant| variant.settings == settings);
        found.map(|variant| variant.fit)
    }

    /// Nanoseconds between two frames of so many bytes at the sender's full speed, on a line through what is known.
    #[must_use]
    pub fn gap(&self, size: u32) -> f64 {
        match &self.gaps[..] {
            [] => f64::INFINITY,
            [(_, gap)] => *gap,
            [(one, low), .., (other, high)] => {
                let (one, other) = (f64::from(*one), f64::from(*other));
                let share = (f64::from(size) - one) / (other - one);
                // Short frames are not sent faster than the line through noise says.
                (low + share * (high - low)).max(low.min(*high) * 0.8)
            }
        }
    }
}

/// What a processor does for frames, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Costs {
    /// When some arrive while the kernel has nothing to do: an interrupt, which those that come together share.
    pub wake: f64,
    /// The most that interrupts take of the time that frames leave: beyond it what arrives finds the kernel at work, and needs
    /// no interrupt of its own.
    #[serde(default = "whole")]
    pub share: f64,
    /// For each that arrives.
    pub frame: f64,
    /// In addition, for each that is kept: on average.
    pub kept: f64,
    /// By how much that differs from frame to frame: the standard deviation. 0 where that is not known, too.
    #[serde(default)]
    pub deviation: f64,
}

/// Models of earlier versions had no bound.
const fn whole() -> f64 {
    1.0
}

/// Frames that a sender hands to the kernel together at most: those of longer bursts come in groups of these.
const TOGETHER: u32 = 32;

impl Costs {
    /// What an interrupt takes for so many frames, so long after the one before.
    #[must_use]
    pub fn interrupt(self, since: f64, frames: f64) -> f64 {
        self.wake.min(self.share * (since - frames * self.frame).max(0.0))
    }

    /// The part of the processor's time that interrupts take, where so many frames arrive a second.
    #[must_use]
    pub fn interrupts(self, rate: f64, burst: u32) -> f64 {
        let together = together(burst);
        let since = together * 1e9 / rate;
        self.interrupt(since, together) / since
    }

    /// Frames a second that a processor manages without loss, of which so many come together.
    #[must_use]
    pub fn knee(self, burst: u32) -> f64 {
        let (left, together) = (1.0 - self.share, together(burst));
        // An interrupt takes no more than its share of what frames leave, which is that and what is kept.
        if self.wake * left <= self.share * together * self.kept {
            1e9 / (self.frame + self.kept + self.wake / together)
        } else {
            left / (self.kept + left * self.frame) * 1e9
        }
    }

    /// Frames a second that are kept where so many arrive, in the long run.
    #[must_use]
    pub fn served(self, rate: f64, burst: u32) -> f64 {
        let kernel = rate * self.frame / 1e9 + self.interrupts(rate, burst);
        rate.min((1.0 - kernel).max(0.0) / self.kept * 1e9)
    }

    /// All of them so many times as much.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let Self { wake, share, frame, kept, deviation } = self;
        let [wake, frame, kept, deviation] = [wake, frame, kept, deviation].map(|of| of * factor);
        Self { wake, share, frame, kept, deviation }
    }
}

fn together(burst: u32) -> f64 {
    f64::from(burst.clamp(1, TOGETHER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_slows_as_the_rate_rises() {
        let costs = Costs { wake: 0.0, share: 1.0, frame: 2000.0, kept: 8000.0, deviation: 0.0 };
        assert_eq!(costs.knee(1).round(), 100_000.0);
        for (rate, served) in
            [(50e3, 50e3), (100e3, 100e3), (250e3, 62_500.0), (500e3, 0.0), (900e3, 0.0)]
        {
            assert!((costs.served(rate, 1) - served).abs() < 1e-6, "{rate}");
        }
    }

    #[test]
    fn interrupts_take_a_part_of_the_time_at_most() {
        let costs =
            Costs { wake: 8000.0, share: 0.5, frame: 2000.0, kept: 10_000.0, deviation: 0.0 };
        // 20 us for each frame, of which 8 are an interrupt.
        assert_eq!(costs.knee(1), 50_000.0);
        assert_eq!(costs.knee(4000), costs.knee(32));
        // Half of 16 us but for the two of the frame, and of 5 us.
        for (rate, burst, interrupts) in
            [(50e3, 1, 0.4), (62.5e3, 1, 0.4375), (200e3, 1, 0.3), (200e3, 32, 0.05)]
        {
            assert!((costs.interrupts(rate, burst) - interrupts).abs() < 1e-9, "{rate} {burst}");
        }
        // Where frames take all there is no interrupt.
        assert_eq!(costs.interrupts(600e3, 1), 0.0);
        assert!((costs.served(100e3, 1) - 40e3).abs() < 1e-6);
        // What is left is the application's, also where an interrupt takes longer than all else.
        let costs = Costs { wake: 90_000.0, ..costs };
        assert!((costs.knee(1) - 0.5 / 11e-6).abs() < 1e-6);
        assert_eq!(costs.served(costs.knee(1), 1).round(), costs.knee(1).round());
    }
}
