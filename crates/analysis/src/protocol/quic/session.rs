//! Datagrams of QUIC, as Zeek's `QUIC.spicy` and `base/protocols/quic/main.zeek` follow them.

use super::connection::QuicConnection;
use super::messages::FirstMessage;
use super::packet::{FIXED, Frame, Frames, Invariant, LONG, Packet};
use super::protection::Keys;
use super::version::{PacketType, Version};
use crate::protocol::findings::{Findings, ProtocolRecord};
use crate::protocol::session::{Datagram, Role, Session};
use crate::protocol::tls::fingerprint::Carrier;
use crate::protocol::tls::handshake::Message;
use crate::protocol::tls::hello::ClientHello;
use crate::protocol::tls::negotiation::{Negotiation, Sender};

/// Packets that are none of QUIC, of which no more are told (`max_discarded_packet_events`).
const MAX_DISCARDED: u32 = 100;

/// `client_hello` and `server_hello`, RFC 8446 section 4.
const HELLOS: [u8; 2] = [1, 2];

/// One conversation in QUIC.
#[derive(Debug)]
pub(super) struct QuicSession {
    row: Option<Box<QuicConnection>>,
    negotiation: Negotiation,
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

/// What ends the analysis of a conversation: a packet that is none, or one that cannot be read.
struct Unreadable;

impl QuicSession {
    /// Nothing was said yet.
    pub(super) fn new() -> Self {
        Self {
            row: None,
            negotiation: Negotiation::new(Carrier::Quic),
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
            self.row(sender, &invariant);
            self.letter(sender, b'U', found);
            self.tell(found);
            return Err(Unreadable);
        };
        let packet = Packet::of(bytes, &invariant, version).ok_or(Unreadable)?;
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
        if self.keys.is_none() && sender.from == Role::Originator {
            self.keys = Keys::of(version, invariant.destination).map(Box::new);
        }
        let Some(keys) = &mut self.keys else { return Ok(()) };
        let own = match sender.from {
            Role::Originator => invariant.source,
            Role::Responder => invariant.destination,
        };
        self.identifier_len = own.len();
        let payload = keys[side].open(packet, number_at).ok_or(Unreadable)?;
        self.is_confirmed = true;
        for frame in Frames::new(&payload) {
            match frame.map_err(|_| Unreadable)? {
                Frame::Close => {
                    self.letter(sender, b'C', found);
                    self.tell(found);
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
            self.keys = None;
        }
        Ok(())
    }

    /// Takes the first message of a side.
    fn message(&mut self, sender: Sender, kind: u8, body: &[u8], found: &mut Findings) {
        let message = Message { kind, body: Some(body) };
        if let Err(reason) = self.negotiation.message(sender, message, found) {
            found.weirds.add(reason);
            self.negotiation.tell(found);
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
        self.tell(found);
        self.keys = None;
        self.messages = Default::default();
    }

    /// The row, which a packet begins.
    fn row(&mut self, sender: Sender, invariant: &Invariant<'_>) -> &mut QuicConnection {
        self.row.get_or_insert_with(|| {
            let mut row = QuicConnection::new(sender.time, invariant.version);
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

    fn tell(&mut self, found: &mut Findings) {
        found.records.extend(self.row.take().map(ProtocolRecord::Quic));
    }
}

impl Session for QuicSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) {
        let sender = Sender { from: datagram.from, time: datagram.time };
        let mut rest = datagram.payload;
        while !rest.is_empty() && !self.is_over {
            match self.packet(sender, rest, found) {
                Ok(len) => rest = rest.get(len.max(1)..).unwrap_or_default(),
                Err(Unreadable) => self.is_over = true,
            }
        }
    }

    fn end(&mut self, found: &mut Findings) {
        self.tell(found);
        self.negotiation.tell(found);
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let row = self.row.as_ref().map_or(0, |row| size_of::<QuicConnection>() + row.heap_bytes());
        let keys = self.keys.as_ref().map_or(0, |_| size_of::<[Keys; 2]>());
        let messages = self.messages.iter().map(FirstMessage::heap_bytes).sum::<usize>();
        size_of::<Self>() + row + keys + messages + self.negotiation.heap_bytes()
    }
}
