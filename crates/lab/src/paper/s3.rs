//! S3: four sessions of dumpcap over all sizes of frames with a gap of 12 bytes.

use std::time::Duration;

use super::score::percent;
use super::{
    Across, Axis, Experiment, Figure, Kind, Paper, Quantity, Results, SMALLEST, Scale, Score,
    Selection, Sweep, TOLERATED, axis, tools,
};
use crate::sweep::Pace;

const DEFAULTS: &str = "session-1";
const SNAPLENS: &str = "session-2";
const KERNEL: &str = "session-3-kernel";
const BUFFERS: &str = "session-3";
const BOTH: &str = "session-4";
const OURS: &str = "netsniff";

/// Bytes between frames of Ethernet (IEEE 802.3), and of preamble.
const GAP: f64 = 12.0;
const AROUND: f64 = 20.0;

/// The share of the sender's highest rate that the smallest frames need, so that its own limit is never met.
const SHARE: f64 = 0.8;

/// Settings of the kernel that the paper raises 64 times (its table II; of its defaults, which is more than the
/// most, what they come to).
const RAISED: [(&str, &str); 7] = [
    ("net.core.rmem_max", "8388544"),
    ("net.core.rmem_default", "8126464"),
    ("net.core.wmem_max", "8388544"),
    ("net.core.wmem_default", "8126464"),
    ("net.core.optmem_max", "1310720"),
    ("net.core.netdev_max_backlog", "64000"),
    ("net.core.netdev_budget", "19200"),
];

pub(super) fn paper(scale: &Scale) -> Paper {
    let link = scale.top(SMALLEST) * SHARE * 8.0 * (f64::from(SMALLEST) + AROUND);
    let every: Vec<u32> = (SMALLEST..=1200).step_by(8).collect();
    let sizes = scale.either(&[72, 104, 136, 200, 328, 584, 1200], &every);
    let time = Duration::from_secs(if scale.is_short { 2 } else { 5 });
    let raised: Vec<Axis> = RAISED.iter().map(|(name, value)| axis(name, &[value])).collect();
    let session = |name, title, tool: &str, axes: &[Axis], host: &[Axis]| Experiment {
        name,
        title,
        tools: tools(&[tool]),
        sizes: sizes.to_vec(),
        kind: Kind::Sweep(Sweep {
            paces: vec![Pace::Gap { bytes: GAP, link }],
            times: vec![time],
            repetitions: 1,
            axes: axes.to_vec(),
            host: host.to_vec(),
            ..Sweep::default()
        }),
    };
    let (ring, snaplen) = (axis("ring", &["32M"]), axis("snaplen", &["96"]));
    let dumpcap = "dumpcap-default";
    Paper {
        name: "s3",
        citation: "T. Skopko: Loss analysis of the software-based packet capturing",
        about: "Loss before the socket (of what was sent) and at the socket (of what came there) for each size of frames on \
                a nominal link whose smallest frames need 80 % of what the sender here can do, with 12 bytes between \
                frames: dumpcap as it comes, with less of each packet, with 64 times the kernel's settings and a ring of \
                32 MB instead of 2, and with both; and netsniff as it comes.",
        experiments: vec![
            session(DEFAULTS, "Session 1: dumpcap as it comes", dumpcap, &[], &[]),
            session(
                SNAPLENS,
                "Session 2: 256, 128 and 96 bytes of each packet",
                dumpcap,
                &[axis("snaplen", &["256", "128", "96"])],
                &[],
            ),
            session(
                KERNEL,
                "Session 3, first: settings of the kernel 64 times as high",
                dumpcap,
                &[],
                &raised,
            ),
            session(
                BUFFERS,
                "Session 3: and a ring of 32 MB",
                dumpcap,
                std::slice::from_ref(&ring),
                &raised,
            ),
            session(
                BOTH,
                "Session 4: and 96 bytes of each packet",
                dumpcap,
                &[ring, snaplen],
                &raised,
            ),
            session(OURS, "netsniff record as it comes", "record", &[], &[]),
        ],
        figures: figures(),
        judge,
    }
}

