//! Whose turn it is, and what it says.

use netsniff_packet::Timestamp;

use super::log::{Command, Socks};
use super::message::{
    self, Hello, NO_AUTHENTICATION, NONE_ACCEPTABLE, PASSWORD, Parsed, Request, Target,
};
use super::proxies::Proxied;
use crate::log::tunnel::TunnelType;
use crate::protocol::{Bytes, Findings, GapAction, MissingBytes, Progress, Role, Session};
use crate::weird::Detail;

/// One connection to a proxy.
#[derive(Debug, Default)]
pub(super) struct SocksSession {
    turn: NextMessage,
    /// Whether the port told the protocol.
    is_expected: bool,
    row: Option<Box<Socks>>,
    is_confirmed: bool,
}

/// The message that comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NextMessage {
    /// The client's first message.
    #[default]
    Hello,
    /// The method that the server chooses.
    Method,
    /// The client's user and password.
    Login,
    /// Whether the server believes them.
    LoginReply,
    /// What the client wants, in version 5.
    Request,
    /// The reply of the proxy.
    Reply,
    /// That somebody connected to the port that the server opened.
    Connected,
}

impl NextMessage {
    const fn of(self) -> Role {
        match self {
            Self::Hello | Self::Login | Self::Request => Role::Originator,
            Self::Method | Self::LoginReply | Self::Reply | Self::Connected => Role::Responder,
        }
    }
}

impl SocksSession {
    /// A connection of which nothing was seen yet.
    pub(super) fn new(is_expected: bool) -> Self {
        Self { is_expected, ..Self::default() }
    }

    fn hello(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        match message::hello(input.data) {
            Parsed::Whole(Hello::Greeting(_), len) => self.goes_on(NextMessage::Method, len),
            Parsed::Whole(Hello::Request(request), len) => {
                self.wants(input.time, 4, request, found);
                self.goes_on(NextMessage::Reply, len)
            }
            Parsed::More(len) => Progress::Need(len),
            Parsed::Bad => Progress::Contradicts("socks_bad_hello"),
        }
    }

    fn method(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        match *input.data {
            [5, NO_AUTHENTICATION, ..] => self.goes_on(NextMessage::Request, 2),
            [5, PASSWORD, ..] => self.goes_on(NextMessage::Login, 2),
            [5, NONE_ACCEPTABLE, ..] => Progress::Done,
            [5, method, ..] => {
                let method = Detail::Number(method.into());
                found.weirds.add_with("socks5_unsupported_authentication_method", method);
                Progress::Done
            }
            [5] => Progress::Need(2),
            _ => Progress::Contradicts("socks_bad_method"),
        }
    }

    fn login(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        match message::login(input.data) {
            Parsed::Whole(user, len) => {
                self.row(input.time, 5).user = Some(user.into());
                self.goes_on(NextMessage::LoginReply, len)
            }
            Parsed::More(len) => Progress::Need(len),
            Parsed::Bad => {
                found.weirds.add("socks5_unsupported_authentication");
                Progress::Done
            }
        }
    }

    fn login_reply(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let [version, status, ..] = *input.data else { return Progress::Need(2) };
        if version != 1 {
            found.weirds.add("socks5_unsupported_authentication");
            return Progress::Done;
        }
        self.row(input.time, 5).reply(status);
        if status == 0 {
            return self.goes_on(NextMessage::Request, 2);
        }
        self.is_confirmed = true;
        Progress::Done
    }

    fn request(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        match message::request_5(input.data) {
            Parsed::Whole(request, len) => {
                self.wants(input.time, 5, request, found);
                self.goes_on(NextMessage::Reply, len)
            }
            Parsed::More(len) => Progress::Need(len),
            Parsed::Bad => Progress::Contradicts("socks_bad_request"),
        }
    }

    fn reply(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        let is_told = self.is_told_at_once();
        let row = self.row(input.time, 5);
        let (code, bound, len) = match read_reply(row.version, input.data) {
            Parsed::Whole((code, bound), len) => (code, bound, len),
            Parsed::More(len) => return Progress::Need(len),
            Parsed::Bad => return Progress::Contradicts("socks_bad_reply"),
        };
        let is_granted = is_granted(row.version, code);
        let command = row.command;
        row.reply(code);
        row.bound(bound);
        self.is_confirmed = true;
        if !is_told {
            found.fact(Proxied { time: input.time, kind: TunnelType::Socks });
        }
        match command {
            Some(Command::Connect) if is_granted => Progress::Handover(len),
            Some(Command::Bind) if is_granted => self.goes_on(NextMessage::Connected, len),
            // Datagrams are relayed elsewhere, for as long as this connection is open.
            _ => Progress::Done,
        }
    }

    /// The second reply to a request to wait for a connection.
    fn connected(&mut self, input: &Bytes<'_>) -> Progress {
        let version = self.row(input.time, 5).version;
        match read_reply(version, input.data) {
            Parsed::Whole((code, _), len) if is_granted(version, code) => Progress::Handover(len),
            Parsed::More(len) => Progress::Need(len),
            Parsed::Whole(..) | Parsed::Bad => Progress::Done,
        }
    }

    fn wants(&mut self, time: Timestamp, version: u8, request: Request, found: &mut Findings) {
        let row = self.row(time, version);
        row.wants(request.command, request.target);
        if request.user.is_some() {
            row.user = request.user;
        }
        if self.is_told_at_once() {
            found.fact(Proxied { time, kind: TunnelType::Socks });
        }
    }

    /// Whether a request is known for one as it comes. In version 4 it is the first message, which only the
    /// port or the reply tells from other things.
    fn is_told_at_once(&self) -> bool {
        self.is_expected || self.row.as_ref().is_some_and(|row| row.version != 4)
    }

    fn row(&mut self, time: Timestamp, version: u8) -> &mut Socks {
        self.row.get_or_insert_with(|| Box::new(Socks::begun(time, version)))
    }

    const fn goes_on(&mut self, turn: NextMessage, len: usize) -> Progress {
        self.turn = turn;
        Progress::Consumed(len)
    }
}

fn read_reply(version: u8, data: &[u8]) -> Parsed<(u8, Target)> {
    if version == 4 { message::reply_4(data) } else { message::reply_5(data) }
}

const fn is_granted(version: u8, code: u8) -> bool {
    matches!((version, code), (4, 0x5a) | (5, 0))
}

impl Session for SocksSession {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if input.from != self.turn.of() {
            return Progress::Wait;
        }
        match self.turn {
            NextMessage::Hello => self.hello(input, found),
            NextMessage::Method => self.method(input, found),
            NextMessage::Login => self.login(input, found),
            NextMessage::LoginReply => self.login_reply(input, found),
            NextMessage::Request => self.request(input, found),
            NextMessage::Reply => self.reply(input, found),
            NextMessage::Connected => self.connected(input),
        }
    }

    fn gap(&mut self, _: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        GapAction::Abort
    }

    fn end(&mut self, found: &mut Findings) {
        if let Some(row) = self.row.take().filter(|_| self.is_confirmed) {
            found.boxed_row(row);
        }
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let row = self.row.as_ref();
        size_of::<Self>() + row.map_or(0, |row| size_of::<Socks>() + row.heap_bytes())
    }
}
