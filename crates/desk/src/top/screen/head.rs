//! The lines above the body: what is read, its rates and their trend, and the names of the views.

use netsniff_analysis::log::capture::CaptureVerdict;
use netsniff_console::calendar::Date;
use netsniff_console::number::{bytes, count, duration, rate};
use netsniff_console::printable::printable;
use netsniff_packet::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span as Words};

use super::{bold, coloured, faint};
use crate::top::model::{Model, VIEWS};
use crate::watch::data::subjects::Span;
use crate::watch::tables::cell::{spark, time_of_day};

/// Draws them.
pub(crate) fn draw(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let lines = [title(model), rates(model), trend(model, area.width), views(model)];
    for (line, row) in lines.into_iter().zip(area.rows()) {
        frame.render_widget(line, row);
    }
}

/// What is read, up to when, and whether that goes on.
fn title(model: &Model) -> Line<'static> {
    let time = model.data().now().map_or_else(|| "no interval yet".to_owned(), moment);
    let mut parts = vec![
        Words::styled("netsniff top  ", bold()),
        Words::raw(printable(&model.title).into_owned()),
        Words::raw(format!("  {time}")),
    ];
    if model.is_frozen() {
        parts.push(Words::styled("  FROZEN", coloured(Color::Cyan)));
    }
    if let Some(file) = &model.recording {
        let text = format!("  RECORDING {}", printable(file));
        parts.push(Words::styled(text, coloured(Color::Red)));
    }
    if let Some(ending) = &model.ended {
        let how = ending.how.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
        parts.push(Words::styled(format!("  {}", printable(&how)), bold()));
    }
    Line::from(parts)
}

/// A point in time as people read it.
fn moment(nanos: i64) -> String {
    let Date { year, month, day, .. } = Date::of(Timestamp::from_nanos(nanos));
    format!("{year:04}-{month:02}-{day:02} {} UTC", time_of_day(nanos, 0))
}

fn rates(model: &Model) -> Line<'static> {
    let data = model.data();
    let total = data.totals.over(model.span);
    let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let shown = |value: Option<i64>, shown: fn(u64) -> String| {
        unsigned(value).map_or_else(|| "-".to_owned(), shown)
    };
    let (packets, size) = (total.all.packets.0, total.all.bytes.0);
    let mut text = format!("{} packets, {}", shown(packets, count), shown(size, bytes));
    if let Some((packets, bits)) = each_second(model) {
        text = format!("{text}; {}, {}", rate(packets, "packets/s"), rate(bits, "bit/s"));
    }
    let open = total.open_flows.map_or_else(|| "-".to_owned(), count);
    let text = format!(" {text}; {} new, {open} open", shown(total.flows.new_flows.0, count));
    let verdict = total.verdict();
    let colour = match verdict {
        CaptureVerdict::Good => coloured(Color::Green),
        CaptureVerdict::Unknown => faint(),
        CaptureVerdict::Degraded | CaptureVerdict::Bad => coloured(Color::Red),
    };
    Line::from(vec![
        Words::styled(format!("verdict {}:", verdict.name()), colour),
        Words::raw(text),
    ])
}

/// Packets and bits a second in the intervals of the span that were seen from their begin on. Of all time there is none,
/// since intervals without packets have no row.
fn each_second(model: &Model) -> Option<(f64, f64)> {
    let Span::Last(most) = model.span else { return None };
    let (total, intervals) = model.data().totals.whole_intervals(most)?;
    let seconds = model.data().interval? as f64 * intervals as f64 / 1e9;
    let (packets, bytes) = total.all.packets.0.zip(total.all.bytes.0)?;
    Some((packets as f64 / seconds, bytes as f64 * 8.0 / seconds))
}

fn trend(model: &Model, width: u16) -> Line<'static> {
    let data = model.data();
    let interval = data.interval.and_then(|nanos| u64::try_from(nanos).ok());
    let said = interval
        .map_or_else(String::new, |nanos| format!(" bytes on the wire each {}", duration(nanos)));
    let room = usize::from(width).saturating_sub(said.chars().count() + 17);
    let values = data.totals.trend(room);
    let most = values.iter().copied().max().unwrap_or(0);
    let up_to = if most > 0 { format!(", at most {}", bytes(most)) } else { String::new() };
    Line::from(vec![
        Words::styled(spark(&values), coloured(Color::Cyan)),
        Words::styled(format!("{said}{up_to}"), faint()),
    ])
}

fn views(model: &Model) -> Line<'static> {
    let mut parts = Vec::new();
    for (number, (name, view)) in (1..).zip(VIEWS) {
        let is_shown = view == model.place().view;
        let style =
            if is_shown { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        parts.push(Words::styled(format!(" {number} {name} "), style));
    }
    let interval = model.data().interval.and_then(|nanos| u64::try_from(nanos).ok());
    let span = match (model.span, interval) {
        (Span::Whole, _) => "since the begin".to_owned(),
        (Span::Last(intervals), Some(nanos)) => {
            format!("last {}", duration(nanos.saturating_mul(intervals as u64)))
        }
        (Span::Last(intervals), None) => format!("last {intervals} intervals"),
    };
    parts.push(Words::styled(format!("   {span}"), bold()));
    Line::from(parts)
}
