//! DHCP servers that contradict each other.

use netsniff_packet::{Address, Timestamp};

use crate::log::Confidence;
use crate::notice::bounded::Bounded;
use crate::notice::finding::{Finding, FindingType, Found, MOST_UIDS, Note, identifier};
use crate::notice::setting::Setting;
use crate::notice::sighting::{Seen, Sighting};
use crate::notice::threshold::Threshold;

static SERVERS: Note = Note {
    name: "Netsniff::Several_DHCP_Servers",
    doc: "A client was given an address by one DHCP server, and within `dhcp_seconds` by another one.",
    confidence: "Medium: servers that share a pool, relays of one server, and a client that moves look the same.",
    advice: "Find out whether both servers are yours. A second one makes itself the router and resolver of its clients.",
};
static TWICE: Note = Note {
    name: "Netsniff::Address_Given_Twice",
    doc: "A client was given an address by DHCP while that was leased to another one that had not released or declined it.",
    confidence: "Medium: the capture may not have seen that the first client released it. Low where another server gave it, \
                 because two networks may use the same addresses.",
    advice: "Compare the leases of the server. Two servers with one pool, or a restored one, do this.",
};

const SECONDS: Threshold = Threshold {
    name: "dhcp_seconds",
    doc: "Seconds within which two DHCP servers must give the same client an address.",
    default: 600,
};

/// Bytes of an identifier of a client at most, as it is written (RFC 2132, 9.14).
const CLIENT_BYTES: usize = 1024;

pub(super) const TYPE: FindingType = FindingType {
    notes: &[&SERVERS, &TWICE],
    reads: &[(
        "dhcp",
        &[
            "uids",
            "client_addr",
            "server_addr",
            "requested_addr",
            "mac",
            "assigned_addr",
            "lease_time",
            "msg_types",
            "duration",
            "ts",
        ],
    )],
    thresholds: &[SECONDS],
    make: |setting: &Setting<'_>| {
        let window = setting.get(&SECONDS).saturating_mul(1_000_000_000);
        Box::new(Leases {
            clients: setting.table(2 * CLIENT_BYTES),
            leases: setting.table(CLIENT_BYTES),
            window: i64::try_from(window).unwrap_or(i64::MAX),
        })
    },
};

/// What servers gave to clients.
#[derive(Debug)]
struct Leases {
    /// By the hardware address of each client, which server gave it an address at last, and when.
    clients: Bounded<Box<[u8]>, (Address, i64)>,
    /// By address, who has it.
    leases: Bounded<Address, Lease>,
    window: i64,
}

/// Who has an address, from whom, until when.
#[derive(Clone, Debug)]
struct Lease {
    client: Box<[u8]>,
    server: Address,
    until: i64,
}

fn has(sighting: &Sighting, message: &[u8]) -> bool {
    let is_it = |seen: &Seen| matches!(seen, Seen::Text(text) if **text == *message);
    sighting.values("msg_types").iter().any(is_it)
}

/// Connections of the exchange.
fn uids(sighting: &Sighting) -> Vec<String> {
    let texts = sighting.values("uids").iter().filter_map(|seen| match seen {
        Seen::Text(text) => core::str::from_utf8(text).ok().map(str::to_owned),
        _ => None,
    });
    texts.take(MOST_UIDS).collect()
}

impl Leases {
    /// Ends the lease of the address that a client gave back, or would not take.
    fn release(&mut self, sighting: &Sighting) {
        let taken = if has(sighting, b"DECLINE") { "requested_addr" } else { "client_addr" };
        if let Some(address) = sighting.address(taken) {
            self.leases.remove(&address);
        }
    }

    fn given(&mut self, given: &Given<'_>, out: &mut Vec<Found>) {
        let tell = |note, confidence, said: &str| {
            let mut found = Found::new(note, confidence, given.sighting, said.to_owned());
            found.row.src = Some(given.server);
            found.of_many(uids(given.sighting))
        };
        let now = (given.server, given.end);
        let (other, when) = core::mem::replace(self.clients.entry(&given.client, || now), now);
        if other != given.server && given.start.saturating_sub(when) <= self.window {
            let said = "two servers gave a client an address, one soon after the other";
            let mut pair = [other, given.server];
            pair.sort_unstable();
            let mut found = tell(&SERVERS, Confidence::Medium, said);
            found.row.dst = Some(other);
            out.push(found.told_by(identifier(&pair.map(Some), None)));
        }
        let Some(time) = given.sighting.nanos("lease_time") else { return };
        let until = given.end.saturating_add(time);
        let lease = Lease { client: given.client.clone(), server: given.server, until };
        let before = self.leases.entry(&given.address, || lease.clone());
        let before = core::mem::replace(before, lease);
        if before.client != given.client && given.start < before.until {
            let is_same = before.server == given.server;
            let confidence = if is_same { Confidence::Medium } else { Confidence::Low };
            let said = "an address was given to two clients at a time";
            let mut found = tell(&TWICE, confidence, said);
            found.row.dst = Some(given.address);
            out.push(found.told_by(identifier(&[Some(given.server), Some(given.address)], None)));
        }
    }
}

/// An address that a server gave to a client.
struct Given<'a> {
    sighting: &'a Sighting,
    client: Box<[u8]>,
    server: Address,
    address: Address,
    /// When the exchange began and ended.
    start: i64,
    end: i64,
}

impl<'a> Given<'a> {
    fn of(sighting: &'a Sighting) -> Option<Self> {
        let start = sighting.nanos("ts")?;
        Some(Self {
            sighting,
            client: sighting.text("mac")?.into(),
            server: sighting.address("server_addr")?,
            address: sighting.address("assigned_addr")?,
            start,
            end: start.saturating_add(sighting.nanos("duration").unwrap_or(0)),
        })
    }
}

impl Finding for Leases {
    fn sighted(&mut self, _: Timestamp, sighting: &Sighting, out: &mut Vec<Found>) {
        if has(sighting, b"ACK")
            && let Some(given) = Given::of(sighting)
        {
            self.given(&given, out);
        }
        if has(sighting, b"RELEASE") || has(sighting, b"DECLINE") {
            self.release(sighting);
        }
    }

    fn given_up(&self) -> u64 {
        self.clients.given_up() + self.leases.given_up()
    }
}
