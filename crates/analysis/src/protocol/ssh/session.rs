//! An SSH connection from its identification strings to its login.

use super::algorithms::{Agreed, HostKeyMessage, MAX_NAMES, Offer, Offerer};
use super::authentication::Authentication;
use super::login::Login;
use super::packet::{self, KEXINIT, NEWKEYS, Packet, SESSION_KEY};
use super::version::{self, MAX_LINE, Speaks, Version};
use crate::protocol::syntax::line::{Bounded, bounded};
use crate::protocol::{Bytes, Findings, Progress, Role, Session};
use crate::weird::{Detail, Once};

/// Bytes of a string beyond which it is odd (`SSH::max_string_length`).
const MAX_STRING: u32 = 2 << 20;

/// What was seen of a connection.
#[derive(Debug, Default)]
pub(super) struct SshSession {
    /// Whether the port told the protocol.
    is_expected: bool,
    login: Option<Box<Login>>,
    /// What each side says at present, by [`Role`].
    stages: [Stage; 2],
    /// The first offers, until both are there.
    offers: [Option<Box<Offer>>; 2],
    /// The server's message with its host key, once the key exchange is known.
    host_key_message: Option<HostKeyMessage>,
    told: Once,
    authentication: Authentication,
    is_confirmed: bool,
}

/// What a side says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// The identification string (RFC 4253, 4.2).
    #[default]
    Identification,
    /// Packets that anybody can read.
    KeyExchange,
    /// What only the other side can read.
    Encrypted,
}

impl SshSession {
    /// A connection of which nothing was seen yet.
    pub(super) fn new(is_expected: bool) -> Self {
        Self { is_expected, ..Self::default() }
    }

    fn identification(&mut self, input: &Bytes<'_>) -> Progress {
        let (line, len) = match bounded(input.data, MAX_LINE) {
            Bounded::Found(line, len) => (line, len),
            Bounded::Unfinished => return Progress::Need(input.data.len() + 1),
            Bounded::TooLong => return Progress::Contradicts("malformed_ssh_identification"),
        };
        if !version::is_identification(line) {
            // A server may say other lines before (RFC 4253, 4.2).
            return match input.from {
                Role::Originator => Progress::Contradicts("malformed_ssh_identification"),
                Role::Responder => Progress::Consumed(len),
            };
        }
        let login = self.login.get_or_insert_with(|| Box::new(Login::begun(input.time)));
        if !self.is_expected {
            // As in Zeek, a login begins when it is known for one.
            login.row.ts = input.time;
        }
        *login.identification(input.from) = Some(line.into());
        self.stages[input.from.index()] = Stage::KeyExchange;
        Progress::Consumed(len)
    }

    /// The version that a side speaks; `None` while that depends on the other side.
    fn version(&self, side: Role) -> Option<Version> {
        let login = self.login.as_ref()?;
        let (own, peer) = (login.speaks(side), side.peer());
        match own.map(Speaks::alone) {
            Some(None) if !login.is_identified(peer) => None,
            Some(None) => {
                login.speaks(peer).and_then(|peer| own?.agreed(peer)).or(Some(Version::Two))
            }
            // A version that nobody knows is taken for the latest.
            alone => alone.flatten().or(Some(Version::Two)),
        }
    }

    fn packet(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let Some(version) = self.version(input.from) else { return Progress::Wait };
        let packet = match version {
            Version::One => packet::first(input.data),
            Version::Two => packet::second(input.data),
        };
        let (number, body, len) = match packet {
            Packet::Message { number, body, len } => (number, body, len),
            Packet::Needs(len) => return Progress::Need(len),
            Packet::Malformed => return Progress::Contradicts("malformed_ssh_packet"),
        };
        match version {
            Version::One => {
                self.stages[input.from.index()] = Stage::Encrypted;
                if (input.from, number) == (Role::Originator, SESSION_KEY) {
                    // Sizes tell nothing in SSH 1.
                    self.is_confirmed = true;
                    return Progress::Done;
                }
            }
            Version::Two if !self.message(input.from, number, body, found) => {
                return Progress::Contradicts("malformed_ssh_packet");
            }
            Version::Two => {}
        }
        Progress::Consumed(len)
    }

