//! What the keys do.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span as Words};

use super::bold;

/// Each key with what it does.
const KEYS: [(&str, &str); 15] = [
    ("1 2 3 4  Tab", "hosts, services, connections, losses"),
    ("↑ ↓  j k", "choose a row; PgUp PgDn Home End go further"),
    ("Enter", "host or service: its connections; connection: its rows in all logs; row: all of it"),
    ("Esc", "back"),
    ("s S  ← →", "sort by the next column, or the one before; r reverses"),
    ("/", "only rows that meet a condition, as id.resp_p = 443 AND orig_bytes > 1e6"),
    ("w", "figures of the last interval, the last 10, the last 60, or since the begin"),
    ("space", "freeze the view, or go on; the capture goes on all the same"),
    ("p", "the packets of a connection, with layers and bytes (of a file)"),
    ("e", "extract the packets of a connection to a file (of a file)"),
    ("R", "record packets to a file from here, or end that (live)"),
    ("q  Ctrl-C", "quit"),
    ("≥", "the least: in some intervals the row was among all others, which have one row"),
    ("-", "not known; no figure is guessed"),
    ("RTT", "median round trip of the last interval that had any"),
];

/// Draws them.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect) {
    let mut rows = area.rows();
    if let Some(first) = rows.next() {
        frame.render_widget(Line::styled("Keys and signs; any key goes back", bold()), first);
    }
    for ((key, does), area) in KEYS.into_iter().zip(rows) {
        let line =
            Line::from(vec![Words::styled(format!("  {key:<14}"), bold()), Words::raw(does)]);
        frame.render_widget(line, area);
    }
}
