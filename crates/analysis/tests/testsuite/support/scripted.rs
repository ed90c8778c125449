//! Conversations by hand, cut in every way.

use netsniff_analysis::protocol::Role;
use netsniff_traffic::Random;

use crate::conversations::{self, Cuts, Flow, Outcome, Turn, What, play};

/// What is said in turn, at 1 ms, 2 ms and so on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script(Vec<Turn>);

impl Script {
    /// The client says something.
    pub(crate) fn client(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.turn(Role::Originator, What::Bytes(bytes.as_ref().to_vec()))
    }

    /// The server says something.
    pub(crate) fn server(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.turn(Role::Responder, What::Bytes(bytes.as_ref().to_vec()))
    }

    /// Bytes of a side are missing.
    pub(crate) fn gap(&mut self, from: Role, len: u64) -> &mut Self {
        self.turn(from, What::Gap(len))
    }

    fn turn(&mut self, from: Role, what: What) -> &mut Self {
        self.0.push(Turn { from, what });
        self
    }

    /// What sessions make of it, which must not depend on how it is cut.
    pub(crate) fn heard(&self, port: u16) -> Heard {
        let flow = Flow::at(port);
        let whole = play(&self.0, flow, Cuts::None);
        assert_eq!(play(&self.0, flow, Cuts::Everywhere), whole, "byte by byte");
        for role in [Role::Originator, Role::Responder] {
            let bytes =
                self.0.iter().filter(|turn| turn.from == role).map(|turn| match &turn.what {
                    What::Bytes(bytes) => bytes.len(),
                    What::Gap(_) | What::End => 0,
                });
            for at in 1..bytes.sum() {
                assert_eq!(play(&self.0, flow, Cuts::At(role, at)), whole, "{role:?} cut at {at}");
            }
        }
        Heard(whole)
    }

    /// Spoils it many times; no session may fail, and cuts may change nothing.
    pub(crate) fn spoil(&self, port: u16, rounds: u64) {
        let input = conversations::input(port, &self.0);
        let mut random = Random::new(rounds);
        for _ in 0..rounds {
            let mut input = input.clone();
            for _ in 0..1 + random.below(6) {
                let at = random.below(input.len() as u64) as usize;
                input[at] = random.below(256) as u8;
            }
            input.truncate(input.len() - random.below(input.len() as u64 / 4 + 1) as usize);
            conversations::check(netsniff_analysis::protocol::ProtocolSet::ALL, &input);
        }
    }
}

/// What sessions made of a script.
#[derive(Debug)]
pub(crate) struct Heard(Outcome);

impl Heard {
    /// The protocols.
    pub(crate) fn services(&self) -> Option<&str> {
        self.0.services.as_deref()
    }

    /// Some columns of the rows of a log, with `-` for what is unset.
    pub(crate) fn cells(&self, log: &str, names: &[&str]) -> Vec<Vec<String>> {
        let rows = self.0.lines.iter().filter_map(|line| line.strip_prefix(&format!("{log} ")));
        rows.map(|row| names.iter().map(|name| cell(row, name)).collect()).collect()
    }

    /// The oddities, each behind the name of its protocol.
    pub(crate) fn oddities(&self) -> Vec<&str> {
        self.0.oddities.iter().map(String::as_str).collect()
    }
}

/// A cell of a row: values may have spaces in them, but no ` name=`.
fn cell(row: &str, name: &str) -> String {
    let row = format!(" {row}");
    let Some((_, rest)) = row.split_once(&format!(" {name}=")) else { return "-".to_owned() };
    let mut value = rest.split(' ').next().unwrap_or_default().to_owned();
    for word in rest.split(' ').skip(1) {
        if word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_of_a_name)) {
            break;
        }
        value = format!("{value} {word}");
    }
    value
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.')
}
