//! Builds the workloads of the benchmarks: `workload small64 -o FILE`, `workload flood -o FILE` and `workload mix --captures FOLDER -o FILE`.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the library is sans-IO; this program reads and writes files for it"
)]

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use netsniff_packet::{Batch, Progress, Source, Timestamp};
use netsniff_pcapfile::Reader;
use netsniff_traffic::Random;
use netsniff_traffic::workload::capture::flow_of;
use netsniff_traffic::workload::plan::{Goal, plan, share};
use netsniff_traffic::workload::small64::{FRAME_LEN, Small64};
use netsniff_traffic::workload::{Capture, Category, Mix, Rejection, Traits};

const USAGE: &str = "\
Builds the workloads of the benchmarks; the same seed and captures give the same bytes.

Usage: workload small64|flood -o FILE [--seed N] [--packets N] [--flows N]
       workload mix -o FILE --captures FOLDER... [--seed N] [--scale F] [--loss F]

small64  10,000,000 packets of 64 bytes over 1,000,000 flows, half UDP, half TCP SYN.
flood    The same in five times the time, with six bytes of data in each SYN.
mix      Every whole, undamaged capture below the folders (--captures may be repeated), in as many
         instances as the goal needs, each with addresses of its own. Fails where the goal is missed.
         --scale 0.1 makes a tenth of it, for trials. --loss 0.05 leaves out each packet by that
         chance, once the goal was met with all of them.";

/// The first packet of a workload is seen on 2026-01-01.
const START: Timestamp = Timestamp::from_secs_nanos(1_767_225_600, 0);
/// Time that a mix takes, in nanoseconds.
const SPAN: i64 = 287_000_000_000;
/// Captures above this size are left out: a few of them would be the whole mix.
const MAX_CAPTURE: u64 = 32 << 20;

fn main() -> ExitCode {
    let outcome = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) if matches!(arguments.workload.as_str(), "small64" | "flood") => {
            small64(&arguments)
        }
        Ok(arguments) => mix(&arguments),
        Err(message) => {
            eprintln!("workload: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("workload: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Arguments {
    workload: String,
    output: PathBuf,
    captures: Vec<PathBuf>,
    seed: u64,
    packets: u64,
    flows: u64,
    scale: f64,
    loss: f64,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let workload = words.next().unwrap_or_default();
        if !matches!(workload.as_str(), "small64" | "flood" | "mix") {
            return Err(format!("no workload is called '{workload}'"));
        }
        let (packets, flows) = (10_000_000, 1_000_000);
        let (output, captures) = (PathBuf::new(), Vec::new());
        let (seed, scale, loss) = (1, 1.0, 0.0);
        let mut parsed = Self { workload, output, captures, seed, packets, flows, scale, loss };
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
            let wrong = |_| format!("{word} {value}: not a number");
            match word.as_str() {
                "-o" | "--output" => parsed.output = value.into(),
                "--captures" => parsed.captures.push(value.into()),
                "--seed" => parsed.seed = value.parse().map_err(wrong)?,
                "--packets" => parsed.packets = value.parse().map_err(wrong)?,
                "--flows" => parsed.flows = value.parse().map_err(wrong)?,
                "--scale" | "--loss" => {
                    let factor = value.parse().map_err(|_| format!("{word} {value}: no factor"))?;
                    *(if word == "--scale" { &mut parsed.scale } else { &mut parsed.loss }) =
                        factor;
                }
                _ => return Err(format!("unknown option {word}")),
            }
        }
        if parsed.output.as_os_str().is_empty() {
            return Err("-o FILE is missing".into());
        }
        if parsed.workload == "mix" && parsed.captures.is_empty() {
            return Err("--captures FOLDER is missing".into());
        }
        Ok(parsed)
    }
}

fn small64(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let make = if arguments.workload == "flood" { Small64::flood } else { Small64::new };
    let mut workload = make(arguments.seed, arguments.packets, arguments.flows, START);
    let mut frame = [0; FRAME_LEN];
    let mut file = Pcap::create(&arguments.output)?;
    while let Some(timestamp) = workload.next_frame(&mut frame) {
        file.packet(timestamp, &frame)?;
    }
    file.finish()?;
    println!(
        "{}: {} packets of {FRAME_LEN} bytes, {} flows",
        arguments.workload, arguments.packets, arguments.flows
    );
    Ok(())
}

fn mix(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let (captures, names) = load(&arguments.captures)?;
    let traits: Vec<Traits> = captures.iter().map(|capture| *capture.traits()).collect();
    let goal = Goal::mix().scaled(arguments.scale);
    let counts = plan(&traits, &goal);
    let mut mix = Mix::new(&captures, &counts, arguments.seed, START, SPAN)
        .map_err(|_| "the captures have too many addresses for a mix")?;
    println!(
        "mix: {} instances of {} captures and parts of captures",
        mix.instances(),
        captures.len()
    );
    let mut heaviest: Vec<_> =
        (0..captures.len()).map(|at| (traits[at].bytes * u64::from(counts[at]), at)).collect();
    heaviest.sort_unstable();
    let all: u64 = heaviest.iter().map(|(bytes, _)| bytes).sum();
    for (bytes, at) in heaviest.iter().rev().take(8) {
        println!(
            "{:>18.1}% of the bytes: {} times {}",
            100.0 * *bytes as f64 / all.max(1) as f64,
            counts[*at],
            names[*at]
        );
    }

    let mut file = Pcap::create(&arguments.output)?;
    let (mut made, mut flows, mut last) = (Traits::default(), HashSet::new(), START);
    let mut frame = Vec::new();
    let (mut luck, mut lost) = (Random::new(arguments.seed), 0_u64);
    while let Some(next) = mix.next_frame(&mut frame) {
        if arguments.loss > 0.0 && luck.chance(arguments.loss) {
            lost += 1;
        } else {
            file.packet(next.timestamp, &frame)?;
        }
        last = next.timestamp;
        made.count(next.outer.as_ref(), captures[next.capture].subject(), frame.len());
        flows.extend(next.outer.as_ref().map(flow_of));
    }
    made.flows = flows.len() as u64;
    report(&made, last, &goal);
    let missed = goal.missed(&made);
    if !missed.is_empty() {
        return Err(
            format!("the mix misses its goal and is not kept:\n  {}", missed.join("\n  ")).into()
        );
    }
    if lost > 0 {
        println!("{:<24}{lost:>9}", "packets left out");
    }
    file.finish()?;
    Ok(())
}

