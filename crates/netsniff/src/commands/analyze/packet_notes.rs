//! What the packets themselves show that must be known to believe the logs: order, stamps, losses, cut headers.

use netsniff_analysis::ingress::statistics::{LossStatistics, PacketStatistics};
use netsniff_console::number::{count, duration, percent, things};

/// Packets with the stamp of the one before are told from this share on: one in so many.
const TOLD_FROM: u64 = 20;

/// So few of them are an accident.
const FEW: u64 = 20;

/// A clock coarser than this, in nanoseconds, explains that packets of any traffic have one stamp.
const COARSE: u64 = 1_000;

/// The sentences about all packets.
pub(super) fn notes(packets: &PacketStatistics) -> Vec<String> {
    let told = [
        order(packets),
        ahead(packets),
        equal_stamps(packets),
        cut_headers(packets),
        losses(packets),
    ];
    told.into_iter().flatten().collect()
}

fn order(packets: &PacketStatistics) -> Option<String> {
    let back = u64::try_from(packets.furthest_back_nanos).unwrap_or(0);
    (packets.out_of_order > 0).then(|| {
        format!(
            "packets earlier than one read before: {}, by at most {}",
            count(packets.out_of_order),
            duration(back)
        )
    })
}

fn ahead(packets: &PacketStatistics) -> Option<String> {
    let ahead = u64::try_from(packets.furthest_ahead_nanos).unwrap_or(0);
    (packets.ahead > 0).then(|| {
        format!(
            "packets stamped later than those around them: {}, by at most {}; they count as if \
             they had come with the packet before",
            count(packets.ahead),
            duration(ahead)
        )
    })
}

fn equal_stamps(packets: &PacketStatistics) -> Option<String> {
    let (stamps, total) = (&packets.equal_stamps, packets.total.packets);
    let equal = stamps.equal();
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

fn cut_headers(packets: &PacketStatistics) -> Option<String> {
    let cut = &packets.cut_headers;
    if cut.packets() == 0 {
        return None;
    }
    let layers = cut
        .by_layer()
        .iter()
        .map(|(layer, packets)| format!("{} {}", layer.name(), count(*packets)));
    let layers = layers.collect::<Vec<_>>().join(", ");
    Some(format!(
        "the snap length of the capture cut headers of {}: {layers}; {} bytes would have kept these headers",
        things(cut.packets(), "packet"),
        cut.enough()
    ))
}

fn losses(packets: &PacketStatistics) -> Option<String> {
    let LossStatistics { places, packets: lost } = packets.losses;
    (places > 0).then(|| {
        format!(
            "the capture tells of packets lost at {}, {} in all: connections that were \
             alive there are touched",
            things(places, "place"),
            count(lost)
        )
    })
}
