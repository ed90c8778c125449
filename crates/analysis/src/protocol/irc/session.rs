//! A client of IRC with its server: who it says it is, where it goes, which files are offered.

use std::sync::Arc;

use netsniff_packet::Timestamp;

use super::dcc::{Dcc, Offer};
use super::log::Irc;
use super::message::IrcMessage;
use super::offered::Offered;
use crate::protocol::syntax::line::{Bounded, bounded};
use crate::protocol::{
    Announcement, Bytes, Expected, ExpectedTransfer, Findings, GapAction, MissingBytes, Progress,
    Role, Session,
};

/// Bytes of a line: 512 (RFC 2812, 2.3), and 8191 of tags before it (IRCv3 message tags).
const MAX_LINE: usize = 8_703;
/// Bytes of a message without its tags, beyond which Zeek leaves it out.
const MAX_MESSAGE: usize = 512;
/// Letters of a command, beyond which Zeek takes it for none.
const MAX_COMMAND: usize = 20;
/// Files that were offered and did not come yet; the oldest is forgotten for one more.
const MAX_OFFERS: usize = 20;

/// The server agrees to TLS (IRCv3 `tls`).
const RPL_STARTTLS: u16 = 670;
/// It does not; it does not know the command; it knows none before it knows who asks.
const NO_TLS: [u16; 3] = [691, 421, 451];

/// Both sides of an IRC connection.
#[derive(Debug, Default)]
pub(super) struct IrcSession {
    nick: Option<Box<[u8]>>,
    user: Option<Box<[u8]>>,
    /// Of the last row.
    value: Option<Box<[u8]>>,
    addl: Option<Box<[u8]>>,
    /// Files that were offered.
    offers: Vec<Offered>,
    /// Whether the client has asked for TLS and was not answered yet.
    wants_tls: bool,
    /// Whether the next line may be the rest of one, since bytes are missing.
    is_astray: [bool; 2],
    is_confirmed: bool,
}

impl IrcSession {
    fn event(&self, ts: Timestamp, command: &'static str) -> Irc {
        Irc {
            ts,
            nick: self.nick.clone(),
            user: self.user.clone(),
            command,
            value: self.value.clone(),
            addl: self.addl.clone(),
            dcc_file_name: None,
            dcc_file_size: None,
            dcc_mime_type: None,
            fuid: None,
        }
    }

    /// Takes a line of the client.
    fn request(&mut self, time: Timestamp, message: &IrcMessage<'_>, found: &mut Findings) {
        if message.is(b"NICK") {
            let nick = message.params.strip_prefix(b":").unwrap_or(message.params);
            self.value = Some(nick.into());
            found.row(self.event(time, "NICK"));
            self.nick = self.value.clone();
        } else if message.is(b"USER") {
            let mut params = message.each();
            self.value = Some(params.next().unwrap_or_default().into());
            let rest: Vec<&[u8]> = params.collect();
            self.addl = Some(rest.join(&b' ').into());
            found.row(self.event(time, "USER"));
            self.user = self.value.clone();
        } else if message.is(b"JOIN") {
            self.join(time, message, found);
        } else if message.is(b"STARTTLS") {
            self.wants_tls = true;
        }
    }

    fn join(&mut self, time: Timestamp, message: &IrcMessage<'_>, found: &mut Findings) {
        let mut params = message.each();
        let channels = params.next().unwrap_or_default();
        let mut keys = params.next().unwrap_or_default().split(|&byte| byte == b',');
        let mut has_some = false;
        for channel in channels.split(|&byte| byte == b',').filter(|name| !name.is_empty()) {
            has_some = true;
            self.value = Some(channel.into());
            self.addl = Some(match keys.next().filter(|key| !key.is_empty()) {
                Some(key) => [&b" with channel key: '"[..], key, b"'"].concat().into(),
                None => Box::default(),
            });
            found.row(self.event(time, "JOIN"));
        }
        if !has_some {
            found.weirds.add("irc_invalid_join_line");
        }
    }

    /// Takes what someone says to someone.
    fn said(&mut self, time: Timestamp, message: &IrcMessage<'_>, found: &mut Findings) {
        let Some(text) = message.each().nth(1) else {
            found.weirds.add("irc_invalid_privmsg_message_format");
            return;
        };
        match Dcc::read(text) {
            Dcc::Send(offer) => self.offer(time, &offer, found),
            Dcc::Malformed => found.weirds.add("irc_invalid_dcc_message_format"),
            Dcc::Nothing | Dcc::Other => {}
        }
    }

