//! Whole messages that the capture lost, of connections that are played segment by segment: what comes
//! behind them belongs where it belongs, however the capture was in order.

use crate::support::wire::{Client, Server, Wire};
use netsniff_traffic::dialogue::Side;

/// When which side acknowledges.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// Each message at once.
    AtOnce,
    /// With its own next message.
    WithNext,
    /// The same, long behind the other side.
    Slowly,
}

const PACES: [Pace; 3] = [Pace::AtOnce, Pace::WithNext, Pace::Slowly];

/// A message, in so many segments, that the capture may lose.
fn say(wire: &mut Wire, (side, text): (Side, &str), is_lost: bool, cut: usize, pace: Pace) {
    if is_lost {
        wire.hides(side, text.as_bytes());
    } else {
        text.as_bytes().chunks(cut).for_each(|chunk| _ = wire.sends(side, chunk));
        if pace == Pace::AtOnce {
            wire.acks(side.other());
        }
    }
    if pace == Pace::Slowly {
        wire.pass(150);
    }
}

fn get(number: u32) -> String {
    format!("GET /{number} HTTP/1.1\r\nHost: example\r\n\r\n")
}

fn ok(number: u32) -> String {
    let body = "x".repeat(number as usize);
    format!("HTTP/1.1 200 OK\r\nContent-Length: {number}\r\n\r\n{body}")
}

#[test]
fn later_requests_have_their_own_responses() {
    for pace in PACES {
        for (cut, lost) in
            [1, 7, 2_000].into_iter().flat_map(|cut| [1, 2, 3].map(|lost| (cut, lost)))
        {
            let mut wire = Wire::new(80);
            wire.open();
            let is_lost = |number: u32| (2..2 + lost).contains(&number);
            for number in 1..=6 {
                say(&mut wire, (Client, &get(number)), false, cut, pace);
                say(&mut wire, (Server, &ok(number)), is_lost(number), cut, pace);
            }
            wire.ends(Client).ends(Server);
            let logs = wire.logs();
            let expected: Vec<_> = (1..=6)
                .map(|number| match is_lost(number) {
                    true => format!("/{number} - 0"),
                    false => format!("/{number} 200 {number}"),
                })
                .collect();
            let told = logs.lines("http", &["uri", "status_code", "response_body_len"]);
            assert_eq!(told, expected, "{pace:?} {cut} {lost}");
            assert_eq!(logs.lines("conn", &["quality"]), ["touched"], "{pace:?} {cut} {lost}");
        }
    }
}

#[test]
fn responses_that_nothing_tells_apart_are_never_clean() {
    for lost in 1..=2 {
        let mut wire = Wire::new(80);
        wire.open().says(Client, get(1) + &get(2) + &get(3));
        (1..=lost).for_each(|number| _ = wire.hides(Server, ok(number).as_bytes()));
        (lost + 1..=3).for_each(|number| _ = wire.says(Server, ok(number)));
        wire.says(Client, get(4)).says(Server, ok(4)).ends(Client).ends(Server);
        let logs = wire.logs();
        let told = logs.lines("http", &["uri", "status_code", "response_body_len"]);
        assert_eq!(told, ["/1 - 0", "/2 - 0", "/3 - 0", "/4 200 4"], "{lost}");
        assert_eq!(logs.lines("conn", &["quality"]), ["touched"], "{lost}");
    }
}

/// What client and server say of one mail, in turn.
fn mail(number: u32) -> Vec<(Side, String)> {
    vec![
        (Client, format!("MAIL FROM:<from{number}@example.com>\r\n")),
        (Server, "250 sender\r\n".to_owned()),
        (Client, format!("RCPT TO:<to{number}@example.com>\r\n")),
        (Server, "250 recipient\r\n".to_owned()),
        (Client, "DATA\r\n".to_owned()),
        (Server, "354 go\r\n".to_owned()),
        (Client, format!("Subject: {number}\r\n\r\nhello\r\n")),
        (Client, ".\r\n".to_owned()),
        (Server, format!("250 queued {number}\r\n")),
    ]
}

