//! The hellos, RFC 8446 sections 4.1.2 and 4.1.3, which are those of SSL 3 with extensions.

use super::names::TLS13;
use super::reader::{Reader, numbers};

/// `server_name`, RFC 6066 section 3.
pub(super) const SERVER_NAME: u16 = 0;
/// `supported_groups`, RFC 8422 section 5.1.1.
pub(super) const SUPPORTED_GROUPS: u16 = 10;
/// `ec_point_formats`, RFC 8422 section 5.1.2.
pub(super) const POINT_FORMATS: u16 = 11;
/// `signature_algorithms`, RFC 8446 section 4.2.3.
pub(super) const SIGNATURE_ALGORITHMS: u16 = 13;
/// `application_layer_protocol_negotiation`, RFC 7301 section 3.1.
pub(super) const ALPN: u16 = 16;
/// `session_ticket`, RFC 5077 section 3.2.
pub(super) const SESSION_TICKET: u16 = 35;
/// `pre_shared_key`, RFC 8446 section 4.2.11.
pub(super) const PRE_SHARED_KEY: u16 = 41;
/// `supported_versions`, RFC 8446 section 4.2.1.
pub(super) const SUPPORTED_VERSIONS: u16 = 43;
/// `key_share`, RFC 8446 section 4.2.8; drafts of TLS 1.3 had it as 40.
pub(super) const KEY_SHARE: [u16; 2] = [51, 40];

/// The random of a ServerHello that asks for another ClientHello, RFC 8446 section 4.1.3.
const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// The name type of host names, RFC 6066 section 3.
const HOST_NAME: u8 = 0;

/// What a client offers.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct ClientHello<'a> {
    /// `legacy_version`.
    pub(in crate::protocol) version: u16,
    /// `legacy_session_id`.
    pub(in crate::protocol) session_id: &'a [u8],
    ciphers: &'a [u8],
    pub(in crate::protocol) extensions: Extensions<'a>,
}

impl<'a> ClientHello<'a> {
    /// The hello in the body of a handshake message; `None` where it is none. That of DTLS has a
    /// cookie (RFC 6347, 4.2.1).
    pub(in crate::protocol) fn of(body: &'a [u8], has_cookie: bool) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = reader.u16()?;
        reader.take(RETRY.len())?;
        let session_id = reader.vector8()?;
        if has_cookie {
            reader.vector8()?;
        }
        let ciphers = reader.vector16()?;
        let compressions = reader.vector8()?;
        if ciphers.is_empty() || ciphers.len() % 2 != 0 || compressions.is_empty() {
            return None;
        }
        let extensions = Extensions::of(reader.rest())?;
        Some(Self { version, session_id, ciphers, extensions })
    }

    /// The cipher suites in the client's order.
    pub(super) fn ciphers(&self) -> impl Iterator<Item = u16> + Clone + 'a {
        numbers(self.ciphers)
    }

    /// The cipher suites as they were sent.
    pub(super) const fn cipher_bytes(&self) -> &'a [u8] {
        self.ciphers
    }

    /// The first host name of `server_name`, with how many there are. What is not a host name is
    /// left out, and nothing behind a malformed name is read.
    pub(in crate::protocol) fn server_name(&self) -> Option<(&'a [u8], usize)> {
        let mut names = Reader::new(Reader::new(self.extensions.get(SERVER_NAME)?).vector16()?);
        let (mut first, mut count) = (None, 0);
        while let Some(kind) = names.u8() {
            let Some(name) = names.vector16() else { break };
            if kind == HOST_NAME {
                first = first.or(Some(name));
                count += 1;
            }
        }
        first.map(|name| (name, count))
    }
}

/// What a server chose.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct ServerHello<'a> {
    /// `legacy_version`.
    pub(super) version: u16,
    /// Whether it asks for another ClientHello.
    pub(super) is_retry: bool,
    /// `legacy_session_id_echo`.
    pub(super) session_id: &'a [u8],
    pub(super) cipher: u16,
    pub(super) extensions: Extensions<'a>,
}

impl<'a> ServerHello<'a> {
    /// The hello in the body of a handshake message; `None` where it is none.
    pub(super) fn of(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = reader.u16()?;
        let random: [u8; 32] = reader.array()?;
        let is_retry = random == RETRY;
        // Drafts of TLS 1.3 up to the 21st had neither session identifier nor compression; some had the
        // final version already.
        let is_early_draft = (0x7f00..0x7f16).contains(&version) || version == TLS13;
        let session_id = if is_early_draft { &[][..] } else { reader.vector8()? };
        let cipher = reader.u16()?;
        if !is_early_draft {
            reader.u8()?;
        }
        let extensions = Extensions::of(reader.rest())?;
        Some(Self { version, is_retry, session_id, cipher, extensions })
    }

