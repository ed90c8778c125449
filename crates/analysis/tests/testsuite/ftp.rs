//! FTP: which rows come of which dialogues, and which files of which data connections.

use crate::support;
use std::collections::BTreeMap;
use std::path::Path;

use std::time::Duration;

use crate::support::scripted::Script;
use netsniff_analysis::Limits;
use netsniff_analysis::protocol::Role;
use netsniff_traffic::dialogue::{Dialogue, Seen, Setup, Side};
use netsniff_traffic::frame::Host;

/// A login, command by command.
fn login(user: &str) -> Script {
    let mut turns = Script::default();
    turns.server("220-Welcome\r\n 220 to all\r\n220 Ready.\r\n");
    turns.client(format!("USER {user}\r\n")).server("331 Password?\r\n");
    turns.client("PASS secret\r\n").server("230 Logged in.\r\n");
    turns
}

const COMMAND: [&str; 5] = ["user", "password", "command", "arg", "reply_code"];

#[test]
fn commands_about_files_are_rows() {
    let mut turns = login("alice");
    turns.client("PWD\r\n").server("257 \"/users/alice\" is the directory\r\n");
    turns.client("cwd ../bob\r\n").server("250 Done.\r\n");
    turns.client("SIZE a b.txt\r\n").server("213 99\r\n");
    turns.client("DELE a b.txt\r\n").server("550 No.\r\n");
    turns.client("EPSV\r\n").server("229 Extended Passive (|||50089|)\r\n");
    turns.client("RETR /x\r\n").server("150 Opening (77 bytes).\r\n").server("226 Done.\r\n");
    turns.client("PORT 192,0,2,1,131,46\r\n").server("200 Done.\r\n");
    turns.client("QUIT\r\n").server("221 Bye\r\n");
    let heard = turns.heard(21);
    let rows = heard.cells("ftp", &COMMAND);
    let expected = [
        ["alice", "<hidden>", "DELE", "ftp://192.0.2.2/users/bob/a b.txt", "550"],
        ["alice", "<hidden>", "EPSV", "-", "229"],
        ["alice", "<hidden>", "RETR", "ftp://192.0.2.2/x", "226"],
        ["alice", "<hidden>", "PORT", "192,0,2,1,131,46", "200"],
    ];
    assert_eq!(rows, expected);
    let channels = ["passive", "orig_h", "resp_h", "resp_p"].map(|it| format!("data_channel.{it}"));
    let rows = heard.cells("ftp", &channels.each_ref().map(String::as_str));
    assert_eq!(rows[1], ["true", "192.0.2.1", "192.0.2.2", "50089"]);
    assert_eq!(rows[2], ["-"; 4]);
    assert_eq!(rows[3], ["false", "192.0.2.2", "192.0.2.1", "33582"]);
    let rows = heard.cells("ftp", &["ts", "file_size", "reply_msg"]);
    assert_eq!(rows[0], ["12000000", "-", "No."]);
    assert_eq!(rows[2], ["16000000", "77", "Done."]);
    assert_eq!(heard.services(), Some("ftp"));
    assert_eq!(heard.oddities(), [""; 0]);
}

#[test]
fn guests_have_no_secrets() {
    let mut turns = login("Anonymous");
    turns.client("PASV\r\n").server("227 Passive (192,0,2,2,1,0)\r\n");
    assert_eq!(
        turns.heard(2121).cells("ftp", &COMMAND),
        [["Anonymous", "secret", "PASV", "-", "227"]]
    );
}

#[test]
fn replies_go_to_the_commands_that_they_answer() {
    let mut turns = login("ftp");
    turns.client("TYPE I\r\nPASV\r\nRETR a\r\nRETR b\r\n");
    turns.server("227 Passive (192,0,2,2,1,0)\r\n200 Type set.\r\n150 Here comes a.\r\n");
    turns.server("226-Transfer\r\n226 complete.\r\n550 b does not exist.\r\n");
    let rows = turns.heard(21).cells("ftp", &["command", "arg", "reply_code", "reply_msg"]);
    let expected = [
        ["PASV", "-", "227", "Passive (192,0,2,2,1,0)"],
        ["RETR", "ftp://192.0.2.2/./a", "150", "Here comes a."],
        ["RETR", "ftp://192.0.2.2/./b", "550", "b does not exist."],
    ];
    assert_eq!(rows, expected);
}

