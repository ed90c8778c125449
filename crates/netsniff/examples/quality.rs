//! Holds the verdicts of netsniff against recordings whose losses are known: `quality [--wrong N] [--raw FILE] FOLDER...`.
//!
//! Each folder is one that `benches/quality/record.sh` wrote, with the logs of its `capture.pcap` under `logs/`. Writes
//! `truth.tsv` there, a line for each lost frame, and prints a table in Markdown of all recordings, with what was
//! compared and what was left out. `--raw` writes every figure as tab-separated values, `--wrong` prints so many of the
//! connections of each recording of which the logs are wrong. Ends with 1 where a promise is not kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use netsniff_testing::log;
use netsniff_testing::log::Row;
use netsniff_testing::quality::Place;
use netsniff_testing::quality::recording::Recording;
use netsniff_testing::quality::score::{Score, Share};
use netsniff_testing::quality::segment::Kind;

struct Arguments {
    folders: Vec<PathBuf>,
    raw: Option<PathBuf>,
    wrong: usize,
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        eprintln!("usage: quality [--wrong N] [--raw FILE] FOLDER...");
        return ExitCode::from(2);
    };
    let mut scores = Vec::new();
    let mut total = Score::default();
    for folder in &arguments.folders {
        let recording = Recording::read(folder);
        write(&folder.join("truth.tsv"), &recording.truth());
        let score = Score::new(&recording, rows(folder, "conn"), rows(folder, "gaps"));
        for wrong in score.wrong.iter().take(arguments.wrong) {
            println!("{}: {}", name(folder), wrong.text());
        }
        total.add(&score);
        scores.push((name(folder), score));
    }
    scores.push(("**all**".to_owned(), total));
    table(&scores);
    if let Some(path) = arguments.raw {
        write(&path, &raw(&scores));
    }
    let shortfalls = scores.last().map(|(_, total)| total.shortfalls()).unwrap_or_default();
    for shortfall in &shortfalls {
        println!("\n**Below what is promised:** {shortfall}");
    }
    ExitCode::from(u8::from(!shortfalls.is_empty()))
}

fn arguments() -> Option<Arguments> {
    let mut found = Arguments { folders: Vec::new(), raw: None, wrong: 0 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--raw" => found.raw = Some(words.next()?.into()),
            "--wrong" => found.wrong = words.next()?.parse().ok()?,
            _ => found.folders.push(word.into()),
        }
    }
    (!found.folders.is_empty()).then_some(found)
}

fn rows(folder: &Path, log: &str) -> Vec<Row> {
    let path = folder.join("logs").join(log).with_extension("log");
    log::read(&path).unwrap_or_else(|| panic!("{} does not name its columns", path.display()))
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn table(scores: &[(String, Score)]) {
    println!(
        "| recording | connections | lost before / in capture / behind | marked rightly | found | found, with copies | \
        cause right | several causes right | none invented |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let cell = |share: Share| format!("{}/{} {}", share.right, share.of, share.text());
    for (name, score) in scores {
        let lost = Place::ALL.map(|place| {
            let frames = score.frames.iter().filter(|((at, _), _)| *at == place);
            frames.map(|(_, count)| count).sum::<u64>().to_string()
        });
        let shares = [
            score.precision,
            score.recall,
            score.recall_with_copies,
            score.causes,
            score.several_causes,
            score.no_cause_invented,
        ];
        println!(
            "| {name} | {} | {} | {} |",
            score.flows,
            lost.join(" / "),
            shares.map(cell).join(" | ")
        );
    }
    let Some((_, total)) = scores.last() else { return };
    let acks = total.pure_acks_only;
    println!(
        "\n{} connections lost frames in the capture. Of them {} lost nothing but pure acknowledgements and resets there, \
        which nobody can see for sure ({} of them are marked), and {} lost a SYN, FIN or data of which no later \
        acknowledgement was captured ({} of them are marked).",
        total.capture_lost,
        acks.of,
        acks.right,
        total.never_acknowledged.of,
        total.never_acknowledged.right
    );
    println!(
        "\nLeft out: {} connections of which the capture has no frame. {} frames were lost in the capture and behind \
        the tap: the packets do not tell them from frames lost before it, so that cause is taken for right.",
        total.not_captured, total.twice
    );
    println!(
        "\nCounted apart, since the packets do not tell: {} connections lost frames before the tap as reordering looks like \
        ({} are told so), {} in the capture as late packets look like ({} are marked), and in {} what was not lost came again \
        as after a loss behind the tap ({} are told one).",
        total.like_reordering.of,
        total.like_reordering.right,
        total.like_late.of,
        total.like_late.right,
        total.like_behind.of,
        total.like_behind.right
    );
    println!("\n| lost frames | {} |", Kind::ALL.map(Kind::name).join(" | "));
    println!("|---|---|---|---|---|---|");
    for place in Place::ALL {
        let of = |kind| total.frames.get(&(place, kind)).copied().unwrap_or_default().to_string();
        println!("| {} | {} |", place.name(), Kind::ALL.map(of).join(" | "));
    }
    println!("\n| cause | told of those where it is proven | told where it did not happen |");
    println!("|---|---|---|");
    for place in Place::ALL {
        let told = total.told.get(&place).copied().unwrap_or_default();
        let invented = total.invented.get(&place).copied().unwrap_or_default();
        println!("| {} | {} | {invented} |", place.name(), cell(told));
    }
}

fn raw(scores: &[(String, Score)]) -> String {
    let mut text = "recording\tfigure\tvalue\n".to_owned();
    for (name, score) in scores {
        let name = name.trim_matches('*');
        for (figure, value) in score.figures() {
            text.push_str(&format!("{name}\t{figure}\t{value}\n"));
        }
    }
    text
}
