//! Which reply belongs to which command, as Zeek's `base/protocols/ftp` finds out.

use std::sync::Arc;

use memchr::memmem;
use netsniff_packet::Timestamp;

use super::channel::Channel;
use super::control::{self, Reply, is_command, last_number, without_telnet};
use super::gssapi::Tokens;
use super::lines::{Lines, StreamMode};
use super::log::{Ftp, MAX_TEXT, SCHEME};
use super::transfer::Transfer;
use super::{codes, path};
use crate::protocol::syntax::line::first_word;
use crate::protocol::{
    Announcement, Bytes, Expected, ExpectedTransfer, Findings, GapAction, MissingBytes, Progress,
    Role, Session, SessionContext,
};
use crate::record::Port;
use crate::weird::Detail;

/// Letters of a command (`FTP::max_command_length`).
const MAX_COMMAND: usize = 100;
/// Commands that may wait for replies (`FTP::max_pending_commands`).
const MAX_PENDING: usize = 20;
/// Bytes of users and passwords in the log (`FTP::max_user_length`).
const MAX_NAME: usize = 128;
/// Users whose password is no secret (`FTP::guest_ids`).
const GUESTS: [&[u8]; 4] = [b"anonymous", b"ftp", b"ftpuser", b"guest"];

/// A control connection (RFC 959, 3.2).
#[derive(Debug)]
pub(super) struct FtpSession {
    /// Commands that wait for replies, or whose replies may not be complete.
    pending: Vec<Pending>,
    /// The command that was answered last, by its number.
    answered: Option<u64>,
    /// Number of the next command.
    next: u64,
    user: Option<Box<[u8]>>,
    password: Option<Box<[u8]>>,
    /// The directory that the client is in.
    cwd: Vec<u8>,
    /// Code of a reply whose last line did not come yet.
    open: Option<u16>,
    transfer: Transfer,
    /// Number of the command that asked for TLS, until it is answered.
    wants_tls: Option<u64>,
    tokens: Tokens,
    lines: Lines,
    /// Whether lines of the server that are no replies may be of one whose begin is missing.
    is_lenient: bool,
    is_confirmed: bool,
}

/// A command that waits.
#[derive(Debug)]
struct Pending {
    number: u64,
    time: Timestamp,
    name: Box<[u8]>,
    arg: Box<[u8]>,
    reply: Option<(u16, Box<[u8]>)>,
    /// Where it, or the reply to it, says that a data connection will go.
    channel: Option<Channel>,
    /// Whether it has changed the directory.
    has_moved: bool,
}

impl FtpSession {
    /// A connection whose server is to greet.
    pub(super) fn new(context: &SessionContext<'_>) -> Self {
        let mut session = Self {
            pending: Vec::new(),
            answered: None,
            next: 0,
            user: None,
            password: None,
            cwd: b".".to_vec(),
            open: None,
            transfer: Transfer::none(),
            wants_tls: None,
            tokens: Tokens::new(context.into()),
            lines: Lines::default(),
            is_lenient: false,
            is_confirmed: false,
        };
        session.await_reply(Timestamp::EPOCH, b"<init>", b"");
        session
    }

    fn await_reply(&mut self, time: Timestamp, name: &[u8], arg: &[u8]) {
        let number = self.next;
        self.next += 1;
        let (name, arg) = (name.into(), arg.into());
        let waiting =
            Pending { number, time, name, arg, reply: None, channel: None, has_moved: false };
        self.pending.push(waiting);
    }

    /// Takes a line of the client.
    fn request(&mut self, time: Timestamp, line: &[u8], found: &mut Findings) {
        let (word, arg) = first_word(line);
        if line.is_empty() {
            return;
        }
        if !is_command(word) || word.len() > MAX_COMMAND {
            if self.is_confirmed {
                match is_command(word) {
                    true => {
                        let detail = Detail::Above(word.len() as u64, MAX_COMMAND as u64);
                        found.exceed("FTP_max_command_length_exceeded", detail);
                    }
                    false => found.weirds.add("FTP_invalid_command"),
                }
            }
            return;
        }
        self.is_confirmed = true;
        if let Some(number) = self.answered {
            self.report(number, time, found);
        }
        let name = word.to_ascii_uppercase();
        self.tokens.command(time, &name, arg, found);
        let number = self.next;
        if self.pending.len() >= MAX_PENDING {
            found.weirds.add("FTP_too_many_pending_commands");
        } else {
            self.await_reply(time, &name, arg);
            let kind = arg.split(|&byte| byte == b'-').next().unwrap_or_default();
            let is_tls = [&b"TLS"[..], b"SSL"].iter().any(|tls| kind.eq_ignore_ascii_case(tls));
            if &*name == b"AUTH" && is_tls {
                self.wants_tls = Some(number);
            }
        }
        match &*name {
            b"USER" => self.user = Some(shortened(arg, MAX_NAME, "FTP_user_too_long", found)),
            b"PASS" => {
                self.password = Some(shortened(arg, MAX_NAME, "FTP_password_too_long", found));
            }
            b"PORT" | b"EPRT" => {
                let channel = Channel::active(&name, arg);
                if let Some(last) = self.pending.last_mut().filter(|last| last.number == number) {
                    last.channel = channel;
                }
                self.announce(channel, found);
            }
            _ => {}
        }
    }

