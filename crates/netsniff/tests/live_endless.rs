//! The books close while traffic goes on: a sender that does not stop before the run has ended. Needs root; says so where
//! it is missing.

mod live_bed;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use live_bed::{Bed, Done, Log, Run, Sent};

/// Runs something while packets come, so many a second, in pieces of a twentieth of a second.
fn beside_traffic<T>(bed: &Bed, rate: u32, run: impl FnOnce() -> T) -> T {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Bounded, whatever becomes of the run.
            for _ in 0..600 {
                if ends.load(Ordering::Relaxed) {
                    break;
                }
                bed.send(&Sent { count: u64::from(rate / 20), size: 64, rate });
            }
        });
        thread::sleep(Duration::from_millis(100));
        let done = run();
        ends.store(true, Ordering::Relaxed);
        done
    })
}

/// Each row about the interface closes, as well as it says itself.
fn closes(done: &Done, case: &str) {
    let log = Log::read(&done.logs.join("capture.log"));
    let rows = log.of(&[("scope", "interface")]);
    let finals = log.of(&[("scope", "interface"), ("final", "T")]);
    assert_eq!(finals.len(), 1, "{case}");
    for row in rows {
        let number = |column: &str| -> Option<i64> { log.value(row, column).parse().ok() };
        // A ring that had no time to answer has counted nothing yet.
        if number("ring_dropped").is_none() && log.value(row, "final") == "F" {
            continue;
        }
        let told = |column: &str| {
            number(column)
                .unwrap_or_else(|| panic!("{case}: {column} is {}", log.value(row, column)))
        };
        let (off, bound) = (told("unexplained"), told("unexplained_bound"));
        assert!(off.abs() <= bound, "{case}: {off} of {} beyond {bound}", told("arrived"));
        assert!(told("arrived") > 0, "{case}");
    }
}

#[test]
fn however_a_run_ends() {
    let Some(bed) = Bed::up("e-ends") else { return };
    let often = ["--stats-interval", "200ms"];
    for (case, arguments, signals) in [
        ("duration", &["--duration", "1200ms"][..], &[][..]),
        ("count", &["--count", "2000"], &[]),
        ("sigint", &[], &["INT"]),
        ("sigterm", &[], &["TERM"]),
        ("roll", &[], &["HUP", "INT"]),
        ("apart", &["--apart"], &["INT"]),
        ("if-gone", &["--if-gone", "wait"], &["INT"]),
    ] {
        let name = format!("e-{case}");
        let done = beside_traffic(&bed, 2000, || {
            let run = Run::start(&bed, &name, &[&often[..], arguments].concat());
            for signal in signals {
                thread::sleep(Duration::from_millis(700));
                run.signal(signal);
            }
            run.wait()
        });
        assert_eq!(done.code, 0, "{case}: {}", done.errors);
        closes(&done, case);
    }
}

#[test]
fn whatever_captures() {
    let Some(bed) = Bed::up("e-ways") else { return };
    for (case, rate, arguments) in [
        ("af-packet", 2000, &["--backend", "af-packet"][..]),
        ("af-packet-v2", 2000, &["--backend", "af-packet-v2"]),
        ("recvmmsg", 2000, &["--backend", "recvmmsg"]),
        ("both", 2000, &["--path", "both"]),
        ("bypass", 2000, &["--path", "bypass"]),
        ("rings", 2000, &["--workers", "3"]),
        ("rings on one processor", 300_000, &["--workers", "3", "--cpus", "1"]),
        ("filter", 2000, &["-f", "udp and host 198.18.0.3"]),
        ("fast", 300_000, &["--backend", "af-packet"]),
        ("fast both", 300_000, &["--path", "both"]),
        ("recorded", 2000, &["--record", "RECORDING"]),
    ] {
        let name = format!("e-{}", case.replace(' ', "-"));
        let often = [&["--stats-interval", "300ms", "--duration", "1s"][..], arguments].concat();
        let done = beside_traffic(&bed, rate, || Run::start(&bed, &name, &often).wait());
        assert_eq!(done.code, 0, "{case}: {}", done.errors);
        closes(&done, case);
    }
}

#[test]
fn where_the_interface_vanishes_and_returns() {
    let Some(bed) = Bed::up("e-gone") else { return };
    let run = Run::start(&bed, "e-vanish", &[]);
    bed.send(&Sent { count: 500, size: 64, rate: 50_000 });
    bed.ip(&["link", "del", "rx0"]);
    let done = run.wait();
    assert_eq!(done.code, 1, "{}", done.errors);
    assert!(done.errors.contains("the interface rx0 is gone"), "{}", done.errors);
    let log = Log::read(&done.logs.join("capture.log"));
    let last = log.of(&[("scope", "interface"), ("final", "T")])[0];
    // The block that was open then is handed over all the same.
    assert_eq!((log.value(last, "analysed"), log.value(last, "in_flight")), ("500", "0"));
    // A veth pair takes its counters along.
    assert!(["-", "500"].contains(&log.value(last, "arrived")), "{}", log.value(last, "arrived"));
}

/// A run that waits for its interface says so once, for all rings, and a signal ends it.
#[test]
fn an_interface_that_is_waited_for_is_told_to_be_gone() {
    let Some(bed) = Bed::up("e-wait") else { return };
    let run = Run::start(&bed, "e-wait", &["--if-gone", "wait", "--workers", "2"]);
    bed.send(&Sent { count: 500, size: 64, rate: 50_000 });
    bed.ip(&["link", "del", "rx0"]);
    // A ring without packets looks at its interface once a second.
    thread::sleep(Duration::from_millis(1500));
    run.signal("TERM");
    let done = run.wait();
    assert_eq!(done.code, 0, "{}", done.errors);
    assert_eq!(done.errors.matches("rx0 is gone, and waited for").count(), 1, "{}", done.errors);
    let log = Log::read(&done.logs.join("capture.log"));
    let last = log.of(&[("scope", "interface"), ("final", "T")])[0];
    assert_eq!((log.value(last, "analysed"), log.value(last, "link")), ("500", "gone"));
}