fn figures() -> Vec<Figure> {
    let figure = |title, caption, of: &[&'static str], quantities: &[Quantity]| Figure {
        title,
        caption,
        of: of.to_vec(),
        across: Across::Size,
        quantities: quantities.to_vec(),
    };
    vec![
        figure(
            "All sessions: lost in all",
            "The paper: poor at nearly all sizes in session 1; lossless from 352 bytes in session 3, from 256 in session 4.",
            &[DEFAULTS, KERNEL, BUFFERS, BOTH, OURS],
            &[Quantity::Loss],
        ),
        figure(
            "Session 1: where packets are lost",
            "The paper: at the smallest sizes the application loses little, since the kernel has lost it before.",
            &[DEFAULTS],
            &[Quantity::KernelLoss, Quantity::ApplicationLoss],
        ),
        figure(
            "Session 2: less of each packet",
            "The paper: less is lost, but for the smallest.",
            &[DEFAULTS, SNAPLENS],
            &[Quantity::Loss],
        ),
        figure(
            "Processor of the capture",
            "All programs and the kernel. The paper: less of each packet hardly changes it.",
            &[DEFAULTS, SNAPLENS, BUFFERS, BOTH, OURS],
            &[Quantity::Busy],
        ),
    ]
}

/// The smallest size from which on nothing worth speaking of is lost.
fn lossless_from(runs: &Selection<'_>) -> Option<u32> {
    let mut from = None;
    for size in runs.sizes().into_iter().rev() {
        if runs.size(size).median(Quantity::Loss)? > TOLERATED {
            break;
        }
        from = Some(size);
    }
    from
}

fn from(results: &Results, session: &str) -> Option<Option<u32>> {
    let runs = results.of(session);
    (!runs.sizes().is_empty()).then(|| lossless_from(&runs))
}

fn words(from: Option<u32>) -> String {
    from.map_or("at no size".to_owned(), |size| format!("from {size} bytes"))
}

/// Whether a session is lossless from a smaller size than another.
fn better(results: &Results, than: &str, session: &str) -> Option<(bool, String)> {
    let (before, after) = (from(results, than)?, from(results, session)?);
    let seen = format!("lossless {} before, {} after", words(before), words(after));
    let is_better = after.unwrap_or(u32::MAX) < before.unwrap_or(u32::MAX);
    Some((is_better, seen))
}

fn smallest(runs: &Selection<'_>) -> Option<u32> {
    runs.sizes().first().copied()
}

fn falls(results: &Results) -> Option<(bool, String)> {
    let runs = results.of(DEFAULTS);
    let sizes = runs.sizes();
    let (small, large) = (*sizes.first()?, *sizes.last()?);
    let of = |size| runs.size(size).median(Quantity::Loss);
    let (most, least) = (of(small)?, of(large)?);
    let seen = format!("{small} bytes: {}, {large} bytes: {}", percent(most), percent(least));
    Some((most > least + 0.02, seen))
}

fn kernel_first(results: &Results) -> Option<(bool, String)> {
    let runs = results.of(DEFAULTS);
    let runs = runs.size(smallest(&runs)?);
    let (kernel, application) =
        (runs.median(Quantity::KernelLoss)?, runs.median(Quantity::ApplicationLoss)?);
    let seen =
        format!("before the socket {}, at the socket {}", percent(kernel), percent(application));
    Some((kernel > application, seen))
}

fn mean_loss(runs: &Selection<'_>) -> Option<f64> {
    let sizes = runs.sizes();
    let losses: Vec<_> =
        sizes.iter().map(|size| runs.size(*size).median(Quantity::Loss)).collect::<Option<_>>()?;
    (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64)
}

fn snaplen(results: &Results) -> Option<(bool, String)> {
    let whole = mean_loss(&results.of(DEFAULTS))?;
    let short = mean_loss(&results.of(SNAPLENS).set("snaplen", "96"))?;
    let seen =
        format!("mean of all sizes: {} whole, {} with 96 bytes", percent(whole), percent(short));
    Some((short < whole - 0.005, seen))
}

fn kernel_alone(results: &Results) -> Option<(bool, String)> {
    let (before, after) = (mean_loss(&results.of(DEFAULTS))?, mean_loss(&results.of(KERNEL))?);
    let seen = format!("mean of all sizes: {} before, {} after", percent(before), percent(after));
    Some((after < before - 0.005, seen))
}

/// How well a straight line of the rate of packets says what is lost below the size that is lossless.
fn linear(results: &Results) -> Option<(bool, String)> {
    let runs = results.of(BOTH);
    let points: Vec<(f64, f64)> = runs
        .sizes()
        .into_iter()
        .filter_map(|size| {
            let of = runs.size(size);
            let loss = of.median(Quantity::Loss).filter(|loss| *loss > TOLERATED)?;
            let rate = of.runs().find_map(|run| run.trial.reached)?;
            Some((rate, loss))
        })
        .collect();
    let r_squared = determination(&points)?;
    let seen = format!("R2 of loss over rate: {r_squared:.2}, {} sizes that lose", points.len());
    Some((r_squared >= 0.9, seen))
}

