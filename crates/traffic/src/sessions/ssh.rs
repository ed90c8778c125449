//! SSH (RFC 4253): versions, key exchange with curve25519 (RFC 8731), and a shell, of which nobody can read anything.

use core::time::Duration;

use super::scene::ActiveSession;
use crate::dialogue::Side::{Client, Server};

/// Numbers of messages (RFC 4250, 4.1.2).
const KEXINIT: u8 = 20;
const NEWKEYS: u8 = 21;
const ECDH_INIT: u8 = 30;
const ECDH_REPLY: u8 = 31;

/// Bytes of an authentication tag of chacha20-poly1305.
const TAG: usize = 16;

pub(super) fn play(scene: &mut ActiveSession<'_>) {
    if !scene.look_up() {
        return;
    }
    let mut dialogue = scene.connection(None);
    dialogue.connect();
    dialogue
        .say(Client, b"SSH-2.0-OpenSSH_9.6\r\n")
        .say(Server, b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n");
    for side in [Client, Server] {
        let offer = offer(scene);
        dialogue.say(side, &packet(scene, &offer));
    }
    let ours = string(&scene.noise(32));
    let init = [&[ECDH_INIT][..], &ours].concat();
    dialogue.say(Client, &packet(scene, &init));
    let key = string(&[string(b"ssh-ed25519"), string(&scene.noise(32))].concat());
    let theirs = string(&scene.noise(32));
    let signature = string(&[string(b"ssh-ed25519"), string(&scene.noise(64))].concat());
    let reply = [vec![ECDH_REPLY], key, theirs, signature].concat();
    let reply = [packet(scene, &reply), packet(scene, &[NEWKEYS])].concat();
    dialogue.say(Server, &reply);
    dialogue.say(Client, &packet(scene, &[NEWKEYS]));
    // The service, the user, and the proof, each with its answer.
    for (asked, answered) in [(16, 16), (32, 32), (320, 16), (80, 48)] {
        say(scene, &mut dialogue, asked, answered, Duration::from_millis(5));
    }
    for _ in 0..2 + scene.random.below(30) {
        let answered = scene.size(16, 20_000) / 8 * 8;
        say(scene, &mut dialogue, 16, answered, Duration::from_millis(400));
    }
    dialogue.close(Client).close(Server);
    scene.end(dialogue);
}

/// A message and its answer, encrypted: lengths of multiples of 8, a length field and a tag.
fn say(
    scene: &mut ActiveSession<'_>,
    dialogue: &mut crate::dialogue::Dialogue,
    asked: usize,
    answered: usize,
    pause: Duration,
) {
    let message = scene.noise(4 + asked + TAG);
    dialogue.say(Client, &message);
    let answer = scene.noise(4 + answered + TAG);
    dialogue.say(Server, &answer);
    let typed = scene.moment(pause);
    dialogue.pause(typed);
}

/// A binary packet (RFC 4253, 6).
fn packet(scene: &mut ActiveSession<'_>, payload: &[u8]) -> Vec<u8> {
    let padding = 4 + (8 - (5 + payload.len() + 4) % 8) % 8;
    let mut packet = ((1 + payload.len() + padding) as u32).to_be_bytes().to_vec();
    packet.push(padding as u8);
    packet.extend(payload);
    packet.extend(scene.noise(padding));
    packet
}

/// The algorithms that a side knows.
fn offer(scene: &mut ActiveSession<'_>) -> Vec<u8> {
    let mut offer = vec![KEXINIT];
    offer.extend(scene.noise(16));
    let (cipher, mac, compression) = (
        "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com",
        "hmac-sha2-256-etm@openssh.com",
        "none",
    );
    let lists = [
        "curve25519-sha256,curve25519-sha256@libssh.org",
        "ssh-ed25519,rsa-sha2-512",
        cipher,
        cipher,
        mac,
        mac,
        compression,
        compression,
        "",
        "",
    ];
    lists.iter().for_each(|list| offer.extend(string(list.as_bytes())));
    // No guess follows, and four reserved bytes.
    offer.extend([0; 5]);
    offer
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}
