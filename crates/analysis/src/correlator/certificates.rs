//! Certificates, each of which is told once a day, as Zeek does
//! (`X509::relog_known_certificates_after`).
//!
//! The days are those of UTC. Zeek counts 24 hours from the last row, which workers cannot agree on
//! that leave out by themselves what they told before.

use std::collections::BTreeSet;
use std::sync::Arc;

use netsniff_packet::Timestamp;

use super::{Content, Fact, Join, JoinStatistics, Joined, Told};
use crate::limits::Limits;
use crate::record::SortKey;

/// The certificates that were told lately.
#[derive(Debug)]
pub struct Certificates {
    most: usize,
    newest: i64,
    /// Those of the newest day and of the one before, since packets may come out of order around
    /// midnight.
    told: BTreeSet<(i64, Arc<str>, usize)>,
    cut_short: u64,
}

impl Certificates {
    /// The join, which was told of none.
    #[must_use]
    pub fn join(limits: &Limits) -> Box<dyn Join> {
        let most = limits.certificates;
        Box::new(Self { most, newest: i64::MIN, told: BTreeSet::new(), cut_short: 0 })
    }
}

impl Join for Certificates {
    fn fact(&mut self, key: &SortKey, fact: &Fact, told: &mut Told) {
        let Content::Certificate(presented) = &fact.content else { return };
        let day = presented.day();
        if day > self.newest {
            self.newest = day;
            self.told.retain(|(other, ..)| *other >= day.saturating_sub(1));
        }
        let (fingerprint, role) = presented.index();
        let index = (day, fingerprint, role);
        if self.told.contains(&index) {
            return;
        }
        if self.told.len() >= self.most {
            self.told.clear();
            self.cut_short += 1;
        }
        self.told.insert(index);
        told.push((*key, Joined::X509(presented.clone())));
    }

    fn due(&self) -> Option<SortKey> {
        None
    }

    fn look(&mut self, _: &mut Told) {}

    fn finish(&mut self, _: Timestamp, _: &mut Told) {}

    fn count(&self, statistics: &mut JoinStatistics) {
        statistics.cut_short += self.cut_short;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::key::Endpoint;
    use crate::log::conn::Proto;
    use crate::protocol::{Connection, presented};
    use crate::uid::Uid;

    const DAY: i64 = 86_400_000_000_000;

    /// How many rows come of certificates at these times in these roles.
    fn rows(join: &mut dyn Join, presentations: &[(i64, bool)]) -> usize {
        let end = Endpoint { address: netsniff_packet::Address::default(), port: 0 };
        let connection =
            Connection { uid: Uid::NONE, originator: end, responder: end, proto: Proto::Tcp };
        let mut told = Told::new();
        for (time, is_host) in presentations {
            let content = Content::Certificate(presented(*time, *is_host));
            let key = SortKey::first_at(Timestamp::from_nanos(*time));
            join.fact(&key, &Fact { connection, content }, &mut told);
        }
        told.len()
    }

    fn cut_short(join: &dyn Join) -> u64 {
        let mut statistics = JoinStatistics::default();
        join.count(&mut statistics);
        statistics.cut_short
    }

    #[test]
    fn each_certificate_is_told_once_a_day_in_each_role() {
        let mut join = Certificates::join(&Limits::default());
        assert_eq!(rows(&mut *join, &[(1, true), (2, true), (3, false), (DAY - 1, true)]), 2);
        // Packets around midnight come in any order.
        assert_eq!(rows(&mut *join, &[(DAY, true), (DAY - 1, true), (DAY + 1, true)]), 1);
        assert_eq!(rows(&mut *join, &[(2 * DAY, true), (2 * DAY, false)]), 2);
        assert_eq!(cut_short(&*join), 0);
    }

    #[test]
    fn the_bound_forgets() {
        let mut join = Certificates::join(&Limits { certificates: 1, ..Limits::default() });
        assert_eq!(rows(&mut *join, &[(1, true), (1, true), (1, false), (1, true)]), 3);
        assert_eq!(cut_short(&*join), 2);
    }
}
