//! The packets of captures between two points in time.

use netsniff_console::UsageError;
use netsniff_console::calendar::moment;
use netsniff_packet::{Batch, Loss, Packet, Timestamp};

/// Which packets of captures are read, by their stamps.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct SpanArgs {
    /// Read only packets of captures that are stamped at this time or later: seconds since 1970 as in the logs, or
    /// 2026-11-28T17:30:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Timestamp>,
    /// Read only packets of captures that are stamped before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Timestamp>,
}

impl SpanArgs {
    /// The span that is asked for; `None` where it is all of time.
    ///
    /// # Errors
    ///
    /// Where no time is in it.
    pub(crate) fn span(&self) -> Result<Option<Span>, UsageError> {
        let (from, to) = (self.from, self.to);
        if from.zip(to).is_some_and(|(from, to)| from >= to) {
            return Err(UsageError("--from is not before --to: no packet is between".to_owned()));
        }
        Ok((from.is_some() || to.is_some()).then_some(Span { from, to }))
    }

    /// As [`Self::span`] for live traffic, of which there is no part.
    ///
    /// # Errors
    ///
    /// Where a part is asked for.
    pub(crate) fn none_of_live(&self) -> Result<(), UsageError> {
        let said = "--from and --to choose packets of captures: live traffic has a --duration";
        self.span()?.map_or(Ok(()), |_| Err(UsageError(said.to_owned())))
    }
}

/// Times from one to before another; an end that is not there is open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) from: Option<Timestamp>,
    pub(crate) to: Option<Timestamp>,
}

impl Span {
    pub(crate) fn has(&self, time: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= time) && self.to.is_none_or(|to| time < to)
    }

    /// What was lost, if some of it may have come in the span; behind its end nothing is told. What is not known to have
    /// begun at some packet reaches back to the begin.
    fn part_of(&self, loss: &Loss) -> Option<Loss> {
        let begins = |to: Timestamp| loss.before.is_none_or(|began| began < to);
        let touches = self.from.is_none_or(|from| from <= loss.after) && self.to.is_none_or(begins);
        touches
            .then(|| Loss { after: self.to.map_or(loss.after, |to| loss.after.min(to)), ..*loss })
    }
}

/// Packets that were read and are not wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) packets: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) captured_bytes: u64,
    /// Earliest and latest time.
    pub(crate) span: Option<(Timestamp, Timestamp)>,
}

impl LeftOut {
    pub(crate) fn add(&mut self, packet: &Packet<'_>) {
        self.count(packet.timestamp, packet.wire_len, packet.data.len() as u64);
    }

    /// Adds what another one counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.packets += other.packets;
        self.wire_bytes += other.wire_bytes;
        self.captured_bytes += other.captured_bytes;
        let spans = || self.span.into_iter().chain(other.span);
        self.span = spans().map(|span| span.0).min().zip(spans().map(|span| span.1).max());
    }

    fn count(&mut self, time: Timestamp, wire_len: u32, captured_len: u64) {
        self.packets += 1;
        self.wire_bytes += u64::from(wire_len);
        self.captured_bytes += captured_len;
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }
}

/// Takes packets out that are not of a span.
#[derive(Debug)]
pub(super) struct Within {
    span: Span,
    left_out: LeftOut,
}

impl Within {
    pub(super) fn new(span: Span) -> Self {
        Self { span, left_out: LeftOut::default() }
    }

    pub(super) const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Takes those out of a batch, with the losses of other times. What is left stays in order.
    pub(super) fn filter(&mut self, batch: &mut Batch) {
        let Self { span, left_out } = self;
        let losses = core::mem::take(&mut batch.losses);
        let part = |(before, loss): (u32, Loss)| Some((before, span.part_of(&loss)?));
        let mut losses = losses.into_iter().filter_map(part).peekable();
        let (mut number, mut kept) = (0, 0);
        batch.packets.retain(|packet| {
            while let Some((_, loss)) = losses.next_if(|(before, _)| *before <= number) {
                batch.losses.push((kept, loss));
            }
            number += 1;
            let is_in = span.has(packet.timestamp);
            if is_in {
                kept += 1;
            } else {
                left_out.count(packet.timestamp, packet.wire_len, packet.captured_len.into());
            }
            is_in
        });
        batch.losses.extend(losses.map(|(_, loss)| (kept, loss)));
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::{LinkType, Stage};

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_secs_nanos(seconds, 0)
    }

