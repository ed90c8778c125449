//! Rows and keys in, screens out.

use netsniff_console::terminal::signs::Signs;

use super::model::{Command, Event, Key, Model, Origin};
use super::screen::as_text;
use crate::watch::data::row::LogRow;
use crate::watch::data::sockets::{Ends, Owners, SocketTable};
use crate::watch::source::Told;

/// Rows of two intervals: two hosts with rows, a third one among others in the second interval.
const ROWS: &[&str] = &[
    r#"{"_path":"series_conn","ts":100.0,"interval":1.0,"uid":"C1","id.orig_h":"10.0.0.1","id.orig_p":1000,"id.resp_h":"10.0.0.2","id.resp_p":80,"proto":"tcp","service":"http","other":false,"late":false,"new_flows":1,"orig_pkts":4,"orig_ip_bytes":400,"resp_pkts":6,"resp_ip_bytes":6000,"retransmitted":1,"rtt_p50":0.02}"#,
    r#"{"_path":"series","ts":100.0,"interval":1.0,"kind":"total","late":false,"other":false,"packets":10,"bytes":6540,"new_flows":1,"open_flows":1,"dropped":0,"network_lost":0,"capture_lost":0,"unknown_lost":0,"retransmitted":1}"#,
    r#"{"_path":"series","ts":100.0,"interval":1.0,"kind":"service","service":"http","late":false,"other":false,"orig_pkts":4,"orig_ip_bytes":400,"resp_pkts":6,"resp_ip_bytes":6000,"new_flows":1,"retransmitted":1}"#,
    r#"{"_path":"series","ts":100.0,"interval":1.0,"kind":"host","host":"10.0.0.2","late":false,"other":false,"sent_packets":6,"sent_bytes":6084,"received_packets":4,"received_bytes":456,"new_flows":1,"retransmitted":1}"#,
    r#"{"_path":"series","ts":100.0,"interval":1.0,"kind":"host","host":"10.0.0.1","late":false,"other":false,"sent_packets":4,"sent_bytes":456,"received_packets":6,"received_bytes":6084,"new_flows":1,"retransmitted":0}"#,
    r#"{"_path":"series","ts":101.0,"interval":1.0,"kind":"total","late":false,"other":false,"packets":2,"bytes":200,"new_flows":0,"open_flows":1,"dropped":0,"network_lost":0,"capture_lost":0,"unknown_lost":0,"retransmitted":0}"#,
    r#"{"_path":"series","ts":101.0,"interval":1.0,"kind":"host","host":"10.0.0.2","late":false,"other":false,"sent_packets":1,"sent_bytes":100,"received_packets":1,"received_bytes":100,"new_flows":0,"retransmitted":0}"#,
    r#"{"_path":"series","ts":101.0,"interval":1.0,"kind":"host","late":false,"other":true,"others":2,"sent_packets":1,"sent_bytes":100,"received_packets":1,"received_bytes":100,"new_flows":0,"retransmitted":0}"#,
    r#"{"_path":"http","ts":100.5,"uid":"C1","id.orig_h":"10.0.0.1","method":"GET","uri":"/\u001b[2Jx\u202e"}"#,
];

fn rows(lines: &[&str]) -> Event {
    Event::Told(Told::Rows(lines.iter().map(|line| LogRow::read(line).unwrap()).collect()))
}

fn model(origin: Origin) -> Model {
    let mut model = Model::new("it".to_owned(), origin);
    assert_eq!(model.update(rows(ROWS)), None);
    model
}

fn press(model: &mut Model, keys: &[Key]) -> Option<Command> {
    keys.iter().fold(None, |_, key| model.update(Event::Key(*key)))
}

fn type_text(model: &mut Model, text: &str) {
    text.chars().for_each(|sign| assert_eq!(press(model, &[Key::Char(sign)]), None));
}

fn screen(model: &Model) -> Vec<String> {
    as_text(model, 80, 24).lines().map(str::to_owned).collect()
}

