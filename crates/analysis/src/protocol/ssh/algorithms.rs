//! What the sides offer in their first messages (RFC 4253, 7.1), what is agreed, and the
//! fingerprints of offers that are known as HASSH.

use md5::{Digest, Md5};

use super::framing::Framing;
use super::packet::string;
use crate::file::digest::hex;

/// Names of a list that are looked at (`max_algorithms`): longer lists would cost their square.
pub(super) const MAX_NAMES: usize = 100;

/// Bytes of the random number before the lists.
const COOKIE_LEN: usize = 16;

/// What one side offers: lists of names with commas between, most wanted first.
#[derive(Debug)]
pub(super) struct Offer {
    key_exchange: Box<[u8]>,
    host_key: Box<[u8]>,
    /// For what the client sends, and for what the server sends.
    cipher: [Box<[u8]>; 2],
    mac: [Box<[u8]>; 2],
    compression: [Box<[u8]>; 2],
    /// How many languages the lists name.
    languages: [usize; 2],
}

/// The side that an offer is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offerer {
    Client,
    Server,
}

/// The algorithms that both sides agree on (RFC 4253, 7.1).
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) cipher: Box<[u8]>,
    pub(super) mac: Box<[u8]>,
    pub(super) compression: Box<[u8]>,
    pub(super) key_exchange: Box<[u8]>,
    pub(super) host_key: Box<[u8]>,
    /// How the server frames what it encrypts.
    pub(super) framing: Framing,
}

/// A server's message with its host key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostKeyMessage {
    pub(super) number: u8,
    /// Strings that it has; the first is the key.
    pub(super) strings: usize,
}

impl Offer {
    /// Reads the body of `SSH_MSG_KEXINIT`.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let mut rest = body.get(COOKIE_LEN..)?;
        let mut list = || string(&mut rest).map(Box::from);
        Some(Self {
            key_exchange: list()?,
            host_key: list()?,
            cipher: [list()?, list()?],
            mac: [list()?, list()?],
            compression: [list()?, list()?],
            languages: [list(), list()].map(|list| list.map_or(0, |list| count(&list))),
        })
    }

    /// The lists of which not all names are looked at, with how many they have. Where both directions have such a
    /// list the first counts.
    pub(super) fn too_long(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let is_long = |names: &usize| *names > MAX_NAMES;
        let first = |lists: [usize; 2]| lists.into_iter().find(is_long).unwrap_or(0);
        let both = |lists: &[Box<[u8]>; 2]| first(lists.each_ref().map(|list| count(list)));
        let lists = [
            ("SSH_max_kexinit_kex_algorithms_exceeded", count(&self.key_exchange)),
            ("SSH_max_kexinit_hostkey_algorithms_exceeded", count(&self.host_key)),
            ("SSH_max_kexinit_encryption_algorithms_exceeded", both(&self.cipher)),
            ("SSH_max_kexinit_mac_algorithms_exceeded", both(&self.mac)),
            ("SSH_max_kexinit_compression_algorithms_exceeded", both(&self.compression)),
            ("SSH_max_kexinit_languages_exceeded", first(self.languages)),
        ];
        lists.into_iter().filter(move |(_, names)| is_long(names))
    }

    /// HASSH of a client, HASSHServer of a server: the MD5 of the lists that concern what the side
    /// sends (<https://github.com/salesforce/hassh>).
    pub(super) fn hassh(&self, of: Offerer) -> String {
        let direction = of as usize;
        let mut digest = Md5::new();
        digest.update(&self.key_exchange);
        for lists in [&self.cipher, &self.mac, &self.compression] {
            digest.update(b";");
            digest.update(&lists[direction]);
        }
        hex(&digest.finalize())
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let pairs = [&self.cipher, &self.mac, &self.compression];
        let lists = pairs.into_iter().flatten().chain([&self.key_exchange, &self.host_key]);
        lists.map(|list| list.len()).sum()
    }
}

impl Agreed {
    /// What a client and a server agree on.
    pub(super) fn between(client: &Offer, server: &Offer) -> Self {
        Self {
            cipher: both_ways(&client.cipher, &server.cipher),
            mac: both_ways(&client.mac, &server.mac),
            compression: both_ways(&client.compression, &server.compression),
            key_exchange: one_of(&client.key_exchange, &server.key_exchange).into(),
            host_key: one_of(&client.host_key, &server.host_key).into(),
            framing: Framing::of(
                one_of(&client.cipher[1], &server.cipher[1]),
                one_of(&client.mac[1], &server.mac[1]),
            ),
        }
    }

    /// Whether what is encrypted is compressed before, so that its size tells little.
    pub(super) fn is_compressed(&self) -> bool {
        matches!(&*self.compression, b"zlib" | b"zlib@openssh.com")
    }

    /// The server's message that begins with its host key; `None` for a key exchange that is not known to
    /// have one.
    pub(super) fn host_key_message(&self) -> Option<HostKeyMessage> {
        let number = self.host_key_number()?;
        let strings = match &*self.key_exchange {
            kex if kex.starts_with(b"gss-") => 1,
            // The key, and one that is made for this connection.
            kex if kex.starts_with(b"rsa") => 2,
            // The key, the server's part of the exchange, and the signature (RFC 4253, 8).
            _ => 3,
        };
        Some(HostKeyMessage { number, strings })
    }

