//! Connections that begin with the addresses and ports of another.

mod support;

use netsniff_analysis::Limits;
use netsniff_packet::Timestamp;
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use support::{Rows, analyse, packet};

/// How far a connection comes before the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    Syn,
    Data,
    OneFin,
    BothFins,
    Reset,
}

/// Frames with their times in nanoseconds.
fn connection(sequence: u32, until: Until) -> Vec<(i64, Vec<u8>)> {
    let mut dialogue =
        Dialogue::new(Setup { initial_sequence: (sequence, sequence / 2), ..Setup::default() });
    dialogue.connect();
    dialogue.say(Side::Client, b"a question").say(Side::Server, b"an answer");
    match until {
        Until::Syn | Until::Data => {}
        Until::OneFin => {
            dialogue.close(Side::Client);
        }
        Until::BothFins => {
            dialogue.close(Side::Client).close(Side::Server);
        }
        Until::Reset => {
            dialogue.reset(Side::Client);
        }
    }
    let seen = dialogue.finish().seen;
    let frames = seen.into_iter().map(|seen| (seen.timestamp.nanos(), seen.frame));
    frames.take(if until == Until::Syn { 1 } else { usize::MAX }).collect()
}

/// The rows of a connection, and of the next one that begins `after` nanoseconds later.
fn run(until: Until, after: i64) -> Rows {
    let mut frames = connection(5_000, until);
    let last = frames.last().unwrap().0;
    let next = connection(90_000, Until::BothFins);
    let first = next[0].0;
    frames.extend(next.into_iter().map(|(nanos, frame)| (last + after + nanos - first, frame)));
    let packets = frames.iter().map(|(nanos, data)| packet(Timestamp::from_nanos(*nanos), data));
    analyse(packets, Limits::default())
}

const SECOND: i64 = 1_000_000_000;

#[test]
fn reuse_is_told_of_the_connection_that_ends() {
    for (until, after, expected) in [
        (Until::Syn, SECOND, Some("SYN_seq_jump")),
        (Until::Data, SECOND, Some("active_connection_reuse")),
        (Until::OneFin, SECOND, Some("active_connection_reuse")),
        (Until::BothFins, SECOND, Some("premature_connection_reuse")),
        (Until::BothFins, 9 * SECOND, None),
        (Until::Reset, SECOND, None),
    ] {
        let rows = run(until, after);
        let connections = rows.log("conn");
        assert_eq!(connections.len(), 2, "{until:?}");
        let told = rows.log("weird");
        let names: Vec<&str> = told.iter().map(|row| row["name"].as_str()).collect();
        assert_eq!(names, expected.as_slice(), "{until:?} {after}");
        let first = connections.iter().min_by_key(|row| row["ts"].clone()).unwrap();
        for row in told {
            assert_eq!(row["uid"], first["uid"], "{until:?}");
            assert_eq!(row["source"], "TCP");
        }
    }
}
