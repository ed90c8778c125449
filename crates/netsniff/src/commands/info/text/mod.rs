//! What `netsniff info` prints for people, within 80 columns where names allow it.

mod interfaces;

use std::fmt::{self, Write};
use std::io;

use netsniff_console::calendar::Date;
use netsniff_console::printable::printable;
use netsniff_console::terminal::table::{Align, Table};

use super::report::{BurstReport, Report};
use interfaces::LISTED;

/// Columns for a value, behind its name.
const ROOM: usize = 80 - 14;

/// Writes a report.
///
/// # Errors
///
/// Those of the output.
pub(super) fn write(report: &Report, output: &mut impl io::Write) -> io::Result<()> {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = render(report, &mut text);
    output.write_all(text.as_bytes())
}

fn render(report: &Report, text: &mut String) -> fmt::Result {
    writeln!(text, "{}", printable(&report.file))?;
    files(report, text)?;
    packets(report, text)?;
    times(report, text)?;
    bursts(&report.bursts, text)?;
    sections(report, text)?;
    interfaces::write(report, text)?;
    for (index, damage) in report.damage.iter().enumerate() {
        line(text, if index == 0 { "damage" } else { "" }, &printable(&damage.message))?;
    }
    let kept = report.damage.len() as u64;
    if report.damage_count > kept {
        line(text, "", &format!("and at {} more places", grouped(report.damage_count - kept)))?;
    }
    Ok(())
}

fn line(text: &mut String, name: &str, value: &str) -> fmt::Result {
    writeln!(text, "  {name:<11} {value}")
}

/// A sentence in as many lines as it needs.
fn wrapped(text: &mut String, name: &str, sentence: &str) -> fmt::Result {
    let mut name = name;
    let mut value = String::new();
    for word in sentence.split_whitespace() {
        if !value.is_empty() && value.chars().count() + 1 + word.chars().count() > ROOM {
            line(text, core::mem::take(&mut name), &value)?;
            value.clear();
        }
        if !value.is_empty() {
            value.push(' ');
        }
        value.push_str(word);
    }
    line(text, name, &value)
}

fn files(report: &Report, text: &mut String) -> fmt::Result {
    let mut format = report.format.to_owned();
    for part in report.variant.into_iter().chain([report.byte_order]) {
        write!(format, ", {part}")?;
    }
    for layer in &report.compression {
        write!(format, ", {layer}")?;
    }
    line(text, "format", &format)?;
    let mut size = format!("{} bytes", grouped(report.file_bytes));
    if !report.compression.is_empty() {
        write!(size, ", {} unpacked", grouped(report.unpacked_bytes))?;
    }
    line(text, "size", &size)
}

fn packets(report: &Report, text: &mut String) -> fmt::Result {
    let mut packets = grouped(report.packets);
    if report.cut_packets > 0 {
        write!(packets, ", {} of them cut by the snaplen", grouped(report.cut_packets))?;
    }
    if let Some(outside) = report.packets_outside {
        write!(packets, "; {} outside of --from and --to", grouped(outside))?;
    }
    line(text, "packets", &packets)?;
    if report.absurd_packets > 0 {
        let absurd = counted(report.absurd_packets);
        let said = format!(
            "{absurd} with more than 1 MiB on the wire as the file says, which no network carries at once: bytes, sizes and \
             rates are not to be believed"
        );
        wrapped(text, "lengths", &said)?;
    }
    let (wire, captured) = (grouped(report.wire_bytes), grouped(report.captured_bytes));
    line(text, "bytes", &format!("{wire} on the wire, {captured} captured"))?;
    if let (Some(min), Some(mean), Some(max)) = (report.size_min, report.size_mean, report.size_max)
    {
        line(text, "sizes", &format!("{min} to {max} bytes, {mean:.1} on average"))?;
    }
    Ok(())
}

