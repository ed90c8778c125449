//! `netsniff info`: the facts of capture files.

mod report;
mod text;

use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::path::PathBuf;

use netsniff_console::printable::{json_line, printable};
use netsniff_console::terminal::progress::is_output_seen;

use super::inputs::span::{Span, SpanArgs};

pub use report::{BurstReport, DamageReport, InterfaceReport, Report, SectionReport};

/// Print the facts of capture files: format, packets, times, order, rates, bursts, interfaces,
/// drops and damage
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example: netsniff info --json capture.pcapng.gz | jq .packets\n\n\
    Exit code: 0 all files were read, 1 one could not be read, 3 one is damaged")]
pub struct InfoArgs {
    /// Capture files, pcap or pcapng, also packed with gzip, zstd or lz4; `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print a JSON object per file and line. Times are texts, so that nanoseconds survive
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub(crate) span: SpanArgs,
}

/// The exit code where a file could not be read.
const FAILED: u8 = 1;
/// The exit code where a file is damaged and all readable packets counted.
const DAMAGED: u8 = 3;

/// Reports on each file. One that cannot be read is named on standard error, and the others are
/// still reported.
///
/// # Errors
///
/// Where the standard output cannot be written.
pub fn run(args: &InfoArgs) -> anyhow::Result<u8> {
    let span = args.span.span()?;
    let mut output = io::stdout().lock();
    match print(args, span, &mut output, &mut io::stderr().lock()) {
        Ok(code) => Ok(code),
        // Whoever reads has enough, as in `netsniff info FILE | head`.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn print(
    args: &InfoArgs,
    span: Option<Span>,
    output: &mut impl Write,
    errors: &mut impl Write,
) -> io::Result<u8> {
    let mut code = 0;
    // What is printed of one file must not meet the progress of the next: only a terminal itself keeps them apart.
    let is_quiet = args.files.len() > 1 && is_output_seen() && !io::stdout().is_terminal();
    for path in &args.files {
        let report = match Report::of_span(path, span, is_quiet) {
            Ok(report) => report,
            Err(error) => {
                writeln!(errors, "{}", printable(&format!("{}: {error:#}", path.display())))?;
                code = FAILED;
                continue;
            }
        };
        if report.damage_count > 0 && code == 0 {
            code = DAMAGED;
        }
        if args.json {
            output.write_all(json_line(&report)?.as_bytes())?;
        } else {
            text::write(&report, output)?;
        }
    }
    output.flush()?;
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_packet::{LinkType, Packet, Timestamp};
    use netsniff_pcapfile::{Counters, Interface, PcapWriter, PcapngWriter, Resolution, Section};
    use std::fs;

    /// A capture file of two packets, without its last `cut` bytes.
    fn capture(name: &str, cut: usize) -> PathBuf {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 96).unwrap();
        for (nanos, wire_len) in [(1_500_000_000, 60), (1_499_999_000, 1500)] {
            let timestamp = Timestamp::from_nanos(nanos);
            let link_type = LinkType::ETHERNET;
            let packet = Packet { timestamp, data: &[0; 60], wire_len, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        let file = writer.finish().unwrap();
        let path = std::env::temp_dir().join(format!("netsniff-{}-{name}", std::process::id()));
        fs::write(&path, &file[..file.len() - cut]).unwrap();
        path
    }

    /// Exit code, output and errors.
    fn print(files: &[PathBuf], json: bool) -> (u8, String, String) {
        let (mut output, mut errors) = (Vec::new(), Vec::new());
        let args = InfoArgs { files: files.to_vec(), json, span: SpanArgs::default() };
        let code = super::print(&args, None, &mut output, &mut errors).unwrap();
        (code, String::from_utf8(output).unwrap(), String::from_utf8(errors).unwrap())
    }

    #[test]
    fn facts_are_printed_as_text() {
        let path = capture("text", 0);
        let (code, output, errors) = print(std::slice::from_ref(&path), false);
        fs::remove_file(path).unwrap();
        assert_eq!((code, errors.as_str()), (0, ""));
        for expected in [
            "format      pcap, nanoseconds, little-endian",
            "packets     2, 1 of them cut by the snaplen",
            "bytes       1,560 on the wire, 120 captured",
            "sizes       60 to 1500 bytes, 780.0 on average",
            "earliest    1.499999000 (1970-01-01 00:00:01 UTC)",
            "duration    0.000001000 s",
            "time order  1 packet earlier than the one before, by at most 1.000 µs",
            "interface   0: ETHERNET, 2 packets, unit 10^-9 s, snaplen 96",
            "dropped by the interface unavailable, by the system unavailable",
        ] {
            assert!(output.contains(expected), "no {expected:?} in\n{output}");
        }
        assert!(output.lines().skip(1).all(|line| line.chars().count() <= 80), "{output}");
    }

    #[test]
    fn lengths_that_no_network_has_are_flagged() {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 96).unwrap();
        for wire_len in [60, 1 << 20, u32::MAX] {
            let (timestamp, link_type) = (Timestamp::EPOCH, LinkType::ETHERNET);
            let packet = Packet { timestamp, data: &[0; 60], wire_len, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        let path = std::env::temp_dir().join(format!("netsniff-{}-absurd", std::process::id()));
        fs::write(&path, writer.finish().unwrap()).unwrap();
        let (_, output, _) = print(std::slice::from_ref(&path), false);
        let (_, json, _) = print(std::slice::from_ref(&path), true);
        let whole = capture("sound", 0);
        let (_, sound, _) = print(std::slice::from_ref(&whole), false);
        fs::remove_file(path).and_then(|()| fs::remove_file(whole)).unwrap();
        assert!(
            output.contains("lengths     1 packet with more than 1 MiB on the wire"),
            "{output}"
        );
        assert!(json.contains("\"absurd_packets\":1,"), "{json}");
        assert!(!sound.contains("lengths"), "{sound}");
    }

    /// Each of 30 packets comes twice, with the stamp of the first.
    #[test]
    fn equal_stamps_are_told_with_what_explains_them() {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 96).unwrap();
        for number in 0..60 {
            let timestamp = Timestamp::from_nanos(1_000_000_000 + number / 2 * 7_001);
            let link_type = LinkType::ETHERNET;
            let packet =
                Packet { timestamp, data: &[0; 60], wire_len: 60, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        let path = std::env::temp_dir().join(format!("netsniff-{}-twice", std::process::id()));
        fs::write(&path, writer.finish().unwrap()).unwrap();
        let files = std::slice::from_ref(&path);
        let (_, output, _) = print(files, false);
        let (_, json, _) = print(files, true);
        let single = capture("once", 0);
        let (_, once, _) = print(std::slice::from_ref(&single), false);
        fs::remove_file(path).unwrap();
        fs::remove_file(single).unwrap();
        assert!(!once.contains("equal times"), "{once}");
        assert!(output.contains("\n  equal times packets with the stamp of the packet before: 30"));
        let told = output.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains("the same packets may be in the input twice rate"), "{output}");
        assert!(output.lines().skip(1).all(|line| line.chars().count() <= 80), "{output}");
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        let numbers = ["equal_stamps", "in_even_groups", "stamp_resolution_ns"];
        assert_eq!(numbers.map(|name| report[name].as_u64()), [Some(30), Some(60), Some(1)]);
    }

    /// A file with these interfaces, each with its name, its filter and how many packets its system dropped.
    fn of_interfaces(interfaces: &[(String, Option<&str>, Option<u64>)]) -> Vec<u8> {
        let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
        for (name, filter, _) in interfaces {
            let (name, filter) = (Some(name.clone()), filter.map(str::to_owned));
            let plain = Interface::new(LinkType::ETHERNET, 0);
            writer.add_interface(&Interface { name, filter, ..plain }).unwrap();
        }
        for (interface, (.., dropped)) in (0..).zip(interfaces) {
            let (timestamp, link_type) = (Timestamp::from_nanos(5), LinkType::ETHERNET);
            let packet = Packet { timestamp, data: &[0; 60], wire_len: 60, link_type, interface };
            writer.write_packet(&packet).unwrap();
            let counters = Counters { dropped_by_os: *dropped, ..Counters::NONE };
            writer.write_counters(interface, timestamp, &counters).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn interfaces_that_are_alike_are_one_block_of_text_and_all_in_json() {
        let print_of = |name: &str, interfaces: &[_]| {
            let path = std::env::temp_dir().join(format!("netsniff-{}-{name}", std::process::id()));
            fs::write(&path, of_interfaces(interfaces)).unwrap();
            let files = std::slice::from_ref(&path);
            let printed = (print(files, false).1, print(files, true).1);
            fs::remove_file(path).unwrap();
            printed
        };
        let mut interfaces: Vec<_> =
            (0..200).map(|at| (format!("port{at}"), None, Some(2))).collect();
        interfaces.push(("other".to_owned(), Some("tcp"), None));
        let (text, json) = print_of("many", &interfaces);
        assert!(
            text.contains("interface   0 port0 to 199 port199: ETHERNET, 200 alike, 200 packets,"),
            "{text}"
        );
        assert!(
            text.contains("dropped by the interface unavailable, by the system 400\n"),
            "{text}"
        );
        assert!(text.contains("interface   200 other: ETHERNET, 1 packet,"), "{text}");
        assert_eq!(text.matches("interface   ").count(), 2);
        let report: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["interfaces"].as_array().unwrap().len(), 201);
        interfaces[7].2 = None;
        let (text, _) = print_of("unknown", &interfaces);
        assert!(text.contains("by the system unavailable\n") && !text.contains("398"), "{text}");
        let (text, _) = print_of("two", &interfaces[..2]);
        assert_eq!(text.matches("interface   ").count(), 2, "{text}");
        let filters = ["a", "b"];
        let apart: Vec<_> =
            (0..80).map(|at| (format!("p{at}"), Some(filters[at % 2]), None)).collect();
        let (text, _) = print_of("apart", &apart);
        assert!(text.contains("and 48 more interfaces"), "{text}");
    }

    /// Between others that are alike, one that differs in a single thing is told apart, and ends their block.
    #[test]
    fn interfaces_that_differ_in_what_is_told_are_no_block() {
        let plain = || Interface {
            name: Some("p".to_owned()),
            os: Some("Linux".to_owned()),
            ..Interface::new(LinkType::ETHERNET, 96)
        };
        let text = |text: &str| Some(text.to_owned());
        let others = [
            ("name", Interface { name: None, ..plain() }),
            ("snaplen", Interface { snaplen: Some(97), ..plain() }),
            ("link type", Interface { link_type: LinkType::RAW, ..plain() }),
            ("speed", Interface { speed: Some(1_000_000_000), ..plain() }),
            ("description", Interface { description: text("uplink"), ..plain() }),
            ("filter", Interface { filter: text("tcp"), ..plain() }),
            ("system", Interface { os: text("BSD"), ..plain() }),
            ("hardware", Interface { hardware: text("x86"), ..plain() }),
            ("unit", Interface { resolution: Resolution(3), ..plain() }),
        ];
        for (what, other) in others {
            let all = [plain(), plain(), plain(), other, plain(), plain(), plain()];
            let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
            for interface in &all {
                writer.add_interface(interface).unwrap();
            }
            let path = std::env::temp_dir().join(format!("netsniff-{}-apart", std::process::id()));
            fs::write(&path, writer.finish().unwrap()).unwrap();
            let (_, told, _) = print(std::slice::from_ref(&path), false);
            fs::remove_file(path).unwrap();
            assert_eq!(told.matches("interface   ").count(), 3, "{what}: {told}");
            assert_eq!(told.matches(" 3 alike, ").count(), 2, "{what}: {told}");
        }
    }

    #[test]
    fn damage_is_told_and_makes_the_exit_code() {
        let path = capture("damage", 1);
        let (code, output, _) = print(std::slice::from_ref(&path), true);
        fs::remove_file(path).unwrap();
        let report: serde_json::Value = serde_json::from_str(&output).unwrap();
        assert_eq!((code, &report["packets"]), (DAMAGED, &1.into()));
        assert_eq!(report["damage"][0]["offset"], 100);
        assert_eq!(report["interfaces"][0]["dropped_by_os"], serde_json::Value::Null);
        assert_eq!(report["earliest"], "1.500000000");
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_goes_on() {
        let good = capture("good", 0);
        let missing = std::env::temp_dir().join("netsniff-there-is-no-such-file");
        let files = [missing, std::env::temp_dir(), good.clone()];
        let (code, output, errors) = print(&files, false);
        fs::remove_file(good).unwrap();
        assert_eq!(code, FAILED);
        assert!(output.contains("packets     2"));
        assert!(errors.contains("no-such-file: cannot open: No such file"), "{errors}");
        assert!(errors.contains("a directory, not a capture file"), "{errors}");
    }
}
