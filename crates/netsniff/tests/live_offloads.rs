//! Offloads left on, as veth has them by default: segments come merged to packets of up to 64 KiB, and the sender
//! leaves checksums to an interface that is none. Needs root; says so where it is missing.

mod live_bed;

use std::io::{Read as _, Write as _};

use live_bed::hosts::{accept, connect, noise};
use live_bed::{Bed, Last, Log, Run};
use netsniff_testing::{Need, skip};

const LEN: usize = 20_000_000;

#[test]
fn merged_segments_are_counted_and_lose_nothing() {
    let Some(bed) = Bed::up("offload") else { return };
    bed.address();
    if !bed.offload() {
        skip(Need::Kernel, "offloads need ethtool, and a kernel whose veth has them");
        return;
    }
    let run = Run::start(&bed, "offload", &["--json"]);
    let sent = noise(LEN, 4);
    bed.talk(
        |listener| {
            let mut stream = accept(listener);
            stream.read_exact(&mut [0; 2]).unwrap();
            stream.write_all(&sent).unwrap();
        },
        |address| {
            let mut stream = connect(address);
            stream.write_all(b"go").unwrap();
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            assert!(got == sent);
        },
    );
    let done = run.end();
    assert_eq!(done.code, 0, "{}", done.errors);

    let last = Last::read(&done.logs, "interface");
    last.closes();
    assert_eq!(last.number("ring_dropped"), 0);
    let (super_frames, packets) = (last.number("super_frames"), last.number("delivered"));
    // Of 64 KiB each at most; and with one segment a packet there would be thousands.
    assert!((LEN as u64 / 65_536..2_000).contains(&super_frames), "{super_frames}");
    assert!(last.number("partial_checksums") > super_frames / 2);
    assert!(packets < LEN as u64 / 1448, "{packets} packets are not merged");

    let conn = Log::read(&done.logs.join("conn.log"));
    let rows = conn.of(&[("proto", "tcp")]);
    assert_eq!(rows.len(), 1);
    let value = |column| conn.value(rows[0], column);
    let number = |column| value(column).parse::<u64>().unwrap();
    assert_eq!((number("orig_bytes"), number("resp_bytes")), (2, LEN as u64));
    assert_eq!((value("missed_bytes"), value("quality")), ("0", "clean"));
    // A receiver that is slower than the sender makes it probe and repeat, which is no fault.
    assert!(!value("history").contains(['g', 'G', 'c', 'C']), "{}", value("history"));
    // Packets and their bytes are those of the packets that came, as any capture on this host has them.
    let others = (0..conn.len()).filter(|row| *row != rows[0]);
    let others: u64 = others.map(|row| conn.value(row, "orig_pkts").parse::<u64>().unwrap()).sum();
    let of_flow = number("orig_pkts") + number("resp_pkts");
    assert!(of_flow + others <= packets && packets - of_flow < 20, "{of_flow} of {packets}");
    let headers = number("resp_ip_bytes") - LEN as u64;
    assert!((40 * number("resp_pkts")..LEN as u64 / 50).contains(&headers), "{headers}");

    let summary: serde_json::Value = serde_json::from_str(&done.output).unwrap();
    let tcp = &summary["checksums"]["tcp"];
    assert_eq!(tcp["bad"], 0, "{tcp}");
    assert!(tcp["partial"].as_u64().unwrap() > 0, "{tcp}");
    let notes = summary["notes"].to_string();
    assert!(notes.contains("are larger than the MTU"), "{notes}");
}
