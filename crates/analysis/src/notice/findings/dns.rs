//! Resolvers that fail, are slow or do not answer, and clients that carry data in names.

use std::collections::BTreeSet;

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note};
use crate::notice::setting::{Setting, UIDS_BYTES};
use crate::notice::sighting::Sighting;
use crate::notice::threshold::Threshold;

static UNANSWERED: Note = Note {
    name: "Netsniff::DNS_Unanswered",
    doc: "Of the last `dns_queries` queries to a resolver, more than half had no answer.",
    confidence: "Medium where it answered any of them, else low: a capture that sees one direction looks the same. An answer that the capture lost \
                 counts as none.",
    advice: "Find out whether the resolver runs, and whether its answers take another way than the capture sees.",
};
static FAILURES: Note = Note {
    name: "Netsniff::DNS_Failures",
    doc: "Of the last `dns_queries` queries to a resolver, more than half were answered with SERVFAIL or REFUSED.",
    confidence: "High: the resolver says so itself.",
    advice: "Look at the log of the resolver: its upstream, its zones, or who may ask it.",
};
static SLOW: Note = Note {
    name: "Netsniff::Slow_Resolver",
    doc: "Of the last `dns_queries` queries to a resolver, more than half were answered only after `dns_slow_ms`.",
    confidence: "Medium: names that nobody asked for before take longer.",
    advice: "Compare with another resolver, and look for losses between it and its upstream.",
};
static TUNNEL: Note = Note {
    name: "Netsniff::DNS_Tunnel",
    doc: "A client asked for `dns_tunnel_names` different names of 60 bytes or more below one domain.",
    confidence: "Medium: some products look up hashes by DNS in the same way.",
    advice: "Find out which program asks, and who runs the domain.",
};

const QUERIES: Threshold = Threshold {
    name: "dns_queries",
    doc: "Queries to a resolver that are judged together.",
    default: 40,
};
const SLOW_MS: Threshold = Threshold {
    name: "dns_slow_ms",
    doc: "Milliseconds from which on an answer is slow.",
    default: 500,
};
const NAMES: Threshold = Threshold {
    name: "dns_tunnel_names",
    doc: "Different long names below one domain that one client must ask for within `dns_tunnel_seconds`.",
    default: 100,
};
const TUNNEL_SECONDS: Threshold = Threshold {
    name: "dns_tunnel_seconds",
    doc: "Seconds within which a client must ask for so many names.",
    default: 3600,
};
/// Bytes from which on a name is long.
const LONG: usize = 60;

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&UNANSWERED, &FAILURES, &SLOW, &TUNNEL],
    reads: &[("dns", &["query", "rcode_name", "rtt"])],
    thresholds: &[QUERIES, SLOW_MS, NAMES, TUNNEL_SECONDS],
    make: |setting: &Setting<'_>| {
        let many_names = setting.get(&NAMES).min(MOST_NAMES) as usize;
        Box::new(Dns {
            resolvers: setting.table(3 * UIDS_BYTES),
            names: setting.table((many_names + 2) * NAME_BYTES),
            queries: setting.get(&QUERIES),
            slow: setting.get(&SLOW_MS).saturating_mul(1_000_000),
            many_names,
            window: setting.get(&TUNNEL_SECONDS).saturating_mul(1_000_000_000),
        })
    },
};

/// Most names that are kept for one domain.
const MOST_NAMES: u64 = 1000;
/// Bytes of a name at most, with its place in a set.
const NAME_BYTES: usize = 300;

/// What is known of resolvers and of names.
#[derive(Debug)]
struct Dns {
    resolvers: Bounded<Address, Queries>,
    names: Bounded<(Address, Box<[u8]>), Names>,
    queries: u64,
    slow: u64,
    many_names: usize,
    /// Nanoseconds within which the names of a tunnel are asked for.
    window: u64,
}

/// Long names below one domain, each once, and when the first of them was asked for.
#[derive(Debug)]
struct Names {
    first: Timestamp,
    names: BTreeSet<Box<[u8]>>,
}

impl Names {
    const fn new(first: Timestamp) -> Self {
        Self { first, names: BTreeSet::new() }
    }
}

/// Queries to a resolver that are judged together.
#[derive(Debug, Default)]
struct Queries {
    all: u64,
    unanswered: Several,
    failed: Several,
    slow: Several,
}

/// Some of them, with connections that show it.
#[derive(Debug, Default)]
struct Several {
    count: u64,
    uids: Vec<String>,
}

