//! Stamps that jump or are out of order, beside pauses and recordings that stand one behind another.

use std::fs;
use std::time::Duration;

use netsniff_packet::Timestamp;
use netsniff_packet::decode::TcpFlags;
use netsniff_packet::wire::tcp::TcpHeader;
use netsniff_traffic::frame::tcp_frame;
use serde_json::Value;

use super::traffic::{at, host, write};
use super::{rows, stream};
use crate::zeek::corpus::Scratch;

/// A frame of a connection by its number, with the time that its sender has in milliseconds.
fn frame(connection: u16, is_answer: bool, clock: u32) -> Vec<u8> {
    let client = host(&format!("192.0.2.{connection}"), 40_000);
    let server = host(&format!("198.51.100.{connection}"), 443);
    let ends = if is_answer { (&server, &client) } else { (&client, &server) };
    let mut options = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 1];
    options[4..8].copy_from_slice(&clock.to_be_bytes());
    let header = TcpHeader {
        source_port: 0,
        destination_port: 0,
        sequence: 1,
        acknowledgement: 1,
        flags: TcpFlags::ACK.0,
        window: 1000,
        checksum: 0,
        urgent_pointer: 0,
        options: &options,
    };
    tcp_frame(ends.0, ends.1, 7, &header, &[]).unwrap()
}

/// When a packet was sent, by the clock that stamps it and by that of its sender, in milliseconds.
type Moment = (u64, u32);

/// Frames of `hosts` of three connections that speak at these moments.
fn frames(moments: impl IntoIterator<Item = Moment>, hosts: usize) -> Vec<(Timestamp, Vec<u8>)> {
    let mut frames: Vec<(Timestamp, Vec<u8>)> = Vec::new();
    for (stamp, clock) in moments {
        for speaker in 0..hosts as u16 {
            // Each host has a time of its own.
            let clock = clock.wrapping_add(u32::from(speaker).wrapping_mul(0x5555_5555));
            let time = at(stamp) + Duration::from_micros(u64::from(speaker));
            frames.push((time, frame(1 + speaker / 2, speaker % 2 == 1, clock)));
        }
    }
    frames
}

/// What is found where `hosts` speak at these moments.
fn found(moments: impl IntoIterator<Item = Moment>, hosts: usize) -> Vec<Value> {
    found_with(&[], [frames(moments, hosts)])
}

/// What is found in captures that are read together.
fn found_with<const N: usize>(
    options: &[&str],
    captures: [Vec<(Timestamp, Vec<u8>)>; N],
) -> Vec<Value> {
    let scratch = Scratch::new("stamps");
    fs::create_dir_all(scratch.path()).unwrap();
    let paths: Vec<_> = (0..N).map(|at| scratch.path().join(format!("{at}.pcap"))).collect();
    for (path, frames) in paths.iter().zip(&captures) {
        write(path, frames);
    }
    let others: Vec<_> = paths[1..].iter().map(|path| path.to_str().unwrap()).collect();
    let run = |workers| {
        let all = [&others, &["--notices", "--workers", workers][..], options].concat();
        stream(&paths[0], &all)
    };
    let one = run("1");
    for workers in ["2", "3"] {
        assert!(run(workers) == one, "{workers} workers write something else");
    }
    rows(&one, "notice")
        .into_iter()
        .filter(|row| row["note"] != "Netsniff::One_Way_Capture")
        .collect()
}

/// Ten seconds up to a jump of the stamps and ten behind it, while so much time passes for the hosts.
fn jump(before: u64, behind: u64, passed: u32) -> Vec<Moment> {
    let first = (0..200).map(|tick| (before + tick * 50, tick as u32 * 50));
    let second = (0..200).map(|tick| (behind + tick * 50, 10_000 + passed + tick as u32 * 50));
    first.chain(second).collect()
}

