//! SSH: which rows come of which dialogues.

use crate::support;
use crate::support::scripted::Script;
use netsniff_analysis::Limits;
use netsniff_analysis::protocol::Role;
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::frame::Host;

/// A packet of SSH 2 with four bytes of padding.
fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let len = (6 + body.len() as u32).to_be_bytes();
    [&len[..], &[4, number], body, &[0; 4]].concat()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

fn offer(kex: &str, compression: &str) -> Vec<u8> {
    let cipher = "chacha20-poly1305@openssh.com,aes256-ctr";
    let lists = [kex, "ssh-ed25519", cipher, cipher, "hmac-sha1", "hmac-sha1"];
    let lists = lists.into_iter().chain([compression, compression, "", ""]);
    let lists = lists.flat_map(|list| string(list.as_bytes()));
    packet(20, &[vec![7; 16], lists.collect(), vec![0; 5]].concat())
}

/// A connection up to its keys.
fn opening(kex: &str, compression: &str) -> Script {
    let mut turns = Script::default();
    turns.server("Authorised access only\r\nSSH-2.0-OpenSSH_9.2\r\n");
    turns.client([&b"SSH-2.0-OpenSSH_9.7\r\n"[..], &offer(kex, compression)].concat());
    turns.server(offer(kex, compression));
    turns.client(packet(30, &string(&[1; 32])));
    let reply = [string(b"host key"), string(&[2; 32]), string(b"signature")].concat();
    let keys = [packet(31, &reply), packet(21, &[]), vec![0xaa; 200]].concat();
    turns.server(keys);
    turns.client(packet(21, &[]));
    turns
}

/// Encrypted turns of these sizes, client and server in turn.
fn encrypted(turns: &mut Script, sizes: &[usize]) {
    for pair in sizes.chunks(2) {
        turns.client(vec![0xbb; pair[0]]);
        if let Some(&size) = pair.get(1) {
            turns.server(vec![0xcc; size]);
        }
    }
}

const RESULT: [&str; 4] = ["version", "auth_success", "auth_attempts", "direction"];

#[test]
fn a_login_is_a_row() {
    let mut turns = opening("curve25519-sha256", "none");
    encrypted(&mut turns, &[44, 44, 68, 52, 500, 52, 148, 28, 400, 600]);
    let heard = turns.heard(22);
    assert_eq!(heard.cells("ssh", &RESULT), [["2", "true", "2", "-"]]);
    let names = ["ts", "client", "server", "kex_alg", "host_key_alg", "cipher_alg", "mac_alg"];
    let expected = ["1000000", "SSH-2.0-OpenSSH_9.7", "SSH-2.0-OpenSSH_9.2"];
    let expected = expected.into_iter().chain(["curve25519-sha256", "ssh-ed25519"]);
    let expected = expected.chain(["chacha20-poly1305@openssh.com", "hmac-sha1"]);
    assert_eq!(heard.cells("ssh", &names), [expected.collect::<Vec<_>>()]);
    // By `printf 'host key' | sha256sum | xxd -r -p | base64`.
    let fingerprint = heard.cells("ssh", &["host_key_fingerprint"]);
    assert_eq!(fingerprint, [["SHA256:+xspGuW/PEF/5qpDMzUSFm9CUN7eQpfJ"]]);
    assert_eq!(heard.services(), Some("ssh"));
    assert_eq!(heard.oddities(), [""; 0]);
}

#[test]
fn failures_are_counted() {
    let mut turns = opening("ecdh-sha2-nistp256", "none");
    encrypted(&mut turns, &[44, 44, 68, 52, 148, 52, 148, 52]);
    assert_eq!(turns.heard(22).cells("ssh", &RESULT), [["2", "false", "2", "-"]]);
}

#[test]
fn compressed_sizes_tell_nothing() {
    let mut turns = opening("ecdh-sha2-nistp256", "zlib@openssh.com,none");
    encrypted(&mut turns, &[44, 44, 68, 28, 148, 52]);
    assert_eq!(turns.heard(22).cells("ssh", &RESULT), [["2", "-", "0", "-"]]);
}

#[test]
fn an_unknown_key_exchange_shows_no_host_key() {
    let turns = opening("something-new", "none");
    assert_eq!(turns.heard(22).cells("ssh", &["host_key_fingerprint"]), [["-"]]);
}

#[test]
fn the_first_version_has_a_session_key() {
    let message = |number: u8| {
        // Four bytes of padding, number, eight of content, CRC but one byte.
        [&[0, 0, 0, 12][..], &[0; 4], &[number], &[9; 11]].concat()
    };
    let mut turns = Script::default();
    turns.server([&b"SSH-1.99-x\n"[..]].concat());
    turns.client("SSH-1.5-y\n");
    turns.server(message(2));
    turns.client(message(3));
    encrypted(&mut turns, &[44, 44, 68, 28]);
    let heard = turns.heard(22);
    assert_eq!(heard.cells("ssh", &RESULT), [["1", "-", "0", "-"]]);
    assert_eq!(heard.services(), Some("ssh"));
}

