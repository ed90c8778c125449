//! Certificates, each of which is told once a day, as Zeek does
//! (`X509::relog_known_certificates_after`).
//!
//! The days are those of UTC. Zeek counts 24 hours from the last row, which workers cannot agree on
//! that leave out by themselves what they told before.

use core::any::TypeId;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::correlator::{Bound, GivenUp, Join, JoinOutput};
use crate::limits::Limits;
use crate::protocol::x509::Presented;
use crate::record::{Connection, Fact, SortKey};

/// The certificates that were told lately.
#[derive(Debug)]
pub(super) struct Certificates {
    most: usize,
    newest: i64,
    /// Those of the newest day and of the one before, since packets may come out of order around
    /// midnight.
    told: BTreeSet<(i64, Arc<str>, usize)>,
    forgotten: u64,
}

impl Certificates {
    /// The join, which was told of none.
    pub(super) fn join(limits: &Limits) -> Box<dyn Join> {
        let most = limits.certificates;
        Box::new(Self { most, newest: i64::MIN, told: BTreeSet::new(), forgotten: 0 })
    }
}

impl Join for Certificates {
    fn takes(&self) -> &'static [TypeId] {
        const { &[TypeId::of::<Presented>()] }
    }

    fn fact(&mut self, key: &SortKey, _: &Connection, fact: &dyn Fact, out: &mut JoinOutput) {
        let Some(presented) = fact.downcast_ref::<Presented>() else { return };
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
            self.forgotten += 1;
        }
        self.told.insert(index);
        out.row(*key, presented.row());
    }

    fn given_up(&self) -> Option<GivenUp> {
        Some(GivenUp {
            bound: Bound::Number(self.most),
            of: "certificates a day",
            count: self.forgotten,
            what: "times all that were told before were forgotten, and may be told again",
        })
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::Timestamp;

    use super::*;
    use crate::protocol::x509::tests::presented;

    const DAY: i64 = 86_400_000_000_000;

    /// How many rows come of certificates at these times in these roles.
    fn rows(join: &mut dyn Join, presentations: &[(i64, bool)]) -> usize {
        let mut out = JoinOutput::default();
        for (time, is_host) in presentations {
            let fact = presented(*time, *is_host);
            let key = SortKey::first_at(Timestamp::from_nanos(*time));
            join.fact(&key, &Connection::NONE, &fact, &mut out);
        }
        out.drain().count()
    }

    fn forgotten(join: &dyn Join) -> u64 {
        join.given_up().unwrap().count
    }

    #[test]
    fn each_certificate_is_told_once_a_day_in_each_role() {
        let mut join = Certificates::join(&Limits::default());
        assert_eq!(rows(&mut *join, &[(1, true), (2, true), (3, false), (DAY - 1, true)]), 2);
        // Packets around midnight come in any order.
        assert_eq!(rows(&mut *join, &[(DAY, true), (DAY - 1, true), (DAY + 1, true)]), 1);
        assert_eq!(rows(&mut *join, &[(2 * DAY, true), (2 * DAY, false)]), 2);
        assert_eq!(forgotten(&*join), 0);
    }

    #[test]
    fn the_bound_forgets() {
        let mut join = Certificates::join(&Limits { certificates: 1, ..Limits::default() });
        assert_eq!(rows(&mut *join, &[(1, true), (1, true), (1, false), (1, true)]), 3);
        assert_eq!(forgotten(&*join), 2);
    }
}