    /// Takes a message of SSH 2. Returns whether it can be one.
    fn message(&mut self, from: Role, number: u8, body: &[u8], found: &mut Findings) -> bool {
        match number {
            KEXINIT => self.offer(from, body, found),
            NEWKEYS => {
                self.stages[from.index()] = Stage::Encrypted;
                self.is_confirmed = true;
            }
            _ if from == Role::Responder
                && let Some(message) = self.host_key_message
                && message.number == number =>
            {
                return self.host_key(body, message.strings, found);
            }
            _ => {}
        }
        true
    }

    /// Takes the message with the host key. Returns whether it has as many strings as it must.
    fn host_key(&mut self, body: &[u8], strings: usize, found: &mut Findings) -> bool {
        let mut rest = body;
        for _ in 0..strings {
            if packet::string(&mut rest).is_none() {
                if let Some(len) = packet::string_len(rest).filter(|len| *len > MAX_STRING) {
                    let detail = Detail::Above(len.into(), MAX_STRING.into());
                    found.exceed("SSH_max_string_length_exceeded", detail);
                }
                return false;
            }
        }
        if let (Some(login), Some(key)) = (&mut self.login, packet::string(&mut &*body)) {
            login.host_key(key);
        }
        true
    }

    fn offer(&mut self, from: Role, body: &[u8], found: &mut Findings) {
        let Some(login) = &mut self.login else { return };
        let Some(offer) = Offer::read(body).filter(|_| login.hassh(from).is_none()) else {
            return;
        };
        for (name, names) in offer.too_long() {
            found.exceed(name, Detail::Above(names as u64, MAX_NAMES as u64));
        }
        self.told.filter(&mut found.weirds);
        let offerer = match from {
            Role::Originator => Offerer::Client,
            Role::Responder => Offerer::Server,
        };
        *login.hassh(from) = Some(offer.hassh(offerer));
        self.offers[from.index()] = Some(Box::new(offer));
        if let [Some(client), Some(server)] = &self.offers {
            let agreed = Agreed::between(client, server);
            self.host_key_message = agreed.host_key_message();
            self.authentication = Authentication::new(agreed.framing);
            login.agreed = Some(agreed);
            self.offers = [None, None];
        }
    }

    /// Takes what is encrypted, until the result of the login is known.
    fn encrypted(&mut self, input: &Bytes<'_>) -> Progress {
        let agreed = self.login.as_ref().and_then(|login| login.agreed.as_ref());
        let tells_sizes = agreed.is_none_or(|agreed| !agreed.is_compressed());
        if !tells_sizes || self.version(input.from) != Some(Version::Two) {
            return Progress::Skip(u64::MAX);
        }
        match input.from {
            Role::Originator => self.authentication.client(),
            Role::Responder => self.authentication.server(input.time, input.data),
        }
        if self.authentication.has_succeeded() {
            return Progress::Done;
        }
        Progress::Consumed(input.data.len())
    }
}

impl Session for SshSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        match self.stages[input.from.index()] {
            Stage::Identification => self.identification(input),
            Stage::KeyExchange => self.packet(input, found),
            Stage::Encrypted => self.encrypted(input),
        }
    }

    fn end(&mut self, found: &mut Findings) {
        self.authentication.close();
        if let Some(login) = self.login.take() {
            let (success, attempts) = self.authentication.result();
            found.row(login.into_row(success, attempts));
        }
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let login = self.login.as_ref().map_or(0, |it| size_of::<Login>() + it.heap_bytes());
        let offers = self.offers.iter().flatten();
        size_of::<Self>()
            + login
            + self.told.heap_bytes()
            + offers.map(|offer| size_of::<Offer>() + offer.heap_bytes()).sum::<usize>()
    }
}