/// The mails of a connection of which some messages are lost: those of a mail's number and place.
fn mails(lost: &[(u32, usize)], cut: usize, pace: Pace) -> Vec<String> {
    let mut wire = Wire::new(25);
    wire.open();
    let greeting = [(Server, "220 a\r\n"), (Client, "HELO b\r\n"), (Server, "250 a\r\n")];
    greeting.into_iter().for_each(|message| say(&mut wire, message, false, cut, pace));
    for number in 1..=3 {
        for (at, (side, text)) in mail(number).into_iter().enumerate() {
            say(&mut wire, (side, &text), lost.contains(&(number, at)), cut, pace);
        }
    }
    wire.says(Client, "QUIT\r\n").says(Server, "221 bye\r\n").ends(Client).ends(Server);
    let logs = wire.logs();
    let quality = if lost.is_empty() { "clean" } else { "touched" };
    assert_eq!(logs.lines("conn", &["quality"]), [quality], "{lost:?} {cut} {pace:?}");
    let columns = ["trans_depth", "mailfrom", "rcptto", "subject", "last_reply"];
    let lines = logs.lines("smtp", &columns);
    lines.iter().map(|line| line.replace("@example.com", "")).collect()
}

#[test]
fn mails_stay_apart() {
    let whole =
        |number: u32| format!("{number} from{number} to{number} {number} 250 queued {number}");
    for (lost, changed) in [
        (&[][..], [whole(1), whole(2)]),
        // The final reply; with the one before it, that to the next mail, and both.
        (&[(1, 8)], ["1 from1 to1 1 354 go".to_owned(), whole(2)]),
        (&[(1, 5), (1, 8)], ["1 from1 to1 1 250 recipient".to_owned(), whole(2)]),
        (&[(2, 1)], [whole(1), whole(2)]),
        (&[(1, 8), (2, 1)], ["1 from1 to1 1 354 go".to_owned(), whole(2)]),
        // The end of a mail, what begins the next one, and both, with or without the content.
        (&[(1, 7)], [whole(1), whole(2)]),
        (&[(2, 0)], [whole(1), "2 - to2 2 250 queued 2".to_owned()]),
        (&[(1, 7), (2, 0)], [whole(1), "2 - to2 2 250 queued 2".to_owned()]),
        (
            &[(1, 6), (1, 7), (2, 0)],
            ["1 from1 to1 - 250 queued 1".to_owned(), "2 - to2 2 250 queued 2".to_owned()],
        ),
    ] {
        for (pace, cut) in PACES.into_iter().flat_map(|pace| [1, 5, 2_000].map(|cut| (pace, cut))) {
            let [first, second] = changed.clone();
            assert_eq!(
                mails(lost, cut, pace),
                [first, second, whole(3)],
                "{lost:?} {cut} {pace:?}"
            );
        }
    }
}

#[test]
fn a_reply_whose_last_line_is_lost_shifts_no_other() {
    for pace in PACES {
        let mut wire = Wire::new(25);
        wire.open();
        let mut say =
            |message: (Side, &str), is_lost| say(&mut wire, message, is_lost, 2_000, pace);
        say((Server, "220 a\r\n"), false);
        say((Client, "EHLO b\r\n"), false);
        say((Server, "250-a\r\n250-PIPELINING\r\n"), false);
        say((Server, "250 HELP\r\n"), true);
        for number in 1..=2 {
            mail(number).iter().for_each(|(side, text)| say((*side, text), false));
        }
        wire.ends(Client).ends(Server);
        let told = wire.logs().lines("smtp", &["mailfrom", "subject", "last_reply"]);
        let expected =
            [1, 2].map(|number| format!("from{number}@example.com {number} 250 queued {number}"));
        assert_eq!(told, expected, "{pace:?}");
    }
}

#[test]
fn a_mail_that_may_not_be_sent_is_none_of_the_next() {
    for (again, pace) in ["", "RSET\r\n"].into_iter().flat_map(|again| PACES.map(|it| (again, it)))
    {
        let mut wire = Wire::new(25);
        wire.open();
        let mut say =
            |message: (Side, &str), is_lost| say(&mut wire, message, is_lost, 2_000, pace);
        say((Server, "220 a\r\n"), false);
        let [first, second] = [1, 2].map(mail);
        first[..5].iter().for_each(|(side, text)| say((*side, text), false));
        // The reply to DATA may refuse it (RFC 5321, 4.3.2).
        say((Server, "554 no\r\n"), true);
        if !again.is_empty() {
            say((Client, again), false);
            say((Server, "250 reset\r\n"), false);
        }
        second.iter().for_each(|(side, text)| say((*side, text), false));
        wire.ends(Client).ends(Server);
        let last = if again.is_empty() { "recipient" } else { "reset" };
        let expected = [
            format!("from1@example.com - 250 {last}"),
            "from2@example.com 2 250 queued 2".to_owned(),
        ];
        let told = wire.logs().lines("smtp", &["mailfrom", "subject", "last_reply"]);
        assert_eq!(told, expected, "{again} {pace:?}");
    }
}
