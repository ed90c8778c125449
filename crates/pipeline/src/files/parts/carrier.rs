//! The analysis in order, which takes over what was made of parts by themselves where that is the same.

use netsniff_analysis::Engine;
use netsniff_analysis::flow::report::statistics::FlowStatistics;
use netsniff_analysis::ingress::statistics::PacketStatistics;
use netsniff_analysis::rows::Output;
use netsniff_output::{RowSink, RowStyle};
use netsniff_packet::Progress;
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
    /// Parts whose engines were taken over.
    apart: usize,
    /// All parts that have packets.
    all: usize,
    /// Whether others may have begun with parts.
    has_begun: bool,
}

/// What was counted before the engine at hand.
#[derive(Default)]
struct Past {
    packets: PacketStatistics,
    flows: FlowStatistics,
    filtered: u64,
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
            apart: 0,
            all: 0,
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
            self.engine.batch_with(&batch, self.attendant, &mut self.output);
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

    /// Lets others begin with parts, once it is known when the capture began.
    fn begin_parts(&mut self) {
        if self.has_begun {
            return;
        }
        let heads = self.source.heads();
        // Before the first packet these are all that there are.
        self.all = self.all.max(heads.len());
        if let Some(begun) = self.engine.tracker().begun() {
            self.has_begun = true;
            self.all = self.all.max(1);
            self.board.begin(&heads, begun);
        }
    }

    /// Takes over what was made of the part that comes next, if that is the same as if it were made here.
    fn begin_part(&mut self, head: Head) -> anyhow::Result<()> {
        self.engine.take_held(Some(head.first), self.attendant, &mut self.output);
        let apart = if self.engine.tracker().has_flows_at(head.first) {
            None
        } else {
            let Self { board, parts, settings, .. } = self;
            board.take(head.input, |claim| apart::analyse(claim, board, *parts, settings))?
        };
        self.board.pass(head.input);
        match apart {
            Some(apart) if self.is_the_same(&apart, head) => self.take_over(*apart, head),
            Some(apart) => {
                self.board.note_in_vain(apart.bytes);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Whether an engine that saw all of the capture would tell of a part what this one told.
    fn is_the_same(&mut self, apart: &Apart<P>, head: Head) -> bool {
        let Some(first) = apart.stamps.first() else { return false };
        let next = self.source.heads().into_iter().find(|other| other.input != head.input);
        if next.is_some_and(|next| next.first <= apart.stamps.span.1) {
            // Packets of both are taken by turns.
            return false;
        }
        self.engine.settle_before(first, &mut self.output);
        self.engine.is_over_before(first)
    }

    fn take_over(&mut self, apart: Apart<P>, head: Head) -> anyhow::Result<()> {
        let Apart { engine, rows, source, intake, stamps, .. } = apart;
        self.output.go_on_with(rows);
        self.output.check()?;
        self.past.add(&core::mem::replace(&mut self.engine, engine));
        self.source.go_on_with(head.input, source, stamps.span);
        self.apart += 1;
        self.attendant.take_over(self.source, head.input, intake)
    }

    fn finish(self) -> anyhow::Result<(AnalysisOutcome, PartsOutcome)> {
        let Self { mut engine, attendant, mut output, mut past, .. } = self;
        engine.finish_with(attendant, &mut output);
        let now = engine.ingress().now();
        output.finish(now)?;
        past.add(&engine);
        let Past { packets, flows, filtered } = past;
        let outcome = AnalysisOutcome { packets, flows, filtered, joins: output.joins(), now };
        let parts = PartsOutcome {
            parts: self.all,
            apart: self.apart,
            read_again_bytes: self.board.in_vain(),
        };
        Ok((outcome, parts))
    }
}
