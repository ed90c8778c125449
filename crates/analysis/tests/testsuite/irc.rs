//! IRC: which rows come of which dialogues.

use crate::support;
use std::time::Duration;

use crate::support::scripted::Script;
use netsniff_analysis::Limits;
use netsniff_analysis::protocol::Role;
use netsniff_traffic::dialogue::{Dialogue, Setup, Side};
use netsniff_traffic::frame::Host;

fn registration() -> Script {
    let mut turns = Script::default();
    turns.server(":irc.example NOTICE * :*** Looking up your hostname...\r\n");
    turns.client("CAP LS 302\r\nNICK tim\r\nUSER tim 0 * :Tim Doe\r\n");
    turns.server("@time=2026-01-01T00:00:00Z :irc.example 001 tim :Welcome\r\nPING :x\r\n");
    turns.client("PONG :x\r\n");
    turns
}

const EVENT: [&str; 5] = ["nick", "user", "command", "value", "addl"];

#[test]
fn who_goes_where_is_told() {
    let mut turns = registration();
    turns.client("JOIN #a,#b key\r\n").server(":tim!tim@host JOIN #a\r\n");
    turns.client("PRIVMSG #a :hello\r\nnick :tom\r\n");
    let heard = turns.heard(6667);
    let expected = [
        ["-", "-", "NICK", "tim", "-"],
        ["tim", "-", "USER", "tim", "0 * Tim Doe"],
        ["tim", "tim", "JOIN", "#a", " with channel key: \\'key\\'"],
        ["tim", "tim", "JOIN", "#b", ""],
        ["tim", "tim", "NICK", "tom", ""],
    ];
    assert_eq!(heard.cells("irc", &EVENT), expected);
    assert_eq!(heard.services(), Some("irc"));
    assert_eq!(heard.oddities(), [""; 0]);
    // The same is found without the port.
    assert_eq!(turns.heard(7000).cells("irc", &EVENT), expected);
}

#[test]
fn files_that_are_only_offered_are_not_told() {
    let mut turns = registration();
    turns.client("PRIVMSG tom :\u{1}DCC SEND a.zip 3221225985 1026 41709\u{1}\r\n");
    turns.server(":tom!t@h PRIVMSG tim :\u{1}DCC SEND b.zip 3221225986 1027\u{1}\r\n");
    turns.client("PRIVMSG tom :\u{1}DCC SEND a.zip x\u{1}\r\n");
    let heard = turns.heard(6667);
    let names = ["command", "dcc_file_name", "dcc_file_size", "fuid"];
    let rows = heard.cells("irc", &names);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(heard.oddities(), ["IRC: irc_invalid_dcc_message_format"]);
}

#[test]
fn tls_is_handed_over_if_the_server_agrees() {
    let hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00";
    let mut turns = Script::default();
    turns.client([&b"STARTTLS\r\n"[..], hello].concat());
    turns.server(":irc.example 670 * :Go ahead\r\n").server(hello);
    let heard = turns.heard(6667);
    assert_eq!(heard.oddities(), [""; 0]);
    let mut turns = Script::default();
    turns.client("STARTTLS\r\nNICK tim\r\n").server(":irc.example 691 * :No\r\n");
    assert_eq!(turns.heard(6667).cells("irc", &["value"]), [["tim"]]);
}

#[test]
fn what_is_odd_has_a_name() {
    let mut turns = registration();
    turns.client("JOIN :\r\nPRIVMSG\r\n:prefix\r\nAVERYLONGCOMMANDINDEEDX\r\n");
    turns.client("PRIVMSG #a :".to_owned() + &"x".repeat(600) + "\r\n");
    let expected = [
        "IRC: irc_invalid_join_line",
        "IRC: irc_invalid_privmsg_message_format",
        "IRC: irc_invalid_line",
        "IRC: irc_invalid_command",
        "IRC: irc_line_size_exceeded",
    ];
    assert_eq!(turns.heard(6667).oddities(), expected);
}

#[test]
fn it_goes_on_behind_a_gap() {
    let mut turns = registration();
    turns.client("JO").gap(Role::Originator, 7).client("rest\r\nJOIN #x\r\n");
    let rows = turns.heard(6667).cells("irc", &["command", "value"]);
    assert_eq!(rows[2..], [["JOIN", "#x"]]);
}

#[test]
fn damage_does_no_harm() {
    let mut turns = registration();
    turns.client("JOIN #a,#b key\r\nPRIVMSG tom :\u{1}DCC SEND \"a b\" 3221225985 1026 1\u{1}\r\n");
    turns.client("STARTTLS\r\nNICK x\r\n").server(":irc.example 691 * :No\r\n");
    turns.spoil(6667, 5_000);
}

#[test]
fn a_file_that_did_not_end_has_the_kind_of_what_came() {
    let [tim, tom] = [[192, 0, 2, 1], [192, 0, 2, 2]];
    let (client, server) = (Host::new(tim.into(), 40_000), Host::new(tom.into(), 6667));
    let mut irc = Dialogue::new(Setup { client, server, ..Setup::default() });
    irc.connect();
    irc.say(Side::Client, b"PRIVMSG tom :\x01DCC SEND a.txt 3221225985 1026 99\x01\r\n");
    let irc = irc.finish().seen;
    let (client, server) = (Host::new(tom.into(), 40_001), Host::new(tim.into(), 1026));
    // The names of flows tell which of them ends first: both may.
    for seconds in 1..9 {
        let start = Setup::default().start + Duration::from_secs(seconds);
        let mut data = Dialogue::new(Setup { client, server, start, ..Setup::default() });
        data.connect().say(Side::Server, b"hello world, how are you\n");
        let seen = [irc.clone(), data.finish().seen].concat();
        let packets = seen.iter().map(|seen| support::packet(seen.timestamp, &seen.frame));
        let rows = support::analyse(packets, Limits::default());
        let row = rows.log("irc")[0];
        let told = ["command", "dcc_file_name", "dcc_mime_type"].map(|name| row[name].as_str());
        assert_eq!(told, ["DCC", "a.txt", "text/plain"]);
    }
}
