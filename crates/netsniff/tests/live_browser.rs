//! `netsniff serve -i` in Chromium, on a veth pair of this machine. Needs root and Chromium; says so where they are missing.

mod browser_bed;
mod live_bed;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use browser_bed::{Chromium, Server};
use live_bed::{Bed, Sent};

/// An interval of rows.
const INTERVAL: Duration = Duration::from_millis(200);

/// Where recordings go: a directory for whoever the recording becomes. It goes with this value.
struct Recordings(PathBuf);

impl Recordings {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("netsniff-recordings-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        Self(path)
    }

    /// Packets of the only one.
    fn packets(&self) -> u64 {
        let files: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|file| file.unwrap().path()).collect();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        let told = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["info", "--json"])
            .arg(file)
            .output();
        let facts: serde_json::Value = serde_json::from_slice(&told.unwrap().stdout).unwrap();
        facts["packets"].as_u64().unwrap()
    }
}

impl Drop for Recordings {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_live_run_is_renewed_within_a_second() {
    let Some(bed) = Bed::up("browser") else { return };
    bed.ip(&["link", "set", "lo", "up"]);
    // A thread of the namespace: what it starts and connects to is there.
    bed.in_receiver(|| {
        let Some(chromium) = Chromium::start("no live run was looked at") else { return };
        let recordings = Recordings::new();
        let place = recordings.0.to_str().unwrap();
        let words = ["-i", "rx0", "--interval", "200ms", "--control", "--record-to", place];
        let server = Server::start(&words);
        let page = chromium.open(&format!("{}/?span=all", server.url));
        let packets = "Number(Array.from(document.querySelectorAll('.tiles div')).find((it) => \
            it.querySelector('dt').textContent === 'packets')?.querySelector('dd').dataset.value)";
        // It shows nothing before it has begun, and what came before is not its.
        let mut base: Option<u64> = None;
        for _ in 0..20 {
            if base.is_some() {
                break;
            }
            bed.send(&Sent { count: 50, size: 200, rate: 5_000 });
            std::thread::sleep(2 * INTERVAL + Duration::from_secs(1));
            base = page.value(packets);
        }
        let base = base.unwrap();
        for round in 1..=3 {
            bed.send(&Sent { count: 500, size: 200, rate: 5_000 });
            let begin = Instant::now();
            page.await_true(&format!("{packets} === {}", base + round * 500));
            let took = begin.elapsed();
            // A row is written when its interval has ended, and one of the next has begun.
            assert!(took < 2 * INTERVAL + Duration::from_secs(1), "{took:?}");
            netsniff_testing::print_uncaptured(&format!("live_browser: renewed after {took:?}"));
        }
        page.shoot("live");

        // What is frozen stays as it is, and goes on where it is asked to.
        page.click(".line > button");
        page.await_true("document.querySelector('.line > button').textContent === 'Go on'");
        bed.send(&Sent { count: 500, size: 200, rate: 5_000 });
        std::thread::sleep(2 * INTERVAL + Duration::from_secs(1));
        assert_eq!(page.value::<u64>(packets), base + 1500);
        page.click(".line > button");
        page.await_true(&format!("{packets} === {}", base + 2000));

        // A browser records where it is let.
        page.click("#control button");
        page.await_true("document.querySelector('#control')?.textContent.includes('recording to')");
        std::thread::sleep(Duration::from_secs(2));
        bed.send(&Sent { count: 300, size: 200, rate: 5_000 });
        std::thread::sleep(Duration::from_secs(1));
        page.click("#control button");
        page.await_true("document.querySelector('#head')?.textContent.includes('recorded to')");
        assert_eq!(recordings.packets(), 300);
        page.is_clean(&server.url);
    });
}