fn times(report: &Report, text: &mut String) -> fmt::Result {
    let (Some(earliest), Some(latest)) = (&report.earliest, &report.latest) else {
        return Ok(());
    };
    line(text, "earliest", &with_date(earliest))?;
    line(text, "latest", &with_date(latest))?;
    line(text, "duration", &format!("{} s", report.duration))?;
    if report.untimed_packets > 0 {
        let untimed = counted(report.untimed_packets);
        line(text, "untimed", &format!("{untimed}, given the time of the one before"))?;
    }
    let order = if report.in_time_order {
        "strict".to_owned()
    } else {
        let deepest = nanos(report.deepest_inversion_ns);
        let late = counted(report.inversions);
        format!("{late} earlier than the one before, by at most {deepest}")
    };
    line(text, "time order", &order)?;
    if let Some(note) = &report.stamps_note {
        wrapped(text, "equal times", note)?;
    }
    if let (Some(packets), Some(bits)) = (report.packets_per_second, report.bits_per_second) {
        line(text, "rate", &format!("{}packets/s, {}bit/s", scaled(packets), scaled(bits)))?;
    }
    Ok(())
}

fn bursts(bursts: &[BurstReport], text: &mut String) -> fmt::Result {
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.1}"));
    let heads = ["within", "packets", "over mean", "bytes", "over mean"];
    let mut table = Table::new(&heads.map(|head| (head, Align::Right)));
    for burst in bursts {
        let BurstReport { window_ms, packets, packets_to_mean, bytes, bytes_to_mean } = burst;
        let (packet_ratio, byte_ratio) = (ratio(*packets_to_mean), ratio(*bytes_to_mean));
        let (packets, bytes) = (grouped(*packets), grouped(*bytes));
        table.row([format!("{window_ms} ms"), packets, packet_ratio, bytes, byte_ratio]);
    }
    for (at, row) in table.text().lines().enumerate() {
        line(text, if at == 0 { "peaks" } else { "" }, row)?;
    }
    Ok(())
}

fn sections(report: &Report, text: &mut String) -> fmt::Result {
    for section in report.sections.iter().take(LISTED) {
        let said: Vec<_> =
            [&section.application, &section.os, &section.hardware].into_iter().flatten().collect();
        for (index, value) in said.iter().enumerate() {
            line(text, if index == 0 { "written by" } else { "" }, &printable(value))?;
        }
        for comment in &section.comments {
            line(text, "comment", &printable(comment))?;
        }
    }
    Ok(())
}

/// `1 packet`, `1,234 packets`.
fn counted(packets: u64) -> String {
    format!("{} packet{}", grouped(packets), if packets == 1 { "" } else { "s" })
}

/// A number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `12.3 M`: three or four digits and the prefix of the unit that follows.
fn scaled(value: f64) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match steps.into_iter().find(|(step, _)| value >= *step) {
        Some((step, prefix)) => format!("{:.2} {prefix}", value / step),
        None => format!("{value:.1} "),
    }
}

/// Nanoseconds in the unit that suits them.
fn nanos(nanos: i64) -> String {
    match nanos {
        ..1000 => format!("{nanos} ns"),
        1000..1_000_000 => format!("{:.3} µs", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", nanos as f64 / 1e6),
        _ => format!("{:.3} s", nanos as f64 / 1e9),
    }
}

/// `1439753725.701568000 (2015-08-16 19:35:25 UTC)`.
fn with_date(seconds: &str) -> String {
    let whole = seconds.split('.').next().unwrap_or_default();
    let Ok(whole) = whole.parse::<i64>() else { return seconds.to_owned() };
    // Before 1970 the fraction counts backwards.
    let floor = if seconds.starts_with('-') { whole - 1 } else { whole };
    let Date { year, month, day, hour, minute, second } = Date::of_second(floor);
    format!("{seconds} ({year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(
            with_date("1439753725.701568000"),
            "1439753725.701568000 (2015-08-16 19:35:25 UTC)"
        );
        assert_eq!(with_date("-0.500000000"), "-0.500000000 (1969-12-31 23:59:59 UTC)");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!([grouped(0), grouped(999), grouped(1_234_567)], ["0", "999", "1,234,567"]);
        assert_eq!([scaled(12.34), scaled(29_700_000.0)], ["12.3 ", "29.70 M"]);
        assert_eq!([nanos(12), nanos(43_000)], ["12 ns", "43.000 µs"]);
    }
}
