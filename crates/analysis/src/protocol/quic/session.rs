//! Datagrams of QUIC, as Zeek's `QUIC.spicy` and `base/protocols/quic/main.zeek` follow them.

use super::log::Quic;
use super::messages::FirstMessage;
use super::packet::{FIXED, Frame, Frames, Invariant, LONG, Packet};
use super::protection::Keys;
use super::version::{self, PacketType, Version};
use crate::protocol::session::findings::Findings;
use crate::protocol::session::{Datagram, DatagramVerdict, Role, Session};
use crate::protocol::tls::fingerprint::Carrier;
use crate::protocol::tls::handshake::HandshakeMessage;
use crate::protocol::tls::hello::ClientHello;
use crate::protocol::tls::negotiation::{Negotiation, Sender};

/// Packets that are none of QUIC, of which no more are told (`max_discarded_packet_events`).
const MAX_DISCARDED: u32 = 100;

/// Versions that a client tries one after another. It takes one that the server has told (RFC 9000,
/// 6.2); each is a row.
const MAX_ATTEMPTS: u8 = 8;

/// `client_hello` and `server_hello`, RFC 8446 section 4.
const HELLOS: [u8; 2] = [1, 2];

/// One conversation in QUIC.
#[derive(Debug)]
pub(super) struct QuicSession {
    row: Option<Box<Quic>>,
    negotiation: Negotiation,
    /// The versions of client and server, as their last packets had them.
    versions: [Option<u32>; 2],
    attempts: u8,
    /// Whether nothing shows yet that this is QUIC at all: a version that nobody knows is no evidence.
    is_doubtful: bool,
    /// What the client's first packet tells of keys.
    origin: Option<Origin>,
    /// The keys of client and server, once the client's first packet was seen.
    keys: Option<Box<[Keys; 2]>>,
    /// The first messages of client and server.
    messages: [FirstMessage; 2],
    /// Octets of the identifiers that are in front of packets with short headers.
    identifier_len: usize,
    /// Packets with short headers of client and server.
    short: [u64; 2],
    discarded: u32,
    is_confirmed: bool,
    is_over: bool,
}

/// What the keys of Initial packets follow from, RFC 9001 section 5.2.
#[derive(Debug)]
struct Origin {
    version: u32,
    destination: Box<[u8]>,
}

/// What ends the analysis of a conversation: a packet that is none, or one that cannot be read.
struct Unreadable;

impl QuicSession {
    /// Nothing was said yet.
    pub(super) fn new() -> Self {
        Self {
            row: None,
            negotiation: Negotiation::new(Carrier::Quic, None),
            versions: [None; 2],
            attempts: 1,
            is_doubtful: false,
            origin: None,
            keys: None,
            messages: Default::default(),
            identifier_len: 0,
            short: [0; 2],
            discarded: 0,
            is_confirmed: false,
            is_over: false,
        }
    }

    /// Takes the packet at the begin of `bytes`, and returns how long it is.
    fn packet(
        &mut self,
        sender: Sender,
        bytes: &[u8],
        found: &mut Findings,
    ) -> Result<usize, Unreadable> {
        let first = bytes.first().copied().unwrap_or_default();
        let is_negotiation = |it: &Invariant<'_>| it.version == version::NEGOTIATION;
        if first & LONG != 0 && Invariant::of(bytes).is_some_and(|it| is_negotiation(&it)) {
            // The client may begin anew, or, as this can be forged, go on (RFC 9000, 6.2).
            if self.is_doubtful {
                self.report(found);
            }
            self.letter(sender, b'U', found);
            return Ok(bytes.len());
        }
        if first & FIXED == 0 {
            self.discarded = self.discarded.saturating_add(1);
            if self.is_confirmed && self.discarded <= MAX_DISCARDED {
                self.letter(sender, b'X', found);
            }
            return Ok(bytes.len());
        }
        if first & LONG == 0 {
            if bytes.len() <= self.identifier_len {
                return Err(Unreadable);
            }
            let count = &mut self.short[sender.from.index()];
            *count = count.saturating_add(1);
            if count.is_power_of_two() {
                self.letter(sender, b'O', found);
            }
            return Ok(bytes.len());
        }
        let invariant = Invariant::of(bytes).ok_or(Unreadable)?;
        let Some(version) = Version::of(invariant.version) else {
            self.unknown_version(sender, &invariant, found)?;
            return Ok(bytes.len());
        };
        let packet = Packet::of(bytes, &invariant, version).ok_or(Unreadable)?;
        self.is_doubtful = false;
        self.note_version(sender.from, version.number, found)?;
        if packet.kind == PacketType::Retry {
            self.retry(sender, &invariant, found);
            return Ok(packet.len);
        }
        self.row(sender, &invariant).note(sender.from, &invariant);
        let letter = match packet.kind {
            PacketType::Initial => b'I',
            PacketType::ZeroRtt => b'Z',
            PacketType::Handshake | PacketType::Retry => b'H',
        };
        self.letter(sender, letter, found);
        if packet.kind == PacketType::Initial {
            let bytes = bytes.get(..packet.len).unwrap_or_default();
            self.initial(sender, (version, &invariant), bytes, packet.number_at, found)?;
        }
        Ok(packet.len)
    }

