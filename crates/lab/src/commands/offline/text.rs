//! What was measured of files as text and as CSV.

use netsniff_console::calendar::Date;
use netsniff_packet::Timestamp;

use crate::commands::csv::{known, line};
use crate::offline::StoredOutcome;
use crate::report::Section;

/// Tables, and what is not in them.
pub(super) fn text(sections: &[Section], left_out: &[String]) -> String {
    let mut text: String = sections.iter().map(Section::text).collect();
    for (number, what) in left_out.iter().enumerate() {
        text += if number == 0 { "\nLeft out:\n" } else { "" };
        text += &format!("  {what}\n");
    }
    text.trim_start_matches('\n').to_owned()
}

const COLUMNS: &str = "file,packets_of_file,round,counts,subject,wall_ns,user_ns,system_ns,peak_bytes,peak_below,packets,failure\n";

/// Every run, a line for each.
pub(super) fn csv(outcomes: &[StoredOutcome]) -> String {
    let mut text = COLUMNS.to_owned();
    for outcome in outcomes {
        for run in &outcome.runs {
            text += &line([
                outcome.capture.path.display().to_string(),
                outcome.capture.packets.to_string(),
                run.round.to_string(),
                run.counts().to_string(),
                run.subject.clone(),
                run.wall_ns.to_string(),
                run.user_ns.to_string(),
                run.system_ns.to_string(),
                known(run.peak_bytes),
                known(run.peak_below),
                known(run.packets),
                run.failure.clone().unwrap_or_default(),
            ]);
        }
    }
    text
}

/// A day and a time of day, of seconds since 1970.
pub(super) fn day(seconds: u64) -> String {
    let Date { year, month, day, hour, minute, .. } =
        Date::of(Timestamp::from_secs_nanos(i64::try_from(seconds).unwrap_or(i64::MAX), 0));
    format!("{year}-{month:02}-{day:02} at {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::figures::tests::outcome;

    #[test]
    fn every_run_is_a_line() {
        let mut outcome = outcome();
        outcome.runs.truncate(2);
        outcome.runs[1].round = 1;
        outcome.runs[1].peak_bytes = None;
        let lines = csv(&[outcome]);
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.split(',').count() == 12), "{lines:?}");
        assert_eq!(lines[2], "a.pcap,100,1,true,read,3000,1125,375,,,100,");
        assert!(lines[1].starts_with("a.pcap,100,0,false,start,1000000,"));
    }

    #[test]
    fn days_are_of_utc() {
        assert_eq!(day(1_764_349_500), "2025-11-28 at 17:05 UTC");
    }

    #[test]
    fn what_is_left_out_is_named() {
        let text = text(&[], &["zeek: not installed".to_owned()]);
        assert_eq!(text, "Left out:\n  zeek: not installed\n");
    }
}
