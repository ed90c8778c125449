//! What a packet costs by stage, on one thread: `stages FILE [ROUNDS]`.
//!
//! Prints the medians of some rounds in nanoseconds for each packet of the file, as a table in Markdown. The clock is
//! read around whole slices of packets, so that it costs next to nothing. What a stage needs may have been brought
//! into the caches by the one before it: `look-up` finds the flows of a slice, and so waits for memory that `update`
//! finds at hand then, while the engine itself does both in turn for every 64 packets. `output` is the time that the
//! whole analysis takes more with logs in files than without.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use netsniff_analysis::engine::decoding::DecodeStage;
use netsniff_analysis::engine::shard::{FinishStep, Shard};
use netsniff_analysis::{Limits, Observer, Options, Record, SortKey};
use netsniff_output::{Format, LogFiles, RowSink};
use netsniff_packet::{Batch, Progress, Source, Timestamp};
use netsniff_pcapfile::Reader;
use netsniff_pipeline::Settings;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Packets between two looks at the clock; as many as the engine takes at once on one thread.
const SLICE: usize = 512;
const SEED: u64 = 7;

/// The stages, and what has no stage of its own.
const NAMES: [&str; 6] =
    ["read", "decode", "look-up", "update", "output", "all, measured as a whole"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, rounds) = match arguments.as_slice() {
        [file] => (file, Some(5)),
        [file, rounds] => (file, rounds.parse().ok().filter(|&rounds| rounds > 0)),
        _ => (&String::new(), None),
    };
    let Some(rounds) = rounds else {
        eprintln!("usage: stages FILE [ROUNDS]");
        return ExitCode::from(2);
    };
    match measure(Path::new(file), rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stages: {file}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(path: &Path, rounds: usize) -> Result<(), Box<dyn Error>> {
    let logs = std::env::temp_dir().join(format!("netsniff-stages-{}", std::process::id()));
    let mut costs: [Vec<f64>; NAMES.len()] = Default::default();
    let mut packets = 0;
    for _ in 0..rounds {
        let mut stages = Stages::default();
        stages.round(path)?;
        packets = stages.packets;
        let bare = whole(path, None, &mut Nowhere)?;
        let mut files = LogFiles::create(&logs, Format::Tsv)?;
        let mut all = whole(path, Some(Format::Tsv), &mut files)?;
        let start = Instant::now();
        files.finish(Timestamp::EPOCH)?;
        all += start.elapsed();
        std::fs::remove_dir_all(&logs)?;
        let output = all.saturating_sub(bare);
        let [read, decode, look_up, update] = stages.spent;
        for (cost, spent) in costs.iter_mut().zip([read, decode, look_up, update, output, all]) {
            cost.push(spent.as_nanos() as f64 / packets.max(1) as f64);
        }
    }
    println!("{packets} packets, medians of {rounds} rounds\n");
    println!("| stage | ns for a packet | least | most |");
    println!("|---|---|---|---|");
    for (name, mut cost) in NAMES.iter().zip(costs) {
        cost.sort_by(f64::total_cmp);
        let (least, most) = (cost[0], cost[cost.len() - 1]);
        println!("| {name} | {:.1} | {least:.1} | {most:.1} |", cost[cost.len() / 2]);
    }
    Ok(())
}

/// An analysis from file to rows, as `netsniff analyze --workers 1` does it.
fn whole<K: RowSink<Error = anyhow::Error> + Send>(
    path: &Path,
    format: Option<Format>,
    sink: &mut K,
) -> Result<Duration, Box<dyn Error>> {
    let settings = Settings {
        limits: Limits::default(),
        options: Options::default(),
        workers: 1,
        style: format.map(Into::into),
        logs: netsniff_output::LogSet::ALL,
        seed: SEED,
        prompt: false,
    };
    let mut reader = open(path)?;
    let start = Instant::now();
    netsniff_pipeline::run(&mut reader, &settings, &mut (), sink)?;
    Ok(start.elapsed())
}

fn open(path: &Path) -> Result<Reader<File>, Box<dyn Error>> {
    Ok(Reader::with_read_size(File::open(path)?, netsniff_pipeline::read_size(1))?)
}

/// The time spent in reading, decoding, look-up and update.
#[derive(Default)]
struct Stages {
    spent: [Duration; 4],
    packets: u64,
}

impl Stages {
    fn round(&mut self, path: &Path) -> Result<(), Box<dyn Error>> {
        let mut reader = open(path)?;
        let mut stage = DecodeStage::new(Limits::default(), Options::default(), SLICE);
        let mut shard = Shard::new(Limits::default(), Options::default(), SEED);
        let (mut batch, mut sink) = (Batch::default(), Sink);
        let mut state = Progress::More;
        while state != Progress::End {
            state = self.time(0, || reader.read_batch(&mut batch))?;
            self.packets += batch.packets.len() as u64;
            for records in batch.packets.chunks(SLICE) {
                self.time(1, || {
                    for record in records {
                        stage.packet(&batch.packet(record), record.range(), &mut (), &mut sink);
                    }
                });
                let watermark = stage.watermark();
                let units = stage.units();
                let known = self.time(2, || shard.tracker().known(units.as_slice().iter()));
                core::hint::black_box(known);
                self.time(3, || {
                    let datagrams = units.as_slice().iter().enumerate();
                    shard.round(datagrams, units.holes(), &batch.data, watermark, &mut sink);
                });
                stage.clear_units();
            }
        }
        self.time(3, || {
            for step in FinishStep::all(stage.ingress().now()) {
                shard.finish(step, &mut sink);
            }
        });
        Ok(())
    }

    fn time<T>(&mut self, stage: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.spent[stage] += start.elapsed();
        result
    }
}

/// Takes records and does nothing with them.
struct Sink;

impl Observer for Sink {
    fn record<R: Record>(&mut self, _: &SortKey, record: &R) {
        core::hint::black_box(record);
    }
}

/// Where rows go that are not even made.
struct Nowhere;

impl RowSink for Nowhere {
    type Error = anyhow::Error;

    fn row(&mut self, _: usize, _: &SortKey, _: &[u8]) -> anyhow::Result<()> {
        Ok(())
    }
}
