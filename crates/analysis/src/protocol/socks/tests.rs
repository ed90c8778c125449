//! How SOCKS is recognised.

use super::*;

fn detect(originator: &[u8], responder: &[u8]) -> Detection {
    Socks.detect(&Heads { originator, responder, port: 4_000, is_midstream: false })
}

/// A greeting and its answer; requests with and without a name and theirs.
const DIALOGUES: [(&[u8], &[u8]); 4] = [
    (&[5, 2, 0, 2], &[5, 2]),
    (&[5, 1, 0], &[5, 0xff]),
    (b"\x04\x01\x00\x50\x42\x66\x07\x63\x00", &[0, 0x5a]),
    (b"\x04\x01\x00\x50\x00\x00\x00\x01me\x00a.example\x00", &[0, 0x5b]),
];

#[test]
fn both_sides_are_needed_and_what_is_decided_stays_so() {
    for (client, server) in DIALOGUES {
        for (client_len, server_len) in
            (0..=client.len()).flat_map(|c| (0..=server.len()).map(move |s| (c, s)))
        {
            let is_all = (client_len, server_len) == (client.len(), server.len());
            let expected = if is_all { Detection::Yes } else { Detection::Undecided };
            let found = detect(&client[..client_len], &server[..server_len]);
            assert_eq!(found, expected, "{client_len} of {client:?}, {server_len} of {server:?}");
        }
        let more = [client, b"\x05\x01\x00"].concat();
        assert_eq!(detect(&more, &[server, &[7]].concat()), Detection::Yes);
    }
}

#[test]
fn what_either_side_contradicts_is_none() {
    for client in [
        &b"GET / HTTP/1.1"[..],
        &[5, 0],
        // DCE/RPC begins with its version, too.
        &[5, 0, 11, 3],
        &[5, 1, 11],
        &[5, 3, 0, 1, 10],
        &[4, 3],
        &[4, 0],
        &[4; 300],
    ] {
        assert_eq!(detect(client, &[]), Detection::No, "{client:?}");
    }
    for (client, _) in DIALOGUES {
        for server in [&b"220 smtp"[..], &[5, 1], &[0, 0], &[0, 0x59], &[0, 0x5e]] {
            assert_eq!(detect(client, server), Detection::No, "{client:?} {server:?}");
        }
    }
    assert_eq!(detect(&[], b"SSH-2.0"), Detection::No);
}

#[test]
fn the_middle_of_a_connection_is_none() {
    let (originator, responder) = DIALOGUES[0];
    let heads = Heads { originator, responder, port: 1_080, is_midstream: true };
    assert_eq!(Socks.detect(&heads), Detection::No);
}