    fn host_key_number(&self) -> Option<u8> {
        match &*self.key_exchange {
            // RFC 4419: 31 is the group, 33 the reply.
            kex if kex.starts_with(b"diffie-hellman-group-exchange-") => Some(33),
            // RFC 4462: SSH_MSG_KEXGSS_HOSTKEY.
            kex if kex.starts_with(b"gss-") => Some(33),
            // RFC 4432: SSH_MSG_KEXRSA_PUBKEY.
            b"rsa1024-sha1" | b"rsa2048-sha256" => Some(30),
            // RFC 4253, RFC 5656, RFC 8731, and the hybrids with post-quantum methods.
            kex if [b"diffie-hell", b"ecdh-sha2-n", b"curve25519-", b"curve448-sh"]
                .iter()
                .any(|start| kex.starts_with(*start)) =>
            {
                Some(31)
            }
            kex if [&b"ecmqv-sha2"[..], b"sntrup", b"mlkem", b"ecdh-sha2-1."]
                .iter()
                .any(|start| kex.starts_with(start)) =>
            {
                Some(31)
            }
            _ => None,
        }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let Self { cipher, mac, compression, key_exchange, host_key, framing: _ } = self;
        [cipher, mac, compression, key_exchange, host_key].iter().map(|name| name.len()).sum()
    }
}

/// The first of the client's names that the server has, too (RFC 4253, 7.1), or Zeek's words for
/// none.
fn one_of<'a>(client: &'a [u8], server: &[u8]) -> &'a [u8] {
    names(client)
        .find(|name| names(server).any(|other| other == *name))
        .unwrap_or(b"Algorithm negotiation failed")
}

/// What both directions use, or in Zeek's words what each does.
fn both_ways(client: &[Box<[u8]>; 2], server: &[Box<[u8]>; 2]) -> Box<[u8]> {
    let [to_server, to_client] = [0, 1].map(|way| one_of(&client[way], &server[way]));
    if to_server == to_client {
        return to_server.into();
    }
    [&b"To server: "[..], to_server, b", to client: ", to_client].concat().into()
}

/// How many names a list has.
fn count(list: &[u8]) -> usize {
    list.split(|&byte| byte == b',').filter(|name| !name.is_empty()).count()
}

fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|&byte| byte == b',').filter(|name| !name.is_empty()).take(MAX_NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(lists: [&str; 8]) -> Offer {
        let mut body = vec![0; COOKIE_LEN];
        for list in lists {
            body.extend((list.len() as u32).to_be_bytes());
            body.extend(list.as_bytes());
        }
        Offer::read(&body).unwrap()
    }

    #[test]
    fn the_clients_wish_counts() {
        let client = offer(["a,b", "k", "x,y", "y,x", "m", "m", "zlib", "zlib"]);
        let server = offer(["b,a", "l", "y,x", "x,y", "n,m", "m", "zlib", "zlib"]);
        let agreed = Agreed::between(&client, &server);
        assert_eq!(&*agreed.key_exchange, b"a");
        assert_eq!(&*agreed.host_key, b"Algorithm negotiation failed");
        assert_eq!(&*agreed.cipher, b"To server: x, to client: y");
        assert_eq!(&*agreed.mac, b"m");
        assert!(agreed.is_compressed());
    }

    #[test]
    fn the_host_key_is_in_the_reply() {
        for (kex, number) in [
            ("diffie-hellman-group14-sha256", Some(31)),
            ("diffie-hellman-group-exchange-sha1", Some(33)),
            ("ecdh-sha2-nistp384", Some(31)),
            ("curve25519-sha256", Some(31)),
            ("sntrup761x25519-sha512@openssh.com", Some(31)),
            ("mlkem768x25519-sha256", Some(31)),
            ("gss-gex-sha1-abc", Some(33)),
            ("rsa2048-sha256", Some(30)),
            ("something-else", None),
        ] {
            let offer = offer([kex, "k", "x", "x", "m", "m", "none", "none"]);
            let message = Agreed::between(&offer, &offer).host_key_message();
            assert_eq!(message.map(|message| message.number), number, "{kex}");
        }
    }

    #[test]
    fn offers_have_the_fingerprints_that_others_compute() {
        // By `printf 'a;x;m;none' | md5sum`, and with `a;y;n;zlib`.
        let offer = offer(["a", "k", "x", "y", "m", "n", "none", "zlib"]);
        assert_eq!(offer.hassh(Offerer::Client), "0fe608e2fc7b330eb03bf556e26eacac");
        assert_eq!(offer.hassh(Offerer::Server), "82cafee8bbb31607f2b340445bd2e46d");
    }

    #[test]
    fn a_short_offer_is_none() {
        let body = [&[0; COOKIE_LEN][..], &[0, 0, 0, 1]].concat();
        for len in 0..body.len() {
            assert!(Offer::read(&body[..len]).is_none());
        }
    }
}
