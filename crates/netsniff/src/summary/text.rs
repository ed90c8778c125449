//! The summary for people, at 80 columns.

use netsniff_packet::Timestamp;

use super::layout::{Look, Page, Style, WIDTH, plain, width};
use super::number::{bytes, count, duration, exact, percent, rate};
use super::{Books, Connection, Count, Flows, Input, Layer, Summary, Talker, TcpHealth};
use crate::calendar::Date;

/// The whole text, sections without content left out.
pub(super) fn render(summary: &Summary, style: Style) -> String {
    let mut page = Page::new(style);
    input(&mut page, &summary.input);
    layers(&mut page, &summary.layers, &summary.input);
    talkers(&mut page, &summary.talkers);
    connections(&mut page, &summary.connections);
    if let Some(tcp) = &summary.tcp {
        tcp_health(&mut page, tcp);
    }
    flows(&mut page, &summary.flows);
    oddities(&mut page, &summary.oddities);
    books(&mut page, &summary.books);
    for note in &summary.notes {
        warning(&mut page, note);
    }
    page.into_text()
}

fn input(page: &mut Page, input: &Input) {
    page.heading("INPUT");
    let file_bytes: u64 =
        input.sources.iter().filter_map(|source| source.bytes).fold(0, u64::saturating_add);
    match input.sources.as_slice() {
        [] => {}
        [source] => {
            let size = source.bytes.map_or(String::new(), |size| format!(", {}", bytes(size)));
            page.line(&format!("  {}{size}", plain(&source.name, 60)));
        }
        sources => page.line(&format!("  {} files, {}", sources.len(), bytes(file_bytes))),
    }
    let cut = if input.captured_bytes < input.wire_bytes {
        format!(" ({} of them not captured)", bytes(input.wire_bytes - input.captured_bytes))
    } else {
        String::new()
    };
    let wire = bytes(input.wire_bytes);
    page.line(&format!("  {} packets, {wire} on the wire{cut}", count(input.packets)));
    if let (Some(first), Some(last)) = (input.first, input.last) {
        span(page, input, first, last);
    }
    if let Some(nanos) = input.elapsed_nanos {
        let speed = if nanos > 0 {
            let per_second = input.packets as f64 / (nanos as f64 / 1e9);
            format!(", {}", rate(per_second, "packets/s"))
        } else {
            String::new()
        };
        page.line(&format!("  analysed in {}{speed}", duration(nanos)));
    }
    for source in &input.sources {
        for damage in &source.damage {
            warning(page, &format!("{}: {damage}", source.name));
        }
    }
}

/// From when to when, and the mean rates.
fn span(page: &mut Page, input: &Input, first: Timestamp, last: Timestamp) {
    let nanos = u64::try_from(last.nanos_since(first)).unwrap_or(0);
    let length = duration(nanos);
    let (from, to) = (Date::of(first), Date::of(last));
    let same_day = (from.year, from.month, from.day) == (to.year, to.month, to.day);
    let end = if same_day { clock(to) } else { day_and_clock(to) };
    page.line(&format!("  {} to {end} UTC ({length})", day_and_clock(from)));
    if nanos > 0 {
        let seconds = nanos as f64 / 1e9;
        let packets = rate(input.packets as f64 / seconds, "packets/s");
        let bits = rate(input.wire_bytes as f64 * 8.0 / seconds, "bit/s");
        page.line(&format!("  {packets}, {bits} on average"));
    }
}

fn clock(date: Date) -> String {
    format!("{:02}:{:02}:{:02}", date.hour, date.minute, date.second)
}

fn day_and_clock(date: Date) -> String {
    format!("{:04}-{:02}-{:02} {}", date.year, date.month, date.day, clock(date))
}

fn layers(page: &mut Page, layers: &[Layer], input: &Input) {
    if layers.is_empty() {
        return;
    }
    page.heading(&format!("{:<25}{:>18}{:>18}", "LAYERS", "packets", "bytes"));
    for layer in layers {
        let indent = 2 * (layer.depth.min(8) + 1);
        let name = plain(&layer.name, 25 - indent);
        let line = format!(
            "{:indent$}{name:<room$}{:>9}{:>9}{:>9}{:>9}  {}",
            "",
            count(layer.packets),
            percent(layer.packets, input.packets),
            bytes(layer.bytes),
            percent(layer.bytes, input.wire_bytes),
            page.bar(layer.bytes, input.wire_bytes, WIDTH - 63),
            room = 25 - indent,
        );
        page.line(&line);
    }
}

fn talkers(page: &mut Page, talkers: &[Talker]) {
    let Some(most) = talkers.iter().map(total).max() else { return };
    let room = talkers.iter().map(|talker| width(&talker.address)).max().unwrap_or(0).clamp(15, 39);
    let columns = format!("{:>10}{:>10}{:>8}", "sent", "received", "flows");
    page.heading(&format!("{:<title$}{columns}", "TOP TALKERS", title = room + 2));
    for talker in talkers {
        let line = format!(
            "  {:<room$}{:>10}{:>10}{:>8}  {}",
            plain(&talker.address, room),
            bytes(talker.sent_bytes),
            bytes(talker.received_bytes),
            count(talker.flows),
            page.bar(total(talker), most, WIDTH - 32 - room),
        );
        page.line(&line);
    }
}