/// The words of the first row of the table.
fn words(screen: &[String], line: usize) -> Vec<&str> {
    screen[line].split_whitespace().collect()
}

#[test]
fn hosts_have_their_sums_and_the_least_is_told() {
    let shown = screen(&model(Origin::Files(None)));
    assert_eq!(shown[0], "netsniff top  it  1970-01-01 00:01:42 UTC");
    assert_eq!(shown[1], "verdict good: 12 packets, 6.74 kB; 1 new, 1 open");
    assert!(
        shown[2].trim_start().starts_with("█▁ bytes on the wire each 1.00 s, at most 6.54 kB"),
        "{shown:?}"
    );
    assert_eq!(shown[4], "2 hosts");
    assert_eq!(words(&shown, 7)[..8], ["10.0.0.2", "6.18", "kB", "556", "B", "12", "-", "1"]);
    let [units, titles] = [&shown[5], &shown[6]].map(|line| line.replace('▼', " "));
    assert_eq!(units.trim(), "bytes on the wire           median         TCP payload lost");
    assert_eq!(units.find("wire").map(|at| at + 4), titles.find("RECEIVED").map(|at| at + 8));
    // In the second interval a part of it may be among the others.
    assert_eq!(words(&shown, 8)[..8], ["10.0.0.1", "≥456", "B", "≥6.08", "kB", "≥10", "-", "-"]);
}

