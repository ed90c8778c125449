//! The hosts of a transfer, what they say, and what the network does on the way.

use core::time::Duration;

use netsniff_packet::Timestamp;
use netsniff_traffic::Random;
use netsniff_traffic::dialogue::{Dialogue, DialogueTrace, Leg, Setup, Side};
use netsniff_traffic::frame::Host;

use super::Choices;

pub(super) const CLIENT_PORT: u16 = 40_000;

/// A transfer, before it is played.
pub(super) struct Script {
    setup: Setup,
    exchanges: Vec<Exchange>,
    end: u8,
    /// How many bytes client and server say.
    pub(super) said: [u64; 2],
    /// Whether the network delays some frames, or doubles them.
    pub(super) has_disorder: bool,
    /// Whether a frame of client or server may be late by half of what its host needs to answer what passes
    /// the tap: then it passes for one that was sent again, which is told to be an assumption.
    pub(super) has_long_delays: [bool; 2],
    /// Whether both sides end it in order.
    pub(super) is_closed: bool,
}

/// A request with a body, its answer with another, and what the network loses of them.
struct Exchange {
    said: [Vec<u8>; 2],
    losses: Vec<(Side, Leg, u32, u32)>,
    pause: Duration,
}

impl Script {
    pub(super) fn choose(choices: &mut Choices<'_>) -> Self {
        let shape = choices.byte();
        let disorder = choices.byte();
        let setup = setup(choices, shape, disorder);
        let count = 1 + choices.byte() % 3;
        let exchanges: Vec<_> = (0..count).map(|at| Exchange::choose(choices, at)).collect();
        let end = choices.byte() % 8;
        let said = [0, 1].map(|side| {
            let bytes = exchanges.iter().map(|exchange| exchange.said[side].len() as u64);
            bytes.sum()
        });
        let has_disorder = disorder & 7 != 0;
        let (client, server) = setup.delay;
        let has_long_delays = [client, server].map(|delay| has_disorder && setup.jitter >= delay);
        Self { has_long_delays, setup, exchanges, end, said, has_disorder, is_closed: end > 1 }
    }

    /// What a tap on the way sees; `in_peace` without losses, delays and doubles.
    pub(super) fn play(&self, in_peace: bool) -> DialogueTrace {
        let mut setup = self.setup.clone();
        if in_peace {
            (setup.reordering, setup.reordering_behind, setup.duplication) = (0.0, 0.0, 0.0);
        }
        let mut dialogue = Dialogue::new(setup);
        dialogue.connect();
        for exchange in &self.exchanges {
            if !in_peace {
                for &(side, leg, passing, count) in &exchange.losses {
                    dialogue.lose(side, leg, passing, count);
                }
            }
            dialogue.pause(exchange.pause);
            dialogue.say(Side::Client, &exchange.said[0]);
            dialogue.say(Side::Server, &exchange.said[1]);
        }
        let first = if self.end & 1 == 0 { Side::Client } else { Side::Server };
        if self.end == 1 {
            dialogue.reset(first);
        } else if self.end > 1 {
            dialogue.close(first).close(first.other());
        }
        dialogue.finish()
    }
}

fn setup(choices: &mut Choices<'_>, shape: u8, disorder: u8) -> Setup {
    let host = |last: u8, port| {
        let v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        let address = if shape & 1 == 0 { [192, 0, 2, last].into() } else { v6.into() };
        Host::new(address, port)
    };
    let probability = |bit: u8| if disorder & bit == 0 { 0.0 } else { 0.05 };
    let micros =
        |choices: &mut Choices<'_>| Duration::from_micros(100 + u64::from(choices.below(40_000)));
    let sequence = |choices: &mut Choices<'_>| {
        let near_end = if choices.byte() & 1 == 0 { 0xffff_0000 } else { 0x1234_0000 };
        near_end | choices.below(1 << 16)
    };
    Setup {
        client: host(1, CLIENT_PORT),
        server: host(2, 80),
        start: Timestamp::from_secs_nanos(1_767_225_600, 0),
        delay: (micros(choices), micros(choices)),
        reordering: probability(1),
        reordering_behind: probability(2),
        duplication: probability(4),
        jitter: Duration::from_micros(if disorder & 8 == 0 { 300 } else { 3_000 }),
        seed: choices.byte().into(),
        mss: [536, 1220, 1460, 100][usize::from(shape >> 1 & 3)],
        window_scale: [None, Some(7)][usize::from(shape >> 3 & 1)],
        sack: shape & 16 != 0,
        timestamps: shape & 32 != 0,
        window: 65_535,
        in_flight: [1_000, 14_600][usize::from(shape >> 6 & 1)],
        initial_sequence: (sequence(choices), sequence(choices)),
        ..Setup::default()
    }
}

impl Exchange {
    fn choose(choices: &mut Choices<'_>, number: u8) -> Self {
        let lens = [choices.below(3_000), choices.below(12_000)];
        let [request, answer] = [0, 1].map(|side| {
            let len = lens[side];
            let begin = match side {
                0 => format!("POST /upload-{number} HTTP/1.1\r\nHost: example.org\r\n"),
                _ => "HTTP/1.1 200 OK\r\n".to_owned(),
            };
            let head = format!("{begin}Content-Length: {len}\r\n\r\n");
            let mut random = Random::new(u64::from(number) * 2 + side as u64);
            let body = (0..len).map(|_| random.below(256) as u8);
            head.into_bytes().into_iter().chain(body).collect()
        });
        let losses = choices.byte();
        let losses = (0..losses.saturating_sub(0xa0) % 4).map(|_| {
            let kind = choices.byte();
            let side = if kind & 1 == 0 { Side::Client } else { Side::Server };
            let leg = if kind & 2 == 0 { Leg::Near } else { Leg::Far };
            (side, leg, u32::from(kind >> 4), 1 + u32::from(kind >> 2 & 1))
        });
        let losses = losses.collect();
        let pause = Duration::from_millis([0, 1, 30, 7_000][usize::from(choices.byte() & 3)]);
        Self { said: [request, answer], losses, pause }
    }
}
