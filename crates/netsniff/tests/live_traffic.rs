//! Live logs of recorded traffic: those that come through the hand-off are those of a file, byte for
//! byte; and where nothing fits, as many rows are counted as refused as a file has.

mod live;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use netsniff_analysis::rows::LOGS;
use netsniff_analysis::{Limits, Options};
use netsniff_output::{
    Bounds, Format, LogFiles, LogWriter, Merger, OnFailure, Roll, RowProducer, RowStyle,
    WriterOutcome, WriterSettings,
};
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pcapfile::Reader;
use netsniff_pipeline::Settings;
use netsniff_pipeline::live::{Analyser, Consumer as _, PacketSlice};

use live::{Directory, at};

const STYLE: Option<RowStyle> = Some(RowStyle::of(Format::Tsv));

/// Writes the logs of a capture to a directory through the hand-off.
fn live(capture: &Path, directory: &Directory, bounds: Bounds) -> WriterOutcome {
    let sink = LogFiles::live(&directory.0, Format::Tsv, Roll::default(), at(0)).unwrap();
    let merger = Merger::new(&Limits::default(), STYLE, None);
    let settings = WriterSettings {
        producers: 1,
        bounds,
        on_failure: OnFailure::End,
        end_wait: Duration::from_secs(60),
        tell: Box::new(|said| panic!("{said}")),
    };
    let (writer, mut producers) = LogWriter::start(sink, merger, settings).unwrap();
    // As many rows as a busy link has in minutes come in a moment, and are to be waited for.
    producers.iter().for_each(RowProducer::begin_end);
    let settings = Settings {
        limits: Limits::default(),
        options: Options::default(),
        workers: 1,
        style: STYLE,
        logs: netsniff_output::LogSet::ALL,
        seed: 1,
        prompt: false,
    };
    let producer = producers.pop().expect("a producer");
    let mut ring = Analyser::new(&settings, Box::new(|_, _| {}), None, producer, false);
    let mut reader = Reader::new(File::open(capture).unwrap()).unwrap();
    loop {
        let mut batch = Batch::default();
        let progress = reader.read_batch(&mut batch).unwrap();
        ring.group(PacketSlice { data: &batch.data, packets: &batch.packets, loss: None });
        if progress == Progress::End {
            break;
        }
    }
    ring.finish();
    drop(ring);
    writer.finish()
}

/// The logs in a directory: name and text.
fn logs(directory: &Directory) -> BTreeMap<String, String> {
    let paths = fs::read_dir(&directory.0).unwrap().map(|entry| entry.unwrap().path());
    let logs = paths.filter(|path| path.extension().is_some_and(|it| it == "log"));
    logs.map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    })
    .collect()
}

fn rows(text: &str) -> u64 {
    text.lines().filter(|line| !line.starts_with('#')).count() as u64
}

#[test]
fn logs_through_the_hand_off_are_those_of_a_file() {
    for name in ["office", "protocols"] {
        let capture = Path::new(env!("CARGO_MANIFEST_DIR"));
        let capture = capture.join(format!("../../fixtures/recorded/{name}.pcapng"));
        let of_file = Directory::new(&format!("{name}-file"));
        let status = Command::new(env!("CARGO_BIN_EXE_netsniff"))
            .args(["analyze", "--quiet", "--workers", "1", "-o"])
            .args([&of_file.0, &capture])
            .status();
        assert!(status.unwrap().success());
        let expected = logs(&of_file);
        assert!(expected.len() > 5, "{name}");

        let of_ring = Directory::new(&format!("{name}-ring"));
        let outcome = live(&capture, &of_ring, Bounds::default());
        assert_eq!(outcome.failure, None);
        assert_eq!(outcome.statistics.late_rows, 0, "{name}");
        assert_eq!(outcome.statistics.refused.total(), 0);
        let found = logs(&of_ring);
        let names = |logs: &BTreeMap<String, String>| logs.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "{name}");
        for (log, text) in &expected {
            assert!(found[log] == *text, "{name} {log}: not the same bytes");
            let at = LOGS.iter().position(|it| it.path == log).unwrap();
            assert_eq!(outcome.statistics.written.rows(at), rows(text), "{name} {log}");
        }

        // Where nothing fits, all is counted: only of exchanges, certificates and proxies nobody can tell
        // how many rows they would have made.
        let of_none = Directory::new(&format!("{name}-none"));
        let outcome = live(&capture, &of_none, Bounds { bytes: 0, ..Bounds::default() });
        assert_eq!(logs(&of_none).len(), 0);
        let refused = outcome.statistics.refused_full;
        assert!(refused.facts() > 0);
        for (at, log) in LOGS.iter().enumerate() {
            let expected = match log.path {
                "dhcp" | "dhcpv6" | "tunnel" | "x509" => 0,
                path => expected.get(path).map_or(0, |text| rows(text)),
            };
            assert_eq!(refused.rows(at), expected, "{name} {}", log.path);
        }
    }
}
