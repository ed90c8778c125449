//! The rule, case by case, and the bounds.

use super::*;
use crate::key::Endpoint;
use crate::record::Proto;

const CLIENT: u8 = 1;
const SERVER: u8 = 80;

fn address(last: u8) -> Address {
    Address::from_v4([192, 0, 2, last])
}

const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_nanos(seconds * 1_000_000_000)
}

/// A connection that began at a second.
fn connection(uid: u128, from: u8, to: u8, start: i64) -> Connection {
    let end = |last, port| Endpoint { address: address(last), port };
    Connection {
        uid: Uid::new(uid),
        originator: end(from, 40_000),
        responder: end(to, 80),
        proto: Proto::Tcp,
        start: Some(at(start)),
        local: [false; 2],
    }
}

/// What told the client at a second that a name has these addresses, for some seconds.
fn resolution(time: i64, name: &str, addresses: &[u8], lifetime: i64) -> Resolution {
    Resolution {
        time: at(time),
        client: Role::Originator,
        name: name.as_bytes().into(),
        addresses: addresses.iter().copied().map(address).collect(),
        lifetime: Interval::from_nanos(lifetime * 1_000_000_000),
        rtt: Some(Interval::from_nanos(7)),
    }
}

/// Answers, each in a flow that is named by its place from 0 on.
fn answers(resolutions: &[Resolution]) -> Answers {
    let mut answers = Answers::new(&Limits::default());
    for (uid, resolution) in (0..).zip(resolutions) {
        answers.learn(&connection(uid, CLIENT, 53, 0), resolution, resolution.time);
    }
    answers
}

/// Which answer the client's connection followed that began at a second, and how old that was.
fn followed(answers: &Answers, start: i64, name: Option<&str>) -> Option<(Uid, i64)> {
    let answer =
        answers.followed(&connection(99, CLIENT, SERVER, start), name.map(str::as_bytes))?;
    assert_eq!(answer.dns_rtt, Some(Interval::from_nanos(7)));
    Some((answer.dns_uid?, answer.dns_age?.nanos() / 1_000_000_000))
}

#[test]
fn a_connection_follows_the_last_answer_before_it() {
    let ttl = 600;
    let answers = answers(&[
        resolution(10, "a.example", &[SERVER, SERVER + 1], ttl),
        resolution(20, "a.example", &[SERVER], ttl),
    ]);
    let uid = |number| Uid::new(number);
    assert_eq!(followed(&answers, 9, None), None);
    assert_eq!(followed(&answers, 10, None), Some((uid(0), 0)));
    assert_eq!(followed(&answers, 19, None), Some((uid(0), 9)));
    assert_eq!(followed(&answers, 20, None), Some((uid(1), 0)));
    assert_eq!(followed(&answers, 619, None), Some((uid(1), 599)));
    assert_eq!(followed(&answers, 620, None), None);
}

#[test]
fn others_answers_and_other_addresses_tell_nothing() {
    let answers = answers(&[resolution(10, "a.example", &[SERVER], 600)]);
    for (from, to) in [(CLIENT + 1, SERVER), (CLIENT, SERVER + 1), (SERVER, CLIENT)] {
        assert_eq!(answers.followed(&connection(99, from, to, 11), None), None);
    }
    let older = Connection { start: None, ..connection(99, CLIENT, SERVER, 11) };
    assert_eq!(answers.followed(&older, None), None);
}

#[test]
fn who_got_the_answer_is_its_client() {
    let mut answers = Answers::new(&Limits::default());
    let reply = Resolution { client: Role::Responder, ..resolution(1, "a", &[SERVER], 60) };
    answers.learn(&connection(5, 53, CLIENT, 0), &reply, at(1));
    assert_eq!(followed(&answers, 2, None), Some((Uid::new(5), 1)));
    // Multicast reaches everybody and so tells of nobody.
    let mut everybody = connection(6, 53, CLIENT, 0);
    everybody.responder.address = Address::from_v4([224, 0, 0, 251]);
    answers.learn(&everybody, &reply, at(1));
    assert_eq!(answers.resolved.len(), 1);
}

