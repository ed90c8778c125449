//! What the logs told, held against what happened.

use std::collections::BTreeMap;

use super::evidence::{Evidence, evidence};
use super::logged::{LoggedConnection, read_connections};
use super::recording::Recording;
use super::segment::{Flow, Kind};
use super::{Place, Places};
use crate::log::Row;

/// How many of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub right: u64,
    pub of: u64,
}

impl Share {
    fn count(&mut self, right: bool) {
        self.right += u64::from(right);
        self.of += 1;
    }

    /// Whether it is at least so many of a thousand. Nothing at all is not enough.
    pub const fn reaches(self, of_a_thousand: u64) -> bool {
        self.of > 0 && self.right * 1000 >= self.of * of_a_thousand
    }

    /// As a fraction with four digits, never rounded up.
    pub fn text(self) -> String {
        let parts = (self.right * 10_000).checked_div(self.of);
        parts.map_or_else(|| "-".to_owned(), |parts| format!("{:.4}", parts as f64 / 10_000.0))
    }

    fn add(&mut self, other: Self) {
        self.right += other.right;
        self.of += other.of;
    }
}

/// A connection of which the logs tell what is not so.
#[derive(Clone, Debug)]
pub struct Wrong {
    pub flow: Flow,
    pub what: &'static str,
    pub evidence: Evidence,
    pub told: LoggedConnection,
}

impl Wrong {
    /// What is wrong, what happened, and the rows.
    pub fn text(&self) -> String {
        let [one, other] = self.flow;
        let Evidence { proven, happened, .. } = &self.evidence;
        let mut text = format!(
            "{} {} - {} {}: {}\n  proven {proven:?}, happened {happened:?}, told {:?}\n",
            one.0, one.1, other.0, other.1, self.what, self.told.places
        );
        for row in &self.told.rows {
            let cells = row.iter().filter(|(_, cell)| *cell != "-");
            let cells: Vec<_> = cells.map(|(name, cell)| format!("{name}={cell}")).collect();
            text.push_str(&format!("  {}\n", cells.join(" ")));
        }
        text
    }
}

/// The figures of one recording, or of several together.
#[derive(Clone, Debug, Default)]
pub struct Score {
    /// Connections of which the capture has a frame; the others are left out.
    pub flows: u64,
    pub not_captured: u64,
    /// Connections that are captured and have no row. There must be none.
    pub without_row: u64,
    /// Rows of `conn` whose connection nobody made. There must be none.
    pub invented_rows: u64,
    /// Of those marked `touched` or `suspect`, how many the capture lost a frame of. One that is `suspect` for a loss
    /// of the network, which it says may have been a late packet, is marked rightly where that loss happened.
    pub precision: Share,
    /// Of those whose SYN, FIN or data the capture lacks, with a later acknowledgement of it there: how many are
    /// marked. Where it has a copy from before the acknowledgement, nothing is missing.
    pub recall: Share,
    /// The same with those where the capture has a copy.
    pub recall_with_copies: Share,
    /// Of those that lost a SYN, FIN or data in the capture without a later acknowledgement: how many are marked.
    pub never_acknowledged: Share,
    /// Of those that lost nothing in the capture but pure acknowledgements and resets: how many are marked.
    pub pure_acks_only: Share,
    /// Of those whose SYN and SYN-ACK the capture lacks: how many are told to be unknown, or are marked.
    pub begin_missed: Share,
    /// Connections that lost anything in the capture.
    pub capture_lost: u64,
    /// Of those with a proven cause: how many are told all that is proven and nothing that did not happen.
    pub causes: Share,
    /// Of those that lost a frame before the tap so that nothing tells it from a late one: how many are told all the
    /// same. What a path that reorders does, too, is no proof; they are in no other share for that.
    pub like_reordering: Share,
    /// Of those that lost something in the capture so that nothing tells it from what came late: how many are marked.
    pub like_late: Share,
    /// Of those where something came twice and nothing tells it from a loss behind the tap: how many are told such a loss.
    pub like_behind: Share,
    /// Of those with two or three proven causes: how many are told all that is proven and nothing that did not happen.
    pub several_causes: Share,
    /// Of those without a proven cause: how many are told no cause that did not happen.
    pub no_cause_invented: Share,
    /// Of those with a proven cause of a place: how many are told it.
    pub told: BTreeMap<Place, Share>,
    /// Connections that are told a cause that did not happen, by place.
    pub invented: BTreeMap<Place, u64>,
    /// Lost frames by place and kind.
    pub frames: BTreeMap<(Place, Kind), u64>,
    /// Frames that were lost in the capture and behind the tap. No packet tells that from a loss before the tap.
    pub twice: u64,
    /// Each connection of which the logs are wrong.
    pub wrong: Vec<Wrong>,
}