#[test]
fn what_is_never_answered_has_no_reply() {
    let mut turns = login("ftp");
    turns.client("STOR a\r\n");
    let names = ["command", "reply_code", "reply_msg"];
    assert_eq!(turns.heard(21).cells("ftp", &names), [["STOR", "-", "-"]]);
}

#[test]
fn more_commands_than_servers_are_given_are_an_oddity() {
    let mut turns = Script::default();
    turns.client("USER ftp\r\n".to_owned() + &"NOOP\r\n".repeat(25));
    assert!(turns.heard(21).oddities().contains(&"FTP: FTP_too_many_pending_commands"));
}

#[test]
fn a_server_that_forgets_the_end_of_a_reply_is_understood() {
    let mut turns = login("ftp");
    turns.client("STOR a\r\n").server("150 Go.\r\n230- WARNING: bare linefeeds\r\n");
    turns.server("226 Transfer complete.\r\n");
    assert_eq!(turns.heard(21).cells("ftp", &["reply_code"]), [["226"]]);
}

#[test]
fn long_commands_are_told_in_part_when_they_end() {
    let mut turns = login("ftp");
    turns.client(format!("RETR {}", "a".repeat(20_000))).client("b\r\n").server("550 No.\r\n");
    turns.client("RETR x\r\n").server("550 No.\r\n");
    let heard = turns.heard(21);
    let rows = heard.cells("ftp", &["ts", "arg", "reply_code"]);
    let path = format!("ftp://192.0.2.2/./{}", "a".repeat(4_096 - 18));
    assert_eq!(rows[0], ["7000000", path.as_str(), "550"]);
    assert_eq!(rows[1][1..], ["ftp://192.0.2.2/./x", "550"]);
    assert_eq!(heard.oddities(), ["FTP: FTP_arg_too_long"]);
    // What is no FTP may not be as long.
    let mut turns = Script::default();
    turns.server("220 Ready\r\n").client("a".repeat(20_000));
    assert_eq!(turns.heard(21).services(), None);
}

#[test]
fn each_command_tells_its_own_data_connection() {
    let mut turns = login("ftp");
    turns.client("PORT 192,0,2,1,1,1\r\nPORT 192,0,2,1,1,2\r\nDELE x\r\n");
    let rows = turns.heard(21).cells("ftp", &["command", "data_channel.resp_p", "reply_code"]);
    let expected = [["PORT", "257", "-"], ["PORT", "258", "-"], ["DELE", "-", "-"]];
    assert_eq!(rows, expected);
}

#[test]
fn tls_is_handed_over_if_the_server_agrees() {
    let hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";
    let mut turns = Script::default();
    turns.server("220 Ready\r\n").client([&b"AUTH TLS\r\n"[..], hello].concat());
    turns.server("234 Proceed\r\n").server(hello);
    let heard = turns.heard(21);
    assert_eq!(heard.oddities(), [""; 0]);
    assert!(heard.services().is_some_and(|services| services.starts_with("ftp")));
    // What stands behind AUTH is FTP again where the server does not agree.
    let mut turns = Script::default();
    turns.server("220 Ready\r\n").client("AUTH TLS\r\nUSER ftp\r\nPASV\r\n");
    turns.server("502 No.\r\n331 Password?\r\n").client("PORT 1,2,3,4,5,6\r\n");
    let rows = turns.heard(21).cells("ftp", &["user", "command"]);
    assert_eq!(rows, [["ftp", "PASV"], ["ftp", "PORT"]]);
}

#[test]
fn what_is_no_ftp_lets_go() {
    let mut turns = Script::default();
    turns.client("USER me\r\n").server("HTTP/1.1 400 Bad Request\r\n");
    let heard = turns.heard(21);
    assert_eq!((heard.services(), heard.oddities()), (None, vec!["FTP: FTP_invalid_reply"]));
    let mut turns = login("ftp");
    turns.client("\u{7}\r\nPASV\r\n");
    assert_eq!(turns.heard(21).oddities(), ["FTP: FTP_invalid_command"]);
}

#[test]
fn it_goes_on_behind_a_gap() {
    let mut turns = login("ftp");
    turns.server("211-Fea").gap(Role::Responder, 40).server("TVFS\r\n MDTM\r\n211 End\r\n");
    turns.client("PAS").gap(Role::Originator, 9).client("R x\r\nPASV\r\n");
    turns.server("227 Passive (192,0,2,2,1,0)\r\n");
    let heard = turns.heard(21);
    assert_eq!(heard.cells("ftp", &["command", "reply_code"]), [["PASV", "227"]]);
    assert_eq!(heard.services(), Some("ftp"));
}

