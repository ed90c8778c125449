//! The summary for people, at 80 columns.

use netsniff_console::calendar::Date;
use netsniff_console::number::{bytes, count, duration, exact, files, percent, rate};
use netsniff_packet::Timestamp;

use super::layout::{Look, Page, Style, WIDTH, plain, tail, width};
use super::{
    Books, ChecksumCounts, Checksums, Connection, Count, Extracted, Flows, Input, InputSource,
    Layer, Summary, Talker, TcpHealth,
};

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
    if let Some(counts) = &summary.flows {
        flows(&mut page, counts);
    }
    if let Some(of) = &summary.extracted {
        extracted(&mut page, of);
    }
    oddities(&mut page, &summary.oddities);
    checksums(&mut page, &summary.checksums);
    super::capture::section(&mut page, &summary.capture);
    books(&mut page, &summary.books);
    super::delivery::section(&mut page, &summary.delivery);
    for note in &summary.notes {
        warning(&mut page, note);
    }
    page.into_text()
}

/// Files and oddities that are listed, and places of damage told of one file.
const LISTED: usize = 10;
const DAMAGE_LISTED: usize = 3;

fn input(page: &mut Page, input: &Input) {
    page.heading("INPUT");
    sources(page, &input.sources, input.order);
    let cut = if input.captured_bytes < input.wire_bytes {
        format!(" ({} of them not captured)", bytes(input.wire_bytes - input.captured_bytes))
    } else {
        String::new()
    };
    let wire = bytes(input.wire_bytes);
    page.line(&format!("  {}, {wire} on the wire{cut}", packets(input.packets)));
    if let (Some(first), Some(last)) = (input.first, input.last) {
        span(page, input, first, last);
    }
    if let Some(jobs) = &input.jobs {
        let again = bytes(jobs.read_again_bytes);
        let (apart, by_pairs, in_order) = (jobs.apart, jobs.by_pairs, jobs.in_order);
        page.line(&format!(
            "  analysed by themselves: {apart} files; by pairs: {by_pairs}; in order: {in_order}; read again: {again}"
        ));
    }
    if !input.filters.is_empty() {
        let filters = plain(&input.filters.join(" and "), 1000);
        let (wanted, size) = (packets(input.wanted_packets), bytes(input.wanted_bytes));
        let text = format!("filter {filters}: {wanted}, {size} analysed");
        page.wrapped(2, text.split_whitespace());
    }
    // How fast live packets are analysed is how fast they come.
    if let Some(nanos) = input.elapsed_nanos.filter(|_| input.is_live) {
        page.line(&format!("  captured for {}", duration(nanos)));
    } else if let Some(nanos) = input.elapsed_nanos {
        let speed = if nanos > 0 {
            let per_second = input.packets as f64 / (nanos as f64 / 1e9);
            format!(", {}", rate(per_second, "packets/s"))
        } else {
            String::new()
        };
        page.line(&format!("  analysed in {}{speed}", duration(nanos)));
    }
    for source in &input.sources {
        damage(page, source);
    }
}

/// `1 packet`, `1.73 M packets`.
fn packets(number: u64) -> String {
    format!("{} packet{}", count(number), if number == 1 { "" } else { "s" })
}

fn sources(page: &mut Page, sources: &[InputSource], order: &str) {
    let form = |source: &InputSource| {
        let mut form = String::new();
        for part in
            [&source.format].into_iter().filter(|f| !f.is_empty()).chain(&source.compression)
        {
            form += ", ";
            form += part;
        }
        form
    };
    if let [source] = sources {
        let size = source.bytes.map_or(String::new(), |size| format!(", {}", bytes(size)));
        let facts = format!("{}{size}", plain(&form(source), 40));
        let name = tail(&source.name, WIDTH - 2);
        if width(&name) + width(&facts) + 2 <= WIDTH {
            page.line(&format!("  {name}{facts}"));
        } else {
            page.line(&format!("  {name}"));
            page.line(&format!("  {}", facts.trim_start_matches(", ")));
        }
    } else if !sources.is_empty() {
        let sizes = sources.iter().filter_map(|source| source.bytes);
        let size = bytes(sizes.fold(0, u64::saturating_add));
        page.line(&format!("  {} files, {size}, {order}", sources.len()));
        for source in sources.iter().take(LISTED) {
            let (name, form) = (tail(&source.name, 34), plain(&form(source), 24));
            page.line(&format!("    {:>16}  {name}{form}", packets(source.packets)));
        }
        if sources.len() > LISTED {
            page.line(&format!("    and {} more", sources.len() - LISTED));
        }
    }
}

