//! The books of deliveries in a summary.

use netsniff_console::number::exact;
use netsniff_delivery::Books;

use super::layout::{Look, Page, WIDTH, tail};

/// Where the rows went that were to be delivered.
pub(super) fn section(page: &mut Page, deliveries: &[Books]) {
    if deliveries.is_empty() {
        return;
    }
    page.heading("DELIVERY");
    for books in deliveries {
        page.line(&format!("  {}", tail(&books.target, WIDTH - 2)));
        let line = |name: &str, value: u64| format!("    {name:<40}{:>14}", exact(value.into()));
        let bad = |value: u64| if value == 0 { Look::Good } else { Look::Warning };
        if books.found > 0 {
            page.line(&line("rows left by earlier runs", books.found));
        }
        page.line(&line("rows made", books.made));
        page.line(&line("  delivered", books.delivered));
        for (name, value) in [
            ("  left in the spool", books.spooled),
            ("  refused: no room in the spool", books.refused_full),
            ("  refused by the receiver", books.refused_by_receiver),
            ("  unreadable in the spool", books.lost),
            ("damaged bytes of the spool", books.damaged_bytes),
        ] {
            if value > 0 || name.starts_with("  left") {
                let text = page.look(bad(value), &line(name, value));
                page.line(&text);
            }
        }
        page.line(&line("batches", books.batches));
        if books.retried > 0 {
            page.line(&line("  to be sent again, in whole or in part", books.retried));
        }
    }
}
