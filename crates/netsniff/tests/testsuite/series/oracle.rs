//! What TShark tells of each packet, and its statistics.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use netsniff_testing::{Need, skip};

use super::table::{Sums, Traffic};

/// Captures in which TShark takes other addresses for the outermost, and why.
pub(super) const HOSTS_DIFFER: &[(&str, &str)] = &[];

/// Runs a program; `None`, said loudly, where there is none.
fn run(program: &str, arguments: &[&str], what: &str) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            skip(Need::Program(program), what);
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

/// The sums of what TShark tells of each packet: its time, length, interface and outermost addresses.
pub(super) fn tshark(capture: &Path, what: &str) -> Option<Sums> {
    let fields = [
        "frame.time_epoch",
        "frame.len",
        "frame.interface_id",
        "frame.protocols",
        "ip.src",
        "ip.dst",
        "ipv6.src",
        "ipv6.dst",
    ];
    let mut arguments =
        vec!["-n", "-r", capture.to_str().unwrap(), "-T", "fields", "-E", "occurrence=f"];
    fields.iter().for_each(|field| arguments.extend(["-e", field]));
    let text = run("tshark", &arguments, what)?;
    let mut sums = Sums::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [time, len, interface, protocols, src4, dst4, src6, dst6] = cells[..] else {
            panic!("{}: {line}", capture.display())
        };
        let second = second_of(time);
        let one = Traffic { packets: 1, bytes: len.parse().unwrap() };
        let mut add = |kind: &str, name: &str| {
            sums.entry((second, kind.to_owned(), name.to_owned())).or_default().add(one);
        };
        add("total", "");
        add("interface", if interface.is_empty() { "0" } else { interface });
        let layer = protocols.split(':').find(|layer| matches!(*layer, "ip" | "ipv6"));
        let [source, destination] = match layer {
            Some("ip") => [src4, dst4],
            Some(_) => [src6, dst6],
            None => continue,
        };
        if !source.is_empty() {
            add("host", source);
            add("host", destination);
        }
    }
    Some(sums)
}

/// The second that a time lies in: times before 1970 are rounded down, too.
fn second_of(time: &str) -> i64 {
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_below = whole.starts_with('-') && fraction.bytes().any(|digit| digit != b'0');
    whole.parse::<i64>().unwrap() - i64::from(is_below)
}

/// The lines of a capture in what `fixtures/recorded/series.sh` wrote: file, second, kind, name, packets, bytes.
pub(super) fn written(text: &str, capture: &str) -> Sums {
    let mut sums = Sums::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, second, kind, name, packets, bytes] = cells[..] else { panic!("{line}") };
        if file == capture {
            let traffic =
                Traffic { packets: packets.parse().unwrap(), bytes: bytes.parse().unwrap() };
            sums.insert((second.parse().unwrap(), kind.to_owned(), name.to_owned()), traffic);
        }
    }
    sums
}

/// TShark's statistics for each second of a capture that `editcap` moves so that its first packet comes at a whole second.
pub(super) fn io_stat(capture: &Path, moved: &Path) -> Option<BTreeMap<i64, Traffic>> {
    let (from, to) = (capture.to_str().unwrap(), moved.to_str().unwrap());
    let what = "intervals were not compared with tshark -z io,stat";
    let first = ["-n", "-r", from, "-c", "1", "-T", "fields", "-e", "frame.time_epoch"];
    let first = run("tshark", &first, what)?;
    let back = format!("-0.{}", first.trim().split_once('.').unwrap().1);
    run("editcap", &["-t", &back, from, to], what)?;
    let text = run("tshark", &["-n", "-q", "-r", to, "-z", "io,stat,1"], what)?;
    let mut seconds = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("<>")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let number = |at: usize| cells[at].parse::<u64>().unwrap();
        let second = cells[1].split("<>").next().unwrap().trim().parse().unwrap();
        let traffic = Traffic { packets: number(2), bytes: number(3) };
        if traffic.packets > 0 {
            seconds.insert(second, traffic);
        }
    }
    Some(seconds)
}