#[test]
fn answers_are_good_for_a_minute_at_least() {
    for (ttl, good_until) in [(0, 60), (59, 60), (61, 61), (86_400, 86_400), (-1, 60)] {
        let answers = answers(&[resolution(0, "a.example", &[SERVER], ttl)]);
        assert!(followed(&answers, good_until - 1, None).is_some(), "{ttl}");
        assert!(followed(&answers, good_until, None).is_none(), "{ttl}");
    }
}

#[test]
fn one_of_the_name_goes_before_later_ones() {
    let answers = answers(&[
        resolution(1, "a.example", &[SERVER], 60),
        resolution(2, "a.example", &[SERVER], 60),
        resolution(3, "b.example", &[SERVER], 60),
    ]);
    let uid = |name| followed(&answers, 5, name).map(|(uid, _)| uid);
    assert_eq!(uid(Some("A.example")), Some(Uid::new(1)));
    assert_eq!(uid(Some("b.example")), Some(Uid::new(2)));
    // That of a proxy.
    assert_eq!(uid(Some("c.example")), Some(Uid::new(2)));
    assert_eq!(uid(None), Some(Uid::new(2)));
    // One that is no longer good does not.
    assert_eq!(followed(&answers, 62, Some("a.example")), Some((Uid::new(2), 59)));
}

#[test]
fn the_oldest_are_given_up_and_counted_if_they_were_good() {
    let one = BYTES + "a.example".len();
    let limits = Limits { answer_bytes: 3 * one, ..Limits::default() };
    let mut answers = Answers::new(&limits);
    let learn = |answers: &mut Answers, time, addresses: &[u8]| {
        let resolution = resolution(time, "a.example", addresses, 60);
        answers.learn(&connection(time as u128, CLIENT, 53, 0), &resolution, at(time));
        assert!(answers.bytes() <= limits.answer_bytes);
        assert!(answers.last.len() <= answers.resolved.len());
    };
    learn(&mut answers, 0, &[SERVER]);
    learn(&mut answers, 1, &[SERVER]);
    learn(&mut answers, 2, &[7]);
    assert_eq!(followed(&answers, 0, None), Some((Uid::new(0), 0)));
    learn(&mut answers, 3, &[8]);
    assert_eq!((answers.given_up, followed(&answers, 0, None)), (1, None));
    assert_eq!(followed(&answers, 4, None), Some((Uid::new(1), 3)));
    learn(&mut answers, 61, &[9]);
    assert_eq!((answers.given_up, followed(&answers, 4, None)), (1, None));
    // More than there is room for.
    learn(&mut answers, 62, &[1, 2, 3, 4, 5, 6]);
    assert_eq!((answers.resolved.len(), answers.last.len()), (3, 3));
}

#[test]
fn no_look_is_long() {
    let count = MAX_LOOKS as i64;
    let resolutions: Vec<_> =
        (0..=count).map(|time| resolution(time, "a.example", &[SERVER], 600)).collect();
    let answers = answers(&resolutions);
    assert_eq!(followed(&answers, 1, None), Some((Uid::new(1), 0)));
    assert_eq!(followed(&answers, 0, None), None);
}

#[test]
fn hosts_are_told_from_their_ports() {
    for (host, name) in [
        ("a.example", "a.example"),
        ("a.example:8080", "a.example"),
        ("a.example.", "a.example"),
        ("a.example.:80", "a.example"),
        ("a.example:", "a.example"),
        ("[2001:db8::1]:80", "[2001:db8::1]"),
        ("a:b", "a:b"),
        ("", ""),
    ] {
        assert_eq!(host_name(host.as_bytes()), name.as_bytes(), "{host}");
    }
}
