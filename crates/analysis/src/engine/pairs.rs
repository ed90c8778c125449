//! Pairs of hosts of which one engine has what came before, and another what is new.
//!
//! What flows tell depends on packets of their own pair of hosts alone, whoever has the others: so workers share flows out.
//! An engine can therefore take some pairs of a part of the input, while another has taken the rest of it by itself.

use std::borrow::Cow;

use netsniff_packet::{Batch, Timestamp};

use super::Engine;
use super::decoding::{DecodeStage, Intake};
use super::shard::Shard;
use crate::ingress::boundary::Boundary;
use crate::limits::Limits;
use crate::options::Options;
use crate::record::{Observer, Record, SortKey};
use crate::unit::DecodedDatagram;

/// Hears nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Observer for Nobody {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}
}

/// Finds out which pairs of hosts a part of an input has.
#[derive(Debug)]
pub struct BoundaryScan(DecodeStage);

impl BoundaryScan {
    /// Nothing read of a part so far, which is the one that counts so. More than `most` pairs are not noted.
    ///
    /// Time is that of an engine [of this part](Engine::of_part), so that both believe the same stamps.
    #[must_use]
    pub fn new(limits: Limits, options: Options, part: u32, most: usize) -> Self {
        let mut stage = DecodeStage::new(limits, options, super::ROUND);
        stage.begin_part(part);
        stage.note_boundary(most);
        Self(stage)
    }

    /// Takes the packets of a batch, as far as `intake` wants them.
    pub fn batch<I: Intake>(&mut self, batch: &Batch, intake: &mut I) {
        let forget = |stage: &mut DecodeStage, _: &Cow<'_, Batch>, _: &mut Nobody| {
            stage.clear_units();
        };
        self.0.batch(&Cow::Borrowed(batch), Cow::Owned, intake, &mut Nobody, forget);
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> Option<Boundary> {
        self.0.finish(Cow::Owned, &mut (), &mut Nobody, |stage, _, _| stage.clear_units());
        self.0.take_boundary()
    }
}

impl Engine {
    /// Notes from now on which pairs of hosts there are, up to `most`.
    pub fn note_boundary(&mut self, most: usize) {
        self.stage.note_boundary(most);
    }

    /// The pairs that were noted, if they were.
    pub fn take_boundary(&mut self) -> Option<Boundary> {
        self.stage.take_boundary()
    }

    /// The same as [`Self::batch_with`], but flows get only those datagrams that `takes` wants.
    pub fn batch_of<I: Intake, O: Observer>(
        &mut self,
        batch: &Batch,
        takes: impl Fn(&DecodedDatagram) -> bool,
        intake: &mut I,
        observer: &mut O,
    ) {
        let Self { stage, shard, .. } = self;
        stage.batch(
            &Cow::Borrowed(batch),
            Cow::Owned,
            intake,
            observer,
            |stage, batch, observer| {
                end_round(stage, shard, &batch.data, &takes, observer);
            },
        );
    }

    /// The same as [`Self::take_held`], but flows get the packet only if `takes` wants its datagrams.
    pub fn take_held_of<I: Intake, O: Observer>(
        &mut self,
        next: Option<Timestamp>,
        takes: impl Fn(&DecodedDatagram) -> bool,
        intake: &mut I,
        observer: &mut O,
    ) {
        let Self { stage, shard, .. } = self;
        stage.take_held(next, Cow::Owned, intake, observer, &mut |stage, batch, observer| {
            end_round(stage, shard, &batch.data, &takes, observer);
        });
    }

    /// The same as [`Self::batch_of`], for whoever keeps what decoding tells (`decoded`) apart from what `flows` tell.
    pub fn batch_apart<I: Intake, D: Observer, F: Observer>(
        &mut self,
        batch: &Batch,
        takes: impl Fn(&DecodedDatagram) -> bool,
        intake: &mut I,
        decoded: &mut D,
        flows: &mut F,
    ) {
        let Self { stage, shard, .. } = self;
        stage.batch(&Cow::Borrowed(batch), Cow::Owned, intake, decoded, |stage, batch, _| {
            end_round(stage, shard, &batch.data, &takes, flows);
        });
    }

    /// Whether a packet was put aside, so that it is not taken yet.
    #[must_use]
    pub const fn has_held(&self) -> bool {
        self.stage.has_held()
    }

    /// Whether `is_it` says so of something that is remembered of a pair of hosts up to a time, if nothing more comes.
    pub fn remembers(&self, mut is_it: impl FnMut(u64, Timestamp) -> bool) -> bool {
        self.ingress().tunnels().remembers(&mut is_it) || self.tracker().remembers(&mut is_it)
    }

