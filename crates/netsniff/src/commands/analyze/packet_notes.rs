//! What the packets themselves show that must be known to believe the logs: order, stamps, losses, cut headers.

use netsniff_analysis::ingress::statistics::{LossStatistics, PacketStatistics};
use netsniff_console::number::{count, duration, things};

use crate::summary::{cut_headers, equal_stamps};

/// The sentences about all packets.
pub(super) fn notes(packets: &PacketStatistics) -> Vec<String> {
    let told = [
        order(packets),
        ahead(packets),
        equal_stamps(&packets.equal_stamps),
        cut_headers(&packets.cut_headers),
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
