//! The attack that `-a` is made against, in full: tries all 2^32 IPv4 addresses as the originator of one
//! connection, with everything else known, against its `uid` and its `community_id`.
//!
//! ```text
//! cargo run --release -p netsniff --example unmask -- \
//!     ORIGINATOR:PORT RESPONDER:PORT PROTOCOL UID COMMUNITY_ID TIME_NANOS TIE
//! ```
//!
//! Values are those of a row of `conn`; the originator's address is not used but for its port. The time is
//! that of the first packet in nanoseconds, the tie how many packets of the two hosts came before it at that
//! very time. On a row written without `-a` it finds the originator; on one written with it, with the true
//! responder, none.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use netsniff_analysis::Uid;
use netsniff_analysis::key::Endpoint;
use netsniff_analysis::key::FlowKey;
use netsniff_analysis::key::community_id::CommunityId;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(target) = Target::of(&arguments) else {
        eprintln!(
            "usage: unmask ORIGINATOR:PORT RESPONDER:PORT PROTOCOL UID COMMUNITY_ID TIME_NANOS TIE"
        );
        return ExitCode::from(2);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = (1_u64 << 32).div_ceil(threads);
    let hits: Vec<Hit> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                let target = &target;
                let end = ((part + 1) * share).min(1 << 32);
                scope.spawn(move || target.try_all(part * share..end))
            })
            .collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    });
    for (address, what) in &hits {
        println!("{address} gives the {what}");
    }
    println!("4294967296 addresses tried, {} found", hits.len());
    ExitCode::from(u8::from(!hits.is_empty()))
}

type Hit = (Ipv4Addr, &'static str);

/// What is known of a connection.
struct Target {
    port: u16,
    responder: Endpoint,
    protocol: u8,
    uid: String,
    community_id: String,
    time: i64,
    tie: u64,
}

impl Target {
    fn of(arguments: &[String]) -> Option<Self> {
        let [originator, responder, protocol, uid, community_id, time, tie] = arguments else {
            return None;
        };
        let originator: SocketAddr = originator.parse().ok()?;
        let responder: SocketAddr = responder.parse().ok()?;
        Some(Self {
            port: originator.port(),
            responder: Endpoint { address: responder.ip().into(), port: responder.port() },
            protocol: protocol.parse().ok()?,
            uid: uid.clone(),
            community_id: community_id.clone(),
            time: time.parse().ok()?,
            tie: tie.parse().ok()?,
        })
    }

    fn try_all(&self, addresses: std::ops::Range<u64>) -> Vec<Hit> {
        let mut hits = Vec::new();
        for bits in addresses {
            let address = Ipv4Addr::from_bits(bits as u32);
            let originator = Endpoint { address: IpAddr::V4(address).into(), port: self.port };
            let (key, _) = FlowKey::new(originator, self.responder, self.protocol, false);
            if Uid::new(key.name(0, self.time, self.tie)).as_str() == self.uid {
                hits.push((address, "uid"));
            }
            if CommunityId::of(&key).as_str() == self.community_id {
                hits.push((address, "community_id"));
            }
        }
        hits
    }
}
