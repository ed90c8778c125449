//! Fingerprints of hellos: [JA3 and JA3S](https://github.com/salesforce/ja3) and the client's part of
//! [JA4](https://github.com/FoxIO-LLC/ja4) (BSD 3-clause; the others of that family are not free).

use md5::{Digest as _, Md5};
use sha2::Sha256;

use super::hello::{
    ALPN, ClientHello, Extensions, POINT_FORMATS, SERVER_NAME, SIGNATURE_ALGORITHMS,
    SUPPORTED_GROUPS, SUPPORTED_VERSIONS, ServerHello,
};
use super::names::{self, grease};
use super::reader::{Reader, numbers};
use crate::file::digest::{hex, push_hex};

/// Bytes that most texts fit in of which a fingerprint is the hash.
const JA3_TEXT: usize = 256;

/// Digits of a truncated hash in JA4.
const HASH_DIGITS: usize = 12;

/// What carries the hello, as JA4 tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol) enum Carrier {
    /// TLS over TCP.
    Tcp,
    /// TLS within QUIC.
    Quic,
    /// DTLS over UDP.
    Dtls,
}

/// JA3 of a client: version, suites, extensions, groups and point formats, hashed by MD5.
pub(super) fn ja3(hello: &ClientHello<'_>) -> String {
    let mut text = Vec::with_capacity(JA3_TEXT);
    push_decimal(&mut text, hello.version);
    text.push(b',');
    join(&mut text, hello.ciphers());
    text.push(b',');
    join(&mut text, hello.extensions.iter().map(|(kind, _)| kind));
    text.push(b',');
    let groups = hello.extensions.get(SUPPORTED_GROUPS);
    let groups = groups.and_then(|content| Reader::new(content).vector16());
    join(&mut text, numbers(groups.unwrap_or_default()));
    text.push(b',');
    let formats = hello.extensions.get(POINT_FORMATS);
    let formats = formats.and_then(|content| Reader::new(content).vector8());
    join(&mut text, formats.unwrap_or_default().iter().copied().map(u16::from));
    hex(&Md5::digest(text))
}

/// Writes what [`ja3`] and [`ja4`] read of a hello, so that others have the same fingerprints only
/// where they have the same bytes.
pub(super) fn client_key(hello: &ClientHello<'_>, carrier: Carrier, key: &mut Vec<u8>) {
    key.push(carrier as u8);
    key.extend_from_slice(&hello.version.to_be_bytes());
    push_sized(key, Some(hello.cipher_bytes()));
    for kind in [SUPPORTED_GROUPS, POINT_FORMATS, SIGNATURE_ALGORITHMS, SUPPORTED_VERSIONS, ALPN] {
        push_sized(key, hello.extensions.get(kind));
    }
    push_kinds(key, &hello.extensions);
}

/// The same for [`ja3s`].
pub(super) fn server_key(hello: &ServerHello<'_>, key: &mut Vec<u8>) {
    key.extend_from_slice(&hello.version.to_be_bytes());
    key.extend_from_slice(&hello.cipher.to_be_bytes());
    push_kinds(key, &hello.extensions);
}

/// Adds a field with its length, or that there is none.
fn push_sized(key: &mut Vec<u8>, field: Option<&[u8]>) {
    let len = field.map_or(u32::MAX, |field| field.len() as u32);
    key.extend_from_slice(&len.to_be_bytes());
    key.extend_from_slice(field.unwrap_or_default());
}

/// Adds the types of extensions, with which a key ends.
fn push_kinds(key: &mut Vec<u8>, extensions: &Extensions<'_>) {
    key.extend(extensions.iter().flat_map(|(kind, _)| kind.to_be_bytes()));
}

/// JA3S of a server: version, suite and extensions, hashed by MD5.
pub(super) fn ja3s(hello: &ServerHello<'_>) -> String {
    let mut text = Vec::with_capacity(JA3_TEXT);
    for number in [hello.version, hello.cipher] {
        push_decimal(&mut text, number);
        text.push(b',');
    }
    join(&mut text, hello.extensions.iter().map(|(kind, _)| kind));
    hex(&Md5::digest(text))
}

/// JA4 of a client.
pub(super) fn ja4(hello: &ClientHello<'_>, carrier: Carrier) -> String {
    let mut ciphers: Vec<u16> = meant(hello.ciphers()).collect();
    let mut extensions: Vec<u16> = meant(hello.extensions.iter().map(|(kind, _)| kind)).collect();
    let carrier = match carrier {
        Carrier::Tcp => 't',
        Carrier::Quic => 'q',
        Carrier::Dtls => 'd',
    };
    let version = ja4_version(hello);
    let name = if extensions.contains(&SERVER_NAME) { 'd' } else { 'i' };
    let counts = [ciphers.len(), extensions.len()].map(|count| count.min(99));
    let [first, last] = ja4_protocol(hello);
    ciphers.sort_unstable();
    extensions.retain(|kind| ![SERVER_NAME, ALPN].contains(kind));
    extensions.sort_unstable();
    let algorithms = hello.extensions.get(SIGNATURE_ALGORITHMS);
    let algorithms = algorithms.and_then(|content| Reader::new(content).vector16());
    let (ciphers, mut extensions) =
        (hex_list(ciphers.into_iter()), hex_list(extensions.into_iter()));
    let algorithms = hex_list(meant(numbers(algorithms.unwrap_or_default())));
    if !extensions.is_empty() && !algorithms.is_empty() {
        extensions.push('_');
        extensions.push_str(&algorithms);
    }
    let [ciphers, extensions] = [ciphers, extensions].map(|list| truncated_hash(&list));
    let [suites, kinds] = counts;
    format!("{carrier}{version}{name}{suites:02}{kinds:02}{first}{last}_{ciphers}_{extensions}")
}