    /// Takes a packet of a version that cannot be read. What the server makes of it decides how the
    /// client goes on.
    fn unknown_version(
        &mut self,
        sender: Sender,
        invariant: &Invariant<'_>,
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        if self.versions[sender.from.index()] == Some(invariant.version) {
            return Ok(());
        }
        self.note_version(sender.from, invariant.version, found)?;
        self.is_doubtful = !self.is_confirmed && !version::is_reserved(invariant.version);
        self.row(sender, invariant);
        self.letter(sender, b'U', found);
        if !self.is_doubtful {
            self.report(found);
        }
        Ok(())
    }

    /// Notes the version of a packet. A client that changes to one that the server has not chosen
    /// begins anew, before the server's hello: with another row and other keys (RFC 9000, 6.2).
    fn note_version(
        &mut self,
        from: Role,
        version: u32,
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let [client, server] = self.versions;
        self.versions[from.index()] = Some(version);
        let is_anew = from == Role::Originator
            && client.is_some_and(|client| client != version)
            && server != Some(version)
            && !self.messages[Role::Responder.index()].is_whole();
        if !is_anew {
            return Ok(());
        }
        self.attempts = self.attempts.saturating_add(1);
        if self.attempts > MAX_ATTEMPTS {
            found.weirds.add("QUIC_too_many_versions");
            return Err(Unreadable);
        }
        self.drop_doubtful();
        self.report(found);
        self.negotiation.report(found);
        self.negotiation = Negotiation::new(Carrier::Quic, None);
        (self.keys, self.origin) = (None, None);
        self.messages = Default::default();
        self.short = [0; 2];
        Ok(())
    }

    /// The keys for an Initial packet. They follow from the client's first one; where the server goes
    /// on in another version, from that and the other version (RFC 9369, 4.1).
    fn initial_keys(
        &mut self,
        from: Role,
        version: Version,
        invariant: &Invariant<'_>,
    ) -> Option<&mut [Keys; 2]> {
        if self.origin.is_none() && from == Role::Originator {
            let destination = invariant.destination.into();
            self.origin = Some(Origin { version: version.number, destination });
            self.keys = Keys::of(version, invariant.destination).map(Box::new);
        }
        let origin = self.origin.as_mut()?;
        if origin.version != version.number {
            origin.version = version.number;
            self.keys = Keys::of(version, &origin.destination).map(Box::new);
        }
        self.keys.as_deref_mut()
    }

