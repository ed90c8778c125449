//! What the keys do.

use netsniff_console::terminal::signs::Signs;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span as Words};

use super::bold;

/// Each key, or sign, with what it does.
const fn keys(signs: Signs) -> [(&'static str, &'static str); 18] {
    [
        ("1 to 5  Tab", "hosts, services, connections, losses, processes"),
        ("↑ ↓  j k", "choose a row; PgUp PgDn Home End go further"),
        ("Enter", "host, service, process: connections; those: rows; row: all of it"),
        ("Esc", "back"),
        ("s S  ← →", "sort by the next column, or the one before; r reverses"),
        ("/", "only rows where, as id.resp_p = 443 AND orig_bytes > 1e6"),
        ("w", "the last interval, the last 10, the last 60, since the begin"),
        ("space", "freeze the view, or go on; the capture goes on all the same"),
        ("p", "of a file: the packets of a connection, layers and bytes"),
        ("e", "of a file: extract the packets of a connection to a file"),
        ("R", "live: record packets to a file from here, or end that"),
        ("Ctrl-L", "draw all again"),
        ("q  Ctrl-C", "quit"),
        (signs.at_least(), "at least: a part may be in the one row of all others"),
        ("-", "not known; no figure is guessed"),
        ("bytes", "heads of columns say of what; of IP: with its headers"),
        ("lost", "payload of TCP, by who lost it: network, capture, unknown"),
        ("RTT", "round trip: the median of the last interval that had any"),
    ]
}

/// Draws them.
pub(crate) fn draw(signs: Signs, frame: &mut Frame<'_>, area: Rect) {
    let mut rows = area.rows();
    if let Some(first) = rows.next() {
        frame.render_widget(Line::styled("Keys and signs; any key goes back", bold()), first);
    }
    for ((key, does), area) in keys(signs).into_iter().zip(rows) {
        let line =
            Line::from(vec![Words::styled(format!("  {key:<14}"), bold()), Words::raw(does)]);
        frame.render_widget(line, area);
    }
}
