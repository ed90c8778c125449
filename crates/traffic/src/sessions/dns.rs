//! DNS (RFC 1035) over UDP.

use core::net::IpAddr;
use core::time::Duration;

use super::scene::ActiveSession;
use crate::dialogue::Side;

/// Types of resource records (RFC 1035, 3.2.2).
const A: u16 = 1;
const AAAA: u16 = 28;

/// The class of the Internet.
const IN: u16 = 1;

/// Response, recursion desired and available; and the same for a name that does not exist.
const QUERY: u16 = 0x0100;
const ANSWER: u16 = 0x8180;
const NO_SUCH_NAME: u16 = 0x8183;

/// How often resolvers ask, and how long they wait for the answer: as resolv.conf(5) has it where nothing else is set.
const ATTEMPTS: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn play(scene: &mut ActiveSession<'_>) {
    let number = scene.random.below(10_000);
    // One in thirty names is mistyped.
    let exists = !scene.random.chance(1.0 / 30.0);
    let address = exists.then(|| scene.server());
    ask(scene, format!("host{number}.example.com"), address);
}

/// Asks for the address of a name until there is an answer; `false` where none came.
pub(super) fn ask(scene: &mut ActiveSession<'_>, name: String, address: Option<IpAddr>) -> bool {
    let id = scene.random.next_u64() as u16;
    let kind = if address.unwrap_or_else(|| scene.server()).is_ipv4() { A } else { AAAA };
    let question = question(&name, kind);
    let mut query = header(id, QUERY, 0);
    query.extend(&question);
    let mut answer = header(
        id,
        if address.is_some() { ANSWER } else { NO_SUCH_NAME },
        address.iter().len() as u16,
    );
    answer.extend(&question);
    if let Some(address) = address {
        // The name is the one of the question, which begins behind the header of 12 bytes.
        answer.extend([0xc0, 12]);
        answer.extend([kind.to_be_bytes(), IN.to_be_bytes()].concat());
        answer.extend((60 + scene.random.below(3540) as u32).to_be_bytes());
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        answer.extend((bytes.len() as u16).to_be_bytes());
        answer.extend(bytes);
    }
    let mut dialogue = scene.resolver();
    let is_answered = (0..ATTEMPTS).any(|_| {
        let asked = dialogue.now();
        if dialogue.datagram(Side::Client, &query).has_arrived() {
            let thought = scene.moment(Duration::from_millis(3));
            if dialogue.pause(thought).datagram(Side::Server, &answer).has_arrived() {
                return true;
            }
        }
        dialogue.pause_until(asked + PATIENCE);
        false
    });
    scene.end(dialogue);
    is_answered
}

/// One question and so many answers.
fn header(id: u16, flags: u16, answers: u16) -> Vec<u8> {
    [id, flags, 1, answers, 0, 0].map(u16::to_be_bytes).concat()
}

fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut question = Vec::new();
    for label in name.split('.') {
        question.push(label.len() as u8);
        question.extend(label.as_bytes());
    }
    question.push(0);
    question.extend([kind.to_be_bytes(), IN.to_be_bytes()].concat());
    question
}