    /// Reads an Initial packet, until the first message of its side is whole.
    fn initial(
        &mut self,
        sender: Sender,
        (version, invariant): (Version, &Invariant<'_>),
        packet: &[u8],
        number_at: usize,
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let side = sender.from.index();
        if self.messages[side].is_whole() {
            return Ok(());
        }
        if self.initial_keys(sender.from, version, invariant).is_none() {
            return Ok(());
        }
        let own = match sender.from {
            Role::Originator => invariant.source,
            Role::Responder => invariant.destination,
        };
        self.identifier_len = own.len();
        let Some(keys) = &mut self.keys else { return Ok(()) };
        let payload = keys[side].open(packet, number_at).ok_or(Unreadable)?;
        self.is_confirmed = true;
        for frame in Frames::new(&payload) {
            match frame.map_err(|_| Unreadable)? {
                Frame::Close => {
                    self.letter(sender, b'C', found);
                    self.report(found);
                }
                Frame::Crypto { offset, data } => {
                    let message = self.messages[side].push(offset, data).map_err(|_| Unreadable)?;
                    if let Some((kind, body)) = message {
                        self.message(sender, kind, &body, found);
                    }
                }
            }
        }
        if self.messages.iter().all(FirstMessage::is_whole) {
            // Connections are long, and nothing more is opened.
            (self.keys, self.origin) = (None, None);
        }
        Ok(())
    }

    /// Takes the first message of a side.
    fn message(&mut self, sender: Sender, kind: u8, body: &[u8], found: &mut Findings) {
        let message = HandshakeMessage { kind, body: Some(body) };
        if let Err(reason) = self.negotiation.message(sender, message, found) {
            found.weirds.add(reason);
            self.negotiation.report(found);
            return;
        }
        if !HELLOS.contains(&kind) {
            return;
        }
        if let Some(row) = &mut self.row
            && let Some(hello) = ClientHello::of(body, false).filter(|_| kind == HELLOS[0])
        {
            row.server_name = hello.server_name().map(|(name, _)| name.into());
            let mut protocols = hello.extensions.protocols();
            row.client_protocol = protocols.next().map(Box::from);
            if protocols.next().is_some() {
                found.weirds.add("QUIC_many_protocols");
            }
            row.ja4 = self.negotiation.ja4().map(str::to_owned);
        }
        let letter = if kind == HELLOS[0] { b'S' } else { b's' };
        if let Some(row) = &mut self.row {
            row.push_letter(letter, found);
        }
    }

    /// Takes a Retry: the client begins anew, with other keys.
    fn retry(&mut self, sender: Sender, invariant: &Invariant<'_>, found: &mut Findings) {
        if self.row.is_none() {
            self.row(sender, invariant).note(sender.from, invariant);
        }
        self.letter(sender, b'R', found);
        self.report(found);
        (self.keys, self.origin) = (None, None);
        self.messages = Default::default();
    }

    /// The row, which a packet begins.
    fn row(&mut self, sender: Sender, invariant: &Invariant<'_>) -> &mut Quic {
        self.row.get_or_insert_with(|| {
            let mut row = Quic::new(sender.time, invariant.version);
            row.note(sender.from, invariant);
            Box::new(row)
        })
    }

    /// Adds a letter to the history, in upper case for the client.
    fn letter(&mut self, sender: Sender, letter: u8, found: &mut Findings) {
        if let Some(row) = &mut self.row {
            let letter = match sender.from {
                Role::Originator => letter,
                Role::Responder => letter.to_ascii_lowercase(),
            };
            row.push_letter(letter, found);
        }
    }

    fn drop_doubtful(&mut self) {
        if self.is_doubtful {
            self.row = None;
        }
    }

    fn report(&mut self, found: &mut Findings) {
        self.is_doubtful = false;
        if let Some(row) = self.row.take() {
            found.boxed_row(row);
        }
    }
}

impl Session for QuicSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        let sender = Sender { from: datagram.from, time: datagram.time };
        let mut rest = datagram.payload;
        while !rest.is_empty() && !self.is_over {
            match self.packet(sender, rest, found) {
                Ok(len) => rest = rest.get(len.max(1)..).unwrap_or_default(),
                Err(Unreadable) => self.is_over = true,
            }
        }
        DatagramVerdict::Fits
    }

    fn end(&mut self, found: &mut Findings) {
        self.drop_doubtful();
        self.report(found);
        self.negotiation.report(found);
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let row = self.row.as_ref().map_or(0, |row| size_of::<Quic>() + row.heap_bytes());
        let keys = self.keys.as_ref().map_or(0, |_| size_of::<[Keys; 2]>());
        let messages = self.messages.iter().map(FirstMessage::heap_bytes).sum::<usize>();
        let origin = self.origin.as_ref().map_or(0, |origin| origin.destination.len());
        size_of::<Self>() + row + origin + keys + messages + self.negotiation.heap_bytes()
    }
}
