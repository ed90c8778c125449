//! Segments that were late, and what passes for them: who was near enough to send them again.

use crate::support::wire::{ACK, Client, Part, SYN, SYN_ACK, Server, Wire};

/// Its host is so far away that it cannot have seen the duplicate acknowledgements: the last copies of
/// SYN and SYN-ACK tell that as well as single ones.
#[test]
fn a_late_segment_is_none_that_was_sent_again_though_the_handshake_came_twice() {
    for copies in [[0, 0], [1, 0], [0, 1], [2, 2]] {
        for (millis, expected) in [(48, vec![]), (0, vec!["network_before"])] {
            let mut wire = Wire::over_v6(50_001);
            for (side, flags, count) in [(Client, SYN, copies[0]), (Server, SYN_ACK, copies[1])] {
                wire.syn(side, flags, b"");
                let copy = Part { flags, position: 0, ..wire.part(side) };
                for _ in 0..count {
                    wire.put(side, &copy);
                }
            }
            wire.pass(millis).acks(Client).sends(Client, [1; 100]);
            let late = wire.next(Client);
            let answer = Part { flags: ACK, ..wire.part(Server) };
            wire.hides(Client, &[2; 100]).sends(Client, [3; 100]).sends(Client, [4; 100]);
            wire.sends(Client, [5; 100]);
            for _ in 0..4 {
                wire.put(Server, &answer);
            }
            wire.data_at(Client, late, &[2; 100]).acks(Server);
            let logs = wire.logs();
            assert_eq!(logs.lines("gaps", &["cause"]), expected, "{copies:?} {millis}");
        }
    }
}

/// A sender that is as near as that may have answered. Its stamps would tell.
#[test]
fn a_loss_that_may_be_a_late_packet_is_told_to_be_assumed() {
    for (millis, is_stamped, quality) in
        [(2, false, "suspect"), (4, false, "clean"), (2, true, "clean")]
    {
        let mut wire = Wire::over_v6(50_001);
        if is_stamped {
            wire.stamped(7);
        }
        wire.open().pass(20).sends(Client, [1; 100]);
        let late = wire.next(Client);
        let answer = Part { flags: ACK, ..wire.part(Server) };
        wire.hides(Client, &[2; 100]);
        for number in 3..6 {
            wire.sends(Client, [number; 100]).pass(-1);
        }
        for _ in 0..4 {
            wire.put(Server, &answer).pass(-1);
        }
        wire.pass(millis).data_at(Client, late, &[2; 100]).acks(Server);
        let logs = wire.logs();
        assert_eq!(logs.lines("gaps", &["cause"]), ["network_before"], "{millis} {is_stamped}");
        assert_eq!(logs.lines("conn", &["quality"]), [quality], "{millis} {is_stamped}");
    }
}