fn damage(page: &mut Page, source: &InputSource) {
    for damage in source.damage.iter().take(DAMAGE_LISTED) {
        warning(page, &format!("{}: {damage}", source.name));
    }
    let told = source.damage.len().min(DAMAGE_LISTED) as u64;
    if source.damage_count > told {
        let more = count(source.damage_count - told);
        warning(page, &format!("{}: damaged at {more} more places", source.name));
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
    let seconds = nanos as f64 / 1e9;
    // Below, it is no rate but a few packets far apart.
    if nanos > 0 && input.packets as f64 / seconds >= 0.1 {
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
            percent(layer.packets, input.wanted_packets),
            bytes(layer.bytes),
            percent(layer.bytes, input.wanted_bytes),
            page.bar(layer.bytes, input.wanted_bytes, WIDTH - 63),
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
    let segments = |part: u64| of(part, tcp.data_segments.unwrap_or(0));
    let left = [
        ("connections", Some(count(tcp.connections))),
        ("established", Some(of(tcp.established, tcp.connections))),
        ("rejected", Some(of(tcp.rejected, tcp.connections))),
        ("unanswered", Some(of(tcp.unanswered, tcp.connections))),
        ("ended by a reset", Some(of(tcp.reset, tcp.connections))),
        ("with holes", tcp.with_gaps.map(|gaps| of(gaps, tcp.connections))),
    ];
    let right = [
        ("data segments", tcp.data_segments.map(count)),
        ("sent again", tcp.retransmitted.map(segments)),
        ("out of order", tcp.out_of_order.map(segments)),
        ("doubled", tcp.duplicates.filter(|copies| *copies > 0).map(segments)),
        ("handshake RTT, median", tcp.rtt_median_nanos.map(duration)),
        ("handshake RTT, 95 %", tcp.rtt_p95_nanos.map(duration)),
        ("bytes in holes", tcp.missed_bytes.map(bytes)),
    ];
    let known = |(name, value): (_, Option<String>)| Some((name, value?));
    let mut right = right.into_iter().filter_map(known);
    let mut left = left.into_iter().filter_map(known);
    page.heading("TCP");
    loop {
        let (left, right) = (left.next(), right.next());
        if left.is_none() && right.is_none() {
            break;
        }
        let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
        let line = format!("  {:<18}{:<20}{:<23}{}", left.0, left.1, right.0, right.1);
        page.line(&line);
    }
}

fn flows(page: &mut Page, flows: &Flows) {
    if flows.total == 0 {
        return;
    }
    page.heading(&format!("FLOWS  {}", count(flows.total)));
    for (label, counts) in [
        ("protocol", &flows.by_protocol),
        ("service", &flows.by_service),
        ("state", &flows.by_state),
        ("ended by", &flows.by_end),
        ("quality", &flows.by_quality),
        ("holes in streams", &flows.holes),
    ] {
        listed(page, label, counts);
    }
    if flows.failed_sessions > 0 {
        let line = format!(
            "  {} sessions of protocols failed: a fault of netsniff, please report it",
            count(flows.failed_sessions)
        );
        let line = page.look(Look::Warning, &line);
        page.line(&line);
    }
    if flows.peak > 0 {
        let (peak, memory) = (count(flows.peak), bytes(flows.peak_bytes));
        page.line(&format!("  at once: at most {peak}, in about {memory} of memory"));
        if flows.peak_held_bytes > 0 {
            let held = bytes(flows.peak_held_bytes);
            page.line(&format!("  behind holes at once: at most {held} of memory"));
        }
    }
}

fn extracted(page: &mut Page, of: &Extracted) {
    page.heading(&format!("EXTRACTED  {}, {}", files(of.files), bytes(of.bytes)));
    for (label, number) in [
        ("cut off", of.cut_off),
        ("not kept for a bound", of.refused),
        ("came faster than they could be written", of.overrun),
        ("could not be written", of.failed),
    ] {
        if number > 0 {
            page.line(&format!("  {label}: {}", count(number)));
        }
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
        let text = format!("{} {}", plain(&item.name, 60), count(item.count)).replace('_', " ");
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
    for oddity in oddities.iter().take(LISTED) {
        let bar = page.bar(oddity.count, most, WIDTH - 54);
        page.line(&format!("  {:<40}{:>9}  {bar}", plain(&oddity.name, 40), count(oddity.count)));
    }
    if oddities.len() > LISTED {
        page.line(&format!("  and {} more names", oddities.len() - LISTED));
    }
}

/// Left out where all checksums fit.
fn checksums(page: &mut Page, checksums: &Checksums) {
    if checksums.mode == "ignore" {
        page.heading("CHECKSUMS");
        let line = page.look(Look::Faint, "  unavailable (--checksums ignore)");
        page.line(&line);
        return;
    }
    let counts = |of: fn(&ChecksumCounts) -> u64| {
        let all = checksums.by_protocol().map(|(name, counts)| Count {
            name: name.to_owned(),
            count: counts.as_ref().map_or(0, of),
        });
        all.into_iter().filter(|count| count.count > 0).collect::<Vec<_>>()
    };
    let discarded = Count { name: "datagrams".to_owned(), count: checksums.discarded };
    let lines = [
        ("wrong", counts(|counts| counts.bad), Look::Warning),
        ("left to the network card", counts(|counts| counts.partial), Look::Warning),
        ("not verified", counts(|counts| counts.unknown), Look::Faint),
        ("left out", [discarded].into_iter().filter(|c| c.count > 0).collect(), Look::Warning),
    ];
    if lines.iter().all(|(_, counts, _)| counts.is_empty()) {
        return;
    }
    page.heading("CHECKSUMS");
    for (label, counts, look) in lines.iter().filter(|(_, counts, _)| !counts.is_empty()) {
        let all: Vec<_> = counts
            .iter()
            .map(|item| format!("{} {}", item.name, exact(item.count.into())))
            .collect();
        let dot = format!(" {} ", page.dot());
        let mut inner = Page::new(Style::default());
        let text = format!("{label}: {}", all.join(&dot));
        inner.wrapped(2, text.split(' '));
        for line in inner.into_text().lines() {
            let line = page.look(*look, line);
            page.line(&line);
        }
    }
}

fn books(page: &mut Page, books: &Books) {
    page.heading("BOOKS");
    let line = |name: &str, value: String| format!("  {name:<42}{value:>14}");
    let known = |value: Option<u64>| {
        value.map_or_else(|| "unavailable".to_owned(), |value| exact(value.into()))
    };
    page.line(&line("packets read", exact(books.read.into())));
    for part in &books.parts {
        page.line(&line(&format!("  {}", plain(&part.name, 40)), known(part.packets)));
    }
    let (value, look) = match books.unexplained() {
        Some(0) => ("0".to_owned(), Look::Good),
        Some(rest) => (exact(rest), Look::Warning),
        None => ("unavailable".to_owned(), Look::Faint),
    };
    let unexplained = page.look(look, &line("unexplained", value));
    page.line(&unexplained);
    for part in &books.lost {
        let look = match part.packets {
            Some(0) => Look::Good,
            Some(_) => Look::Warning,
            None => Look::Faint,
        };
        let text = page.look(look, &line(&plain(&part.name, 42), known(part.packets)));
        page.line(&text);
    }
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
