//! The analysis in order, which takes over what was made of parts by themselves where that is the same.

use std::sync::Arc;

use netsniff_analysis::Engine;
use netsniff_analysis::flow::report::statistics::FlowStatistics;
use netsniff_analysis::ingress::boundary::{Boundary, Crossing};
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::rows::Output;
use netsniff_output::{RowSink, RowStyle};
use netsniff_packet::{Batch, Progress, Timestamp};
use netsniff_pcapfile::Head;

use super::apart::{self, Apart};
use super::board::Board;
use super::{AttendParts, OpenPart, PartSource, PartsOutcome};
use crate::files::run::{AnalysisOutcome, BatchPool, Settings};

/// Reads in order.
pub(super) struct Carrier<'a, S, P: OpenPart, A, K: RowSink> {
    source: &'a mut S,
    parts: &'a P,
    settings: &'a Settings,
    attendant: &'a mut A,
    board: &'a Board<P>,
    engine: Engine,
    output: Output<&'a mut K, RowStyle>,
    /// What engines counted that are left.
    past: Past,
    /// The part at hand, if others have analysed some of its pairs of hosts.
    beside: Option<Beside>,
    /// Parts whose engines were taken over.
    apart: usize,
    /// Parts of which others analysed some pairs.
    by_pairs: usize,
    /// All parts that have packets, if they are known.
    heads: Vec<Head>,
    /// Whether others may have begun with parts.
    has_begun: bool,
}

/// What was counted before the engine at hand.
#[derive(Default)]
struct Past {
    packets: PacketStatistics,
    flows: FlowStatistics,
    /// Of pairs that others analysed.
    beside: FlowStatistics,
    filtered: u64,
}

/// What others made of some pairs of hosts in the part at hand.
struct Beside {
    engine: Engine,
    /// The other pairs.
    crossing: Arc<Crossing>,
}

impl Past {
    fn add(&mut self, engine: &Engine) {
        self.packets.merge(engine.ingress().statistics());
        self.flows.append(engine.tracker().statistics());
        self.filtered += engine.stage().refused();
    }
}

