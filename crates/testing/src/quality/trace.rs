//! The frames of one connection as text, for whoever looks into a wrong verdict.

use std::fmt::Write as _;

use netsniff_packet::decode::TcpFlags;

use super::recording::Event;
use super::segment::Segment;

/// A line for each frame: numbers from the first one of either side, and where it was lost.
pub fn trace(events: &[Event]) -> String {
    let first = |from| events.iter().find(|event| event.segment.from == from);
    let bases = [0, 1].map(|from| first(from).map_or(0, |event| event.segment.sequence));
    let begin = events.first().map(|event| event.segment.time);
    let mut text = String::new();
    for Event { segment, lost, .. } in events {
        let since = begin.map_or(0, |begin| segment.time.nanos_since(begin));
        let places: Vec<_> = lost.iter().map(|place| place.name()).collect();
        let (line, places) = (line(segment, bases), places.join("+"));
        writeln!(text, "  {:>11.3} {line} {places}", since as f64 / 1e6).unwrap();
    }
    text
}

fn line(segment: &Segment, bases: [u32; 2]) -> String {
    let Segment { from, sequence, payload, flags, acknowledgement, .. } = *segment;
    let (own, other) = (bases[from], bases[1 - from]);
    let flags: String = [('S', TcpFlags::SYN), ('F', TcpFlags::FIN), ('R', TcpFlags::RST)]
        .into_iter()
        .filter_map(|(letter, flag)| flags.any(flag).then_some(letter))
        .collect();
    let from_to =
        |low: u32, high: u32| format!("{}-{}", low.wrapping_sub(other), high.wrapping_sub(other));
    let sack: Vec<_> = segment.sack.iter().map(|(low, high)| from_to(*low, *high)).collect();
    let direction = [">", "      <"][from];
    format!(
        "{direction} {flags} {}+{payload} ack {} sack [{}] id {} stamps {:?}",
        sequence.wrapping_sub(own),
        acknowledgement.wrapping_sub(other),
        sack.join(" "),
        segment.identification,
        segment.stamps,
    )
}
