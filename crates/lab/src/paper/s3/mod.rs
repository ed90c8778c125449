//! S3: four sessions of dumpcap over all sizes of frames with a gap of 12 bytes, buffers before a disk, and threads.

mod disk;
mod threads;

use std::collections::BTreeSet;
use std::time::Duration;

use super::score::{Seen, percent};
use super::{
    Across, Axis, Experiment, Figure, Kind, Paper, Picture, Quantity, Results, SMALLEST, Scale,
    Score, Selection, Sweep, TOLERATED, axis, tools,
};
use crate::load::FCS_LEN;
use crate::search::sweep::Pace;

const DEFAULTS: &str = "session-1";
const SNAPLENS: &str = "session-2";
const KERNEL: &str = "session-3-kernel";
const BUFFERS: &str = "session-3";
const BOTH: &str = "session-4";
const OURS: &str = "netsniff";

/// Bytes between frames of Ethernet (IEEE 802.3), and of preamble.
const GAP: f64 = 12.0;
const AROUND: f64 = 20.0;

/// The paper's largest frames, of 1200 bytes, with the frame check sequence that its sizes do not have.
const LARGEST: u32 = 1200 + FCS_LEN;

/// Differences below these are none: of one size, and of the mean of all.
const POINTS: f64 = 0.02;
const LESS: f64 = 0.005;

/// The share of the sender's highest rate that the smallest frames need, so that its own limit is never met.
const SHARE: f64 = 0.8;

/// The paper as data: an entry for each experiment.
pub(super) fn paper(scale: &Scale) -> Paper {
    let link = scale.top(SMALLEST) * SHARE * 8.0 * (f64::from(SMALLEST) + AROUND);
    let every: Vec<u32> = (SMALLEST..=LARGEST).step_by(8).collect();
    let sizes = scale.either(&[SMALLEST, 108, 140, 204, 332, 588, LARGEST], &every);
    let time = Duration::from_secs(if scale.is_short { 2 } else { 5 });
    let raised = [axis("profile", &["skopko64"])];
    let session = |name, title, tool: &str, axes: &[Axis], host: &[Axis]| Experiment {
        name,
        title,
        tools: tools(&[tool]),
        sizes: sizes.to_vec(),
        kind: Kind::Sweep(Sweep {
            paces: vec![Pace::Gap { bytes: GAP, link }],
            times: vec![time],
            // Sizes are so many that neighbours repeat each other.
            repetitions: scale.repeated(1),
            axes: axes.to_vec(),
            host: host.to_vec(),
            ..Sweep::default()
        }),
    };
    let (ring, snaplen) = (axis("ring", &["32M"]), axis("snaplen", &["96"]));
    let dumpcap = "dumpcap-default";
    let [buffers, ours] = disk::experiments(scale);
    Paper {
        name: "s3",
        citation: "T. Skopko: Loss analysis of the software-based packet capturing",
        about: "Loss before the socket (of what was sent) and at the socket (of what came there) for each size of frames on \
                a nominal link whose smallest frames need 80 % of what the sender here can do, with 12 bytes between \
                frames: dumpcap as it comes, with less of each packet, with settings of the kernel as high as the paper set \
                them and a ring of 32 MB instead of 2, and with both; and netsniff as it comes. The two rings also before a \
                planted disk that stalls, and on memory. One flow and many are captured by several threads on all \
                processors, of which the sender shares one.",
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
                "Session 3, first: settings of the kernel as high as the paper set them",
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
            buffers,
            ours,
            threads::experiment(scale),
        ],
        figures: figures(),
        pictures: vec![
            Picture::Path {
                title: "Figure 1: the path of packets, and what each stage lost of session 1",
                of: DEFAULTS,
            },
            Picture::Path {
                title: "Figure 2: the path of packets, and what each stage lost of session 4",
                of: BOTH,
            },
        ],
        judge,
    }
}

