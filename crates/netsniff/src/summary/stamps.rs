//! What packets with equal time stamps tell of a capture.

use netsniff_analysis::ingress::stamps::EqualStamps;
use netsniff_console::number::{count, duration, percent};

/// Packets with the stamp of the one before are told from this share on: one in so many.
const TOLD_FROM: u64 = 20;

/// So few of them are an accident.
const FEW: u64 = 20;

/// A clock coarser than this, in nanoseconds, explains that packets of any traffic have one stamp.
const COARSE: u64 = 1_000;

/// A sentence on packets with the stamp of the packet before them, and whether the clock explains them; `None` where they are
/// so few that chance does.
#[must_use]
pub fn equal_stamps(stamps: &EqualStamps) -> Option<String> {
    let (equal, total) = (stamps.equal(), stamps.packets());
    if equal < FEW || equal.saturating_mul(TOLD_FROM) < total {
        return None;
    }
    let resolution = stamps.resolution_nanos();
    let clock = format!("the stamps are multiples of {}", duration(resolution));
    let why = if stamps.are_doubled() {
        let even = percent(stamps.in_even_groups(), total);
        let pairs = format!(
            "{even} of all packets stand in groups of two, four, six … with one stamp, and chance explains half at most: \
             the same packets may be in the input twice"
        );
        if resolution > COARSE {
            format!("{pairs}, unless the clock is too coarse for pairs, since {clock}")
        } else {
            pairs
        }
    } else if resolution >= COARSE {
        format!("{clock}, and this resolution of the clock explains it")
    } else {
        "the resolution of the clock does not explain it: several packets were stamped together"
            .to_owned()
    };
    let (number, share) = (count(equal), percent(equal, total));
    Some(format!(
        "packets with the stamp of the packet before: {number} ({share}), kept in the order of the input; {why}"
    ))
}