impl Several {
    fn add(&mut self, sighting: &Sighting) {
        self.count += 1;
        let uid = sighting.word("uid");
        if self.uids.len() < MOST_UIDS && self.uids.last().map(String::as_str) != uid {
            self.uids.extend(uid.map(str::to_owned));
        }
    }
}

impl Dns {
    fn resolver(&mut self, host: Address, sighting: &Sighting, out: &mut Vec<Found>) {
        let queries = self.resolvers.entry(&host, Queries::default);
        queries.all += 1;
        match sighting.word("rcode_name") {
            None => queries.unanswered.add(sighting),
            Some("SERVFAIL" | "REFUSED") => queries.failed.add(sighting),
            Some(_) => {}
        }
        let took = sighting.nanos("rtt").map(i64::unsigned_abs);
        if took.is_some_and(|took| took >= self.slow) {
            queries.slow.add(sighting);
        }
        if queries.all < self.queries {
            return;
        }
        let Queries { all, unanswered, failed, slow } = core::mem::take(queries);
        let mut tell = |note, confidence, several: Several, what: &str| {
            if several.count * 2 > all {
                let said = format!("{} of {all} queries to a resolver {what}", several.count);
                let mut found = Found::new(note, confidence, sighting, said);
                // Anybody may have asked.
                found.row.src = None;
                let identifier = crate::notice::finding::identifier(&[Some(host)], None);
                found = found.counting(several.count).of_many(several.uids);
                out.push(found.told_by(identifier));
            }
        };
        let is_silent = unanswered.count == all;
        let confidence = if is_silent { Confidence::Low } else { Confidence::Medium };
        tell(&UNANSWERED, confidence, unanswered, "had no answer");
        tell(&FAILURES, Confidence::High, failed, "were answered with SERVFAIL or REFUSED");
        tell(&SLOW, Confidence::Medium, slow, "were answered late");
    }

    fn name(&mut self, now: Timestamp, client: Address, sighting: &Sighting, out: &mut Vec<Found>) {
        let Some(query) = sighting.text("query").filter(|query| query.len() >= LONG) else {
            return;
        };
        let domain = domain(query);
        // Names of reverse look-ups are made of addresses, and those of IPv6 are long.
        if domain
            .rsplit(|byte| *byte == b'.')
            .next()
            .is_some_and(|top| top.eq_ignore_ascii_case(b"arpa"))
        {
            return;
        }
        let below = self.names.entry(&(client, domain.into()), || Names::new(now));
        if now.nanos().abs_diff(below.first.nanos()) > self.window {
            *below = Names::new(now);
        }
        below.names.insert(query.into());
        let count = below.names.len();
        if count >= self.many_names {
            // Those of the next finding are counted anew, and need no room until then.
            *below = Names::new(now);
            let said = format!("a client asked for {count} different long names below one domain");
            let found = Found::new(&TUNNEL, Confidence::Medium, sighting, said);
            let hosts = crate::notice::finding::identifier(&[Some(client)], None);
            let found = found.saying(Some(domain)).counting(count as u64);
            out.push(found.told_by([&hosts, domain].concat()));
        }
    }
}

/// The last two labels of a name, or three below a country whose second label is short, as `co.uk`.
fn domain(name: &[u8]) -> &[u8] {
    let last = |labels: usize| {
        let dots = name.iter().enumerate().rev().filter(|(_, byte)| **byte == b'.');
        let start = dots.map(|(at, _)| at + 1).nth(labels - 1).unwrap_or(0);
        name.get(start..).unwrap_or_default()
    };
    let two = last(2);
    match two.iter().position(|byte| *byte == b'.') {
        Some(second) if second <= 3 && two.len() - second == 3 => last(3),
        _ => two,
    }
}

impl Finding for Dns {
    fn sighted(&mut self, now: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        // Nobody need answer to the queries of multicast DNS and the like.
        if sighting.port("id.resp_p") != Some(53) {
            return;
        }
        if let Some(resolver) = sighting.address("id.resp_h") {
            self.resolver(resolver, sighting, out);
        }
        if let Some(client) = sighting.address("id.orig_h") {
            self.name(now, client, sighting, out);
        }
    }

    fn given_up(&self) -> u64 {
        self.resolvers.given_up() + self.names.given_up()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_two_labels() {
        assert_eq!(domain(b"a.b.example.com"), b"example.com");
        assert_eq!(domain(b"example.com"), b"example.com");
        assert_eq!(domain(b"a.b.example.co.uk"), b"example.co.uk");
        assert_eq!(domain(b"a.example.uk"), b"example.uk");
        assert_eq!(domain(b"com"), b"com");
        assert_eq!(domain(b""), b"");
    }
}
