//! The law of split invariance: however streams are cut into segments, every protocol of the list
//! finds the same.

use crate::conversations;
use crate::support;
use std::collections::BTreeSet;
use std::path::Path;

use netsniff_analysis::protocol::{Protocol, ProtocolId, ProtocolSet, Role};
use netsniff_traffic::Random;

use crate::conversations::{Cuts, Flow, Outcome, Turn, What, play};
use crate::dialogues::{Dialogue, dialogues};

/// Up to here every position is tried alone.
const EVERYWHERE: usize = 4_096;

/// Seeded sets of cuts for streams that are longer.
const RANDOM_SETS: u64 = 200;

/// Bytes of each side behind `EVERYWHERE` that stay when single positions are tried.
const MARGIN: usize = 1_024;

#[derive(Default)]
struct Tried {
    dialogues: usize,
    positions: usize,
    sets: usize,
    lines: usize,
    services: BTreeSet<String>,
}

impl Tried {
    fn add(&mut self, dialogue: &Dialogue, name: &str) {
        let Dialogue { flow, turns } = dialogue;
        let whole = play(turns, *flow, Cuts::None);
        self.dialogues += 1;
        self.lines += whole.lines.len();
        let services = whole.services.as_deref().unwrap_or_default();
        self.services.extend(services.split(',').map(str::to_owned));
        let byte_by_byte = play(turns, *flow, Cuts::Everywhere);
        assert_same(&byte_by_byte, &whole, name, "byte by byte");
        self.positions(turns, *flow, name);
        if lengths(turns).into_iter().any(|len| len > EVERYWHERE) {
            for seed in 0..RANDOM_SETS {
                self.sets += 1;
                let cut = play(turns, *flow, Cuts::Seeded(Random::new(seed)));
                assert_same(&cut, &whole, name, &format!("cut by the seed {seed}"));
            }
        }
    }

    /// Cuts at every position of the begin of either side.
    fn positions(&mut self, turns: &[Turn], flow: Flow, name: &str) {
        let begin = truncated(turns, EVERYWHERE + MARGIN);
        let whole = play(&begin, flow, Cuts::None);
        for role in [Role::Originator, Role::Responder] {
            for at in 1..lengths(&begin)[role.index()].min(EVERYWHERE + 1) {
                self.positions += 1;
                let cut = play(&begin, flow, Cuts::At(role, at));
                assert_same(&cut, &whole, name, &format!("cut at {at} of the {role:?}"));
            }
        }
    }
}

fn assert_same(cut: &Outcome, whole: &Outcome, name: &str, how: &str) {
    if cut == whole {
        return;
    }
    let differs = |(a, b): &(&String, &String)| a != b;
    let first = cut.lines.iter().zip(&whole.lines).find(differs);
    panic!(
        "{name}, {how}: {} lines instead of {}, services {:?} and {:?}, oddities {:?} and {:?}; the first that differ:\n{first:#?}",
        cut.lines.len(),
        whole.lines.len(),
        cut.services,
        whole.services,
        cut.oddities,
        whole.oddities,
    );
}

/// Bytes of both sides.
fn lengths(turns: &[Turn]) -> [usize; 2] {
    let mut lengths = [0; 2];
    for turn in turns {
        if let What::Bytes(bytes) = &turn.what {
            lengths[turn.from.index()] += bytes.len();
        }
    }
    lengths
}

/// The begin of a conversation, with at most so many bytes of either side.
fn truncated(turns: &[Turn], most: usize) -> Vec<Turn> {
    let mut left = [most; 2];
    let mut begin = Vec::new();
    for turn in turns {
        let left = &mut left[turn.from.index()];
        match &turn.what {
            What::Bytes(bytes) => {
                let bytes = &bytes[..bytes.len().min(*left)];
                *left -= bytes.len();
                if !bytes.is_empty() {
                    begin.push(Turn { from: turn.from, what: What::Bytes(bytes.to_vec()) });
                }
            }
            What::Gap(_) | What::End if *left > 0 => begin.push(turn.clone()),
            What::Gap(_) | What::End => {}
        }
    }
    begin
}

fn try_all(paths: &[std::path::PathBuf]) -> Tried {
    let mut tried = Tried::default();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for dialogue in dialogues(&support::read(path)) {
            tried.add(&dialogue, &format!("{name}, port {}", dialogue.flow.port));
        }
    }
    eprintln!(
        "{} conversations, {} single cuts, {} sets of cuts, {} lines; services {:?}",
        tried.dialogues, tried.positions, tried.sets, tried.lines, tried.services
    );
    tried
}

#[test]
fn cuts_change_nothing_in_what_was_recorded() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let tried = try_all(&[recorded.join("office.pcapng")]);
    assert!(tried.dialogues > 70 && tried.lines >= 2, "too little to be sure");
}

#[test]
fn spoiled_conversations_fail_no_session_and_cuts_change_nothing() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let mut random = Random::new(1);
    let mut lines = 0;
    for dialogue in dialogues(&support::read(&recorded.join("office.pcapng"))) {
        let turns = truncated(&dialogue.turns, EVERYWHERE);
        let input = conversations::input(dialogue.flow.port, &turns);
        for _ in 0..20 {
            let mut input = input.clone();
            for _ in 0..1 + random.below(8) {
                let at = random.below(input.len() as u64) as usize;
                input[at] = random.below(256) as u8;
            }
            input.truncate(input.len() - random.below(input.len() as u64 / 4 + 1) as usize);
            lines += conversations::check(ProtocolSet::ALL, &input);
        }
    }
    eprintln!("{lines} lines");
    assert!(lines > 100, "{lines} lines");
}

/// A conversation of XMPP that changes to TLS, or whose client goes on without it; the corpus has none.
fn xmpp(is_secure: bool) -> Dialogue {
    let hello =
        [&[0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0]].concat();
    let wish = if is_secure { &b"<starttls a='>'></starttls>"[..] } else { b"<auth/>" };
    let said = [
        (
            Role::Originator,
            &b"<?xml version='1.0'?>\n<stream:stream to='a>b' xmlns='jabber:client'>"[..],
        ),
        (Role::Responder, b"<stream:stream><stream:features><starttls/> </stream:features>"),
        (Role::Originator, wish),
        (Role::Responder, b"<proceed a=\"'\"></proceed>"),
        (Role::Originator, &hello),
    ];
    let turn = |(from, bytes): (Role, &[u8])| Turn { from, what: What::Bytes(bytes.to_vec()) };
    let flow = Flow::at(5222);
    Dialogue { flow, turns: said.map(turn).into() }
}

#[test]
fn cuts_change_nothing_in_xmpp() {
    for (is_secure, services) in [(true, "xmpp,ssl"), (false, "xmpp")] {
        let dialogue = xmpp(is_secure);
        let whole = play(&dialogue.turns, dialogue.flow, Cuts::None);
        assert_eq!(whole.services.as_deref(), Some(services));
        Tried::default().add(&dialogue, services);
    }
}

#[test]
fn cuts_change_nothing_in_the_corpus() {
    let Some(root) = support::corpus() else { return };
    let mut tried = try_all(&support::captures(&root));
    tried.add(&xmpp(true), "xmpp");
    assert!(tried.dialogues > 150 && tried.positions > 50_000, "too little to be sure");
    let silent = ProtocolSet::ALL.iter().map(ProtocolId::protocol).filter(|protocol| {
        !protocol.tcp_ports().is_empty() && !tried.services.contains(protocol.name())
    });
    let silent: Vec<_> = silent.map(Protocol::name).collect();
    assert!(silent.is_empty(), "no conversation of the corpus is in {silent:?}");
}
