//! The samples of RFC 9001, appendix A, and of RFC 9369, appendix A.

use super::*;
use crate::file::digest::hex;
use crate::protocol::x509::tests::unhex;

const DESTINATION: [u8; 8] = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];

/// The CRYPTO frame of the client's Initial packet.
const CLIENT_FRAME: &str = "\
    060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
    04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
    616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
    04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
    baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
    0d0010000e0403050306030203080408050806002d00020101001c0002400100\
    3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
    75300901100f088394c8f03e51570806048000ffff";

/// What the server's Initial packet protects.
const SERVER_PAYLOAD: &str = "\
    02000000000600405a020000560303eefce7f7b37ba1d1632e96677825ddf739\
    88cfc79825df566dc5430b9a045a1200130100002e00330024001d00209d3c94\
    0d89690b84d08a60993c144eca684d1081287c834d5311bcf32bb9da1a002b00\
    020304";

const SERVER_V1: &str = "\
    cf000000010008f067a5502a4262b5004075c0d95a482cd0991cd25b0aac406a\
    5816b6394100f37a1c69797554780bb38cc5a99f5ede4cf73c3ec2493a1839b3\
    dbcba3f6ea46c5b7684df3548e7ddeb9c3bf9c73cc3f3bded74b562bfb19fb84\
    022f8ef4cdd93795d77d06edbb7aaf2f58891850abbdca3d20398c276456cbc4\
    2158407dd074ee";

const SERVER_V2: &str = "\
    dc6b3343cf0008f067a5502a4262b5004075d92faaf16f05d8a4398c47089698\
    baeea26b91eb761d9b89237bbf87263017915358230035f7fd3945d88965cf17\
    f9af6e16886c61bfc703106fbaf3cb4cfa52382dd16a393e42757507698075b2\
    c984c707f0a0812d8cd5a6881eaf21ceda98f4bd23f6fe1a3e2c43edd9ce7ca8\
    4bed8521e2e140";

/// Protects what a header of this side is followed by, as its sender does.
pub(in super::super) fn seal(
    keys: &Keys,
    header: &[u8],
    number_at: usize,
    payload: &[u8],
) -> Vec<u8> {
    let number = header[number_at..].iter().fold(0, |number, it| number << 8 | u64::from(*it));
    let payload = Payload { msg: payload, aad: header };
    let cipher = Aes128Gcm::new(&keys.key.into());
    let sealed = cipher.encrypt(&keys.nonce(number).into(), payload).unwrap();
    let mut packet = [header, &sealed].concat();
    let sample = *packet[number_at + MAX_NUMBER..].first_chunk().unwrap();
    let mask = keys.mask(sample);
    packet[0] ^= mask[0] & 0x0f;
    for (octet, mask) in packet[number_at..header.len()].iter_mut().zip(&mask[1..]) {
        *octet ^= mask;
    }
    packet
}

fn keys(version: u32) -> [Keys; 2] {
    Keys::of(Version::of(version).unwrap(), &DESTINATION).unwrap()
}

#[test]
fn keys_are_those_of_the_rfcs() {
    let ivs = |version| keys(version).map(|keys| hex(&keys.iv));
    assert_eq!(ivs(1), ["fa044b2f42a3fd3b46fb255c", "0ac1493ca1905853b0bba03e"]);
    assert_eq!(ivs(0x6b33_43cf), ["91f73e2351d8fa91660e909f", "dd13c276499c0249d3310652"]);
}

#[test]
fn masks_are_those_of_the_rfc() {
    let [client, server] = keys(1);
    let mask = |keys: &Keys, sample| hex(&keys.mask(*unhex(sample).first_chunk().unwrap())[..5]);
    assert_eq!(mask(&client, "d1b1c98dd7689fb8ec11d242b123dc9b"), "437b9aec36");
    assert_eq!(mask(&server, "2cd0991cd25b0aac406a5816b6394100"), "2ec0d8356a");
}

/// The client's packet is built as the RFCs tell, and begins and ends as they print it.
#[test]
fn the_clients_packet_is_that_of_the_rfcs() {
    let mut payload = unhex(CLIENT_FRAME);
    payload.resize(1162, 0);
    for (version, header, begin, end) in [
        (
            1,
            "c300000001088394c8f03e5157080000449e00000002",
            "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
            "e221af44860018ab0856972e194cd934",
        ),
        (
            0x6b33_43cf,
            "d36b3343cf088394c8f03e5157080000449e00000002",
            "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
            "",
        ),
    ] {
        let [mut client, _] = keys(version);
        let packet = seal(&client, &unhex(header), 18, &payload);
        assert_eq!(packet.len(), 1200);
        assert_eq!(hex(&packet[..32]), begin);
        assert!(hex(&packet).ends_with(end));
        assert_eq!(client.open(&packet, 18), Some(payload.clone()));
    }
}

#[test]
fn the_servers_packets_of_the_rfcs_are_opened() {
    for (version, packet) in [(1, SERVER_V1), (0x6b33_43cf, SERVER_V2)] {
        let [mut client, mut server] = keys(version);
        let packet = unhex(packet);
        assert_eq!(server.open(&packet, 18), Some(unhex(SERVER_PAYLOAD)));
        assert_eq!(client.open(&packet, 18), None);
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x20;
            assert_eq!(server.open(&changed, 18), None, "{at}");
            assert_eq!(server.open(&packet[..at], 18), None, "{at}");
        }
    }
}

/// The example of RFC 9000, section A.3.
#[test]
fn packet_numbers_are_completed() {
    let [mut client, _] = keys(1);
    client.highest = Some(0xa82f_30ea);
    assert_eq!(client.whole_number(0x9b32, 2), 0xa82f_9b32);
    client.highest = Some(0xff);
    assert_eq!((client.whole_number(1, 1), client.whole_number(0xff, 1)), (0x101, 0xff));
    client.highest = None;
    assert_eq!(client.whole_number(7, 4), 7);
}
