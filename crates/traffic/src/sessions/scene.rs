//! What a session is played on: two hosts, a path between them, and chance.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use netsniff_packet::Timestamp;

use super::Kind;
use super::hosts::Settings;
use crate::Random;
use crate::dialogue::{Dialogue, Seen, Setup, Side};
use crate::frame::Host;

/// Servers of each kind.
const SERVERS: u64 = 16;

/// A host's ports, as Linux gives them out.
const FIRST_PORT: u16 = 32_768;
const LAST_PORT: u16 = 60_999;

/// A session under way.
pub(super) struct ActiveSession<'a> {
    pub(super) random: &'a mut Random,
    settings: &'a Settings,
    kind: Kind,
    /// The client's number, and its next port.
    client: u32,
    port: &'a mut u16,
    /// The number of the server of its kind.
    server: u64,
    delay: (Duration, Duration),
    now: Timestamp,
    frames: Vec<Seen>,
}

impl<'a> ActiveSession<'a> {
    /// A session of a kind that a client begins.
    pub(super) fn new(
        settings: &'a Settings,
        kind: Kind,
        client: u32,
        port: &'a mut u16,
        start: Timestamp,
        random: &'a mut Random,
    ) -> Self {
        let server = random.below(SERVERS);
        let near = Duration::from_nanos(100_000 + random.below(900_000));
        // Servers are 2 to 150 ms away, most of them near.
        let far = (2e6 + random.exponential() * 15e6).min(150e6) as u64;
        let haste = settings.profile.haste();
        let delay = (near / haste, Duration::from_nanos(far) / haste);
        let frames = Vec::new();
        Self { random, settings, kind, client, port, server, delay, now: start, frames }
    }

    /// The name of the server.
    pub(super) fn name(&self) -> String {
        format!("{}{}.example.com", self.kind.name(), self.server)
    }

    /// The address of the server.
    pub(super) fn server(&self) -> IpAddr {
        self.address_of(self.kind)
    }

    fn address_of(&self, kind: Kind) -> IpAddr {
        let number = (kind as u64 * SERVERS + self.server + 1) as u16;
        if self.settings.is_ipv6 {
            return IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0x5e, 0, 0, 0, number));
        }
        IpAddr::V4(Ipv4Addr::new(198, 51, 100, number as u8))
    }

    fn client_address(&self) -> IpAddr {
        let number = self.client + 1;
        if self.settings.is_ipv6 {
            let [high, low] = [(number >> 16) as u16, number as u16];
            return IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0xc1, 0, 0, high, low));
        }
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number))
    }

    /// Begins a connection to the server, to its usual port or another one.
    pub(super) fn connection(&mut self, port: Option<u16>) -> Dialogue {
        let server = Host::new(self.server(), port.unwrap_or(self.kind.port()));
        self.dialogue(server)
    }

    fn dialogue(&mut self, server: Host) -> Dialogue {
        let client = Host::new(self.client_address(), *self.port);
        *self.port = if *self.port >= LAST_PORT { FIRST_PORT } else { *self.port + 1 };
        let initial_sequence = (self.random.next_u64() as u32, self.random.next_u64() as u32);
        let network = self.settings.network;
        let by_leg = 1.0 - (1.0 - network.loss).max(0.0).sqrt();
        Dialogue::new(Setup {
            client,
            server: Host { ttl: 55, ..server },
            start: self.now,
            delay: self.delay,
            // What is lost on one leg or on the other is as much as was asked for.
            loss: (by_leg, by_leg),
            reordering: network.reordering,
            duplication: network.duplication,
            jitter: network.max_delay,
            seed: self.random.next_u64(),
            in_flight: self.settings.profile.in_flight(),
            delays_acknowledgements: self.settings.profile.delays_acknowledgements(),
            mss: if self.settings.is_ipv6 { 1440 } else { 1460 },
            initial_sequence,
            ..Setup::default()
        })
    }

    /// Ends a connection: the frames of it are the session's.
    pub(super) fn end(&mut self, dialogue: Dialogue) {
        self.now = self.now.max(dialogue.now());
        self.frames.extend(dialogue.finish().seen);
    }

    /// Looks the name of the server up, as half of the sessions do: for the others it is known. `false` where the
    /// network lost each question or answer, so that nobody knows where to connect to.
    pub(super) fn look_up(&mut self) -> bool {
        let is_known = !self.random.chance(0.5);
        is_known || super::dns::ask(self, self.name(), Some(self.server()))
    }

    /// Begins a conversation with a server of names.
    pub(super) fn resolver(&mut self) -> Dialogue {
        let server = Host::new(self.address_of(Kind::Dns), Kind::Dns.port());
        self.dialogue(server)
    }

    /// The frames so far, in order of time.
    pub(super) fn take_frames(&mut self) -> Vec<Seen> {
        let mut frames = core::mem::take(&mut self.frames);
        frames.sort_by_key(|seen| seen.timestamp);
        frames
    }

    /// Time that a person or a program takes, exponentially distributed.
    pub(super) fn moment(&mut self, mean: Duration) -> Duration {
        (mean / self.settings.profile.haste()).mul_f64(self.random.exponential().min(10.0))
    }

    /// A size with a heavy tail, as of files (Pareto, shape 1.2), as large as the profile has them.
    pub(super) fn size(&mut self, least: usize, most: usize) -> usize {
        let content = self.settings.profile.content();
        let (least, most) = (least * content, most * content);
        let uniform = (self.random.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
        ((least as f64 * uniform.powf(-1.0 / 1.2)) as usize).clamp(least, most)
    }

    /// Bytes that mean nothing.
    pub(super) fn noise(&mut self, len: usize) -> Vec<u8> {
        let mut noise = Vec::with_capacity(len + 8);
        while noise.len() < len {
            noise.extend(self.random.next_u64().to_be_bytes());
        }
        noise.truncate(len);
        noise
    }

    pub(super) fn text(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 8] =
            ["packet", "loss", "is", "never", "silent", "where", "counters", "agree"];
        let mut text = Vec::with_capacity(len + 16);
        let mut line = 0;
        while text.len() < len {
            let word = WORDS[self.random.below(WORDS.len() as u64) as usize];
            text.extend_from_slice(word.as_bytes());
            line += word.len() + 1;
            if line > 64 {
                text.extend_from_slice(b"\r\n");
                line = 0;
            } else {
                text.push(b' ');
            }
        }
        text.truncate(len);
        text
    }
}

/// Lets the two sides say lines in turn, with the time between that programs take.
pub(super) fn exchange(
    scene: &mut ActiveSession<'_>,
    dialogue: &mut Dialogue,
    lines: &[(Side, String)],
) {
    for (side, line) in lines {
        let pause = scene.moment(Duration::from_millis(2));
        dialogue.pause(pause).say(*side, line.as_bytes());
    }
}
