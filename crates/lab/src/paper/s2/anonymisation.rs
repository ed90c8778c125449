//! S2's "minimal impact on the processing performance" of anonymisation (PAPERS A15, X8): sessions in a file, without it and
//! with two kinds of it, in the same rounds.

use super::super::score::Seen;
use super::super::{Experiment, Kind, Results, Scale, Score, tools};
use super::MORE;
use crate::offline::figures::Change;
use crate::offline::subject::Variant;

pub(super) const ANONYMISATION: &str = "anonymisation";

/// The kinds of it. Both also replace names of hosts and users; they differ in what becomes of addresses.
const KINDS: [&str; 2] =
    ["prefix-preserving=--anonymize --method tcpdriv", "full=--anonymize --method nullip"];

pub(super) fn experiment(scale: &Scale) -> Experiment {
    let variants = KINDS.iter().filter_map(|kind| Variant::parse(kind).ok()).collect();
    Experiment {
        name: ANONYMISATION,
        title: "A file without anonymisation and with two kinds of it",
        tools: tools(&["analyze"]),
        sizes: vec![scale.trace_size],
        kind: Kind::Offline { variants, rounds: if scale.is_short { 15 } else { 40 } },
    }
}

pub(super) fn score(results: &Results) -> Score {
    results.score(
        "Anonymisation has a minimal impact on the processing performance: a tenth more processor time at most",
        "S2; A15",
        |results| seen(&results.stored(ANONYMISATION)?.changes()),
    )
}

/// Told where the whole interval of every kind is on one side of what is minimal.
fn seen(changes: &[Change]) -> Seen {
    let ends: Option<Vec<_>> = changes.iter().map(|change| change.cpu_times.interval).collect();
    let holds = match ends {
        _ if changes.len() < KINDS.len() => None,
        None => None,
        Some(ends) if ends.iter().all(|[_, high]| *high <= MORE) => Some(true),
        Some(ends) if ends.iter().any(|[low, _]| *low > MORE) => Some(false),
        Some(_) => None,
    };
    let words = changes.iter().map(|Change { subject, cpu_times, cpu_ns, .. }| {
        let interval =
            cpu_times.interval.map_or("interval unavailable".to_owned(), |[low, high]| {
                format!("95 %: {low:.3} to {high:.3}")
            });
        let (times, more) = (cpu_times.value, cpu_ns.value);
        format!(
            "{subject}: {times:.3} times the processor time ({interval}), {more:+.0} ns a packet"
        )
    });
    (!changes.is_empty()).then(|| (holds, words.collect::<Vec<_>>().join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::figures::Mean;

    #[test]
    fn impact_is_judged_by_the_whole_interval() {
        let of = |subject: &str, interval| Change {
            subject: subject.to_owned(),
            times: Mean { value: 1.0, interval: None, rounds: 3 },
            cpu_times: Mean { value: 1.05, interval, rounds: 3 },
            cpu_ns: Mean { value: 12.4, interval: None, rounds: 3 },
        };
        let both = |first, second| seen(&[of("prefix-preserving", first), of("full", second)]);
        let (small, large) = (Some([1.0, 1.1]), Some([1.11, 1.2]));
        let (holds, words) = both(small, small).unwrap();
        assert_eq!(holds, Some(true));
        let first = "prefix-preserving: 1.050 times the processor time (95 %: 1.000 to 1.100), +12 ns a packet; full: ";
        assert!(words.starts_with(first), "{words}");
        assert_eq!(both(small, large).unwrap().0, Some(false), "one kind is enough");
        let untold = [(small, Some([1.05, 1.12])), (Some([1.1, 1.12]), small), (small, None)];
        for (first, second) in untold {
            assert_eq!(both(first, second).unwrap().0, None, "{first:?} {second:?}");
        }
        assert_eq!(seen(&[of("full", small)]).unwrap().0, None, "nobody knows of the other kind");
        assert_eq!(seen(&[]), None);
    }

    #[test]
    fn both_kinds_are_options() {
        let Kind::Offline { variants, .. } =
            experiment(&super::super::super::tests::scale(true)).kind
        else {
            panic!("it is of a file");
        };
        let names: Vec<_> = variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["prefix-preserving", "full"]);
    }
}