    /// Awaits the connection over which a file will go. It goes to one of the two hosts here, or to
    /// a third one, where nobody awaits it.
    fn offer(&mut self, time: Timestamp, offer: &Offer<'_>, found: &mut Findings) {
        let errand = Arc::new(ExpectedTransfer {
            filename: Some(offer.name.into()),
            ..ExpectedTransfer::default()
        });
        for from in [Role::Originator, Role::Responder] {
            let announced = Announcement { protocol: "irc-dcc-data", errand: Arc::clone(&errand) };
            let to = Some(offer.address);
            let or_peer = false;
            found.expected.push(Expected { from, to, or_peer, port: offer.port, announced });
        }
        if self.offers.len() >= MAX_OFFERS {
            self.report_transfers(found);
        }
        if self.offers.len() >= MAX_OFFERS {
            self.offers.remove(0);
        }
        let row = Irc { dcc_file_size: offer.size, ..self.event(time, "DCC") };
        self.offers.push(Offered { row, errand });
    }

    /// Tells the files that have come meanwhile.
    fn report_transfers(&mut self, found: &mut Findings) {
        let complete = self.offers.extract_if(.., |offer| offer.is_complete());
        complete.for_each(|offer| found.row(offer.into_row()));
    }

    /// Takes a line. Returns whether TLS follows.
    fn line(&mut self, time: Timestamp, from: Role, text: &[u8], found: &mut Findings) -> bool {
        let Some(message) = IrcMessage::read(text) else {
            found.weirds.add("irc_invalid_line");
            return false;
        };
        if message.command.len() > MAX_COMMAND {
            found.weirds.add("irc_invalid_command");
            return false;
        }
        if message.is(b"PRIVMSG") {
            self.said(time, &message, found);
        } else if from == Role::Originator {
            self.request(time, &message, found);
        } else if self.wants_tls
            && let Some(number) = message.number()
        {
            self.wants_tls = !NO_TLS.contains(&number) && number != RPL_STARTTLS;
            return number == RPL_STARTTLS;
        }
        self.is_confirmed |= from == Role::Originator;
        false
    }
}

impl Session for IrcSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if input.from == Role::Originator && self.wants_tls {
            // What follows is TLS if the server agrees, and IRC otherwise.
            return Progress::Wait;
        }
        let is_astray = core::mem::take(&mut self.is_astray[input.from.index()]);
        let (text, len) = match bounded(input.data, MAX_LINE) {
            Bounded::Found(text, len) => (text, len),
            Bounded::Unfinished | Bounded::TooLong if is_astray => {
                self.is_astray[input.from.index()] = true;
                return Progress::Consumed(input.data.len());
            }
            Bounded::Unfinished => return Progress::Need(input.data.len() + 1),
            Bounded::TooLong => return Progress::Contradicts("irc_line_size_exceeded"),
        };
        self.report_transfers(found);
        if is_astray || text.trim_ascii().is_empty() {
            return Progress::Consumed(len);
        }
        if !text.starts_with(b"@") && text.len() > MAX_MESSAGE {
            found.weirds.add("irc_line_size_exceeded");
            return Progress::Consumed(len);
        }
        match self.line(input.time, input.from, text, found) {
            true => Progress::Handover(len),
            false => Progress::Consumed(len),
        }
    }

    /// The next line may be the rest of one, and is left out.
    fn gap(&mut self, gap: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        self.is_astray[gap.from.index()] = true;
        // The answer to STARTTLS may be among what is missing: then nobody knows what follows.
        if self.wants_tls { GapAction::Abort } else { GapAction::Continue }
    }

    fn end(&mut self, found: &mut Findings) {
        // As in Zeek, what was only offered has no row.
        let come = self.offers.drain(..).filter(Offered::has_come);
        come.for_each(|offer| found.row(offer.into_row()));
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let texts = [&self.nick, &self.user, &self.value, &self.addl].into_iter().flatten();
        size_of::<Self>()
            + texts.map(|text| text.len()).sum::<usize>()
            + self.offers.capacity() * size_of::<Offered>()
            + self.offers.iter().map(Offered::heap_bytes).sum::<usize>()
    }
}