    /// The version of `supported_versions`, which is the one that counts.
    pub(super) fn selected_version(&self) -> Option<u16> {
        Reader::new(self.extensions.get(SUPPORTED_VERSIONS)?).u16()
    }

    /// The group of `key_share`: that of the server's share, or the one that it asks for.
    pub(super) fn group(&self) -> Option<u16> {
        let shares = KEY_SHARE.into_iter().filter_map(|kind| self.extensions.get(kind));
        shares.filter_map(|share| Reader::new(share).u16()).next()
    }
}

/// The extensions of a hello, RFC 8446 section 4.2, none of which is cut.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Extensions<'a> {
    list: &'a [u8],
}

impl<'a> Extensions<'a> {
    /// The extensions in what a hello ends with: nothing, or a list with its length. As in Zeek, the
    /// list goes to the end of the message whatever its length says.
    fn of(end: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(end);
        if reader.is_empty() {
            return Some(Self { list: &[] });
        }
        reader.u16()?;
        let list = reader.rest();
        while !reader.is_empty() {
            reader.u16()?;
            reader.vector16()?;
        }
        Some(Self { list })
    }

    /// Types and contents in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> + Clone + use<'a> {
        let mut reader = Reader::new(self.list);
        core::iter::from_fn(move || Some((reader.u16()?, reader.vector16()?)))
    }

    /// The content of the first extension of a type.
    pub(super) fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.iter().find(|(other, _)| *other == kind).map(|(_, content)| content)
    }

    /// The protocols of `application_layer_protocol_negotiation`.
    pub(in crate::protocol) fn protocols(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let list = self.get(ALPN).and_then(|content| Reader::new(content).vector16());
        let mut reader = Reader::new(list.unwrap_or_default());
        core::iter::from_fn(move || reader.vector8())
    }
}

/// The ClientHello of SSL 2, in which later versions could be offered (RFC 5246, E.2). Only that it
/// is one, and which version it offers, is told.
pub(super) fn is_ssl2_client_hello(body: &[u8]) -> bool {
    let mut reader = Reader::new(body);
    let lengths = [reader.u16(), reader.u16(), reader.u16()];
    let [Some(ciphers), Some(session), Some(challenge)] = lengths else { return false };
    let total = [ciphers, session, challenge].map(usize::from).iter().sum::<usize>();
    ciphers % 3 == 0 && ciphers > 0 && total <= reader.rest().len()
}

/// What a server chose in SSL 2 (the draft's section 2.6).
#[derive(Clone, Copy, Debug)]
pub(super) struct Ssl2ServerHello<'a> {
    pub(super) version: u16,
    /// The first of the kinds of ciphers that both have.
    pub(super) cipher: u32,
    pub(super) certificate: &'a [u8],
}

impl<'a> Ssl2ServerHello<'a> {
    /// The hello behind the three octets that tell its type, a hit and the type of the certificate.
    pub(super) fn of(body: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let version = reader.u16()?;
        let [certificate, ciphers, _] = [reader.u16()?, reader.u16()?, reader.u16()?];
        let certificate = reader.take(usize::from(certificate))?;
        let ciphers = reader.take(usize::from(ciphers))?;
        let cipher = Reader::new(ciphers).u24().unwrap_or(0);
        Some(Self { version, cipher, certificate })
    }
}

#[cfg(test)]
pub(in crate::protocol) mod tests {
    use super::*;

    /// The body of a ClientHello with these suites and extensions.
    pub(in crate::protocol) fn client(
        version: u16,
        session_id: &[u8],
        ciphers: &[u16],
        extensions: &[(u16, Vec<u8>)],
    ) -> Vec<u8> {
        let mut body = version.to_be_bytes().to_vec();
        body.extend([7; 32]);
        body.push(session_id.len() as u8);
        body.extend(session_id);
        body.extend(vector16(ciphers.iter().flat_map(|suite| suite.to_be_bytes()).collect()));
        body.extend([1, 0]);
        if !extensions.is_empty() {
            body.extend(list(extensions));
        }
        body
    }

    /// The body of a ServerHello.
    pub(in crate::protocol) fn server(
        version: u16,
        session_id: &[u8],
        cipher: u16,
        extensions: &[(u16, Vec<u8>)],
    ) -> Vec<u8> {
        let mut body = version.to_be_bytes().to_vec();
        body.extend([9; 32]);
        body.push(session_id.len() as u8);
        body.extend(session_id);
        body.extend(cipher.to_be_bytes());
        body.push(0);
        if !extensions.is_empty() {
            body.extend(list(extensions));
        }
        body
    }