fn told(found: &[Value]) -> Vec<(&str, &str, u64)> {
    let text = |row: &Value, column: &str| row[column].as_str().unwrap().to_owned();
    found.iter().for_each(|row| assert!(!text(row, "advice").is_empty() && row["src"].is_null()));
    let row = |row: &'_ Value| row["n"].as_u64().unwrap();
    found
        .iter()
        .map(|it| (it["note"].as_str().unwrap(), it["confidence"].as_str().unwrap(), row(it)))
        .collect()
}

const STEP: &str = "Netsniff::Capture_Clock_Step";

#[test]
fn a_clock_that_is_set_is_found_by_the_clocks_of_hosts() {
    let ahead = jump(0, 3_610_000, 0);
    let rows = found(ahead.clone(), 6);
    assert_eq!(told(&rows), [(STEP, "medium", 3600)]);
    let said = rows[0]["msg"].as_str().unwrap();
    let expected = "the stamps of interface 0 jump 3600.049 s ahead, at packet 1201; the clocks of 6 hosts say that no such \
                    time passed";
    assert_eq!(said, expected);
    assert_eq!(told(&found(ahead, 1)), [(STEP, "low", 3600)]);
    let back = jump(7_200_000, 3_610_000, 0);
    assert_eq!(told(&found(back.clone(), 6)), [(STEP, "high", 3599)]);
    assert_eq!(told(&found(back, 1)), [(STEP, "medium", 3599)]);
}

#[test]
fn a_pause_and_an_earlier_recording_are_no_steps() {
    assert_eq!(told(&found(jump(0, 3_610_000, 3_600_000), 6)), [], "an idle link");
    let earlier = jump(7_200_000, 3_610_000, 3_600_000_u32.wrapping_neg());
    assert_eq!(told(&found(earlier, 6)), [], "two files, one behind the other");
    // What waited in queues while a link was away has old times at first.
    let mut outage = jump(0, 20_000, 10_000);
    outage.splice(200..200, (0..5).map(|late| (19_900 + late, 10_050 + late as u32)));
    assert_eq!(told(&found(outage, 6)), [], "an outage");
    // Nobody tells whether a capture of nothing but this was set back.
    let mut mute = jump(7_200_000, 3_610_000, 0);
    mute.dedup_by_key(|(stamp, _)| *stamp / 20_000);
    assert_eq!(told(&found(mute, 1)), [(STEP, "low", 3590)]);
}

#[test]
fn many_steps_are_summed_up_at_the_end() {
    let steps = (0..4_u64).flat_map(|step| {
        (0..200).map(move |tick| (step * 100_000 + tick * 50, (step * 10_000 + tick * 50) as u32))
    });
    let rows = found(steps, 4);
    assert_eq!(told(&rows), [(STEP, "medium", 90), (STEP, "medium", 90)]);
    let said = rows[1]["msg"].as_str().unwrap();
    assert!(said.starts_with("the stamps of interface 0 jumped 3 times, at most 90.0"), "{said}");
}

#[test]
fn stamps_out_of_order_are_told_with_how_many_and_how_far() {
    let out = |every: u64| {
        let moments = (0..500_u64).map(move |tick| {
            (tick * 50 - if tick % every == 7 { 70 } else { 0 }, tick as u32 * 50)
        });
        found(moments, 2)
    };
    let rows = out(20);
    assert_eq!(told(&rows), [("Netsniff::Stamps_Out_Of_Order", "high", 50)]);
    let expected = "50 of 1000 packets of interface 0 are stamped before an earlier one, by at most 20 ms, from packet 15 on";
    assert_eq!(rows[0]["msg"].as_str().unwrap(), expected);
    assert_eq!(told(&out(250)), [], "a few");
}