#[test]
fn damage_does_no_harm() {
    let mut turns = login("alice");
    turns.client("CWD ../bob\r\n").server("250 Done.\r\n");
    turns.client("EPSV\r\n").server("229 Extended Passive (|||50089|)\r\n");
    turns.client("PORT 192,0,2,1,131,46\r\n").server("200 Done.\r\n");
    turns.client("RETR x\r\n").server("150-Opening\r\n150 (77 bytes).\r\n226 Done.\r\n");
    turns.client("\u{ff}AUTH TLS\r\n").server("234 Go\r\n");
    turns.spoil(21, 5_000);
}

#[test]
fn files_are_those_of_their_commands() {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded");
    let rows = support::analyse_file(&recorded.join("office.pcapng"));
    let files: BTreeMap<&str, _> =
        rows.log("files").into_iter().map(|row| (row["fuid"].as_str(), row)).collect();
    let (mut downloads, mut uploads) = (0, 0);
    for row in rows.log("ftp") {
        let (is_down, is_up) = (row["command"] == "RETR", row["command"] == "STOR");
        if !is_down && !is_up {
            assert_eq!(row["fuid"], "-", "{row:?}");
            continue;
        }
        let file = files[row["fuid"].as_str()];
        assert_eq!(file["source"], "FTP_DATA");
        // It is told where the file was sniffed before the next command.
        let is_sniffed = row["mime_type"] != "-";
        let kind = if file["mime_type"] == "-" { "<unknown>" } else { &file["mime_type"] };
        assert!(!is_sniffed || kind == row["mime_type"], "{row:?}");
        let is_long = file["seen_bytes"].parse::<u64>().unwrap() >= 1_024;
        assert!(is_sniffed || !is_long, "{row:?} {file:?}");
        let whole = [file["seen_bytes"].as_str(), file["missing_bytes"].as_str()];
        if is_down {
            downloads += 1;
            assert_eq!(whole, [row["file_size"].as_str(), "0"], "{row:?}");
        } else {
            uploads += 1;
        }
    }
    assert!(downloads >= 10 && uploads == 2, "{downloads} downloads, {uploads} uploads");
    let services = rows.log("conn").iter().filter(|row| row["service"] == "ftp-data").count();
    assert_eq!(
        services,
        rows.log("ftp").iter().filter(|row| row["data_channel.resp_p"] != "-").count()
    );
}

/// The kinds of files in the rows of STOR, of a file of so many bytes, where the next command comes so many
/// seconds after the end of the data connection.
fn kind_of_stored(len: usize, seconds: u64) -> (String, String) {
    let (client, server) = (Host::new(CLIENT.into(), 40_000), Host::new(SERVER.into(), 21));
    let mut control = Dialogue::new(Setup { client, server, ..Setup::default() });
    control.connect().say(Side::Server, b"220 Ready\r\n");
    control.say(Side::Client, b"PORT 192,0,2,1,1,1\r\n").say(Side::Server, b"200 Done.\r\n");
    control.say(Side::Client, b"STOR x\r\n").say(Side::Server, b"150 Go.\r\n");
    control.say(Side::Server, b"226 Done.\r\n");
    control.pause_until(Setup::default().start + Duration::from_secs(10 + seconds));
    control.say(Side::Client, b"TYPE A\r\n").pause(Duration::from_secs(60));
    control.say(Side::Client, b"NOOP\r\n");
    let text = "some words of a text, ".repeat(len / 22 + 1);
    let data = data_connection(SERVER, CLIENT, 257, 9, &text[..len]);
    let mut seen = [control.finish().seen, data].concat();
    seen.sort_by_key(|seen| seen.timestamp);
    let packets = seen.iter().map(|seen| support::packet(seen.timestamp, &seen.frame));
    let rows = support::analyse(packets, Limits::default());
    let row = rows.log("ftp").into_iter().find(|row| row["command"] == "STOR").unwrap();
    let files = rows.log("files");
    let file = files.iter().find(|file| file["fuid"] == row["fuid"]).unwrap();
    (row["mime_type"].clone(), file["mime_type"].clone())
}