/// The highest version that the client offers.
fn ja4_version(hello: &ClientHello<'_>) -> &'static str {
    let offered = hello.extensions.get(SUPPORTED_VERSIONS);
    let offered = offered.and_then(|content| Reader::new(content).vector8());
    // Versions of DTLS are numbered downwards.
    let age = |version: &u16| if *version >= 0xfe00 { u16::MAX - *version } else { *version };
    let highest = meant(numbers(offered.unwrap_or_default())).max_by_key(age);
    match highest.unwrap_or(hello.version) {
        names::TLS13 => "13",
        names::TLS12 => "12",
        names::TLS11 => "11",
        names::TLS10 => "10",
        names::SSL3 => "s3",
        names::SSL2 => "s2",
        names::DTLS10 => "d1",
        names::DTLS12 => "d2",
        names::DTLS13 => "d3",
        _ => "00",
    }
}

/// First and last letter of the first protocol that the client speaks, or of its digits where these
/// are no letters.
fn ja4_protocol(hello: &ClientHello<'_>) -> [char; 2] {
    let Some(protocol) = hello.extensions.protocols().next() else { return ['0'; 2] };
    let (Some(first), Some(last)) = (protocol.first(), protocol.last()) else { return ['0'; 2] };
    if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() {
        return [*first, *last].map(char::from);
    }
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    [digit(first >> 4), digit(last & 0x0f)]
}

/// Values that are not there to be ignored.
fn meant(values: impl Iterator<Item = u16>) -> impl Iterator<Item = u16> {
    values.filter(|value| grease(*value).is_none())
}

/// Adds values with `-` between them.
fn join(text: &mut Vec<u8>, values: impl Iterator<Item = u16>) {
    for (at, value) in meant(values).enumerate() {
        if at > 0 {
            text.push(b'-');
        }
        push_decimal(text, value);
    }
}

/// Adds the digits of a number.
fn push_decimal(text: &mut Vec<u8>, number: u16) {
    let start = text.len();
    let mut rest = number;
    loop {
        text.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text[start..].reverse();
}

fn hex_list(values: impl Iterator<Item = u16>) -> String {
    let mut text = String::with_capacity(JA3_TEXT);
    for value in values {
        if !text.is_empty() {
            text.push(',');
        }
        push_hex(&mut text, &value.to_be_bytes());
    }
    text
}

/// The first digits of the SHA-256 of a list, and zeros for none.
fn truncated_hash(list: &str) -> String {
    if list.is_empty() {
        return "0".repeat(HASH_DIGITS);
    }
    let mut digits = hex(&Sha256::digest(list));
    digits.truncate(HASH_DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::super::hello::tests::{alpn, client, server, server_name, vector16};
    use super::*;

    fn words(list: &[u16]) -> Vec<u8> {
        list.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    /// The hello that JA4's description calls by its fingerprint `t13d1516h2_8daaf6152771_e5627efa2ab1`:
    /// suites and extensions are those listed there.
    fn described() -> Vec<u8> {
        let suites = [
            0x0a0a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
            0xc014, 0x009c, 0x009d, 0x002f, 0x0035,
        ];
        let algorithms = words(&[0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601]);
        let versions = [vec![6], words(&[0x1a1a, 0x0304, 0x0303])].concat();
        let mut extensions = vec![(0x2a2a, vec![]), (0, server_name("a.example"))];
        extensions.extend([(16, alpn(&["h2", "http/1.1"])), (13, vector16(algorithms))]);
        extensions.push((43, versions));
        for kind in [0x05, 0x0a, 0x0b, 0x12, 0x15, 0x17, 0x1b, 0x23, 0x2d, 0x33, 0x4469, 0xff01] {
            extensions.push((kind, vec![]));
        }
        client(0x0303, &[], &suites, &extensions)
    }

    #[test]
    fn ja4_is_that_of_its_description() {
        let body = described();
        let hello = ClientHello::of(&body, false).unwrap();
        assert_eq!(ja4(&hello, Carrier::Tcp), "t13d1516h2_8daaf6152771_e5627efa2ab1");
        assert!(ja4(&hello, Carrier::Quic).starts_with("q13d"));
    }

    #[test]
    fn ja4_of_little() {
        let hello = |extensions: &[(u16, Vec<u8>)]| client(0xfefd, &[], &[0x0a0a], extensions);
        let ja4 = |body: &[u8]| ja4(&ClientHello::of(body, false).unwrap(), Carrier::Dtls);
        assert_eq!(ja4(&hello(&[])), "dd2i000000_000000000000_000000000000");
        // 0xab and 0xcd are no letters: the first digit and the last one stand for them.
        let unnamed = (16, vector16(vec![2, 0xab, 0xcd]));
        assert_eq!(ja4(&hello(&[unnamed])), "dd2i0001ad_000000000000_000000000000");
    }

    #[test]
    fn ja3_lists_what_is_meant() {
        let extensions =
            [(0x1a1a, vec![]), (10, vector16(words(&[0x2a2a, 29, 23]))), (11, vec![1, 0])];
        let body = client(0x0301, &[], &[0x3a3a, 47, 53], &extensions);
        let hello = ClientHello::of(&body, false).unwrap();
        assert_eq!(ja3(&hello), hex(&Md5::digest("769,47-53,10-11,29-23,0")));
        let body = server(0x0303, &[], 0xc02f, &[(65281, vec![0]), (11, vec![1, 0])]);
        assert_eq!(ja3s(&ServerHello::of(&body).unwrap()), hex(&Md5::digest("771,49199,65281-11")));
    }
}