#[test]
fn on_another_port_both_sides_begin_it() {
    let mut turns = Script::default();
    turns.client("SSH-2.0-a\r\n");
    turns.server("SSH-2.0-b\r\n");
    let columns = ["ts", "client", "server", "version", "cipher_alg"];
    let row = ["2000000", "SSH-2.0-a", "SSH-2.0-b", "2", "-"];
    let told = turns.heard(2222);
    assert_eq!(told.cells("ssh", &columns), [row]);
    // Without keys nobody knows whether it is spoken.
    assert_eq!(told.services(), None);
}

#[test]
fn a_gap_ends_what_can_be_told() {
    let mut turns = opening("curve25519-sha256", "none");
    encrypted(&mut turns, &[44, 44, 68, 52]);
    turns.gap(Role::Responder, 52);
    encrypted(&mut turns, &[148, 28]);
    let heard = turns.heard(22);
    assert_eq!(heard.cells("ssh", &RESULT), [["2", "-", "0", "-"]]);
    assert_eq!(heard.services(), Some("ssh"));
}

#[test]
fn what_is_no_packet_ends_it() {
    let mut turns = Script::default();
    turns.client("SSH-2.0-a\r\n");
    turns.server("SSH-2.0-b\r\nHTTP/1.1 200 OK\r\n");
    let heard = turns.heard(22);
    assert_eq!(heard.oddities(), ["SSH: malformed_ssh_packet"]);
    assert_eq!(heard.cells("ssh", &["client"]), [["SSH-2.0-a"]]);
    assert_eq!(heard.services(), None);
}

#[test]
fn damage_does_no_harm() {
    let mut turns = opening("curve25519-sha256", "none");
    encrypted(&mut turns, &[44, 44, 68, 52, 500, 52, 148, 28, 400, 600]);
    turns.spoil(22, 2_000);
}

/// A list of so many names.
fn names(count: usize) -> String {
    (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>().join(",")
}

#[test]
fn of_long_lists_not_all_is_looked_at() {
    let list = names(101);
    let mut turns = Script::default();
    turns.server("SSH-2.0-x\r\n").client([&b"SSH-2.0-y\r\n"[..], &offer(&list, &list)].concat());
    turns.server(offer("n100", &names(100)));
    let heard = turns.heard(22);
    let expected = [
        "SSH: SSH_max_kexinit_kex_algorithms_exceeded 101 > 100",
        "SSH: SSH_max_kexinit_compression_algorithms_exceeded 101 > 100",
    ];
    assert_eq!(heard.oddities(), expected);
    let none = "Algorithm negotiation failed";
    assert_eq!(heard.cells("ssh", &["kex_alg", "compression_alg"]), [[none, "n0"]]);
}

#[test]
fn a_reply_whose_strings_do_not_fit_is_none() {
    for (len, oddities) in [
        (99, &["SSH: malformed_ssh_packet"][..]),
        (
            3 << 20,
            &["SSH: SSH_max_string_length_exceeded 3145728 > 2097152", "SSH: malformed_ssh_packet"],
        ),
    ] {
        let mut turns = Script::default();
        let kex = "curve25519-sha256";
        turns.client([&b"SSH-2.0-y\r\n"[..], &offer(kex, "none")].concat());
        turns.server([&b"SSH-2.0-x\r\n"[..], &offer(kex, "none")].concat());
        let reply = [&string(b"host key")[..], &u32::to_be_bytes(len), b"and so on"].concat();
        turns.server(packet(31, &reply));
        let heard = turns.heard(22);
        assert_eq!(heard.oddities(), oddities);
        assert_eq!(heard.cells("ssh", &["kex_alg", "host_key_fingerprint"]), [[kex, "-"]]);
        assert_eq!(heard.services(), None);
    }
}

#[test]
fn more_than_is_looked_at_is_an_x_in_the_history() {
    for (count, x) in [(100, ""), (101, "X")] {
        let (client, server) =
            (Host::new([192, 0, 2, 1].into(), 40_000), Host::new([192, 0, 2, 2].into(), 22));
        let mut dialogue = Dialogue::new(Setup { client, server, ..Setup::default() });
        dialogue.connect().say(Side::Server, b"SSH-2.0-x\r\n");
        dialogue
            .say(Side::Client, b"SSH-2.0-y\r\n")
            .say(Side::Client, &offer(&names(count), "none"));
        let seen = dialogue.finish().seen;
        let packets = seen.iter().map(|seen| support::packet(seen.timestamp, &seen.frame));
        let rows = support::analyse(packets, Limits::default());
        assert_eq!(rows.log("conn")[0]["history"], format!("ShAdDa{x}"));
    }
}
