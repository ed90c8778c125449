//! Tokens of GSSAPI within commands and replies (`AUTH GSSAPI`, `ADAT`, RFC 2228 section 3). Of mechanisms
//! that are TLS, as that of Globus is, the messages are read.

use netsniff_packet::Timestamp;

use crate::protocol::file_transfer::Carrier;
use crate::protocol::syntax::base64;
use crate::protocol::{Bytes, Findings, Progress, Role, Session, tls};

/// What a reply has before its token.
const ADAT: &[u8] = b"ADAT=";
/// Octets of a side that are kept until a record of TLS is whole.
const MAX_UNREAD: usize = 1 << 16;
/// What a record of a handshake begins with. Other mechanisms begin with their name (RFC 2743,
/// section 3.1).
const HANDSHAKE: u8 = 22;

/// How far an exchange of tokens has come.
#[derive(Debug, Default)]
enum TokenStage {
    /// None was asked for.
    #[default]
    None,
    /// The client has asked for it.
    Asked,
    /// The server has agreed.
    Agreed(Box<TokenExchange>),
}

/// The tokens of a control connection.
#[derive(Debug)]
pub(super) struct Tokens {
    stage: TokenStage,
    files: Carrier,
}

#[derive(Debug)]
struct TokenExchange {
    tls: Box<dyn Session>,
    unread: [Vec<u8>; 2],
    /// Whether the client has sent a token.
    has_begun: bool,
}

impl Tokens {
    pub(super) fn new(files: Carrier) -> Self {
        Self { stage: TokenStage::None, files }
    }

    /// Takes a command of the client.
    pub(super) fn command(
        &mut self,
        time: Timestamp,
        name: &[u8],
        arg: &[u8],
        found: &mut Findings,
    ) {
        match (name, &self.stage) {
            (b"AUTH", _) => {
                self.end(found);
                if arg.eq_ignore_ascii_case(b"GSSAPI") {
                    self.stage = TokenStage::Asked;
                }
            }
            (b"ADAT", TokenStage::Agreed(_)) => self.token(Role::Originator, time, arg, found),
            _ => {}
        }
    }

    /// Takes the last line of a reply.
    pub(super) fn reply(&mut self, time: Timestamp, code: u16, text: &[u8], found: &mut Findings) {
        match (code, &self.stage) {
            (_, TokenStage::None) => {}
            (334, TokenStage::Asked) => {
                let exchange = TokenExchange {
                    tls: tls::session(self.files),
                    unread: Default::default(),
                    has_begun: false,
                };
                self.stage = TokenStage::Agreed(Box::new(exchange));
            }
            (235 | 335, TokenStage::Agreed(_)) => {
                if let Some(token) = text.strip_prefix(ADAT) {
                    self.token(Role::Responder, time, token, found);
                }
                if code == 235 {
                    self.end(found);
                }
            }
            _ => self.end(found),
        }
    }

    /// Takes a token in the letters of base64. What is none ends the exchange.
    fn token(&mut self, from: Role, time: Timestamp, letters: &[u8], found: &mut Findings) {
        let TokenStage::Agreed(exchange) = &mut self.stage else { return };
        let token = if is_base64(letters) { base64::decode(letters) } else { Vec::new() };
        let is_first = from == Role::Originator && !exchange.has_begun;
        exchange.has_begun |= is_first;
        let fits = token.first().is_some_and(|octet| !is_first || *octet == HANDSHAKE);
        if !fits || !exchange.read(from, time, &token, found) {
            self.end(found);
        }
    }

    /// Nothing more comes, or something is missing.
    pub(super) fn end(&mut self, found: &mut Findings) {
        if let TokenStage::Agreed(exchange) = &mut self.stage {
            exchange.tls.end(found);
        }
        self.stage = TokenStage::None;
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.stage {
            TokenStage::Agreed(exchange) => {
                size_of::<TokenExchange>()
                    + exchange.tls.heap_bytes()
                    + exchange.unread.iter().map(Vec::capacity).sum::<usize>()
            }
            TokenStage::None | TokenStage::Asked => 0,
        }
    }
}

impl TokenExchange {
    /// Reads what a token holds; `false` once nothing more is of interest.
    fn read(&mut self, from: Role, time: Timestamp, token: &[u8], found: &mut Findings) -> bool {
        let unread = &mut self.unread[from.index()];
        unread.extend_from_slice(token);
        let mut read = 0;
        let goes_on = loop {
            let data = unread.get(read..).unwrap_or_default();
            if data.is_empty() {
                break true;
            }
            match self.tls.bytes(&Bytes { time, from, data }, found) {
                Progress::Consumed(len) => read += len,
                Progress::Need(len) if len > data.len() => break data.len() <= MAX_UNREAD,
                _ => break false,
            }
        };
        unread.drain(..read.min(unread.len()));
        goes_on
    }
}

/// Whether these are whole groups of base64 (RFC 4648, section 4).
fn is_base64(letters: &[u8]) -> bool {
    let bare = letters.strip_suffix(b"=").unwrap_or(letters);
    let bare = bare.strip_suffix(b"=").unwrap_or(bare);
    let is_letter = |octet: &u8| octet.is_ascii_alphanumeric() || [b'+', b'/'].contains(octet);
    letters.len().is_multiple_of(4) && bare.iter().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_groups_are_base64() {
        for (letters, expected) in [
            (&b""[..], true),
            (b"FgMB", true),
            (b"Fg==", true),
            (b"FgM=", true),
            (b"F===", false),
            (b"FgMBA", false),
            (b"Fg=B", false),
            (b"FgMBADAT FgM", false),
        ] {
            assert_eq!(is_base64(letters), expected);
        }
    }
}