impl Score {
    /// Holds rows against a recording.
    pub fn new(recording: &Recording, conn: Vec<Row>, gaps: Vec<Row>) -> Self {
        let mut score = Self::default();
        let mut told = read_connections(conn, gaps);
        let captured = recording.captured_flows();
        for (flow, events) in &recording.0 {
            for event in events {
                score.twice += u64::from(event.lost.len() == 2);
                for place in &event.lost {
                    *score.frames.entry((*place, event.segment.kind())).or_default() += 1;
                }
            }
            if !captured.contains(flow) {
                score.not_captured += 1;
                continue;
            }
            score.flows += 1;
            match told.remove(flow) {
                Some(told) => score.judge(*flow, evidence(events), told),
                None => score.without_row += 1,
            }
        }
        score.invented_rows = told.len() as u64;
        score
    }

    fn judge(&mut self, flow: Flow, evidence: Evidence, told: LoggedConnection) {
        let marks = self.judge_marks(&evidence, &told);
        self.judge_look_alikes(&evidence, &told);
        let causes = self.judge_causes(&evidence, &told);
        if let Some(&what) = marks.iter().chain(&causes).next() {
            self.wrong.push(Wrong { flow, what, evidence, told });
        }
    }

    /// Whether what the capture lost is marked, and nothing else. Returns what is wrong.
    fn judge_marks(&mut self, evidence: &Evidence, told: &LoggedConnection) -> Vec<&'static str> {
        let mut wrong = Vec::new();
        self.capture_lost += u64::from(evidence.capture_lost);
        if told.is_marked {
            let is_assumed = !told.is_touched
                && !told.places.is_empty()
                && told.places.is_subset(&evidence.happened);
            let is_right = evidence.capture_lost || is_assumed;
            self.precision.count(is_right);
            if !is_right {
                wrong.push("marked, but the capture lost nothing of it");
            }
        }
        let by_loss = if evidence.acknowledged_later {
            Some(&mut self.recall_with_copies)
        } else if evidence.capture_lost_sequence {
            Some(&mut self.never_acknowledged)
        } else if evidence.capture_lost {
            Some(&mut self.pure_acks_only)
        } else {
            None
        };
        by_loss.into_iter().for_each(|share| share.count(told.is_marked));
        if evidence.proven.contains(&Place::Capture) {
            self.recall.count(told.is_marked);
            if !told.is_marked {
                wrong.push("not marked, but the capture proves that it lost something");
            }
        } else if evidence.acknowledged_later && !told.is_marked {
            wrong.push("not marked, though the capture lost what is acknowledged later");
        }
        if evidence.begin_missed {
            self.begin_missed.count(told.is_marked || told.is_unknown);
        }
        wrong
    }

    /// What is told where the packets look like something that did not happen.
    fn judge_look_alikes(&mut self, evidence: &Evidence, told: &LoggedConnection) {
        if evidence.like_reordering && !evidence.proven.contains(&Place::Before) {
            self.like_reordering.count(told.places.contains(&Place::Before));
        }
        if evidence.like_late && !evidence.proven.contains(&Place::Capture) {
            self.like_late.count(told.is_marked);
        }
        let is_behind = |places: &Places| places.contains(&Place::Behind);
        if evidence.like_behind && !is_behind(&evidence.happened) {
            self.like_behind.count(is_behind(&told.places));
        }
    }

    /// Whether the causes are those that are proven, and none is invented. Returns what is wrong.
    fn judge_causes(&mut self, evidence: &Evidence, told: &LoggedConnection) -> Vec<&'static str> {
        let mut wrong = Vec::new();
        let missed = evidence.proven.difference(&told.places).count();
        let is_invented = |place: &&Place| {
            let is_excused = evidence.like_behind && **place == Place::Behind;
            !(is_excused || evidence.happened.contains(place))
        };
        let invented = told.places.iter().filter(is_invented).count();
        if evidence.proven.is_empty() {
            self.no_cause_invented.count(invented == 0);
        } else {
            self.causes.count(missed + invented == 0);
            if evidence.proven.len() > 1 {
                self.several_causes.count(missed + invented == 0);
            }
        }
        for place in Place::ALL {
            if evidence.proven.contains(&place) {
                self.told.entry(place).or_default().count(told.places.contains(&place));
            }
            let is_told = told.places.contains(&place);
            *self.invented.entry(place).or_default() += u64::from(is_told && is_invented(&&place));
        }
        if missed > 0 {
            wrong.push("a cause that is proven is not told");
        }
        if invented > 0 {
            wrong.push("a cause is told that did not happen");
        }
        wrong
    }

    /// Adds the figures of another recording.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in [
            (&mut self.flows, other.flows),
            (&mut self.not_captured, other.not_captured),
            (&mut self.without_row, other.without_row),
            (&mut self.invented_rows, other.invented_rows),
            (&mut self.capture_lost, other.capture_lost),
            (&mut self.twice, other.twice),
        ] {
            *count += more;
        }
        for (share, more) in [
            (&mut self.precision, other.precision),
            (&mut self.recall, other.recall),
            (&mut self.recall_with_copies, other.recall_with_copies),
            (&mut self.never_acknowledged, other.never_acknowledged),
            (&mut self.pure_acks_only, other.pure_acks_only),
            (&mut self.causes, other.causes),
            (&mut self.like_reordering, other.like_reordering),
            (&mut self.like_late, other.like_late),
            (&mut self.like_behind, other.like_behind),
            (&mut self.begin_missed, other.begin_missed),
            (&mut self.several_causes, other.several_causes),
            (&mut self.no_cause_invented, other.no_cause_invented),
        ] {
            share.add(more);
        }
        for (place, share) in &other.told {
            self.told.entry(*place).or_default().add(*share);
        }
        for (place, count) in &other.invented {
            *self.invented.entry(*place).or_default() += count;
        }
        for (key, count) in &other.frames {
            *self.frames.entry(*key).or_default() += count;
        }
        self.wrong.extend(other.wrong.iter().cloned());
    }

    /// Each figure with its name: counts as they are, shares as how many of how many.
    pub fn figures(&self) -> Vec<(String, String)> {
        let mut figures = Vec::new();
        let mut count = |name: &str, value: u64| figures.push((name.to_owned(), value.to_string()));
        count("connections", self.flows);
        count("connections not captured, left out", self.not_captured);
        count("connections without a row", self.without_row);
        count("rows without a connection", self.invented_rows);
        count("connections that lost frames in the capture", self.capture_lost);
        count("frames lost in the capture and behind the tap", self.twice);
        for (name, share) in [
            ("precision of marked", self.precision),
            ("recall, SYN FIN or data missing and acknowledged later", self.recall),
            ("recall, with those of which a copy was captured", self.recall_with_copies),
            ("marked of those never acknowledged", self.never_acknowledged),
            ("marked of those that lost pure ACKs and RST only", self.pure_acks_only),
            ("causes right where one is proven", self.causes),
            ("causes right where several are proven", self.several_causes),
            ("lost before the tap and like reordering, told all the same", self.like_reordering),
            ("lost in the capture and like what is late, marked all the same", self.like_late),
            ("not lost, but like a loss behind the tap, told as one", self.like_behind),
            ("no begin captured, told as unknown or marked", self.begin_missed),
            ("no cause invented where none is proven", self.no_cause_invented),
        ] {
            figures.push((name.to_owned(), format!("{}/{}", share.right, share.of)));
        }
        for place in Place::ALL {
            let share = self.told.get(&place).copied().unwrap_or_default();
            figures.push((
                format!("told where proven: {}", place.name()),
                format!("{}/{}", share.right, share.of),
            ));
            let invented = self.invented.get(&place).copied().unwrap_or_default();
            figures.push((
                format!("connections told wrongly: {}", place.name()),
                invented.to_string(),
            ));
            for kind in Kind::ALL {
                let lost = self.frames.get(&(place, kind)).copied().unwrap_or_default();
                figures.push((
                    format!("frames lost: {} {}", place.name(), kind.name()),
                    lost.to_string(),
                ));
            }
        }
        figures
    }

    /// What the field's own promise is, and is not kept: precision and recall of the marks and the causes, each at
    /// least 0.99.
    pub fn shortfalls(&self) -> Vec<String> {
        const PROMISED: u64 = 990;
        let shares = [
            ("precision", self.precision),
            ("recall", self.recall),
            ("causes", self.causes),
            ("several causes", self.several_causes),
            ("no cause invented", self.no_cause_invented),
        ];
        let missed = shares.into_iter().filter(|(_, share)| !share.reaches(PROMISED));
        let mut shortfalls: Vec<_> = missed
            .map(|(name, share)| {
                format!("{name}: {} of {} ({})", share.right, share.of, share.text())
            })
            .collect();
        if self.without_row + self.invented_rows > 0 {
            let (without, invented) = (self.without_row, self.invented_rows);
            shortfalls.push(format!(
                "{without} connections without a row, {invented} rows of no connection"
            ));
        }
        shortfalls
    }
}