impl<'a, S, P, A, K> Carrier<'a, S, P, A, K>
where
    S: PartSource<P, Error: Into<anyhow::Error>>,
    P: OpenPart,
    A: AttendParts<S, P>,
    K: RowSink<Error = anyhow::Error>,
{
    /// Nothing was read yet.
    pub(super) fn new(
        source: &'a mut S,
        parts: &'a P,
        settings: &'a Settings,
        attendant: &'a mut A,
        sink: &'a mut K,
        board: &'a Board<P>,
    ) -> Self {
        Self {
            source,
            parts,
            settings,
            attendant,
            board,
            engine: Engine::new(settings.limits, settings.options.clone(), settings.seed),
            output: Output::to_sink(settings.rows(), settings.merger(), sink),
            past: Past::default(),
            beside: None,
            apart: 0,
            by_pairs: 0,
            heads: Vec::new(),
            has_begun: false,
        }
    }

    /// Reads to the end.
    ///
    /// # Errors
    ///
    /// Failures of the source, of the sink and of the attendant.
    pub(super) fn run(mut self) -> anyhow::Result<(AnalysisOutcome, PartsOutcome)> {
        let mut pool = BatchPool::default();
        loop {
            let (batch, progress) = pool.read(self.source)?;
            self.take(&batch);
            self.output.check()?;
            self.attendant.taken(self.source)?;
            pool.give_back(batch);
            if progress == Progress::End {
                break;
            }
            self.begin_parts();
            if let Some(head) = self.source.next_alone().filter(|_| self.has_begun) {
                self.begin_part(head)?;
            }
        }
        self.finish()
    }

    fn take(&mut self, batch: &Batch) {
        let Self { engine, attendant, output, beside, .. } = self;
        match beside {
            None => engine.batch_with(batch, *attendant, output),
            Some(Beside { crossing, .. }) => {
                engine.batch_of(batch, |unit| crossing.takes(unit), *attendant, output);
            }
        }
    }

    /// Lets others begin with parts, once it is known when the capture began.
    fn begin_parts(&mut self) {
        if self.has_begun {
            return;
        }
        let heads = self.source.heads();
        if self.heads.len() < heads.len() {
            // Before the first packet these are all that there are.
            self.heads.clone_from(&heads);
        }
        if let Some(begun) = self.engine.tracker().begun() {
            self.has_begun = true;
            self.board.begin(&self.heads, self.heads.len() - heads.len(), begun);
        }
    }

    /// Takes over what was made of the part that comes next, if that is the same as if it were made here.
    fn begin_part(&mut self, head: Head) -> anyhow::Result<()> {
        self.end_beside(Some(head.first));
        let Self { board, parts, settings, .. } = self;
        let apart = board.take(head.input, |work| apart::work_on(work, board, *parts, settings))?;
        self.board.pass(head.input);
        let own = apart.as_ref().and_then(|apart| apart.boundary.clone());
        let first = apart.as_ref().and_then(|apart| self.first_alone(apart, head));
        if let Some(first) = first {
            self.engine.settle_before(first, &mut self.output);
        }
        match (apart, first) {
            (Some(apart), Some(first)) if self.is_the_same(&apart, first) => {
                self.board.end_plan();
                return self.take_over(*apart, head);
            }
            (Some(apart), Some(first)) if self.is_beside(&apart, first) => {
                return self.go_beside(*apart);
            }
            (Some(apart), _) => self.board.note_in_vain(apart.bytes),
            (None, _) => {}
        }
        self.plan_from(head, own);
        Ok(())
    }

    /// The stamp with which a part begins, if packets of no other part come up to its end.
    fn first_alone(&self, apart: &Apart<P>, head: Head) -> Option<Timestamp> {
        let next = self.source.heads().into_iter().find(|other| other.input != head.input);
        let is_alone = next.is_none_or(|next| next.first > apart.stamps.span.1);
        apart.stamps.first().filter(|_| is_alone)
    }

    /// Whether an engine that saw all of the capture would tell of a part what this one told.
    fn is_the_same(&self, apart: &Apart<P>, first: Timestamp) -> bool {
        apart.crossing.is_none() && self.engine.is_over_before(first)
    }

    /// Whether an engine that saw all of the capture would tell of the pairs that were analysed of a part what this one told.
    fn is_beside(&self, apart: &Apart<P>, first: Timestamp) -> bool {
        let Some(boundary) = &apart.boundary else { return false };
        let crosses = |pair, until| {
            apart.crossing.as_ref().is_none_or(|crossing| !crossing.has(pair))
                && boundary.first(pair).is_some_and(|first| first < until)
        };
        apart.is_whole
            && !apart.engine.has_held()
            && self.engine.is_new_to_others(first)
            && !self.engine.remembers(crosses)
    }

    /// Takes the rows of the pairs that were analysed, and goes on to read the others.
    fn go_beside(&mut self, apart: Apart<P>) -> anyhow::Result<()> {
        let Apart { number, mut engine, mut rows, crossing, .. } = apart;
        if crossing.is_none() {
            self.board.end_plan();
        }
        // Rows here may be complete up to its last packet before its flows are taken over.
        engine.settle(&mut rows);
        self.engine.begin_part(number);
        self.output.put_beside(rows);
        self.beside = Some(Beside { engine, crossing: crossing.unwrap_or_default() });
        self.by_pairs += 1;
        Ok(())
    }

    /// Takes the packet that was put aside, behind which one with the stamp `next` comes, and goes on with what others
    /// analysed of the part that is over.
    fn end_beside(&mut self, next: Option<Timestamp>) {
        let Self { engine, attendant, output, .. } = self;
        let Some(Beside { engine: other, crossing }) = self.beside.take() else {
            return engine.take_held(next, *attendant, output);
        };
        // The first packet of a part is put aside here, and not there, where it is ahead of those before.
        engine.take_held_of(next, |unit| crossing.takes(unit), *attendant, output);
        self.past.beside.append(other.tracker().statistics());
        engine.go_on_for(other, output);
    }

    /// Lets others look up which pairs go on, if any do in the part that comes now, whose `own` pairs may be known.
    fn plan_from(&self, head: Head, own: Option<Arc<Boundary>>) {
        if !self.has_begun || self.board.is_planned() {
            return;
        }
        let mut remembered = self.board.nothing_remembered();
        let mut goes_on = false;
        let has_more = self.engine.remembers(|pair, until| {
            remembered.note(pair, until);
            goes_on |= until > head.first;
            !remembered.is_whole()
        });
        if goes_on && !has_more {
            self.board.plan(head.input, remembered, own);
        }
    }

    fn take_over(&mut self, apart: Apart<P>, head: Head) -> anyhow::Result<()> {
        let Apart { engine, mut rows, decoded, source, intake, stamps, .. } = apart;
        rows.append(decoded, 0);
        self.output.go_on_with(rows);
        self.output.check()?;
        self.past.add(&core::mem::replace(&mut self.engine, engine));
        self.source.go_on_with(head.input, source, stamps.span);
        self.apart += 1;
        self.attendant.take_over(self.source, head.input, intake)
    }

    fn finish(mut self) -> anyhow::Result<(AnalysisOutcome, PartsOutcome)> {
        self.end_beside(None);
        let Self { mut engine, attendant, mut output, mut past, .. } = self;
        engine.finish_with(attendant, &mut output);
        let now = engine.ingress().now();
        output.finish(now)?;
        past.add(&engine);
        let Past { packets, mut flows, beside, filtered } = past;
        flows.merge(&beside);
        let outcome = AnalysisOutcome { packets, flows, filtered, joins: output.joins(), now };
        let parts = PartsOutcome {
            parts: self.heads.len().max(usize::from(self.has_begun)),
            apart: self.apart,
            by_pairs: self.by_pairs,
            read_again_bytes: self.board.in_vain(),
        };
        Ok((outcome, parts))
    }
}
