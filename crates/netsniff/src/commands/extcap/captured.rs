//! A capture for Wireshark, as the command of netsniff that makes it, with Wireshark's pipe as standard output.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::path::Path;

use anyhow::Context as _;
use clap::Parser as _;
use netsniff_console::paths::is_stdin;
use netsniff_console::{UsageError, unlinked};

use super::args::{ExtcapArgs, ExtractionSettings, LiveSettings};
use super::interface::Offered;
use crate::commands::extract::ExtractArgs;
use crate::commands::record::RecordArgs;
use crate::commands::{extract, record};

/// The arguments of another command, out of words.
#[derive(Debug, clap::Parser)]
#[command(name = "netsniff extcap")]
struct Words<T: clap::Args> {
    #[command(flatten)]
    args: T,
}

/// Captures, and returns the exit code.
///
/// # Errors
///
/// [`UsageError`] for settings that make no sense, and those of the commands.
pub(super) fn run(offered: &Offered, args: &ExtcapArgs) -> anyhow::Result<u8> {
    let fifo = args
        .asked
        .fifo
        .as_deref()
        .ok_or_else(|| UsageError("--capture needs --fifo".to_owned()))?;
    let filter = args.asked.filter.as_deref().unwrap_or_default();
    // All words are checked before Wireshark is let wait for packets.
    match offered {
        Offered::Live(interface) => {
            let args = parsed::<RecordArgs>(live(interface, filter, &args.live))?;
            onto_standard_output(fifo)?;
            record::run(&args)
        }
        Offered::Extraction => {
            let args = parsed::<ExtractArgs>(extraction(filter, &args.extraction)?)?;
            onto_standard_output(fifo)?;
            extract::run(&args)
        }
    }
}

fn parsed<T: clap::Args>(words: Vec<OsString>) -> Result<T, UsageError> {
    let program = OsString::from("netsniff");
    let parsed = Words::<T>::try_parse_from([program].into_iter().chain(words));
    parsed.map(|words| words.args).map_err(|error| {
        let text = error.to_string();
        // What follows is how to type it, which nobody did.
        let said = text.split("\n\n").next().unwrap_or_default();
        UsageError(said.trim_start_matches("error: ").to_owned())
    })
}

/// A word that is an option with its value.
fn set(option: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(option);
    word.push("=");
    word.push(value);
    word
}

/// The words of `netsniff record`.
fn live(interface: &str, filter: &str, settings: &LiveSettings) -> Vec<OsString> {
    let mut words = vec![set("--interface", interface), "--write=-".into(), "--quiet".into()];
    words.push(set("--filter", filter));
    words.extend(given(&settings.snaplen).map(|bytes| set("--snaplen", bytes)));
    words.extend(settings.no_promiscuous.then(|| "--no-promiscuous".into()));
    words
}

/// The words of `netsniff extract`.
fn extraction(filter: &str, settings: &ExtractionSettings) -> Result<Vec<OsString>, UsageError> {
    let mut words: Vec<OsString> = vec!["--write=-".into(), "--quiet".into()];
    words.push(set("--filter", filter));
    let lists = [
        ("--uid", &settings.uid),
        ("--community-id", &settings.community_id),
        ("--fuid", &settings.fuid),
    ];
    for (option, list) in lists {
        let names = given(list).into_iter().flat_map(|list| list.split([',', ' ']));
        words.extend(names.filter(|name| !name.is_empty()).map(|name| set(option, name)));
    }
    let texts =
        [("--where", &settings.condition), ("--from", &settings.from), ("--to", &settings.to)];
    for (option, text) in texts {
        words.extend(given(text).map(|text| set(option, text)));
    }
    words.push("--".into());
    let before = words.len();
    words.extend(settings.file.iter().filter(|it| !it.as_os_str().is_empty()).map(OsString::from));
    let further = settings.more_files.iter().flat_map(std::env::split_paths);
    words.extend(further.filter(|it| !it.as_os_str().is_empty()).map(OsString::from));
    if words.len() == before {
        let said = "no capture file is set: set it by the gear beside the interface in Wireshark, or by \
                    tshark -o extcap.netsniff_extract.file:FILE";
        return Err(UsageError(said.to_owned()));
    }
    if words.iter().skip(before).any(|it| is_stdin(Path::new(it))) {
        let said = "- is standard input, which Wireshark does not fill: name a capture file";
        return Err(UsageError(said.to_owned()));
    }
    Ok(words)
}

/// A text that is set. Wireshark may well give an empty one where nothing was typed.
fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// Lets standard output lead into Wireshark's pipe, before the capture gives up the right to open it. This waits until
/// Wireshark reads.
fn onto_standard_output(fifo: &Path) -> anyhow::Result<()> {
    let failed = || format!("cannot write to {}", fifo.display());
    let pipe = unlinked::open(OpenOptions::new().write(true), fifo, false).with_context(failed)?;
    rustix::stdio::dup2_stdout(pipe).with_context(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::extcap::args::ExtcapArgs;

    fn words(line: &str) -> anyhow::Result<String> {
        let words = line.split('|').map(str::trim);
        let args = Words::<ExtcapArgs>::try_parse_from(["extcap"].into_iter().chain(words))?.args;
        let filter = args.asked.filter.as_deref().unwrap_or_default();
        let words = match Offered::of(args.asked.interface.as_deref().unwrap())? {
            Offered::Live(interface) => live(&interface, filter, &args.live),
            Offered::Extraction => extraction(filter, &args.extraction)?,
        };
        match args.asked.capture {
            true => drop(parsed::<ExtractArgs>(words.clone())?),
            false => drop(parsed::<RecordArgs>(words.clone())?),
        }
        let words = words.into_iter().map(|word| word.into_string().unwrap());
        Ok(words.collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn settings_become_the_words_of_the_command() {
        let live = words(
            "--extcap-interface=netsniff-live-eth0|--extcap-capture-filter|tcp port 80|--snaplen|96",
        );
        let expected = "--interface=eth0|--write=-|--quiet|--filter=tcp port 80|--snaplen=96";
        assert_eq!(live.unwrap(), expected);
        let begin = "--capture|--fifo|/f|--extcap-interface|netsniff-extract";
        let uid = "C0Uu1dTkqKSZqk4Kvm";
        let found = words(&format!(
            "{begin}|--file|-a b|--more-files|c:d|--uid|{uid}, {uid}|--where|a = 1|--from||--fuid| "
        ));
        let expected = format!(
            "--write=-|--quiet|--filter=|--uid={uid}|--uid={uid}|--where=a = 1|--|-a b|c|d"
        );
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn settings_that_make_no_sense_are_told_without_how_to_type_them() {
        let begin = "--capture|--fifo|/f|--extcap-interface|netsniff-extract";
        for (line, said) in [
            (format!("{begin}|--uid|C0"), "no capture file is set"),
            (format!("{begin}|--file|-"), "standard input"),
            (format!("{begin}|--file|a|--more-files|b:-"), "standard input"),
            (format!("{begin}|--file|a|--uid|F1kWmnrJUkBmBSGb0d"), "use --fuid"),
            (format!("{begin}|--file|a|--from|soon"), "--from"),
            ("--extcap-interface|netsniff-live-lo|--snaplen|-1".to_owned(), "--snaplen"),
        ] {
            let error = words(&line).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("Usage"), "{line}: {error}");
        }
    }
}
