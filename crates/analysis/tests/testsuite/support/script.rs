//! Conversations written down line by line, played whole and cut in every way.

use netsniff_analysis::protocol::Role;
use netsniff_traffic::Random;

use crate::conversations::{Cuts, Flow, Outcome, Turn, What, play};

/// The client says something.
pub(crate) fn client(text: &str) -> Turn {
    Turn { from: Role::Originator, what: What::Bytes(text.as_bytes().to_vec()) }
}

/// The server says something.
pub(crate) fn server(text: &str) -> Turn {
    Turn { from: Role::Responder, what: What::Bytes(text.as_bytes().to_vec()) }
}

/// So many bytes of one side are missing.
pub(crate) fn gap(from: Role, len: u64) -> Turn {
    Turn { from, what: What::Gap(len) }
}

/// What is made of a conversation with a server's `port`, which must not depend on how it is cut.
pub(crate) fn outcome_of(port: u16, turns: &[Turn]) -> Outcome {
    let flow = Flow::at(port);
    let whole = play(turns, flow, Cuts::None);
    assert_eq!(play(turns, flow, Cuts::Everywhere), whole, "byte by byte");
    for from in [Role::Originator, Role::Responder] {
        let len = |turn: &Turn| match &turn.what {
            What::Bytes(bytes) if turn.from == from => bytes.len(),
            _ => 0,
        };
        for at in 1..turns.iter().map(len).sum::<usize>().min(4_096) {
            assert_eq!(play(turns, flow, Cuts::At(from, at)), whole, "cut at {at} of {from:?}");
        }
    }
    whole
}

/// The value of a column in each row of a log, `-` where it is unset.
pub(crate) fn column(outcome: &Outcome, log: &str, name: &str) -> Vec<String> {
    let rows = outcome.lines.iter().filter_map(|line| line.strip_prefix(log)?.strip_prefix(' '));
    let key = format!(" {name}=");
    rows.map(|row| {
        let row = format!(" {row}");
        let Some((_, value)) = row.split_once(&key) else { return "-".to_owned() };
        // A value ends where the next column begins: blanks stand in values, too.
        let is_name = |word: &str| {
            word.split_once('=').is_some_and(|(name, _)| {
                !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_lowercase() || b"_.".contains(&b))
            })
        };
        let words: Vec<_> = value.split(' ').collect();
        let end =
            words.iter().skip(1).position(|word| is_name(word)).map_or(words.len(), |at| at + 1);
        words[..end].join(" ")
    })
    .collect()
}

/// Plays a conversation many times with bytes changed, left out and doubled at random: no session
/// may fail, and how it is cut must not matter.
pub(crate) fn mutate(port: u16, turns: &[Turn], times: u64) {
    let flow = Flow::at(port);
    for seed in 0..times {
        let mut random = Random::new(seed);
        let mut turns = turns.to_vec();
        for _ in 0..=random.below(6) {
            let at = random.below(turns.len() as u64) as usize;
            let from = turns[at].from;
            let What::Bytes(bytes) = &mut turns[at].what else { continue };
            let place = random.below(bytes.len().max(1) as u64) as usize;
            match random.below(6) {
                0 => drop(bytes.drain(..place)),
                1 => bytes.truncate(place),
                2 => bytes.insert(place, random.below(256) as u8),
                3 => bytes.extend_from_within(place..),
                4 => turns.insert(at, gap(from, 1 + random.below(300))),
                _ => {
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte ^= 1 << random.below(8);
                    }
                }
            }
        }
        let whole = play(&turns, flow, Cuts::None);
        assert_eq!(play(&turns, flow, Cuts::Everywhere), whole, "seed {seed}");
        assert_eq!(play(&turns, flow, Cuts::Seeded(random)), whole, "seed {seed}");
    }
}
