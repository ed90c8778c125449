//! Messages as they lie in a stream.

use netsniff_packet::Address;

/// What the begin of a stream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed<T> {
    /// A message, and its length.
    Whole(T, usize),
    /// The begin of one, which is at least so long.
    More(usize),
    /// The bytes are no message.
    Bad,
}

/// What a client says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hello<'a> {
    /// Version 5: the methods by which it can tell who it is.
    Greeting(&'a [u8]),
    /// Version 4: what it wants.
    Request(Request),
}

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// 1 to connect, 2 to wait for a connection, 3 to relay UDP.
    pub(super) command: u8,
    pub(super) target: Target,
    /// Who the client is, in version 4.
    pub(super) user: Option<Box<[u8]>>,
}

/// A port of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Option<Address>,
    pub(super) name: Option<Box<[u8]>>,
    pub(super) port: u16,
}

/// No authentication (RFC 1928, section 3).
pub(super) const NO_AUTHENTICATION: u8 = 0;
/// User name and password, RFC 1929.
pub(super) const PASSWORD: u8 = 2;
/// None of the methods that the client offers.
pub(super) const NONE_ACCEPTABLE: u8 = 0xff;

/// The longest text of version 4, which has no bound: as long as those of version 5 can be.
const MAX_TEXT: usize = 255;

/// A client's first message.
pub(super) fn hello(data: &[u8]) -> Parsed<Hello<'_>> {
    match data.first() {
        None => Parsed::More(3),
        Some(4) => request_4(data).map(Hello::Request),
        Some(5) => greeting(data).map(Hello::Greeting),
        Some(_) => Parsed::Bad,
    }
}

/// Whether a server may choose a method of those that the client offers.
pub(super) fn may_choose(method: u8, offered: &[u8]) -> bool {
    method == NONE_ACCEPTABLE || offered.contains(&method)
}

/// Whether a method has a meaning: one that IANA assigned, or a private one.
const fn is_method(method: u8) -> bool {
    matches!(method, 0..=9 | 0x80..=0xfe)
}

fn greeting(data: &[u8]) -> Parsed<&[u8]> {
    let Some((&count, methods)) = data.get(1..).and_then(<[u8]>::split_first) else {
        return Parsed::More(3);
    };
    let len = usize::from(count);
    let methods = methods.get(..len).unwrap_or(methods);
    if len == 0 || !methods.iter().all(|&method| is_method(method)) {
        return Parsed::Bad;
    }
    if methods.len() < len { Parsed::More(2 + len) } else { Parsed::Whole(methods, 2 + len) }
}

/// A request of version 4, with the name of 4a.
fn request_4(data: &[u8]) -> Parsed<Request> {
    if data.get(1).is_some_and(|command| !matches!(command, 1 | 2)) {
        return Parsed::Bad;
    }
    let Some((&[_, command, high, low, a, b, c, d], rest)) = data.split_first_chunk() else {
        return Parsed::More(9);
    };
    let (user, mut len) = match text(rest) {
        Parsed::Whole(user, len) => (user, 8 + len),
        Parsed::More(len) => return Parsed::More(8 + len),
        Parsed::Bad => return Parsed::Bad,
    };
    let mut name = None;
    if [a, b, c] == [0; 3] && d != 0 {
        match text(data.get(len..).unwrap_or_default()) {
            Parsed::Whole(text, more) => {
                name = Some(text.into());
                len += more;
            }
            Parsed::More(more) => return Parsed::More(len + more),
            Parsed::Bad => return Parsed::Bad,
        }
    }
    let host = Some(Address::from_v4([a, b, c, d]));
    let target = Target { host, name, port: u16::from_be_bytes([high, low]) };
    let user = (!user.is_empty()).then(|| user.into());
    Parsed::Whole(Request { command, target, user }, len)
}

/// A text that a NUL ends.
fn text(data: &[u8]) -> Parsed<&[u8]> {
    let head = data.get(..=MAX_TEXT).unwrap_or(data);
    match head.iter().position(|&byte| byte == 0) {
        Some(end) => Parsed::Whole(&head[..end], end + 1),
        None if head.len() > MAX_TEXT => Parsed::Bad,
        None => Parsed::More(data.len() + 1),
    }
}

/// A reply of version 4: its code, and the server's end.
pub(super) fn reply_4(data: &[u8]) -> Parsed<(u8, Target)> {
    match *data {
        [0, code, high, low, a, b, c, d, ..] => {
            let host = Some(Address::from_v4([a, b, c, d]));
            let port = u16::from_be_bytes([high, low]);
            Parsed::Whole((code, Target { host, name: None, port }), 8)
        }
        [] | [0, ..] => Parsed::More(8),
        _ => Parsed::Bad,
    }
}

/// A request of version 5.
pub(super) fn request_5(data: &[u8]) -> Parsed<Request> {
    let is_odd = |at: usize, is_known: fn(u8) -> bool| data.get(at).is_some_and(|&b| !is_known(b));
    if is_odd(1, |command| matches!(command, 1..=3)) || is_odd(2, |reserved| reserved == 0) {
        return Parsed::Bad;
    }
    reply_5(data).map(|(command, target)| Request { command, target, user: None })
}

/// A reply of version 5, which is laid out as requests are: its code, and the server's end.
pub(super) fn reply_5(data: &[u8]) -> Parsed<(u8, Target)> {
    if data.first().is_some_and(|&version| version != 5) {
        return Parsed::Bad;
    }
    let Some((&[_, code, _, kind, first], _)) = data.split_first_chunk() else {
        // Each of the first bytes may show that it is none.
        let is_known = |kind: &u8| matches!(kind, 1 | 3 | 4);
        let is_begin = data.get(3).is_none_or(is_known);
        return if is_begin { Parsed::More(data.len() + 1) } else { Parsed::Bad };
    };
    let (from, len) = match kind {
        1 => (4, 4),
        3 => (5, usize::from(first)),
        4 => (4, 16),
        _ => return Parsed::Bad,
    };
    let rest = data.get(from..).unwrap_or_default();
    let Some((host, &[high, low])) =
        rest.split_at_checked(len).and_then(|(host, rest)| Some((host, rest.first_chunk()?)))
    else {
        return Parsed::More(from + len + 2);
    };
    let address = match kind {
        1 => host.first_chunk().map(|&octets| Address::from_v4(octets)),
        4 => host.first_chunk().map(|&octets| Address::from_v6(octets)),
        _ => None,
    };
    let name = (kind == 3).then(|| host.into());
    let target = Target { host: address, name, port: u16::from_be_bytes([high, low]) };
    Parsed::Whole((code, target), from + len + 2)
}

/// The user of a request to log in (RFC 1929, section 2), which has a password behind it.
pub(super) fn login(data: &[u8]) -> Parsed<&[u8]> {
    if data.first().is_some_and(|&version| version != 1) {
        return Parsed::Bad;
    }
    let Some((&[_, user_len], rest)) = data.split_first_chunk() else {
        return Parsed::More(3);
    };
    let user_len = usize::from(user_len);
    let Some((user, [password_len, password @ ..])) = rest.split_at_checked(user_len) else {
        return Parsed::More(2 + user_len + 1);
    };
    let len = 2 + user_len + 1 + usize::from(*password_len);
    let is_whole = password.len() >= usize::from(*password_len);
    if is_whole { Parsed::Whole(user, len) } else { Parsed::More(len) }
}

impl<T> Parsed<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Parsed<U> {
        match self {
            Self::Whole(message, len) => Parsed::Whole(change(message), len),
            Self::More(len) => Parsed::More(len),
            Self::Bad => Parsed::Bad,
        }
    }
}