    fn list(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let one = |(kind, content): &(u16, Vec<u8>)| {
            [kind.to_be_bytes().to_vec(), vector16(content.clone())].concat()
        };
        vector16(extensions.iter().flat_map(one).collect())
    }

    /// A vector whose length has two octets.
    pub(in crate::protocol) fn vector16(content: Vec<u8>) -> Vec<u8> {
        [(content.len() as u16).to_be_bytes().to_vec(), content].concat()
    }

    /// The content of `server_name`.
    pub(in crate::protocol) fn server_name(name: &str) -> Vec<u8> {
        vector16([vec![HOST_NAME], vector16(name.as_bytes().to_vec())].concat())
    }

    /// The content of `application_layer_protocol_negotiation`.
    pub(in crate::protocol) fn alpn(names: &[&str]) -> Vec<u8> {
        let one = |name: &&str| [vec![name.len() as u8], name.as_bytes().to_vec()].concat();
        vector16(names.iter().flat_map(one).collect())
    }

    /// A retry request for a group.
    pub(in crate::protocol) fn retry(group: u16) -> Vec<u8> {
        let extensions = [(43, vec![3, 4]), (KEY_SHARE[0], group.to_be_bytes().to_vec())];
        let mut body = server(0x0303, &[], 0x1301, &extensions);
        body[2..34].copy_from_slice(&RETRY);
        body
    }

    #[test]
    fn a_client_hello_is_read() {
        let extensions =
            [(SERVER_NAME, server_name("example.org")), (ALPN, alpn(&["h2", "http/1.1"]))];
        let body = client(0x0303, &[1, 2], &[0x1301, 0xc02f], &extensions);
        let hello = ClientHello::of(&body, false).unwrap();
        assert_eq!((hello.version, hello.session_id), (0x0303, &[1, 2][..]));
        assert_eq!(hello.ciphers().collect::<Vec<_>>(), [0x1301, 0xc02f]);
        assert_eq!(hello.server_name(), Some((&b"example.org"[..], 1)));
        assert_eq!(hello.extensions.protocols().collect::<Vec<_>>(), [&b"h2"[..], b"http/1.1"]);
        // As in Zeek, a list of extensions may be shorter than it says: none, and one of the two.
        let cut = |cut: usize| ClientHello::of(body.get(..cut).unwrap(), false);
        assert_eq!((0..body.len()).filter(|at| cut(*at).is_some()).count(), 3);
    }

    #[test]
    fn no_suite_and_no_compression_are_no_hello() {
        assert!(ClientHello::of(&client(0x0301, &[], &[], &[]), false).is_none());
        let mut body = client(0x0301, &[], &[5], &[]);
        body.truncate(body.len() - 2);
        body.push(0);
        assert!(ClientHello::of(&body, false).is_none());
    }

    #[test]
    fn a_server_hello_is_read() {
        let share = [29_u16.to_be_bytes().to_vec(), vector16(vec![1; 32])].concat();
        let extensions = [(SUPPORTED_VERSIONS, vec![3, 4]), (KEY_SHARE[0], share)];
        let body = server(0x0303, &[5], 0x1302, &extensions);
        let hello = ServerHello::of(&body).unwrap();
        assert_eq!((hello.version, hello.cipher, hello.is_retry), (0x0303, 0x1302, false));
        assert_eq!((hello.selected_version(), hello.group()), (Some(0x0304), Some(29)));
        let body = retry(24);
        let hello = ServerHello::of(&body).unwrap();
        assert_eq!((hello.is_retry, hello.group()), (true, Some(24)));
    }

    #[test]
    fn an_early_draft_has_neither_session_nor_compression() {
        let mut body = vec![0x7f, 0x12];
        body.extend([9; 32]);
        body.extend([0x13, 0x01, 0, 0]);
        assert_eq!(ServerHello::of(&body).unwrap().cipher, 0x1301);
        body[..2].copy_from_slice(&[3, 4]);
        assert_eq!(ServerHello::of(&body).unwrap().cipher, 0x1301);
    }

    #[test]
    fn hellos_of_ssl2_are_read() {
        let hello = [&[0, 3, 0, 0, 0, 16, 1, 0, 0x80][..], &[5; 16]].concat();
        assert!(is_ssl2_client_hello(&hello) && !is_ssl2_client_hello(&hello[..24]));
        let hello = [&[0, 2, 0, 2, 0, 3, 0, 1, 0x30, 0, 1, 0, 0x80, 9][..]].concat();
        let hello = Ssl2ServerHello::of(&hello).unwrap();
        assert_eq!(
            (hello.version, hello.cipher, hello.certificate),
            (2, 0x01_0080, &[0x30, 0][..])
        );
    }
}
