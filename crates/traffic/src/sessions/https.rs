//! HTTP over TLS 1.3 (RFC 8446): the handshake as far as it can be read, then noise in records of the right length.

use core::time::Duration;

use super::scene::ActiveSession;
use crate::dialogue::Side::{Client, Server};

/// Content types of records (RFC 8446, 5.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Types of handshake messages.
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// The most bytes of a record before it is encrypted, and what encryption adds: a type and a tag.
const MOST: usize = 1 << 14;
const ADDED: usize = 17;

const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;
const AES_128_GCM: u16 = 0x1301;
const AES_256_GCM: u16 = 0x1302;
const CHACHA20: u16 = 0x1303;
const X25519: u16 = 29;

pub(super) fn play(scene: &mut ActiveSession<'_>) {
    if !scene.look_up() {
        return;
    }
    let mut dialogue = scene.connection(None);
    dialogue.connect();
    let session = scene.noise(32);
    let hello = client_hello(scene, &session);
    dialogue.say(Client, &record(HANDSHAKE, 0x0301, &hello));
    let hello = server_hello(scene, &session);
    let mut flight = record(HANDSHAKE, TLS_1_2, &hello);
    flight.extend(record(CHANGE_CIPHER_SPEC, TLS_1_2, &[1]));
    // Extensions, a chain of certificates, the proof, and the end of the handshake.
    for len in [32, 2_000 + scene.random.below(2_500) as usize, 264, 36] {
        flight.extend(encrypted(scene, len));
    }
    dialogue.say(Server, &flight);
    let mut flight = record(CHANGE_CIPHER_SPEC, TLS_1_2, &[1]);
    flight.extend(encrypted(scene, 36));
    dialogue.say(Client, &flight);
    for _ in 0..1 + scene.random.below(4) {
        let asked = 300 + scene.random.below(500) as usize;
        dialogue.say(Client, &encrypted(scene, asked));
        let thought = scene.moment(Duration::from_millis(10));
        let answered = scene.size(2_000, 400_000);
        dialogue.pause(thought).say(Server, &encrypted(scene, answered));
        let looked = scene.moment(Duration::from_millis(100));
        dialogue.pause(looked);
    }
    // close_notify of both.
    for side in [Client, Server] {
        dialogue.say(side, &encrypted(scene, 2)).close(side);
    }
    scene.end(dialogue);
}

/// A record, which holds at most 2^14 bytes.
fn record(kind: u8, version: u16, content: &[u8]) -> Vec<u8> {
    let len = content.len() as u16;
    [&[kind][..], &version.to_be_bytes(), &len.to_be_bytes(), content].concat()
}

/// So many bytes, encrypted, in as many records as they need.
fn encrypted(scene: &mut ActiveSession<'_>, len: usize) -> Vec<u8> {
    let mut records = Vec::new();
    let mut left = len;
    while left > 0 {
        let of_record = left.min(MOST);
        let content = scene.noise(of_record + ADDED);
        records.extend(record(APPLICATION_DATA, TLS_1_2, &content));
        left -= of_record;
    }
    records
}

fn client_hello(scene: &mut ActiveSession<'_>, session: &[u8]) -> Vec<u8> {
    let name = scene.name();
    let host = [&[0][..], &counted(name.as_bytes())].concat();
    let groups = numbers(&[X25519, 23, 24]);
    let share = [&X25519.to_be_bytes()[..], &counted(&scene.noise(32))].concat();
    let extensions = [
        extension(0, &counted(&host)),
        extension(10, &counted(&groups)),
        // ECDSA and RSA-PSS with SHA-256 and SHA-384, and RSA with SHA-256.
        extension(13, &counted(&numbers(&[0x0403, 0x0503, 0x0804, 0x0805, 0x0401]))),
        extension(16, &counted(b"\x02h2\x08http/1.1")),
        extension(43, &short(&numbers(&[TLS_1_3, TLS_1_2]))),
        // The PSK mode with a key of its own.
        extension(45, &short(&[1])),
        extension(51, &counted(&share)),
    ];
    let body = [
        TLS_1_2.to_be_bytes().to_vec(),
        scene.noise(32),
        short(session),
        counted(&numbers(&[AES_128_GCM, AES_256_GCM, CHACHA20])),
        short(&[0]),
        counted(&extensions.concat()),
    ];
    message(CLIENT_HELLO, &body.concat())
}

fn server_hello(scene: &mut ActiveSession<'_>, session: &[u8]) -> Vec<u8> {
    let share = [&X25519.to_be_bytes()[..], &counted(&scene.noise(32))].concat();
    let extensions = [extension(43, &TLS_1_3.to_be_bytes()), extension(51, &share)];
    let body = [
        TLS_1_2.to_be_bytes().to_vec(),
        scene.noise(32),
        short(session),
        AES_128_GCM.to_be_bytes().to_vec(),
        vec![0],
        counted(&extensions.concat()),
    ];
    message(SERVER_HELLO, &body.concat())
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let [_, len @ ..] = (body.len() as u32).to_be_bytes();
    [&[kind][..], &len, body].concat()
}

fn extension(number: u16, data: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &counted(data)].concat()
}

fn numbers(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

/// Bytes behind their number, in two bytes.
fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes()[..], bytes].concat()
}

/// Bytes behind their number, in one byte.
fn short(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8][..], bytes].concat()
}