const fn total(talker: &Talker) -> u64 {
    talker.sent_bytes.saturating_add(talker.received_bytes)
}

fn connections(page: &mut Page, connections: &[Connection]) {
    if connections.is_empty() {
        return;
    }
    page.heading("TOP CONNECTIONS");
    for connection in connections {
        let protocol = connection.service.as_deref().unwrap_or(&connection.proto);
        let length = connection.duration_nanos.map_or_else(|| "-".to_owned(), duration);
        let facts = format!(
            "{:>9} {length:>10}  {:<7}{:<7}",
            bytes(connection.bytes),
            plain(protocol, 6),
            plain(&connection.state, 6)
        );
        let originator = plain(&connection.originator, WIDTH - width(&facts));
        let responder =
            format!("{} {}", page.arrow(), plain(&connection.responder, WIDTH - 3 - width(&facts)));
        if width(&facts) + width(&originator) + 1 + width(&responder) <= WIDTH {
            page.line(&format!("{facts}{originator} {responder}"));
        } else {
            page.line(&format!("{facts}{originator}"));
            page.line(&format!("{:indent$}{responder}", "", indent = width(&facts)));
        }
    }
}

fn tcp_health(page: &mut Page, tcp: &TcpHealth) {
    let of = |part: u64, whole: u64| match percent(part, whole) {
        share if share.is_empty() => count(part),
        share => format!("{:<7} {share}", count(part)),
    };
    let time = |nanos: Option<u64>| nanos.map_or_else(|| "-".to_owned(), duration);
    page.heading("TCP");
    for [left, right] in [
        [("connections", count(tcp.connections)), ("data segments", count(tcp.data_segments))],
        [
            ("established", of(tcp.established, tcp.connections)),
            ("sent again", of(tcp.retransmitted, tcp.data_segments)),
        ],
        [
            ("rejected", of(tcp.rejected, tcp.connections)),
            ("out of order", of(tcp.out_of_order, tcp.data_segments)),
        ],
        [
            ("unanswered", of(tcp.unanswered, tcp.connections)),
            ("handshake RTT, median", time(tcp.rtt_median_nanos)),
        ],
        [
            ("ended by a reset", of(tcp.reset, tcp.connections)),
            ("handshake RTT, 95 %", time(tcp.rtt_p95_nanos)),
        ],
    ] {
        let line = format!("  {:<18}{:<20}{:<23}{}", left.0, left.1, right.0, right.1);
        page.line(&line);
    }
}

fn flows(page: &mut Page, flows: &Flows) {
    if flows.total == 0 {
        return;
    }
    page.heading(&format!("FLOWS  {}", count(flows.total)));
    for (label, counts) in
        [("state", &flows.by_state), ("ended by", &flows.by_end), ("quality", &flows.by_quality)]
    {
        listed(page, label, counts);
    }
}

/// Names with their counts, one after the other.
fn listed(page: &mut Page, label: &str, counts: &[Count]) {
    if counts.is_empty() {
        return;
    }
    let mut words = vec![format!("{label}:")];
    for (index, item) in counts.iter().enumerate() {
        if index > 0 {
            words.push(page.dot().to_owned());
        }
        // A no-break space keeps name and count on one line.
        let text = format!("{} {}", plain(&item.name, 60), count(item.count));
        words.push(text.replace(' ', "\u{a0}"));
    }
    let text: Vec<_> = words.iter().map(String::as_str).collect();
    let mut inner = Page::new(Style::default());
    inner.wrapped(2, text.into_iter());
    for line in inner.into_text().lines() {
        page.line(&line.replace('\u{a0}', " "));
    }
}

fn oddities(page: &mut Page, oddities: &[Count]) {
    let Some(most) = oddities.iter().map(|oddity| oddity.count).max() else { return };
    page.heading("ODDITIES");
    for oddity in oddities {
        let bar = page.bar(oddity.count, most, WIDTH - 54);
        page.line(&format!("  {:<40}{:>9}  {bar}", plain(&oddity.name, 40), count(oddity.count)));
    }
}

fn books(page: &mut Page, books: &Books) {
    page.heading("BOOKS");
    let line = |name: &str, value: String| format!("  {name:<42}{value:>14}");
    let read = line("packets read", exact(books.read.into()));
    page.line(&read);
    for part in &books.parts {
        let value =
            part.packets.map_or_else(|| "unavailable".to_owned(), |packets| exact(packets.into()));
        let part = line(&format!("  {}", plain(&part.name, 40)), value);
        page.line(&part);
    }
    let (value, look) = match books.unexplained() {
        Some(0) => ("0".to_owned(), Look::Good),
        Some(rest) => (exact(rest), Look::Warning),
        None => ("unavailable".to_owned(), Look::Faint),
    };
    let unexplained = page.look(look, &line("unexplained", value));
    page.line(&unexplained);
}

/// A sentence that must not be overlooked.
fn warning(page: &mut Page, text: &str) {
    let text = plain(text, 1000);
    let mut inner = Page::new(Style::default());
    inner.wrapped(4, text.split_whitespace());
    for (index, line) in inner.into_text().lines().enumerate() {
        let line = if index == 0 { format!("  ! {}", line.trim_start()) } else { line.to_owned() };
        let line = page.look(Look::Warning, &line);
        page.line(&line);
    }
}