    /// Announces a data connection.
    fn announce(&mut self, channel: Option<Channel>, found: &mut Findings) {
        let Some(channel) = channel else { return };
        let errand = Arc::new(ExpectedTransfer::default());
        self.transfer.announce(&errand);
        found.expected.push(Expected {
            from: if channel.is_passive { Role::Originator } else { Role::Responder },
            to: channel.address,
            // Clients believe the port that a server tells and not the address, which may be one
            // behind address translation, or a trap.
            or_peer: channel.is_passive,
            port: channel.port,
            announced: Announcement { protocol: "ftp-data", errand },
        });
    }

    /// Takes a line of the server. Returns whether TLS follows, or `None` for what is no reply.
    fn reply(&mut self, time: Timestamp, line: &[u8], found: &mut Findings) -> Option<bool> {
        let (code, text, is_last) = match control::reply(line, self.open) {
            Reply::Last(code, text) => (code, text, true),
            Reply::First(code, text) => (code, text, false),
            Reply::Between => return Some(false),
            Reply::Malformed => return self.is_lenient.then_some(false),
        };
        self.is_lenient = false;
        self.open = (!is_last).then_some(code);
        if is_last {
            self.tokens.reply(time, code, text, found);
        }
        let Some(at) = self.best_match(code, text) else { return Some(false) };
        let pending = &mut self.pending[at];
        pending.reply = Some((code, text.into()));
        let number = pending.number;
        self.answered = Some(number);
        if !is_last {
            return Some(false);
        }
        self.conclude(at, code, text, found);
        let mut is_tls = false;
        if self.wants_tls == Some(number) {
            self.wants_tls = None;
            is_tls = code == 234;
        }
        if self.pending.len() > 1 {
            self.report(number, time, found);
        }
        Some(is_tls)
    }

    /// Notes what a whole reply to a pending command says.
    fn conclude(&mut self, at: usize, code: u16, text: &[u8], found: &mut Findings) {
        let pending = &mut self.pending[at];
        let moves = !pending.has_moved;
        match (code, &*pending.name) {
            (150, b"RETR") | (213, b"SIZE") => {
                self.transfer.file_size = Some(last_number(text).unwrap_or(0));
            }
            (227 | 229, b"PASV" | b"EPSV") => {
                pending.channel = Channel::passive(code, text);
                let channel = pending.channel;
                self.announce(channel, found);
            }
            (250, b"CWD") if moves => {
                pending.has_moved = true;
                self.cwd = path::join(&self.cwd, &pending.arg);
            }
            (200 | 250, b"CDUP") if moves => {
                pending.has_moved = true;
                self.cwd = path::join(&self.cwd, b"..");
            }
            (257, b"PWD" | b"XPWD") if moves => {
                pending.has_moved = true;
                self.cwd = path::quoted(text).unwrap_or_default().to_vec();
            }
            _ => {}
        }
    }

    /// The pending command that a reply fits best: by its code, then by its words, then by age.
    fn best_match(&self, code: u16, text: &[u8]) -> Option<usize> {
        if self.pending.len() < 2 {
            return (!self.pending.is_empty()).then_some(0);
        }
        let has = |words: &[u8]| !words.is_empty() && memmem::find(text, words).is_some();
        let score = |pending: &Pending| {
            let fits = u32::from(codes::answers(code, &pending.name)) * 100;
            let named = u32::from(has(&pending.name)) * 20;
            fits + named + u32::from(pending.arg.is_empty() || has(&pending.arg)) * 10
        };
        let numbered = self.pending.iter().enumerate();
        let best = numbered.max_by_key(|(at, pending)| (score(pending), core::cmp::Reverse(*at)));
        best.map(|(at, _)| at)
    }

