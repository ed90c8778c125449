//! A diagnosis for people.

use std::fmt::Write as _;

use crate::arithmetic::{self, Holds};
use crate::diagnosis::{Diagnosis, Level};
use crate::stage::{Counter, Knob, Loss, Stage, StageId};
use crate::watch::Watched;

/// Characters of the longest bar.
const BAR: usize = 40;

/// The whole of it; with `is_all`, also stages and settings of which there is nothing to say.
#[must_use]
pub fn page(diagnosis: &Diagnosis, is_all: bool) -> String {
    let mut page = String::new();
    head(&mut page, diagnosis);
    waterfall(&mut page, diagnosis);
    for stage in &diagnosis.watched.stages {
        put_stage(&mut page, stage, is_all);
    }
    advice(&mut page, diagnosis);
    page
}

/// Adds a line: a String takes everything.
macro_rules! line {
    ($page:expr) => { $page.push('\n') };
    ($page:expr, $($rest:tt)*) => {{ let _ = writeln!($page, $($rest)*); }};
}

fn head(page: &mut String, diagnosis: &Diagnosis) {
    let Watched { nanos, rate, peak_rate, packets, busy, .. } = &diagnosis.watched;
    let link = diagnosis
        .megabits
        .map_or_else(|| "a link of unknown speed".to_owned(), |it| format!("a link of {it} Mb/s"));
    line!(page, "{}: {link}, watched for {:.1} s", diagnosis.interface, *nanos as f64 / 1e9);
    let known =
        |number: &Option<u64>| number.map_or_else(|| "unavailable".to_owned(), |it| it.to_string());
    line!(
        page,
        "  packets a second: {}, at most {} in a tenth of one",
        known(rate),
        known(peak_rate)
    );
    for one in busy {
        line!(
            page,
            "  processor {}: {:3.0} % busy, {:3.0} % receiving, at most {:3.0} % in half a second; it received {} packets",
            one.processor,
            one.mean * 100.0,
            one.softirq * 100.0,
            one.peak * 100.0,
            known(&one.packets)
        );
    }
    if let Some(packets) = packets {
        line!(
            page,
            "  looked at {} packets of {} flows, at most {} in a millisecond",
            packets.seen,
            packets.flows,
            packets.most_in_millisecond
        );
        gaps(page, &packets.gaps);
    }
    line!(page);
    if diagnosis.findings.is_empty() {
        line!(page, "{}", diagnosis.silence());
    }
    for (level, title) in [
        (Level::Losing, "LOSES NOW"),
        (Level::Near, "NEAR IT, OR SUSPECT"),
        (Level::Note, "WORTH KNOWING"),
    ] {
        let mut of = diagnosis.findings.iter().filter(|finding| finding.level == level).peekable();
        if of.peek().is_some() {
            line!(page, "{title}");
            of.for_each(|finding| line!(page, "  {}", finding.text));
        }
    }
    line!(page);
}

/// Gaps between packets, as bars.
fn gaps(page: &mut String, gaps: &[u64]) {
    let most = gaps.iter().copied().max().unwrap_or_default().max(1);
    if gaps.iter().all(|count| *count == 0) {
        return;
    }
    line!(page, "  gaps between packets, shorter than");
    for (step, count) in gaps.iter().enumerate().filter(|(_, count)| **count > 0) {
        let micros = 1_u64 << step;
        let name = match micros {
            1000.. => format!("{} ms", micros / 1000),
            _ => format!("{micros} µs"),
        };
        let bar = "#".repeat((*count as u128 * BAR as u128 / u128::from(most)) as usize);
        line!(page, "    {name:>8} {count:>10} {bar}");
    }
}

/// What each stage lost while it was watched, in order.
fn waterfall(page: &mut String, diagnosis: &Diagnosis) {
    line!(page, "THE WAY OF A PACKET                lost while watched");
    for stage in &diagnosis.watched.stages {
        let lost = stage.lost().map_or_else(
            || {
                if stage.counters.iter().any(|it| it.loss == Loss::Packets) {
                    "unavailable".to_owned()
                } else {
                    "-".to_owned()
                }
            },
            |lost| lost.to_string(),
        );
        let mark = if Some(stage.id) == diagnosis.worst() { "  <- loses most" } else { "" };
        line!(page, "  {:<32} {lost:>18}{mark}", stage.id.name());
    }
    line!(page, "  -: nothing is counted there as lost; see the stage");
    line!(page);
}

fn put_stage(page: &mut String, stage: &Stage, is_all: bool) {
    let counters: Vec<_> =
        stage.counters.iter().filter(|counter| is_all || is_worth_telling(counter)).collect();
    let knobs: Vec<_> =
        stage.knobs.iter().filter(|knob| is_all || is_worth_showing(knob)).collect();
    if counters.is_empty() && knobs.is_empty() && stage.notes.is_empty() && stage.unread.is_empty()
    {
        return;
    }
    line!(page, "{}", stage.id.name().to_uppercase());
    for Counter { name, total, during, .. } in counters {
        let known = |number: &Option<u64>| {
            number.map_or_else(|| "unavailable".to_owned(), |it| it.to_string())
        };
        line!(page, "  {name}: {} ({} while watched)", known(total), known(during));
    }
    for knob in knobs {
        put_knob(page, knob);
    }
    stage.notes.iter().for_each(|note| line!(page, "  {note}"));
    stage.unread.iter().for_each(|unread| line!(page, "  not read: {unread}"));
    line!(page);
}