#[test]
fn heads_say_of_what_bytes_are_in_any_width() {
    let mut model = model(Origin::Interfaces);
    let units = |model: &Model, columns| {
        let text = as_text(model, columns, 24);
        text.lines().nth(5).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut see = |key: char, expected: [(u16, &str); 3]| {
        press(&mut model, &[Key::Char(key)]);
        for (columns, expected) in expected {
            assert_eq!(units(&model, columns), expected, "view {key} in {columns} columns");
        }
    };
    let of_ip = "bytes of IP median TCP payload lost";
    see('1', [(80, "bytes on the wire median TCP payload lost"), (30, "on wire"), (12, "")]);
    see('2', [(80, of_ip), (200, of_ip), (30, "of IP")]);
    see(
        '3',
        [
            (80, "of IP median"),
            (200, "of IP median TCP payload lost"),
            (60, "ORIGINATOR RESPONDER SERVICE STATE"),
        ],
    );
    see(
        '5',
        [(80, "bytes of IP TCP payload lost"), (72, "bytes of IP TCP lost"), (48, "bytes of IP")],
    );
}

#[test]
fn the_span_is_that_of_the_last_intervals() {
    let mut model = model(Origin::Files(None));
    press(&mut model, &[Key::Char('w')]);
    let shown = screen(&model);
    assert_eq!(
        shown[1],
        "verdict good: 2 packets, 200 B; 2.00 packets/s, 1.60 kbit/s; 0 new, 1 open"
    );
    assert_eq!(shown[4], "1 host");
    assert_eq!(words(&shown, 7)[..5], ["10.0.0.2", "100", "B", "100", "B"]);
}

#[test]
fn a_screen_without_other_signs_has_ascii_alone_at_the_same_places() {
    let mut model = model(Origin::Files(None));
    let service = ROWS[2].replace("http", "h\u{e9}tp \u{6f22} e\u{301}");
    let others = r#"{"_path":"series_conn","ts":101.0,"interval":1.0,"other":true,"others":1,"late":false,"orig_pkts":1,"orig_ip_bytes":100,"resp_pkts":1,"resp_ip_bytes":100}"#;
    model.update(rows(&[&service, others]));
    for (view, unicode, ascii) in [
        ('1', "▼SENT", "-SENT"),
        ('1', "≥6.08 kB", " >=6.08 kB"),
        ('3', "≥6.40 kB", " >=6.40 kB"),
        ('?', "≥             at least", ">=            at least"),
        ('2', "h\u{e9}tp \u{6f22}  e\u{301} ", "h?tp ?  e "),
        ('?', "↑ ↓  j k", "^ v  j k"),
    ] {
        press(&mut model, &[Key::Char(view)]);
        model.signs = Signs::Unicode;
        let before = screen(&model);
        model.signs = Signs::Ascii;
        let after = screen(&model);
        let line = before.iter().position(|line| line.contains(unicode)).expect(unicode);
        assert!(after[line].contains(ascii), "{ascii} is not in {}", after[line]);
        assert!(after.iter().all(|line| line.is_ascii()), "{after:?}");
        for (before, after) in before.iter().zip(&after).filter(|(before, _)| before.is_ascii()) {
            assert_eq!(before, after);
        }
        // From the help any key goes back.
        press(&mut model, &[Key::Escape]);
    }
    assert!(
        screen(&model)[2].trim_start().starts_with("@. bytes on the wire"),
        "{:?}",
        screen(&model)[2]
    );
}

#[test]
fn one_goes_from_a_host_to_a_row_and_back() {
    let mut model = model(Origin::Files(None));
    press(&mut model, &[Key::Down, Key::Enter]);
    let connections = screen(&model);
    assert_eq!(
        connections[4],
        "1 connection of 1, where id.orig_h = '10.0.0.1' OR id.resp_h = '10.0.0.1'"
    );
    assert_eq!(
        words(&connections, 7),
        ["10.0.0.1:1000", "10.0.0.2:80", "http", "open", "6.40", "kB", "20.0", "ms"]
    );
    press(&mut model, &[Key::Enter]);
    let of_connection = screen(&model);
    assert!(of_connection[4].starts_with("1 row of C1: 10.0.0.1 port 1000"), "{of_connection:?}");
    assert!(of_connection[6].starts_with(r"method=GET uri=/\x1b[2Jx"), "{}", of_connection[6]);
    press(&mut model, &[Key::Enter]);
    let whole = screen(&model);
    assert!(whole.iter().any(|line| line == r"uri        /\x1b[2Jx\xe2\x80\xae"), "{whole:?}");
    press(&mut model, &[Key::Escape]);
    assert_eq!(screen(&model), of_connection);
    press(&mut model, &[Key::Escape]);
    assert_eq!(screen(&model), connections);
}

#[test]
fn an_end_of_a_connection_tells_all_of_it() {
    let mut model = model(Origin::Files(None));
    model.update(rows(&[
        r#"{"_path":"conn","ts":100.0,"uid":"C1","id.orig_h":"10.0.0.1","id.orig_p":1000,"id.resp_h":"10.0.0.2","id.resp_p":80,"proto":"tcp","service":"http","conn_state":"SF","orig_pkts":5,"orig_ip_bytes":500,"resp_pkts":7,"resp_ip_bytes":7000}"#,
    ]));
    press(&mut model, &[Key::Char('3')]);
    assert_eq!(words(&screen(&model), 7)[2..6], ["http", "SF", "7.50", "kB"]);
}

#[test]
fn a_condition_is_understood_or_told_why_not() {
    let mut model = model(Origin::Files(None));
    press(&mut model, &[Key::Char('/')]);
    type_text(&mut model, "host = '10.0.0.1'");
    assert!(screen(&model)[23].starts_with("rows where: host = '10.0.0.1'_"));
    press(&mut model, &[Key::Enter]);
    let shown = screen(&model);
    assert_eq!(shown[4], "1 host of 2, where host = '10.0.0.1'");
    assert!(shown[7].starts_with("10.0.0.1 "));
    // What is only known to be the least is not compared.
    for (condition, number) in [("sent_bytes > 1", "1"), ("sent_bytes IS NULL", "1"), ("", "2")] {
        press(&mut model, &[Key::Char('/')]);
        (0..40).for_each(|_| drop(press(&mut model, &[Key::Backspace])));
        type_text(&mut model, condition);
        press(&mut model, &[Key::Enter]);
        assert_eq!(words(&screen(&model), 4)[0], number, "{condition}");
    }
    press(&mut model, &[Key::Char('/')]);
    type_text(&mut model, "hist = 3");
    press(&mut model, &[Key::Enter]);
    assert!(screen(&model)[23].starts_with("series has no column \"hist\""));
    press(&mut model, &[Key::Escape, Key::Char(' ')]);
    assert!(model.is_frozen(), "keys are keys again");
}

#[test]
fn a_frozen_view_stays_and_goes_on() {
    let mut model = model(Origin::Interfaces);
    press(&mut model, &[Key::Char(' ')]);
    let before = screen(&model);
    assert!(before[0].ends_with("FROZEN"));
    model.update(rows(&[
        r#"{"_path":"series","ts":102.0,"interval":1.0,"kind":"total","late":false,"other":false,"packets":7,"bytes":700}"#,
    ]));
    assert_eq!(screen(&model), before);
    press(&mut model, &[Key::Char(' ')]);
    assert!(screen(&model)[0].contains("00:01:43"));
}

#[test]
fn rows_are_sorted_by_each_column_and_the_chosen_one_stays() {
    let mut model = model(Origin::Files(None));
    press(&mut model, &[Key::Down]);
    let name = model.place().selected.clone();
    assert_eq!(name.as_deref(), Some("10.0.0.1"));
    press(&mut model, &[Key::Char('s')]);
    let shown = screen(&model);
    assert!(shown[6].contains("▼RECEIVED") && shown[7].starts_with("10.0.0.1"), "{shown:?}");
    press(&mut model, &[Key::Char('r')]);
    assert!(screen(&model)[7].starts_with("10.0.0.2"));
    assert_eq!(model.place().selected, name);
}

#[test]
fn packets_are_asked_for_where_there_are_any() {
    let mut live = model(Origin::Interfaces);
    press(&mut live, &[Key::Char('3')]);
    assert_eq!(press(&mut live, &[Key::Char('p')]), None);
    assert!(screen(&live)[23].starts_with("packets are only in capture files"));
    let mut optioned = model(Origin::Files(Some("other options")));
    press(&mut optioned, &[Key::Char('3')]);
    assert_eq!(press(&mut optioned, &[Key::Char('e')]), None);
    assert!(screen(&optioned)[23].starts_with("other options"));
    let mut model = model(Origin::Files(None));
    press(&mut model, &[Key::Char('3')]);
    assert_eq!(press(&mut model, &[Key::Char('p')]), Some(Command::Packets { uid: "C1".into() }));
    press(&mut model, &[Key::Char('e')]);
    let (uid, file) = ("C1".into(), "C1.pcapng".to_owned());
    assert_eq!(press(&mut model, &[Key::Enter]), Some(Command::Extract { uid, file }));
}

#[test]
fn the_way_of_packets_has_what_is_unexplained_at_its_bottom() {
    let mut model = model(Origin::Interfaces);
    let row = |delivered: u64, unexplained: &str| {
        format!(
            r#"{{"_path":"capture","ts":100.0,"interval":1.0,"scope":"interface","interface":"eth0","arrived":110,"ring_dropped":7,"delivered":{delivered}{unexplained},"verdict":"bad","kernel_loss":0.0,"application_loss":0.07}}"#
        )
    };
    model.update(rows(&[&row(90, ""), &row(100, ",\"unexplained\":3")]));
    press(&mut model, &[Key::Char('4')]);
    let shown = screen(&model);
    assert_eq!(shown[4], "eth0: bad; lost by kernel 0.000 %, by application 7.000 %");
    let line = |name: &str| {
        let line = shown.iter().position(|line| line.trim_start().starts_with(name)).unwrap();
        (line, shown[line].split_whitespace().rev().take(2).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(line("delivered").1, "10 100");
    assert_eq!(line("dropped at the ring").1, "0 7");
    assert!(line("lost by the interface").1.starts_with("unavailable"), "nobody counts it");
    assert!(line("unexplained").0 > line("in the ring").0);
    assert_eq!(line("unexplained").1, "3 unexplained", "no difference to what was not known");
}

#[test]
fn any_size_of_a_terminal_is_drawn() {
    let mut model = model(Origin::Files(None));
    let views = [
        &[Key::Char('1')][..],
        &[Key::Char('2')],
        &[Key::Char('3')],
        &[Key::Enter],
        &[Key::Enter],
        &[Key::Char('4')],
        &[Key::Char('?')],
    ];
    for keys in views {
        press(&mut model, keys);
        for (columns, rows) in [(1, 1), (3, 50), (80, 1), (80, 6), (20, 10), (300, 100)] {
            let text = as_text(&model, columns, rows);
            assert_eq!(text.lines().count(), usize::from(rows));
            assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
        }
    }
}

#[test]
fn processes_have_the_sums_of_their_connections_and_steer_no_terminal() {
    let mut model = model(Origin::Interfaces);
    press(&mut model, &[Key::Char('5')]);
    let shown = screen(&model);
    assert_eq!(shown[4], "processes are known of live traffic of this host alone");
    assert_eq!(words(&shown, 7)[..4], ["-", "1", "400", "B"]);
    let [local, remote] = ["10.0.0.1:1000", "10.0.0.2:80"].map(|end| end.parse().unwrap());
    let mut owners = Owners::default();
    owners.add(&"ev\x1b[2Jil 7".into());
    let owners = [(Ends::new(true, local, remote), owners)].into();
    model.update(Event::Sockets(SocketTable { owners, hides_processes: true }));
    let shown = screen(&model);
    assert_eq!(shown[4], "1 process; processes of other users are not known");
    assert_eq!(words(&shown, 7)[..7], [r"ev\x1b[2Jil", "7", "1", "400", "B", "6.00", "kB"]);
    press(&mut model, &[Key::Char('3')]);
    let wide = as_text(&model, 200, 24);
    assert!(wide.contains(r"C1                 ev\x1b[2Jil 7"), "{wide}");
}

#[test]
fn one_goes_from_a_process_to_its_connections_and_back() {
    let mut model = model(Origin::Interfaces);
    let other = ROWS[0].replace("C1", "C2").replace("10.0.0.2", "10.0.0.3").replace("http", "ssl");
    model.update(rows(&[&other]));
    let [local, remote] = ["10.0.0.1:1000", "10.0.0.2:80"].map(|end| end.parse().unwrap());
    let mut owners = Owners::default();
    owners.add(&"curl 7".into());
    let owners = [(Ends::new(true, local, remote), owners)].into();
    model.update(Event::Sockets(SocketTable { owners, hides_processes: false }));
    press(&mut model, &[Key::Char('5')]);
    let processes = screen(&model);
    let row = |name: &str| {
        let row = processes.iter().position(|line| line.starts_with(name));
        row.unwrap_or_else(|| panic!("no {name} in {processes:?}"))
    };
    let (curl, unknown) = (row("curl 7 "), row("- "));
    let enter = |model: &mut Model, line: usize| {
        press(model, &[Key::Home]);
        (7..line).for_each(|_| drop(press(model, &[Key::Down])));
        press(model, &[Key::Enter]);
        screen(model)
    };
    let shown = enter(&mut model, curl);
    assert_eq!(shown[4], "1 connection of curl 7");
    assert_eq!(words(&shown, 7)[..3], ["10.0.0.1:1000", "10.0.0.2:80", "http"]);
    assert_eq!(shown[8], "");
    press(&mut model, &[Key::Enter]);
    assert!(screen(&model)[4].starts_with("1 row of C1: "));
    press(&mut model, &[Key::Escape, Key::Escape]);
    assert_eq!(screen(&model), processes);
    let shown = enter(&mut model, unknown);
    assert_eq!(shown[4], "1 connection of no known process");
    assert_eq!(words(&shown, 7)[1], "10.0.0.3:80");
    // The condition of the sums goes along.
    press(&mut model, &[Key::Escape, Key::Char('/')]);
    type_text(&mut model, "service = 'http'");
    press(&mut model, &[Key::Enter]);
    let shown = enter(&mut model, 7);
    assert_eq!(shown[4], "1 connection of 1 of curl 7, where service = 'http'");
}