    fn within(from: Option<i64>, to: Option<i64>) -> Within {
        let args = SpanArgs { from: from.map(at), to: to.map(at) };
        Within::new(args.span().unwrap().unwrap())
    }

    /// Packets of seconds, out of order, each with a loss before it that ended then.
    fn batch(seconds: &[i64]) -> Batch {
        let mut batch = Batch::default();
        for second in seconds {
            let (before, after) = (Some(at(second - 1)), at(*second));
            batch.push_loss(Loss { before, after, packets: 1, stage: Stage::System });
            let link_type = LinkType::ETHERNET;
            let data = &[0; 10];
            batch.push(&Packet { timestamp: after, data, wire_len: 60, link_type, interface: 0 });
        }
        batch
    }

    #[test]
    fn what_is_left_is_of_the_span_and_losses_stay_where_they_were() {
        let told = |from, to| {
            let (mut batch, mut within) = (batch(&[1, 5, 3, 4, 2, 7]), within(from, to));
            within.filter(&mut batch);
            let seconds = |time: Timestamp| time.nanos() / 1_000_000_000;
            let packets: Vec<_> = batch.iter().map(|packet| seconds(packet.timestamp)).collect();
            let losses: Vec<_> =
                batch.losses.iter().map(|(before, loss)| (*before, seconds(loss.after))).collect();
            let out = *within.left_out();
            assert_eq!((out.wire_bytes, out.captured_bytes), (out.packets * 60, out.packets * 10));
            (packets, losses, out.packets, out.span.map(|(a, b)| (seconds(a), seconds(b))))
        };
        // The loss that ended at 5 may have begun at 4.
        let losses = vec![(0, 5), (0, 3), (1, 4)];
        assert_eq!(told(Some(3), Some(5)), (vec![3, 4], losses, 4, Some((1, 7))));
        let losses = vec![(0, 1), (1, 3), (1, 2)];
        assert_eq!(told(None, Some(3)), (vec![1, 2], losses, 4, Some((3, 7))));
        assert_eq!(told(Some(7), None), (vec![7], vec![(0, 7)], 5, Some((1, 5))));
        assert_eq!(told(Some(8), None), (vec![], vec![], 6, Some((1, 7))));
        assert_eq!(told(Some(1), None).3, None);
    }

    #[test]
    fn a_loss_that_may_reach_back_to_the_begin_is_told_of_every_part() {
        let told = |from, to| {
            let mut batch = batch(&[1, 5]);
            batch.losses.clear();
            let (before, after) = (None, at(9));
            batch.push_loss(Loss { before, after, packets: 7, stage: Stage::Interface });
            within(from, to).filter(&mut batch);
            let seconds = |(at, loss): &(u32, Loss)| (*at, loss.after.nanos() / 1_000_000_000);
            batch.losses.iter().map(seconds).collect::<Vec<_>>()
        };
        assert_eq!(told(None, Some(3)), [(1, 3)], "behind what is left");
        assert_eq!(told(Some(2), None), [(1, 9)]);
        assert_eq!(told(Some(2), Some(4)), [(0, 4)]);
        assert_eq!(told(Some(10), None), []);
    }

    #[test]
    fn a_span_has_a_begin_before_its_end() {
        let args = |from: i64, to: i64| SpanArgs { from: Some(at(from)), to: Some(at(to)) };
        assert!(args(5, 5).span().is_err() && args(6, 5).span().is_err());
        assert!(args(4, 5).span().unwrap().is_some() && args(4, 5).none_of_live().is_err());
        assert!(SpanArgs::default().span().unwrap().is_none());
        assert!(SpanArgs::default().none_of_live().is_ok());
    }
}
