//! The conversation against sessions that are made for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::file::Bodies;
use crate::file::HashKinds;
use crate::limits::Limits;
use crate::protocol::Bytes;
use crate::protocol::Successor;

/// What a session was told, as text.
type Told = Arc<Mutex<Vec<String>>>;

/// A session that answers by what it reads: `N<digit>` needs so many bytes, `W` waits, `S<digit>`
/// skips so many, `H` hands over, `X` contradicts, `D` is done, `P` panics; all else is consumed up
/// to a line's end. Who waits does so until the other side has said or done something. One without
/// verbs, which comes behind a handover, consumes lines.
#[derive(Debug)]
struct Scripted {
    told: Told,
    heard: [usize; 2],
    has_acted: [bool; 2],
    has_verbs: bool,
    calls: Arc<AtomicUsize>,
}

impl Scripted {
    fn new(told: &Told, calls: &Arc<AtomicUsize>, has_verbs: bool) -> Self {
        let (told, calls) = (Arc::clone(told), Arc::clone(calls));
        Self { told, heard: [0; 2], has_acted: [false; 2], has_verbs, calls }
    }

    fn note(&self, text: String) {
        self.told.lock().unwrap().push(text);
    }
}

impl Session for Scripted {
    fn bytes(&mut self, input: &Bytes<'_>, _: &mut Findings) -> Progress {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let digit = |at: usize| input.data.get(at).map(|b| usize::from(b.wrapping_sub(b'0')));
        let verb = if self.has_verbs { input.data[0] } else { b'-' };
        match (verb, digit(1)) {
            (b'N' | b'S', None) => return Progress::Need(2),
            (b'N', Some(len)) if input.data.len() < len => return Progress::Need(len),
            (b'S', Some(len)) => return Progress::Skip(len as u64),
            (b'W', _) if !self.has_acted[input.from.peer().index()] => return Progress::Wait,
            (b'H', _) => return Progress::Handover(1),
            (b'X', _) => return Progress::Contradicts("no_such_thing"),
            (b'D', _) => return Progress::Done,
            (b'P', _) => panic!("a fault of this session"),
            _ => {}
        }
        let Some(end) = input.data.iter().position(|&b| b == b'\n') else {
            return Progress::Need(input.data.len() + 1);
        };
        let line = String::from_utf8_lossy(&input.data[..end]).into_owned();
        self.heard[input.from.index()] += 1;
        self.has_acted[input.from.index()] = true;
        self.note(format!("{:?} {line}", input.from));
        Progress::Consumed(end + 1)
    }

    fn gap(&mut self, gap: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        self.has_acted[gap.from.index()] = true;
        self.note(format!("gap {} behind {:?}", gap.len, String::from_utf8_lossy(gap.unread)));
        if gap.len < 100 { GapAction::Continue } else { GapAction::Abort }
    }

    fn side_end(&mut self, end: &SideEnd<'_>, _: &mut Findings) {
        let unread = String::from_utf8_lossy(end.unread);
        self.has_acted[end.from.index()] = true;
        self.note(format!("{:?} ends behind {unread:?}", end.from));
    }

    fn end(&mut self, _: &mut Findings) {
        self.note("end".to_owned());
    }

    fn successor(&mut self) -> Option<Successor> {
        let session = Box::new(Self::new(&self.told, &self.calls, false));
        Some(Successor { protocol: "dns", session })
    }

