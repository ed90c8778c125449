//! What an analysis says with `-v`: what is opened, how it is analysed, and the books of a live run.

use netsniff_console::number::{bytes, exact};
use netsniff_console::say;
use netsniff_packet::filter::Filter;
use netsniff_pcapfile::Reader;
use netsniff_pipeline::Settings;
use netsniff_pipeline::books::{BooksLine, BooksScope};

use super::named::format_of;
use crate::commands::inputs::{CaptureFile, Input};
use crate::commands::row_output::Target;

/// Says that a file was opened, and what it is.
pub(super) fn opened(file: &CaptureFile, reader: &Reader<Input>) {
    let mut facts = vec![format_of(reader).to_owned()];
    facts.extend(reader.compression().map(|layer| format!("packed with {layer}")));
    facts.extend(file.size.map(bytes));
    say(&format!("opened {}: {}", file.name, facts.join(", ")));
}

/// Says which packets are wanted.
pub(super) fn filter(filter: &Filter) {
    say(&format!("filter: {}", filter.text()));
}

/// Says how packets are analysed, and where records go; `pseudonyms` tells of which kind they are, if any.
pub(super) fn plan(settings: &Settings, target: &Target<'_>, pseudonyms: Option<&str>) {
    let Settings { workers, limits, options, .. } = settings;
    let threads = if *workers == 1 { "thread" } else { "threads" };
    say(&format!(
        "analysing in {workers} {threads}, to the depth {}; up to {} connections at once{}",
        options.depth.name(),
        exact(limits.flows as i128),
        match limits.flow_bytes {
            usize::MAX => String::new(),
            most => format!(", in up to {}", bytes(most as u64)),
        }
    ));
    if let Some(interval) = options.rtt_interval {
        say(&format!("round trips are sampled every {} s", interval.as_secs_f64()));
    }
    if let Some(series) = &options.series {
        let length = series.interval.as_secs_f64();
        say(&format!("traffic is told every {length} s, with {} hosts", series.hosts));
    }
    pseudonyms.iter().for_each(|said| say(&format!("pseudonyms: {said}")));
    match target {
        Target::Nowhere => say("no logs are written; -o DIR writes them"),
        Target::Stream(style) => {
            say(&format!("rows of all logs go to standard output as {}", style.format.name()));
        }
        Target::Log(style, _) => {
            say(&format!("rows of one log go to standard output as {}", style.format.name()));
        }
        Target::Directory(directory, style) => {
            say(&format!("logs go to {} as {}", directory.display(), style.format.name()));
        }
    }
}

/// Says the books of each interface, as they are so far.
pub(super) fn books(entries: &[BooksLine]) {
    entries.iter().filter_map(about).for_each(|line| say(&line));
}

fn about(entry: &BooksLine) -> Option<String> {
    let BooksScope::Interface(name) = &entry.place else { return None };
    let number = |value: Option<u64>| {
        value.map_or_else(|| "unavailable".to_owned(), |number| exact(number.into()))
    };
    Some(format!(
        "{name}: arrived {}, delivered {}, dropped at the ring {}, lost by the interface {}",
        number(entry.arrived),
        number(entry.delivered()),
        number(entry.ring_dropped()),
        number(entry.lost_interface)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_pipeline::books::testing::entry;

    #[test]
    fn what_nobody_counts_is_unavailable() {
        let told = BooksLine { arrived: Some(4820), ..entry(Some(2), None, Some(8)) };
        let line = about(&told).unwrap();
        assert!(line.starts_with("eth0: arrived 4,820, delivered "), "{line}");
        assert!(line.contains(", dropped at the ring 8, lost by the interface 2"), "{line}");
        let untold = BooksLine { arrived: None, ..entry(None, None, None) };
        let line = about(&untold).unwrap();
        assert!(line.contains("arrived unavailable") && !line.contains("interface 0"), "{line}");
        assert_eq!(about(&BooksLine { place: BooksScope::Host, ..untold }), None);
    }
}