/// The coefficient of determination of the least-squares line through points; `None` for fewer than three, or where
/// either coordinate never changes.
fn determination(points: &[(f64, f64)]) -> Option<f64> {
    let number = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / number;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let both = sum(&|point| (point.0 - x) * (point.1 - y));
    let squares = sum(&|point| (point.0 - x).powi(2)) * sum(&|point| (point.1 - y).powi(2));
    (points.len() >= 3 && squares > 0.0).then(|| both * both / squares)
}

fn ours(results: &Results) -> Option<(bool, String)> {
    let (theirs, ours) = (mean_loss(&results.of(BOTH))?, mean_loss(&results.of(OURS))?);
    let seen = format!(
        "mean of all sizes: {} in session 4, {} by netsniff",
        percent(theirs),
        percent(ours)
    );
    Some((ours <= theirs, seen))
}

fn judge(results: &Results, _: &Scale) -> Vec<Score> {
    vec![
        Score::of(
            "With defaults small frames lose more than large ones",
            "S3 session 1; E-14, F16",
            falls(results),
        ),
        Score::of(
            "At the smallest size less is lost at the socket than before, where it is lost already",
            "S3 session 1; E-12, E-14",
            kernel_first(results),
        ),
        Score::of("Less of each packet reduces loss", "S3 session 2; E-15", snaplen(results)),
        Score::of(
            "Settings of the kernel 64 times as high reduce loss by themselves (the paper raises them together)",
            "S3 session 3; E-7, X6",
            kernel_alone(results),
        ),
        Score::of(
            "With a ring of 32 MB instead of 2 nothing is lost from a smaller size on",
            "S3 session 3; E-16",
            better(results, DEFAULTS, BUFFERS),
        ),
        Score::of(
            "and with 96 bytes of each packet from a still smaller one on",
            "S3 session 4; E-17",
            better(results, BUFFERS, BOTH),
        ),
        Score::of(
            "Below that loss is almost linear in the rate",
            "S3 session 4; E-17",
            linear(results),
        ),
        Score::of(
            "Netsniff as it comes loses no more than session 4 (our claim)",
            "A19, C21",
            ours(results),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::Verdict;
    use crate::sweep::Run;

    fn at(size: u32, loss: f64) -> Run {
        let rate = Some(1e9 / 8.0 / f64::from(size + 20));
        run(&[], Load { size, rate, ..Load::default() }, loss)
    }

    #[test]
    fn the_smallest_frames_need_the_share_of_the_sender() {
        let scale = super::super::tests::scale(false);
        let paper = paper(&scale);
        let Kind::Sweep(sweep) = &paper.experiments[0].kind else { panic!("it is a sweep") };
        let rate = sweep.paces[0].rate(72).unwrap();
        assert!((rate / scale.top(72) - 0.8).abs() < 1e-9, "{rate}");
        assert_eq!(paper.experiments[0].sizes.len(), 142);
    }

    #[test]
    fn sessions_are_judged() {
        let session = |name: &str, losses: [f64; 3]| {
            let runs = [72, 104, 200].into_iter().zip(losses).map(|(size, loss)| at(size, loss));
            (name.to_owned(), runs.collect::<Vec<_>>())
        };
        let sessions = [
            session(DEFAULTS, [0.5, 0.3, 0.1]),
            session(KERNEL, [0.5, 0.3, 0.1]),
            session(BUFFERS, [0.5, 0.3, 0.0]),
            session(BOTH, [0.5, 0.0, 0.0]),
            session(OURS, [0.6, 0.0, 0.0]),
        ];
        let results = Results { runs: sessions.into(), ..Results::default() };
        let scores = judge(&results, &super::super::tests::scale(true));
        let seen: Vec<_> = scores.iter().map(|score| score.verdict).collect();
        use Verdict::{Fails, Holds, Unavailable};
        let expected = [Holds, Fails, Unavailable, Fails, Holds, Holds, Unavailable, Fails];
        assert_eq!(seen, expected, "{scores:#?}");
        assert_eq!(scores[4].seen, "lossless at no size before, from 200 bytes after");
        assert_eq!(scores[5].seen, "lossless from 200 bytes before, from 104 bytes after");
    }

    #[test]
    fn a_line_is_a_line() {
        assert_eq!(determination(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]), Some(1.0));
        let bent = determination(&[(1.0, 0.0), (2.0, 1.0), (3.0, 0.0)]).unwrap();
        assert!(bent.abs() < 1e-9);
        assert_eq!(determination(&[(1.0, 2.0), (2.0, 4.0)]), None);
        assert_eq!(determination(&[(1.0, 2.0), (1.0, 4.0), (1.0, 5.0)]), None);
    }
}