fn report(made: &Traits, last: Timestamp, goal: &Goal) {
    let packets = made.packets.max(1) as f64;
    println!("packets            {:>12}", made.packets);
    println!("bytes of frames    {:>12}", made.bytes);
    println!("mean frame length  {:>12.1}", made.bytes as f64 / packets);
    println!("flows              {:>12}", made.flows);
    println!("without payload    {:>11.1}%", 100.0 * made.empty as f64 / packets);
    println!("seconds            {:>12.1}", last.nanos_since(START) as f64 / 1e9);
    for category in Category::ALL {
        let wanted = goal.shares[category as usize];
        println!(
            "share of {:<9} {:>11.1}%  (wanted {wanted}%)",
            category.name(),
            share(made, category)
        );
    }
}

/// Reads every capture below the folders, in the order of their names, and says what was left out and why.
fn load(folders: &[PathBuf]) -> Result<(Vec<Capture>, Vec<String>), Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in folders {
        find(folder, &mut files).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let (mut captures, mut names) = (Vec::new(), Vec::new());
    let mut left_out = BTreeMap::<String, Vec<String>>::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match load_one(&file) {
            Ok(capture) => {
                for category in Category::ALL {
                    if let Some(part) = capture.part(category) {
                        captures.push(part);
                        names.push(format!("{name} ({} alone)", category.name()));
                    }
                }
                captures.push(capture);
                names.push(name);
            }
            Err(reason) => left_out.entry(reason).or_default().push(name),
        }
    }
    for (reason, names) in left_out {
        println!("left out, {reason}: {}", names.join(" "));
    }
    Ok((captures, names))
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if path.is_dir() {
            // Malformed traffic would be a test of robustness, not of speed.
            if entry.file_name() != "fuzz" {
                find(&path, files)?;
            }
        } else if matches!(extension, Some("pcap" | "pcapng" | "cap")) {
            files.push(path);
        }
    }
    Ok(())
}

fn load_one(path: &Path) -> Result<Capture, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_CAPTURE {
        return Err("too large".into());
    }
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let mut capture = Capture::new(folder.and_then(Category::from_name));
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(file).map_err(|_| "not a capture")?;
    let mut batch = Batch::default();
    loop {
        let progress = reader.read_batch(&mut batch).map_err(|error| error.to_string())?;
        for packet in batch.iter() {
            capture.push(&packet).map_err(reason)?;
        }
        if progress == Progress::End {
            break;
        }
    }
    if reader.damage_count() > 0 {
        return Err("damaged".into());
    }
    capture.finish(SPAN).map_err(reason)
}

fn reason(rejection: Rejection) -> String {
    match rejection {
        Rejection::Cut => "cut by the snaplen".into(),
        Rejection::LinkType(link_type) => format!("link type {link_type}"),
        Rejection::NoIp => "no IP".into(),
        Rejection::Large => "too large".into(),
    }
}

/// A classic pcap file in microseconds, which every peer reads, under another name until it is whole.
struct Pcap {
    file: BufWriter<File>,
    partial: PathBuf,
    path: PathBuf,
    done: bool,
}

impl Pcap {
    fn create(path: &Path) -> Result<Self, Box<dyn Error>> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        let partial = PathBuf::from(partial);
        let file =
            File::create(&partial).map_err(|error| format!("{}: {error}", partial.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 262_144, 1] {
            file.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { file, partial, path: path.to_owned(), done: false })
    }

    fn packet(&mut self, timestamp: Timestamp, frame: &[u8]) -> Result<(), Box<dyn Error>> {
        let micros = timestamp.nanos() / 1000;
        let len = u32::try_from(frame.len())?;
        let mut header = [0; 16];
        let fields = [u32::try_from(micros / 1_000_000)?, (micros % 1_000_000) as u32, len, len];
        for (place, field) in header.as_chunks_mut::<4>().0.iter_mut().zip(fields) {
            *place = field.to_le_bytes();
        }
        self.file.write_all(&header)?;
        Ok(self.file.write_all(frame)?)
    }

    fn finish(mut self) -> Result<(), Box<dyn Error>> {
        self.file.flush()?;
        fs::rename(&self.partial, &self.path)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for Pcap {
    fn drop(&mut self) {
        if !self.done {
            // The failure that led here has been told; a file that cannot be removed changes nothing in it.
            let _ = fs::remove_file(&self.partial);
        }
    }
}