    fn is_confirmed(&self) -> bool {
        self.heard != [0; 2]
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

struct Test {
    conversation: Conversation,
    told: Told,
    calls: Arc<AtomicUsize>,
    found: Findings,
    limits: Limits,
}

impl Test {
    fn new() -> Self {
        let told = Told::default();
        let mut conversation = Conversation::new(ProtocolSet::NONE);
        let calls = Arc::default();
        let session = Box::new(Scripted::new(&told, &calls, true));
        let id = ProtocolId::named("dns").unwrap();
        conversation.stage = Understanding::Speaking(Speaker { id, session, is_confirmed: false });
        let limits = Limits { session_bytes: 40, handovers: 1, ..Limits::default() };
        Self { conversation, told, calls, found: Findings::default(), limits }
    }

    fn take(&mut self, from: Role, piece: Piece<'_>) -> &mut Self {
        let context = SessionContext {
            limits: &self.limits,
            name: 1,
            port: 1,
            hashes: HashKinds::default(),
            bodies: Bodies::default(),
            is_midstream: false,
            is_multicast: false,
            crossing_port: None,
        };
        let event = Event { time: Timestamp::EPOCH, from, piece };
        self.conversation.take(&event, &context, &mut self.found);
        self
    }

    fn client(&mut self, bytes: &str) -> &mut Self {
        self.take(Role::Originator, Piece::Bytes(bytes.as_bytes()))
    }

    fn server(&mut self, bytes: &str) -> &mut Self {
        self.take(Role::Responder, Piece::Bytes(bytes.as_bytes()))
    }

    fn calls(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }

    fn oddities(&mut self) -> Vec<&'static str> {
        self.found.drain_oddities().map(|(oddity, _)| oddity.name).collect()
    }
}

#[test]
fn what_is_not_consumed_comes_again() {
    let mut test = Test::new();
    test.client("one\ntw").server("hi\n").client("o\n");
    assert_eq!(test.calls(), ["Originator one", "Responder hi", "Originator two"]);
    assert_eq!(test.conversation.services().names().as_deref(), Some("dns"));
}

#[test]
fn needed_bytes_come_together() {
    let mut test = Test::new();
    test.client("N").client("7").client("abc").client("\nN").client("2\n");
    assert_eq!(test.calls(), ["Originator N7abc", "Originator N2"]);
    // The last byte that is needed is enough, and nobody looks before it.
    let mut test = Test::new();
    test.client("N7").client("a").client("b").client("c").client("d");
    assert_eq!(test.calls.load(Ordering::Relaxed), 1);
    test.client("\n");
    assert_eq!(test.calls(), ["Originator N7abcd"]);
}

#[test]
fn one_side_can_wait_for_the_other() {
    let mut test = Test::new();
    test.client("W1\n").client("W2\n");
    assert!(test.calls().is_empty());
    test.server("go\n");
    assert_eq!(test.calls(), ["Responder go", "Originator W1", "Originator W2"]);
    assert_eq!(test.calls.load(Ordering::Relaxed), 4, "who waits is not asked");
}

#[test]
fn who_waits_is_heard_when_the_other_side_lacks_something_or_ends() {
    for piece in [Piece::Gap(3, GapCause::Capture), Piece::End] {
        let mut test = Test::new();
        test.client("W1\n").take(Role::Responder, piece);
        assert_eq!(test.calls().last().unwrap(), "Originator W1", "{piece:?}");
    }
}

#[test]
fn who_waited_is_heard_before_what_follows() {
    let mut test = Test::new();
    test.client("W1\n").server("go\nmore\nend\n");
    assert_eq!(test.calls(), ["Responder go", "Originator W1", "Responder more", "Responder end"]);
}

#[test]
fn skipped_bytes_are_not_kept_and_may_be_missing() {
    let mut test = Test::new();
    test.client("S9abc").take(Role::Originator, Piece::Gap(3, GapCause::Capture)).client("x\nok\n");
    // Nine bytes: S9abc, three that are missing, and x.
    assert_eq!(test.calls(), ["Originator ", "Originator ok"]);
    let mut test = Test::new();
    test.client("S9abc").take(Role::Originator, Piece::Gap(6, GapCause::Capture)).client("ok\n");
    assert_eq!(test.calls(), ["gap 2 behind \"\"", "Originator ok"]);
}

#[test]
fn a_gap_ends_what_was_begun() {
    let mut test = Test::new();
    test.client("half a").take(Role::Originator, Piece::Gap(7, GapCause::Capture)).client("line\n");
    assert_eq!(test.calls(), ["gap 7 behind \"half a\"", "Originator line"]);
    test.take(Role::Originator, Piece::Gap(100, GapCause::Capture)).client("more\n");
    assert_eq!(test.calls()[2..], ["gap 100 behind \"\"", "end"]);
    assert!(test.conversation.is_over());
}

#[test]
fn the_end_of_a_side_shows_its_rest() {
    let mut test = Test::new();
    test.client("rest").take(Role::Originator, Piece::End).server("bye\n");
    assert_eq!(test.calls(), ["Originator ends behind \"rest\"", "Responder bye"]);
    test.conversation.finish(&mut test.found);
    assert_eq!(test.calls().last().unwrap(), "end");
}

#[test]
fn a_session_that_contradicts_lets_go_with_an_oddity() {
    let mut test = Test::new();
    test.client("hello\nX").client("more\n");
    assert_eq!(test.calls(), ["Originator hello", "end"]);
    assert_eq!(test.oddities(), ["no_such_thing"]);
    assert_eq!(test.conversation.services().names(), None);
}

#[test]
fn a_session_that_is_done_keeps_its_service() {
    let mut test = Test::new();
    test.client("hello\nD").client("more\n");
    assert_eq!(test.calls(), ["Originator hello", "end"]);
    assert!(test.conversation.is_over() && test.oddities().is_empty());
    assert_eq!(test.conversation.services().names().as_deref(), Some("dns"));
}

#[test]
fn what_was_spoken_for_long_enough_is_told_although_something_contradicts() {
    for (lines, services) in [(1_023, None), (1_100, Some("dns"))] {
        let mut test = Test::new();
        for _ in 0..lines {
            test.client("something\n");
        }
        test.server("X");
        assert!(test.conversation.is_over());
        assert_eq!(test.oddities(), ["no_such_thing"]);
        assert_eq!(test.conversation.services().names().as_deref(), services, "{lines}");
    }
}

#[test]
fn a_session_that_needs_too_much_lets_go() {
    let mut test = Test::new();
    test.client("hello\n").client(&"a".repeat(41));
    assert!(test.conversation.is_over());
    assert_eq!(test.oddities(), ["session_needs_too_much"]);
    assert_eq!(test.conversation.heap_bytes(), 0);
    // So does one that announces it, and one that waits while too much comes.
    let mut test = Test::new();
    test.limits.session_bytes = 8;
    test.client("N9");
    assert!(test.conversation.is_over());
    let mut test = Test::new();
    test.client("W1\n").client(&"a".repeat(37));
    assert!(!test.conversation.is_over());
    test.client("a");
    assert!(test.conversation.is_over());
    assert_eq!(test.oddities(), ["session_needs_too_much"]);
}

#[test]
fn a_session_that_panics_is_contained_and_counted() {
    let mut test = Test::new();
    test.client("hello\nP").client("more\n").take(Role::Responder, Piece::End);
    assert_eq!(test.calls(), ["Originator hello"]);
    assert_eq!(test.found.panics, 1);
    assert!(test.conversation.is_over());
    let mut other = Test::new();
    other.client("all is well\n");
    assert_eq!((other.calls().len(), other.found.panics), (1, 0));
}

#[test]
fn a_session_that_hands_over_ends_and_the_rest_is_looked_at_anew() {
    let mut test = Test::new();
    test.server("left").client("hello\nHrest");
    assert_eq!(test.calls(), ["Originator hello", "end"]);
    // No protocol is wanted here, so nothing is found.
    assert!(test.conversation.is_over());
}

#[test]
fn what_follows_has_all_that_was_not_read_the_other_side_first() {
    let mut test = Test::new();
    test.conversation.wanted = ProtocolSet::ALL;
    test.server("W1\nle").client("Hrest\nmo").server("ft\n").client("re\n");
    let expected = ["end", "Responder W1", "Originator rest", "Responder left", "Originator more"];
    assert_eq!(test.calls(), expected);
    // And learns that a side has ended.
    for from in [Role::Originator, Role::Responder] {
        let mut test = Test::new();
        test.conversation.wanted = ProtocolSet::ALL;
        test.take(from, Piece::End).client("H").server("more\n");
        let end = format!("{from:?} ends behind \"\"");
        assert_eq!(test.calls(), [&*end, "end", &*end, "Responder more"]);
    }
}

#[test]
fn more_handovers_than_allowed_are_an_oddity() {
    let mut test = Test::new();
    test.conversation.handovers = 1;
    test.client("H");
    assert_eq!(test.oddities(), ["too_many_protocol_changes"]);
}