    /// Whether pairs of which nothing is remembered are told from `first` on, the stamp of the packet that comes next, as
    /// they were if nothing had come before. Call [`Self::settle_before`] first.
    #[must_use]
    pub fn is_new_to_others(&self, first: Timestamp) -> bool {
        self.stage.is_new_to_others(first) && self.tracker().is_new_to_others(first)
    }

    /// Numbers packets from now on as an engine [of this part](Self::of_part) does.
    pub fn begin_part(&mut self, part: u32) {
        self.stage.begin_part(part);
    }

    /// Ends the flows that end until its own time, to the nanosecond. Nothing that it tells of them later belongs before that.
    pub fn settle<O: Observer>(&mut self, observer: &mut O) {
        let now = self.ingress().now();
        super::border::settle(&mut self.shard, now, observer);
    }

    /// Goes on with the flows of `other`, which took other pairs of the packets up to here.
    pub fn go_on_for<O: Observer>(&mut self, other: Self, observer: &mut O) {
        self.settle(observer);
        self.shard.go_on_for(other.shard);
    }
}

/// Hands the datagrams of a round that are wanted to their flows.
fn end_round<O: Observer>(
    stage: &mut DecodeStage,
    shard: &mut Shard,
    bytes: &[u8],
    takes: &impl Fn(&DecodedDatagram) -> bool,
    observer: &mut O,
) {
    let watermark = stage.watermark();
    let units = stage.units();
    let wanted = units.as_slice().iter().enumerate().filter(|(_, unit)| takes(unit));
    shard.round(wanted, units.holes(), bytes, watermark, observer);
    stage.clear_units();
    observer.complete(watermark);
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use netsniff_packet::{Address, LinkType, Packet};
    use netsniff_traffic::dialogue::{Dialogue, Setup};
    use netsniff_traffic::frame::{Host, udp_frame};

    use super::*;
    use crate::key::FlowKey;

    /// Datagrams between 10.0.0.1 and another host, each at a second.
    fn datagrams(of: &[(i64, u8)]) -> Batch {
        let mut batch = Batch::default();
        for &(second, last) in of {
            let host = |last| Host::new(IpAddr::from([10, 0, 0, last]), 4000);
            let data = udp_frame(&host(1), &host(last), 0, b"hello").unwrap();
            let timestamp = Timestamp::from_secs_nanos(second, 0);
            let wire_len = data.len() as u32;
            let link_type = LinkType::ETHERNET;
            let packet = Packet { timestamp, data: &data, wire_len, link_type, interface: 0 };
            assert!(batch.push(&packet));
        }
        batch
    }

    #[test]
    fn a_scan_has_the_time_of_the_engine_of_its_part() {
        let batch = datagrams(&[(20, 8), (2000, 9), (21, 2), (22, 2)]);
        let (limits, options) = (Limits::default(), Options::default());
        let mut scan = BoundaryScan::new(limits, options.clone(), 2, 9);
        scan.batch(&batch, &mut ());
        let begun = (2, Timestamp::from_secs_nanos(0, 0));
        let mut engine = Engine::of_part(limits, options, 1, begun, &mut Nobody);
        engine.note_boundary(9);
        engine.batch_with(&batch, &mut (), &mut Nobody);
        let host = |last| Address::from_v4([10, 0, 0, last]);
        for boundary in [scan.finish(), engine.take_boundary()] {
            let first = boundary.unwrap().first(FlowKey::pair(host(1), host(2)));
            assert_eq!(first, Some(Timestamp::from_secs_nanos(21, 0)));
        }
    }
    /// A clock that steps back brings the deadline of an attempt forward, but not its timer.
    #[test]
    fn a_flow_is_remembered_until_its_timer_comes_up() {
        let mut dialogue = Dialogue::new(Setup::default());
        dialogue.connect();
        let syn = dialogue.finish().seen.remove(0).frame;
        let at = |second| Timestamp::from_secs_nanos(second, 0);
        let mut batch = datagrams(&[(1000, 2)]);
        for second in [988, 989, 991, 995] {
            let (wire_len, link_type) = (syn.len() as u32, LinkType::ETHERNET);
            let timestamp = at(second);
            let packet = Packet { timestamp, data: &syn, wire_len, link_type, interface: 0 };
            assert!(batch.push(&packet));
        }
        let mut engine = Engine::new(Limits::default(), Options::default(), 1);
        engine.batch_with(&batch, &mut (), &mut Nobody);
        engine.settle_before(at(1001), &mut Nobody);
        let mut all = Vec::new();
        engine.remembers(|_, until| {
            all.push(until);
            false
        });
        all.sort_unstable();
        // An attempt lasts five seconds, and a datagram is remembered for a minute.
        assert_eq!(all, [at(1005), at(1060)]);
    }
}
