//! DNS over TCP, where some of it is missing.

use crate::support::scripted::Script;
use netsniff_analysis::protocol::Role;

const ROW: [&str; 4] = ["trans_id", "query", "rcode_name", "answers"];

/// A message about `a.example` with its length before it.
fn framed(id: u8, is_reply: bool) -> Vec<u8> {
    let flags = if is_reply { 0x85 } else { 1 };
    let mut message = vec![0, id, flags, 0, 0, 1, 0, u8::from(is_reply), 0, 0, 0, 0];
    message.extend(b"\x01a\x07example\x00\0\x01\0\x01");
    if is_reply {
        message.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, id]);
    }
    [&[0, message.len() as u8], message.as_slice()].concat()
}

fn answered(id: u8) -> [String; 4] {
    [id.to_string(), "a.example".into(), "NOERROR".into(), format!("192.0.2.{id},")]
}

#[test]
fn the_other_side_is_read_on() {
    let mut turns = Script::default();
    turns.client(framed(1, false)).gap(Role::Originator, 35).server(framed(1, true));
    // Nobody knows whether a message begins here.
    turns.client(framed(2, false));
    let heard = turns.heard(53);
    assert_eq!(heard.cells("dns", &ROW), [answered(1)]);
    assert_eq!((heard.services(), heard.oddities()), (Some("dns"), vec![]));
}

#[test]
fn what_is_missing_of_a_message_costs_that_message() {
    let broken = framed(2, true);
    let mut turns = Script::default();
    turns.client([framed(1, false), framed(3, false)].concat());
    turns.server([&framed(1, true), &broken[..9]].concat()).gap(Role::Responder, 11);
    turns.server([&broken[20..], &framed(3, true)].concat());
    assert_eq!(turns.heard(53).cells("dns", &ROW), [answered(1), answered(3)]);
    turns.spoil(53, 300);
}