#[test]
fn kinds_are_told_where_files_were_sniffed_before_the_next_command() {
    for (len, seconds, expected) in [
        // A few bytes are sniffed when late packets are awaited no longer.
        (100, 1, "-"),
        (100, 3, "-"),
        (100, 6, "text/plain"),
        (1_023, 1, "-"),
        (1_024, 1, "text/plain"),
        (9_000, 1, "text/plain"),
    ] {
        let (told, kind) = kind_of_stored(len, seconds);
        assert_eq!((told.as_str(), kind.as_str()), (expected, "text/plain"), "{len} {seconds}");
    }
}

const CLIENT: [u8; 4] = [192, 0, 2, 1];
const SERVER: [u8; 4] = [198, 51, 100, 1];

/// A connection that begins so many seconds after the first of all, and in which one side says
/// `text` and the other answers nothing.
fn data_connection(from: [u8; 4], to: [u8; 4], port: u16, seconds: u64, text: &str) -> Vec<Seen> {
    let start = Setup::default().start + Duration::from_secs(seconds);
    let (client, server) = (Host::new(from.into(), 20), Host::new(to.into(), port));
    let mut dialogue = Dialogue::new(Setup { client, server, start, ..Setup::default() });
    dialogue.connect();
    if !text.is_empty() {
        dialogue.say(Side::Client, text.as_bytes());
    }
    dialogue.close(Side::Client).close(Side::Server);
    dialogue.finish().seen
}

/// What is made of a control connection that announces some data connections, and of others.
fn analysed(data: Vec<Vec<Seen>>) -> support::Rows {
    let (client, server) = (Host::new(CLIENT.into(), 40_000), Host::new(SERVER.into(), 21));
    let mut control = Dialogue::new(Setup { client, server, ..Setup::default() });
    control.connect().say(Side::Server, b"220 Ready\r\n").say(Side::Client, b"USER ftp\r\n");
    for port in 1..=4 {
        control.say(Side::Client, format!("PORT 192,0,2,1,1,{port}\r\n").as_bytes());
        control.say(Side::Server, b"200 Done.\r\n");
    }
    control.say(Side::Client, b"PORT 192,0,2,9,1,5\r\n").say(Side::Server, b"200 Done.\r\n");
    control.say(Side::Client, b"PASV\r\n").say(Side::Server, b"227 (10,0,0,1,1,6)\r\n");
    let mut seen = [vec![control.finish().seen], data].concat().concat();
    seen.sort_by_key(|seen| seen.timestamp);
    let packets = seen.iter().map(|seen| support::packet(seen.timestamp, &seen.frame));
    support::analyse(packets, Limits::default())
}

/// The service of each connection to a port, in the order of their ports.
fn services(rows: &support::Rows) -> BTreeMap<String, String> {
    let service = |row: &&support::Row| (row["id.resp_p"].clone(), row["service"].clone());
    rows.log("conn").iter().map(service).collect()
}

#[test]
fn data_connections_are_awaited_for_a_while_between_the_two_hosts() {
    let rows = analysed(vec![
        data_connection(SERVER, CLIENT, 257, 10, "the list of files"),
        // One without a byte is known, too; one that nobody announced is not.
        data_connection(SERVER, CLIENT, 258, 20, ""),
        data_connection(SERVER, CLIENT, 266, 20, "something"),
        // Nor is one in the other direction, or one that comes too late.
        data_connection(CLIENT, SERVER, 259, 30, "something"),
        data_connection(SERVER, CLIENT, 260, 400, "something"),
        // Another worker may have those to third hosts.
        data_connection(SERVER, [192, 0, 2, 9], 261, 40, "something"),
        // Clients do not believe a server that tells another address than its own.
        data_connection(CLIENT, SERVER, 262, 50, "something"),
    ]);
    let found = services(&rows);
    let expected = [
        ("21", "ftp"),
        ("257", "ftp-data"),
        ("258", "ftp-data"),
        ("259", "-"),
        ("260", "-"),
        ("261", "-"),
        ("262", "ftp-data"),
        ("266", "-"),
    ];
    assert!(
        found.iter().map(|(port, name)| (port.as_str(), name.as_str())).eq(expected),
        "{found:?}"
    );
    let weirds = rows.log("weird");
    let names: Vec<_> = weirds.iter().map(|row| [&row["name"], &row["id.resp_p"]]).collect();
    assert_eq!(names, [["expected_connection_to_third_host", "21"]; 2]);
}
