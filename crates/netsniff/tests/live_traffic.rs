//! Live logs of recorded traffic: those that come through the hand-off are those of a file, byte for
//! byte; and where nothing fits, as many rows are counted as refused as a file has.

mod live;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use live::{Directory, at};
use netsniff::output::{
    Bounds, Format, LogFiles, LogWriter, Merger, OnFailure, Roll, RowBuffer, RowProducer,
    WriterOutcome, WriterSettings,
};
use netsniff::pipeline::lane::{Lane, watermark};
use netsniff_analysis::flow::tracker::FINISH_STEPS;
use netsniff_analysis::ingress::Ingress;
use netsniff_analysis::log::LOGS;
use netsniff_analysis::{Limits, Options, Units};
use netsniff_packet::{Batch, Progress, Source as _, Timestamp};
use netsniff_pcapfile::Reader;

const FORMAT: Option<Format> = Some(Format::Tsv);

/// A reading part and a lane that hand their rows over, as the rings of a live run do.
struct Rings {
    ingress: Ingress,
    units: Units,
    front: RowBuffer,
    lane: Lane,
    done: RowBuffer,
    producers: [RowProducer; 2],
}

impl Rings {
    fn new(producers: Vec<RowProducer>) -> Self {
        let (limits, options) = (Limits::default(), Options::default());
        Self {
            ingress: Ingress::new(limits, options.clone()),
            units: Units::default(),
            front: RowBuffer::new(FORMAT),
            lane: Lane::new(limits, options, 1, FORMAT),
            done: RowBuffer::new(FORMAT),
            producers: producers.try_into().unwrap(),
        }
    }

    fn batch(&mut self, batch: &Batch) {
        for records in batch.packets.chunks(50) {
            for record in records {
                let packet = batch.packet(record);
                self.ingress.packet(&packet, record.range(), &mut self.units, &mut self.front);
            }
            let watermark = watermark(self.ingress.now());
            let units = self.units.as_slice().iter().enumerate();
            let holes = self.units.holes();
            self.lane.units(units, holes, &batch.data, watermark, &mut self.done);
            self.producers[0].hand_over(watermark, &mut self.done);
            self.units.clear();
            self.hand_over_front(watermark);
        }
    }

    fn hand_over_front(&mut self, watermark: Timestamp) {
        self.front.take_before(watermark, &mut self.done);
        self.producers[1].hand_over(watermark, &mut self.done);
    }

    fn finish(mut self) {
        self.ingress.finish(&mut self.front);
        let now = self.ingress.now();
        self.lane.begin_finish(now, &mut self.done);
        self.producers[0].hand_over(now, &mut self.done);
        self.hand_over_front(Timestamp::MAX);
        for step in 0..FINISH_STEPS {
            self.lane.finish_step(step, now, &mut self.done);
            self.producers[0].hand_over(now, &mut self.done);
        }
        self.producers.into_iter().for_each(|producer| producer.finish(now));
    }
}

/// Writes the logs of a capture to a directory through the hand-off.
fn live(capture: &Path, directory: &Directory, bounds: Bounds) -> WriterOutcome {
    let sink = LogFiles::live(&directory.0, Format::Tsv, Roll::default(), at(0)).unwrap();
    let merger = Merger::new(&Limits::default(), FORMAT, None);
    let settings = WriterSettings {
        producers: 2,
        bounds,
        on_failure: OnFailure::End,
        end_wait: Duration::from_secs(60),
        tell: Box::new(|said| panic!("{said}")),
    };
    let (writer, producers) = LogWriter::start(sink, merger, settings).unwrap();
    // As many rows as a busy link has in minutes come in a moment, and are to be waited for.
    producers.iter().for_each(RowProducer::begin_end);
    let mut rings = Rings::new(producers);
    let mut reader = Reader::new(File::open(capture).unwrap()).unwrap();
    loop {
        let mut batch = Batch::default();
        let progress = reader.read_batch(&mut batch).unwrap();
        rings.batch(&batch);
        if progress == Progress::End {
            break;
        }
    }
    rings.finish();
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