/// Counts of losses that are something, and those that cannot be read.
fn is_worth_telling(counter: &Counter) -> bool {
    counter.total.is_none() || counter.loss != Loss::None && counter.total > Some(0)
}

/// Settings of queues and processors are many, and mostly alike.
fn is_worth_showing(knob: &Knob) -> bool {
    use crate::setting::Setting;
    let is_plain = match &knob.setting {
        Setting::Interface { file, .. } => {
            !file.starts_with("queues/")
                || knob
                    .value
                    .as_deref()
                    .is_some_and(|value| value.chars().any(|it| !"0,".contains(it)))
        }
        _ => true,
    };
    is_plain || knob.advice.is_some()
}

fn put_knob(page: &mut String, knob: &Knob) {
    let value = knob.value.as_deref().unwrap_or("unavailable");
    let most = knob.most.as_ref().map_or_else(String::new, |most| format!(" (at most {most})"));
    let fixed = if knob.is_fixed { " (fixed)" } else { "" };
    line!(page, "  {} = {value}{most}{fixed}", knob.setting);
    line!(page, "      {}", knob.rules);
    if let Some(held) = knob.holds.and_then(|it| holds(&it)) {
        line!(page, "      {held}");
    }
    if let Some(advice) = &knob.advice {
        line!(page, "      CHANGE to {}: {}", advice.value, advice.reason);
    }
}

fn holds(holds: &Holds) -> Option<String> {
    let time = |micros: u64| match micros {
        10_000.. => format!("{} ms", micros / 1000),
        _ => format!("{micros} µs"),
    };
    let (shortest, mean) = (holds.micros_shortest?, holds.micros_mean?);
    Some(format!(
        "at the link's speed: {} of frames of {} bytes, {} of {} bytes",
        time(shortest),
        arithmetic::SHORTEST,
        time(mean),
        arithmetic::MEAN
    ))
}

/// What is advised, as an administrator would type it.
fn advice(page: &mut String, diagnosis: &Diagnosis) {
    let stages = diagnosis.watched.stages.iter();
    let advised: Vec<(StageId, &Knob)> = stages
        .flat_map(|stage| stage.knobs.iter().map(move |knob| (stage.id, knob)))
        .filter(|(_, knob)| knob.advice.is_some())
        .collect();
    if advised.is_empty() {
        line!(page, "No setting is advised to be changed.");
        return;
    }
    line!(
        page,
        "WHAT TO CHANGE (netsniff doctor -i {} --apply does it, --revert takes it back)",
        diagnosis.interface
    );
    for (stage, knob) in advised {
        let Some(advice) = &knob.advice else { continue };
        line!(page, "  {}", knob.setting.command(&advice.value));
        line!(
            page,
            "      stage {}; now {}",
            stage.id(),
            knob.value.as_deref().unwrap_or("unavailable")
        );
        line!(page, "      why: {}", advice.reason);
        line!(page, "      costs: {}", advice.cost);
        line!(page, "      source: {}", advice.source);
    }
}

/// Which knob rules which buffer, as a table (PAPERS B3, B4).
#[must_use]
pub fn buffers() -> String {
    let mut page = String::from(
        "BUFFERS AND THEIR KNOBS\n\
         \x20 ring of the interface          ethtool -G IFACE rx N            frames\n\
         \x20 a turn of NAPI                 net.core.netdev_budget           packets; netdev_budget_usecs: microseconds\n\
         \x20 backlog of a processor         net.core.netdev_max_backlog      packets; of RPS and virtual interfaces alone\n\
         \x20 mapped ring of a capture       netsniff --ring, tcpdump -B      bytes; locked memory of the kernel, ruled by no sysctl\n\
         \x20 socket without a ring          net.core.rmem_default, rmem_max  bytes; rules no mapped ring\n\
         \x20 filters and options of a socket net.core.optmem_max             bytes\n\
         \x20 pages that are not yet written vm.dirty_ratio                   share of memory\n\n\
         BSD (for captures that were made there): the buffer is max(debug.bpf_bufsize, 32768), clipped to debug.bpf_maxbufsize;\n\
         the kernel fills one of two while the other is read\n",
    );
    for (default, most) in [(4096, 524_288), (4096, 16_384), (524_288, 1_048_576)] {
        let bytes = arithmetic::bpf_buffer(default, most);
        line!(
            page,
            "  bufsize {default:>7}, maxbufsize {most:>8}: {bytes:>7} bytes, full after {:>6.2} ms at 100 Mb/s",
            arithmetic::fill_micros(bytes, 100) as f64 / 1000.0
        );
    }
    page
}
