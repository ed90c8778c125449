//! A recording with its truth: what the capture holds, and each frame that was lost with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use super::segment::{Flow, Segment, read};
use super::{Place, Places};

/// What happened to one frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub segment: Segment,
    /// Where it was lost; empty for a frame that was captured and received. Lost in the capture and behind the tap
    /// is possible, before the tap and elsewhere is not.
    pub lost: Places,
    /// Whether the network made two of it.
    pub is_doubled: bool,
}

impl Event {
    /// Whether the capture has it.
    pub fn is_captured(&self) -> bool {
        !self.lost.contains(&Place::Before) && !self.lost.contains(&Place::Capture)
    }

    /// Where it was lost as far as a capture could ever tell: a frame that neither the capture nor the receiver has
    /// could as well have been lost before the tap.
    pub fn effective_place(&self) -> Option<Place> {
        let has = |place| self.lost.contains(&place);
        match (has(Place::Before), has(Place::Capture), has(Place::Behind)) {
            (false, false, false) => None,
            (true, ..) | (_, true, true) => Some(Place::Before),
            (_, true, false) => Some(Place::Capture),
            (_, false, true) => Some(Place::Behind),
        }
    }
}

/// The frames of each connection in the order in which they passed the tap, or would have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording(pub BTreeMap<Flow, Vec<Event>>);

impl Recording {
    pub fn push(&mut self, event: Event) {
        self.0.entry(event.segment.flow).or_default().push(event);
    }

    /// Puts the frames of each connection into order; frames of one time stay as they came.
    pub fn sort(&mut self) {
        for events in self.0.values_mut() {
            events.sort_by_key(|event| event.segment.time);
        }
    }

    /// Reads what `benches/quality/record.sh` wrote, and checks that its files agree.
    pub fn read(folder: &Path) -> Self {
        let file = |name: &str| read(&folder.join(name));
        let (tap, captured) = (file("tap.pcap"), file("capture.pcap"));
        let (before, lost, behind) = (file("before.pcap"), file("lost.pcap"), file("behind.pcap"));
        assert_eq!(tap.len(), captured.len() + lost.len(), "a frame at the tap is captured or not");

        let mut recording = Self::default();
        let mut passed = Passed::new(tap);
        for segment in before {
            let is_doubled = passed.mark_twin(&segment);
            recording.push(Event { segment, lost: [Place::Before].into(), is_doubled });
        }
        lost.iter().for_each(|segment| passed.lose(segment, Place::Capture));
        behind.iter().for_each(|segment| passed.lose(segment, Place::Behind));
        passed.0.into_values().flatten().for_each(|event| recording.push(event));
        recording.sort();
        recording.check_capture(captured);
        recording
    }

    /// The capture file must hold just the frames that are not marked as lost to it.
    fn check_capture(&self, captured: Vec<Segment>) {
        let mut captured = Pool::new(captured);
        for event in self.0.values().flatten().filter(|event| event.is_captured()) {
            assert!(captured.take(&event.segment), "not in the capture: {event:?}");
        }
        assert!(captured.is_empty(), "the capture has frames that were lost to it");
    }

    /// A line for each lost frame, with the names of the columns first.
    pub fn truth(&self) -> String {
        let mut table = "time\tsource\tsource port\tdestination\tdestination port\tsequence\tpayload bytes\tkind\tplace\n"
            .to_owned();
        let mut events: Vec<_> =
            self.0.values().flatten().filter(|event| !event.lost.is_empty()).collect();
        events.sort_by_key(|event| event.segment.time);
        for Event { segment, lost, .. } in events {
            let [source, destination] = segment.ends();
            let nanos = segment.time.nanos();
            let places: Vec<_> = lost.iter().map(|place| place.name()).collect();
            writeln!(
                table,
                "{}.{:09}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                nanos.div_euclid(1_000_000_000),
                nanos.rem_euclid(1_000_000_000),
                source.0,
                source.1,
                destination.0,
                destination.1,
                segment.sequence,
                segment.payload,
                segment.kind().name(),
                places.join("+")
            )
            .unwrap();
        }
        table
    }

    /// Connections of which the capture has at least one frame.
    pub fn captured_flows(&self) -> BTreeSet<Flow> {
        let is_captured = |events: &Vec<Event>| events.iter().any(Event::is_captured);
        self.0.iter().filter(|(_, events)| is_captured(events)).map(|(flow, _)| *flow).collect()
    }
}

/// What passed the tap. Of the two that a wire makes of a frame each may be lost by itself.
struct Passed(BTreeMap<(Flow, usize, u32), Vec<Event>>);

impl Passed {
    fn new(tap: Vec<Segment>) -> Self {
        let mut passed = BTreeMap::<_, Vec<Event>>::new();
        for segment in tap {
            let known = passed.entry((segment.flow, segment.from, segment.sequence)).or_default();
            let is_doubled = mark_twin(known, &segment);
            known.push(Event { segment, lost: Places::new(), is_doubled });
        }
        Self(passed)
    }

    /// Whether a frame that was lost before the tap has a twin that passed it.
    fn mark_twin(&mut self, segment: &Segment) -> bool {
        let known = self.0.get_mut(&(segment.flow, segment.from, segment.sequence));
        known.is_some_and(|known| mark_twin(known, segment))
    }

    /// Notes a loss of the frame that is the same; of several the nearest in time.
    fn lose(&mut self, segment: &Segment, place: Place) {
        let known = self.0.get_mut(&(segment.flow, segment.from, segment.sequence));
        let apart = |event: &&mut Event| {
            event.segment.apart(segment).filter(|_| !event.lost.contains(&place))
        };
        let same = known.into_iter().flatten().filter(|event| apart(event).is_some());
        let nearest = same.min_by_key(|event| event.segment.apart(segment));
        nearest.expect("a lost frame never passed the tap").lost.insert(place);
    }
}

/// Marks the frame that is the same, if there is one.
fn mark_twin(known: &mut [Event], segment: &Segment) -> bool {
    let twin = known.iter_mut().find(|other| other.segment.apart(segment).is_some());
    twin.map(|twin| twin.is_doubled = true).is_some()
}

/// Segments that wait to be found again.
struct Pool(BTreeMap<(Flow, usize, u32), Vec<Segment>>);

impl Pool {
    fn new(segments: Vec<Segment>) -> Self {
        let mut pool = BTreeMap::<_, Vec<_>>::new();
        for segment in segments {
            let key = (segment.flow, segment.from, segment.sequence);
            pool.entry(key).or_default().push(segment);
        }
        Self(pool)
    }

    /// Takes the frame that is the same, if it is there; of several the nearest in time.
    fn take(&mut self, segment: &Segment) -> bool {
        let key = (segment.flow, segment.from, segment.sequence);
        let Some(waiting) = self.0.get_mut(&key) else { return false };
        let apart = |(at, other): (usize, &Segment)| Some((other.apart(segment)?, at));
        let Some((_, at)) = waiting.iter().enumerate().filter_map(apart).min() else {
            return false;
        };
        waiting.remove(at);
        if waiting.is_empty() {
            self.0.remove(&key);
        }
        true
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