/// Just as long as the threshold is a step, and a little less is none.
#[test]
fn a_step_is_one_from_the_threshold_on() {
    // The last packet before the jump comes at 9.95 s.
    assert_eq!(told(&found(jump(0, 11_950, 0), 1)), [(STEP, "low", 2)]);
    assert_eq!(told(&found(jump(0, 11_949, 0), 1)), []);
    assert_eq!(told(&found(jump(20_000, 27_950, 0), 1)), [(STEP, "medium", 2)], "back");
    let late = ("Netsniff::Stamps_Out_Of_Order", "high", 40);
    assert_eq!(told(&found(jump(20_000, 27_951, 0), 1)), [late], "packets that came late");
    let of = |seconds: &str, behind| {
        let threshold = format!("step_seconds={seconds}");
        found_with(&["--notice-thresholds", &threshold], [frames(jump(0, behind, 0), 1)])
    };
    assert_eq!(told(&of("60", 69_950)), [(STEP, "low", 60)]);
    assert_eq!(told(&of("60", 69_900)), []);
}

/// Hosts that are heard on another interface say nothing of this one.
#[test]
fn interfaces_are_judged_by_what_is_heard_on_them() {
    let set = || frames(jump(0, 3_610_000, 0), 6);
    let idle = || frames(jump(0, 3_610_000, 3_600_000), 6);
    for (captures, number) in [([set(), idle()], 0), ([idle(), set()], 1)] {
        let rows = found_with(&[], captures);
        assert_eq!(told(&rows), [(STEP, "medium", 3600)]);
        let said = rows[0]["msg"].as_str().unwrap();
        assert!(said.starts_with(&format!("the stamps of interface {number} jump ")), "{said}");
    }
}

/// Behind a step back the stamps are in order again.
#[test]
fn what_follows_a_step_is_not_late() {
    let rows = found(jump(7_200_000, 3_610_000, 0), 1);
    assert_eq!(told(&rows), [(STEP, "medium", 3599)]);
    // Two steps, of which the second is no return to the time before the first.
    let twice = jump(7_200_000, 3_610_000, 0);
    let third = (0..200).map(|tick| (1_000_000 + tick * 50, 20_000 + tick as u32 * 50));
    let rows = found(twice.into_iter().chain(third), 1);
    assert_eq!(told(&rows), [(STEP, "medium", 3599), (STEP, "medium", 3599)]);
    assert!(rows[1]["msg"].as_str().unwrap().contains("jumped 2 times"), "{rows:?}");
}

/// Clocks of hosts are known after packets that another clock stamped, as before.
#[test]
fn a_step_is_found_behind_packets_of_another_time() {
    let ticks = |from: u64, count: u64, clock: u32| {
        (0..count).map(move |tick| (from + tick * 50, clock + tick as u32 * 50))
    };
    let strange = ticks(1_800_000, 3, 10_000);
    let moments = ticks(0, 200, 0).chain(strange).chain(ticks(10_150, 200, 10_150));
    let rows = found(moments.chain(ticks(3_610_000, 200, 20_150)), 4);
    assert_eq!(told(&rows), [(STEP, "medium", 3589)]);
    assert!(rows[0]["msg"].as_str().unwrap().contains("the clocks of 4 hosts"), "{rows:?}");
}

#[test]
fn stamps_are_out_of_order_from_ten_and_one_in_a_hundred_on() {
    /// So many packets, of which the first of each hundred are late, the first one by most.
    fn out(packets: u64, late: u64) -> Vec<Value> {
        let every = packets / late;
        let moments = (0..packets).map(|tick| {
            let is_late = tick % every == every / 2 && tick / every < late;
            let by = if tick < every { 80 } else { 60 };
            (100 + tick * 50 - if is_late { by } else { 0 }, tick as u32 * 50)
        });
        found(moments, 1)
    }
    const OUT: &str = "Netsniff::Stamps_Out_Of_Order";
    assert_eq!(told(&out(1000, 10)), [(OUT, "high", 10)], "one in a hundred");
    assert_eq!(told(&out(1010, 10)), [], "fewer");
    assert_eq!(told(&out(200, 9)), [], "nine");
    let rows = out(200, 10);
    assert_eq!(told(&rows), [(OUT, "high", 10)]);
    let said = rows[0]["msg"].as_str().unwrap();
    assert!(said.ends_with("by at most 30 ms, from packet 11 on"), "{said}");
}