    /// Tells a command that waited, with its reply and what is known of its transfer.
    fn report(&mut self, number: u64, now: Timestamp, found: &mut Findings) {
        let Some(at) = self.pending.iter().position(|pending| pending.number == number) else {
            return;
        };
        let Pending { time, name, arg, reply, channel, .. } = self.pending.remove(at);
        self.hide_password();
        let file_size = self.transfer.file_size.take();
        let (errand, is_sniffed) = self.transfer.known_by(now);
        if !codes::is_logged(&name) {
            return;
        }
        let arg = if codes::is_of_files(&name) {
            let path = path::join(&self.cwd, &arg);
            if path.len() + SCHEME.len() > MAX_TEXT {
                found.weirds.add("FTP_arg_too_long");
            }
            Some(path.into())
        } else {
            let text = shortened(&arg, MAX_TEXT, "FTP_arg_too_long", found);
            (!text.is_empty()).then_some(text)
        };
        let (reply_code, reply_msg) = reply
            .map(|(code, text)| (code, shortened(&text, MAX_TEXT, "FTP_reply_msg_too_long", found)))
            .unzip();
        let sniffed = errand.as_ref().filter(|_| is_sniffed);
        found.row(Ftp {
            ts: time,
            user: self.user.clone().unwrap_or_else(|| b"<unknown>".as_slice().into()),
            password: self.password.clone(),
            command: name,
            arg,
            mime_type: sniffed.and_then(|errand| errand.mime_type.get()),
            file_size,
            reply_code,
            reply_msg,
            data_channel_passive: channel.map(|channel| channel.is_passive),
            data_channel_orig_h: None,
            data_channel_resp_h: channel.and_then(|channel| channel.address),
            data_channel_resp_p: channel.map(|channel| Port(channel.port)),
            fuid: errand.and_then(|errand| errand.fuid.get().copied()),
        });
    }

    /// Takes a line, with which `len` bytes of the stream are over.
    fn line(
        &mut self,
        input: &Bytes<'_>,
        raw: &[u8],
        len: usize,
        found: &mut Findings,
    ) -> Progress {
        if raw.contains(&0) {
            found.weirds.add("NUL_in_line");
        }
        let text = without_telnet(raw);
        match input.from {
            Role::Originator => self.request(input.time, &text, found),
            Role::Responder if text.is_empty() => {}
            Role::Responder => match self.reply(input.time, &text, found) {
                Some(true) => return Progress::Handover(len),
                Some(false) => {}
                None => return Progress::Contradicts("FTP_invalid_reply"),
            },
        }
        Progress::Consumed(len)
    }

    fn hide_password(&mut self) {
        let user = self.user.as_deref().unwrap_or_default();
        let is_guest = GUESTS.iter().any(|guest| guest.eq_ignore_ascii_case(user));
        if !is_guest && let Some(password) = &mut self.password {
            *password = b"<hidden>".as_slice().into();
        }
    }
}

/// A text of at most so many bytes; that one was longer is an oddity.
fn shortened(text: &[u8], most: usize, name: &'static str, found: &mut Findings) -> Box<[u8]> {
    match text.get(..most) {
        Some(short) if short.len() < text.len() => {
            found.weirds.add(name);
            short.into()
        }
        _ => text.into(),
    }
}

impl Session for FtpSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if input.from == Role::Originator && self.wants_tls.is_some() {
            // What follows is TLS if the server agrees, and commands otherwise.
            return Progress::Wait;
        }
        match self.lines.next(input.from, input.data) {
            StreamMode::Line(raw, len) => self.line(input, raw, len, found),
            StreamMode::Rest(raw, len) => self.line(input, &raw, len, found),
            StreamMode::Begin(_) if !self.is_confirmed => {
                Progress::Contradicts("FTP_line_too_long")
            }
            StreamMode::Begin(len) | StreamMode::Nothing(len) => Progress::Consumed(len),
            StreamMode::Needs(len) => Progress::Need(len),
        }
    }

    /// The next line may be the rest of one, and is left out.
    fn gap(&mut self, gap: &MissingBytes<'_>, found: &mut Findings) -> GapAction {
        self.tokens.end(found);
        self.lines.gap(gap.from);
        if gap.from == Role::Responder {
            // The reply to AUTH may be among what is missing: then nobody knows what follows.
            if self.wants_tls.is_some() {
                return GapAction::Abort;
            }
            self.open = None;
            self.is_lenient = true;
        }
        GapAction::Continue
    }

    fn end(&mut self, found: &mut Findings) {
        self.tokens.end(found);
        while let Some(first) = self.pending.first() {
            self.report(first.number, Timestamp::MAX, found);
        }
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let texts = |pending: &Pending| {
            let reply = pending.reply.as_ref().map_or(0, |(_, text)| text.len());
            pending.name.len() + pending.arg.len() + reply
        };
        let names = [&self.user, &self.password].into_iter().flatten();
        size_of::<Self>()
            + self.pending.capacity() * size_of::<Pending>()
            + self.pending.iter().map(texts).sum::<usize>()
            + names.map(|name| name.len()).sum::<usize>()
            + self.cwd.capacity()
            + self.lines.heap_bytes()
            + self.transfer.heap_bytes()
            + self.tokens.heap_bytes()
    }
}