/// An entry for each figure.
fn figures() -> Vec<Figure> {
    let figure = |title, caption, of: &[&'static str], quantities: &[Quantity]| Figure {
        title,
        caption,
        of: of.to_vec(),
        across: Across::Size,
        quantities: quantities.to_vec(),
        limits: Vec::new(),
    };
    vec![
        figure(
            "All sessions: lost in all",
            "The paper: poor at nearly all sizes in session 1; lossless from 352 bytes in session 3, from 256 in session 4 (356 and \
             260 with the frame check sequence, as sizes are here).",
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
        disk::figure(),
        threads::figure(),
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

/// Whether a session is lossless from a smaller size than another: not told where both are at all sizes, or where sizes
/// are missing.
fn better(results: &Results, than: &str, session: &str) -> Seen {
    let sizes = [than, session].map(|name| results.of(name).sizes());
    let (before, after) = (from(results, than)?, from(results, session)?);
    let seen = format!("lossless {} before, {} after", words(before), words(after));
    let is_told = sizes[0] == sizes[1] && (before, after).ne(&(sizes[0].first().copied(), before));
    let is_better = after.unwrap_or(u32::MAX) < before.unwrap_or(u32::MAX);
    Some((is_told.then_some(is_better), seen))
}

fn smallest(runs: &Selection<'_>) -> Option<u32> {
    runs.sizes().first().copied()
}

fn falls(results: &Results) -> Seen {
    let runs = results.of(DEFAULTS);
    let sizes = runs.sizes();
    let (small, large) = (*sizes.first()?, *sizes.last()?);
    let of = |size| runs.size(size).median(Quantity::Loss);
    let (most, least) = (of(small)?, of(large)?);
    let seen = format!("{small} bytes: {}, {large} bytes: {}", percent(most), percent(least));
    Some(((most.max(least) > TOLERATED).then_some(most > least + POINTS), seen))
}

fn kernel_first(results: &Results) -> Seen {
    let runs = results.of(DEFAULTS);
    let runs = runs.size(smallest(&runs)?);
    let (all, kernel) = (runs.median(Quantity::Loss)?, runs.median(Quantity::KernelLoss)?);
    // Both of what was sent: what came to the socket is the less the more was lost before.
    let socket = all - kernel;
    let seen = format!(
        "of what was sent, before the socket {}, at the socket {}; of what came there {}",
        percent(kernel),
        percent(socket),
        runs.median(Quantity::ApplicationLoss).map_or("unavailable".to_owned(), percent)
    );
    Some(((all > TOLERATED).then_some(kernel > socket), seen))
}

/// Losses on average over the sizes that two selections have in common.
struct Means {
    one: f64,
    other: f64,
    sizes: usize,
}

/// `None` where they have less than three quarters of their sizes in common: others would decide.
fn means(one: &Selection<'_>, other: &Selection<'_>) -> Option<Means> {
    let all: BTreeSet<_> = one.sizes().into_iter().chain(other.sizes()).collect();
    let of = |size: &u32| {
        let loss = |runs: &Selection<'_>| runs.size(*size).median(Quantity::Loss);
        Some((loss(one)?, loss(other)?))
    };
    let both: Vec<_> = all.iter().filter_map(of).collect();
    let sizes = both.len();
    let mean = |of: fn(&(f64, f64)) -> f64| both.iter().map(of).sum::<f64>() / sizes as f64;
    (sizes > 0 && sizes * 4 >= all.len() * 3).then(|| Means {
        one: mean(|both| both.0),
        other: mean(|both| both.1),
        sizes,
    })
}

/// Whether less is lost on average than before; not told where nothing was lost before.
fn reduced(before: &Selection<'_>, after: &Selection<'_>, names: [&str; 2]) -> Seen {
    let Means { one, other, sizes } = means(before, after)?;
    let seen = format!(
        "mean of {sizes} sizes: {} {}, {} {}",
        percent(one),
        names[0],
        percent(other),
        names[1]
    );
    Some(((one > TOLERATED).then_some(other < one - LESS), seen))
}

fn snaplen(results: &Results) -> Seen {
    let short = results.of(SNAPLENS).set("snaplen", "96");
    reduced(&results.of(DEFAULTS), &short, ["whole", "with 96 bytes"])
}

fn kernel_alone(results: &Results) -> Seen {
    reduced(&results.of(DEFAULTS), &results.of(KERNEL), ["before", "after"])
}

/// How well a straight line of the rate of packets says what is lost below the size that is lossless.
fn linear(results: &Results) -> Seen {
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
    let (r_squared, is_rising) = determination(&points)?;
    let seen = format!("R2 of loss over rate: {r_squared:.2}, {} sizes that lose", points.len());
    Some((Some(r_squared >= 0.9 && is_rising), seen))
}

/// The coefficient of determination of the least-squares line through points, and whether it rises; `None` for fewer than
/// three, or where either coordinate never changes.
fn determination(points: &[(f64, f64)]) -> Option<(f64, bool)> {
    let number = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / number;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
    let both = sum(&|point| (point.0 - x) * (point.1 - y));
    let squares = sum(&|point| (point.0 - x).powi(2)) * sum(&|point| (point.1 - y).powi(2));
    (points.len() >= 3 && squares > 0.0).then(|| (both * both / squares, both > 0.0))
}

fn ours(results: &Results) -> Seen {
    let Means { one, other, sizes } = means(&results.of(BOTH), &results.of(OURS))?;
    let seen = format!(
        "mean of {sizes} sizes: {} in session 4, {} by netsniff",
        percent(one),
        percent(other)
    );
    Some((Some(other <= one), seen))
}

fn judge(results: &Results, _: &Scale) -> Vec<Score> {
    let mut scores = vec![
        results.score(
            "With defaults small frames lose more than large ones",
            "S3 session 1; E-14, F16", falls),
        results.score(
            "At the smallest size less is lost at the socket than before, where it is lost already",
            "S3 session 1; E-12, E-14", kernel_first),
        results.score("Less of each packet reduces loss", "S3 session 2; E-15", snaplen),
        results.score(
            "Settings of the kernel as high as the paper set them reduce loss by themselves (it raises the ring with them)",
            "S3 session 3; E-7, X6", kernel_alone),
        results.score(
            "With a ring of 32 MB instead of 2, beside these settings, nothing is lost from a smaller size on",
            "S3 session 3; E-16", |results| better(results, KERNEL, BUFFERS)),
        results.score(
            "With 96 bytes of each packet beside both, nothing is lost from a still smaller size on",
            "S3 session 4; E-17", |results| better(results, BUFFERS, BOTH)),
        results.score(
            "In session 4 loss is almost linear in the rate where there is any, and rises with it",
            "S3 session 4; E-17", linear),
        results.score(
            "Netsniff as it comes loses no more than session 4 (our claim)",
            "A19, C21", ours),
    ];
    scores.extend(disk::judge(results));
    scores.extend(threads::scores(results));
    scores
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::run;
    use super::*;
    use crate::load::Load;
    use crate::paper::ClaimVerdict;
    use crate::search::sweep::Run;

    fn at(size: u32, loss: f64) -> Run {
        let rate = Some(1e9 / 8.0 / f64::from(size + 20));
        run(&[], Load { size, rate, ..Load::default() }, loss)
    }

    #[test]
    fn the_smallest_frames_need_the_share_of_the_sender() {
        let scale = super::super::tests::scale(false);
        let paper = paper(&scale);
        let Kind::Sweep(sweep) = &paper.experiments[0].kind else { panic!("it is a sweep") };
        let rate = sweep.paces[0].rate(SMALLEST).unwrap();
        assert!((rate / scale.top(SMALLEST) - 0.8).abs() < 1e-9, "{rate}");
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
        let seen: Vec<_> = scores.iter().map(|score| score.verdict).take(8).collect();
        use ClaimVerdict::{Fails, Holds, Unavailable};
        let expected = [Holds, Fails, Unavailable, Fails, Holds, Holds, Unavailable, Fails];
        assert_eq!(seen, expected, "{scores:#?}");
        assert_eq!(scores[4].seen, "lossless at no size before, from 200 bytes after");
        assert_eq!(scores[5].seen, "lossless from 200 bytes before, from 104 bytes after");
        assert_eq!(scores[7].seen, "mean of 3 sizes: 16.67 % in session 4, 20.00 % by netsniff");
    }

    #[test]
    fn what_is_missing_or_lossless_tells_nothing() {
        let judged = |sessions: &[(&str, &[(u32, f64)])]| {
            let runs = sessions.iter().map(|(name, runs)| {
                let runs = runs.iter().map(|(size, loss)| {
                    let mut run = at(*size, *loss);
                    run.point.settings = vec![super::super::setting("snaplen", "96")];
                    run
                });
                ((*name).to_owned(), runs.collect::<Vec<_>>())
            });
            let results = Results { runs: runs.collect(), ..Results::default() };
            let scores = judge(&results, &super::super::tests::scale(true));
            scores.iter().map(|score| score.verdict).collect::<Vec<_>>()
        };
        use ClaimVerdict::{Fails, Holds, Unavailable};
        let (none, some) =
            ([(72, 0.0), (104, 0.0), (200, 0.0)], [(72, 0.5), (104, 0.2), (200, 0.0)]);
        let seen = judged(&[(DEFAULTS, &none), (SNAPLENS, &none), (BUFFERS, &none), (BOTH, &none)]);
        assert_eq!(seen, [Unavailable; 14]);
        let seen = judged(&[(DEFAULTS, &some), (SNAPLENS, &none), (BUFFERS, &some), (BOTH, &some)]);
        assert_eq!((seen[2], seen[5]), (Holds, Fails));
        // Of a session that was ended early only the small sizes are there.
        let seen = judged(&[(BUFFERS, &some), (BOTH, &some[..1]), (OURS, &some)]);
        assert_eq!((seen[5], seen[7]), (Unavailable, Unavailable));
        let falling = [(72, 0.1), (104, 0.2), (200, 0.3), (328, 0.4)];
        assert_eq!(judged(&[(BOTH, &falling)])[6], Fails);
        let rising = [(72, 0.4), (104, 0.3), (136, 0.22), (200, 0.1)];
        assert_eq!(judged(&[(BOTH, &rising)])[6], Holds);
    }

    /// Most of the losses are before the socket where the kernel has lost more than the application of all that was sent,
    /// though of what was left the application may have lost the larger share.
    #[test]
    fn losses_before_and_at_the_socket_are_of_the_same_whole() {
        let mut first = at(72, 0.67);
        // Of a million 400,000 are lost before the socket, 270,000 of the other 600,000 at it.
        (first.trial.arrived, first.trial.counted.dropped) = (600_000, Some(270_000));
        let judged = |run: Run| {
            let runs = [(DEFAULTS.to_owned(), vec![run])].into();
            judge(&Results { runs, ..Results::default() }, &super::super::tests::scale(true))
        };
        let score = &judged(first.clone())[1];
        assert_eq!(score.verdict, ClaimVerdict::Holds, "{score:?}");
        assert!(score.seen.ends_with("at the socket 27.00 %; of what came there 45.00 %"));
        (first.trial.arrived, first.trial.counted.dropped) = (730_000, Some(400_000));
        assert_eq!(judged(first)[1].verdict, ClaimVerdict::Fails);
    }

    #[test]
    fn a_line_is_a_line() {
        assert_eq!(determination(&[(1.0, 2.0), (2.0, 4.0), (3.0, 6.0)]), Some((1.0, true)));
        let bent = determination(&[(1.0, 0.0), (2.0, 1.0), (3.0, 0.0)]).unwrap();
        assert!(bent.0.abs() < 1e-9);
        assert_eq!(determination(&[(1.0, 2.0), (2.0, 4.0)]), None);
        assert_eq!(determination(&[(1.0, 2.0), (1.0, 4.0), (1.0, 5.0)]), None);
    }
}
