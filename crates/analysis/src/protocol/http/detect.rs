//! Whether two streams are HTTP, by how they begin.

use super::start_line::is_token_byte;
use crate::protocol::{Detection, Heads, Role};

/// Methods by which HTTP is recognised where the port does not hint at it: those of RFC 9110, of
/// WebDAV (RFC 3253, 3648, 3744, 4918, 5323), and of Microsoft's extensions.
const METHODS: &[&[u8]] = &[
    b"GET",
    b"POST",
    b"HEAD",
    b"OPTIONS",
    b"PUT",
    b"DELETE",
    b"TRACE",
    b"CONNECT",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"VERSION-CONTROL",
    b"REPORT",
    b"CHECKOUT",
    b"CHECKIN",
    b"UNCHECKOUT",
    b"MKWORKSPACE",
    b"UPDATE",
    b"LABEL",
    b"MERGE",
    b"BASELINE-CONTROL",
    b"MKACTIVITY",
    b"ORDERPATCH",
    b"ACL",
    b"SEARCH",
    b"BCOPY",
    b"BDELETE",
    b"BMOVE",
    b"BPROPFIND",
    b"BPROPPATCH",
    b"NOTIFY",
    b"POLL",
    b"SUBSCRIBE",
    b"UNSUBSCRIBE",
    b"X-MS-ENUMATTS",
    b"RPC_OUT_DATA",
    b"RPC_IN_DATA",
];

/// How HTTP/2 begins, RFC 9113 section 3.4. What follows are binary frames.
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// Bytes of a line that begins as a request after which its end is waited for no longer: servers take
/// 8 KiB and more.
const LONG_LINE: usize = 1_024;

/// Bytes of blank lines behind which nothing but a request can follow: only servers of HTTP skip them
/// (RFC 9112, section 2.2).
const MANY_BLANK_LINES: usize = 1_024;

/// Bytes of a response in the middle of a connection after which the client is waited for no longer.
const LONG_RESPONSE: usize = 1_024;

/// What the originator's first bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    /// Too few to tell.
    Unclear,
    /// It is no request.
    Other,
    /// How HTTP/2 begins, which is read as a request where HTTP/1 is expected.
    Preface,
    /// A line that begins with a method that is known.
    Method,
    /// A request line of HTTP/1 with such a method, or what can be nothing else.
    Request,
}

/// What the responder's first bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Unclear,
    Other,
    /// `HTTP/` and a digit.
    Status,
}

/// Whether it is HTTP. Either side tells by itself, as for Zeek: a server may never answer.
pub(super) fn detect(heads: &Heads<'_>, is_hinted: bool) -> Detection {
    let opening = opening(heads.originator);
    let answer = answer(heads.responder);
    let is_hinted = is_hinted || answer == Answer::Status;
    match (opening, answer) {
        _ if heads.is_midstream => of_middle(opening, heads),
        (Opening::Other, Answer::Status) if is_text(heads.originator) => Detection::Yes,
        // The server may yet tell, whose bytes may come one by one.
        (Opening::Other, Answer::Unclear) if is_text(heads.originator) => Detection::Undecided,
        (Opening::Other, _) => Detection::No,
        (Opening::Preface, _) if !is_hinted => Detection::No,
        (Opening::Preface | Opening::Method | Opening::Request, _) | (_, Answer::Status)
            if is_hinted =>
        {
            Detection::Yes
        }
        // A server of version 0.9 answers a method that may yet come with anything.
        (Opening::Unclear, Answer::Other) if is_hinted => Detection::Undecided,
        (_, Answer::Other) => Detection::No,
        (Opening::Request, _) => Detection::Yes,
        _ => Detection::Undecided,
    }
}

/// In the middle of a connection only whole first lines of both sides are believed, and a long response
/// before the client has said anything.
fn of_middle(opening: Opening, heads: &Heads<'_>) -> Detection {
    match (opening, is_status_line(heads.responder)) {
        (Opening::Other | Opening::Preface, _) | (_, Some(false)) => Detection::No,
        (Opening::Request, Some(true)) => Detection::Yes,
        (Opening::Unclear, Some(true))
            if heads.originator.is_empty() && begins_long_response(heads.responder) =>
        {
            Detection::Yes
        }
        _ => Detection::Undecided,
    }
}

/// Whether what a side says begins a message of HTTP/1: with a request line with its end, or a status code.
/// `None` where there is too little of it.
pub(super) fn begins_message(from: Role, head: &[u8]) -> Option<bool> {
    if from == Role::Responder {
        return is_status_line(head);
    }
    match opening(head) {
        Opening::Request => Some(true),
        Opening::Unclear | Opening::Method if !head.contains(&b'\n') => None,
        _ => Some(false),
    }
}

/// Whether a status line with its end and the name of a field follow each other, in a response that will
/// hardly fit what is kept until the client speaks.
fn begins_long_response(head: &[u8]) -> bool {
    let eol = head.iter().position(|&byte| matches!(byte, b'\r' | b'\n'));
    let rest = eol.and_then(|eol| head.get(eol..)).unwrap_or_default().trim_ascii_start();
    let name = rest.iter().take_while(|&&byte| is_token_byte(byte)).count();
    head.len() >= LONG_RESPONSE && name > 0 && rest.get(name) == Some(&b':')
}

fn opening(head: &[u8]) -> Opening {
    let blank = head.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n')).count();
    if blank >= MANY_BLANK_LINES {
        return Opening::Request;
    }
    let head = head.trim_ascii_start();
    if head.is_empty() || (head.len() < HTTP2_PREFACE.len() && HTTP2_PREFACE.starts_with(head)) {
        return Opening::Unclear;
    }
    if head.starts_with(HTTP2_PREFACE) {
        return Opening::Preface;
    }
    let end = head.iter().position(|&byte| !is_token_byte(byte));
    let method = head.get(..end.unwrap_or(head.len())).unwrap_or_default();
    let is_known = METHODS.contains(&method);
    let Some(end) = end else {
        let may_become = METHODS.iter().any(|known| known.starts_with(method));
        return if may_become { Opening::Unclear } else { Opening::Other };
    };
    if !is_known || !matches!(head.get(end), Some(b' ' | b'\t')) {
        return Opening::Other;
    }
    // What lies behind a long line's begin must not count, however much of it is there.
    let begin = head.get(..LONG_LINE).unwrap_or(head);
    let Some(eol) = begin.iter().position(|&byte| matches!(byte, b'\r' | b'\n')) else {
        return if head.len() >= LONG_LINE { Opening::Request } else { Opening::Method };
    };
    let line = head.get(..eol).unwrap_or_default().trim_ascii_end();
    let version = line.len().checked_sub(9).and_then(|at| line.get(at..)).unwrap_or_default();
    if version.starts_with(b" HTTP/1.") { Opening::Request } else { Opening::Method }
}

/// Whether the first byte may begin a line of text, so that a server that expects HTTP may answer
/// in HTTP that it understood nothing.
fn is_text(head: &[u8]) -> bool {
    let first = head.trim_ascii_start().first();
    first.is_some_and(|&byte| byte > b' ' && byte != 0x7f)
}

fn answer(head: &[u8]) -> Answer {
    // Some servers end one response with more than one empty line, before a tunnel's first, say.
    let blank = head.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n')).count();
    let head = head.get(blank..).unwrap_or_default();
    let name = b"HTTP/";
    let known = head.len().min(name.len());
    match (head.get(..known), head.get(name.len())) {
        (Some(begin), _) if !begin.eq_ignore_ascii_case(&name[..known]) => Answer::Other,
        (_, Some(b'0'..=b'9')) => Answer::Status,
        (_, Some(_)) => Answer::Other,
        (_, None) => Answer::Unclear,
    }
}

/// Whether the bytes begin with a version of HTTP/1 and a status code, as far as there are enough.
fn is_status_line(head: &[u8]) -> Option<bool> {
    let form = b"HTTP/1.d ddd";
    let fits = |(byte, &form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        form => *byte == form,
    };
    let fit = head.iter().zip(form).all(fits);
    if !fit {
        Some(false)
    } else if head.len() >= form.len() {
        Some(true)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(originator: &str, responder: &str, port: u16, is_midstream: bool) -> Detection {
        let (originator, responder) = (originator.as_bytes(), responder.as_bytes());
        let heads = Heads { originator, responder, port, is_midstream };
        detect(&heads, port == 80)
    }

    #[test]
    fn the_port_hints_and_the_server_decides_elsewhere() {
        use Detection::{No, Undecided, Yes};
        for (originator, responder, on_80, elsewhere) in [
            ("", "", Undecided, Undecided),
            ("GE", "", Undecided, Undecided),
            ("GET /", "", Yes, Undecided),
            ("GET / HTTP/1.1\r\n", "", Yes, Yes),
            ("GET / HTTP/1.1\r\n", "HTTP/1", Yes, Yes),
            ("GET /\r\n", "<html>", Yes, No),
            ("", "220 mail", Undecided, No),
            ("GE", "220 mail", Undecided, No),
            ("EHLO", "220 mail", No, No),
            ("TRACE /", "\0", Yes, No),
            ("FOO bar", "", Undecided, Undecided),
            ("FOO bar", "HTTP/1.1 400 Bad", Yes, Yes),
            ("\u{1}", "HTTP/1.1 400 Bad", No, No),
            ("FOO bar", "220 mail", No, No),
            ("\u{16}\u{3}\u{1}", "", No, No),
            ("PRI * HTTP/2.0\r\n", "", Yes, No),
            ("", "HTTP/1.0 200", Yes, Yes),
            ("", "HTTP/", Undecided, Undecided),
            ("GET / HTTP/1.1\r\n", "\r\nHTTP", Yes, Yes),
            ("", "\n", Undecided, Undecided),
            ("", "\nHTTP/1.1 200", Yes, Yes),
        ] {
            assert_eq!(
                detected(originator, responder, 80, false),
                on_80,
                "{originator} {responder}"
            );
            let other = detected(originator, responder, 4_000, false);
            assert_eq!(other, elsewhere, "{originator} {responder}");
        }
    }

    #[test]
    fn what_servers_skip_or_take_is_no_reason_to_give_up() {
        use Detection::{Undecided, Yes};
        let blank = |lines: usize| "\r\n".repeat(lines);
        let long = format!("GET /{}", "x".repeat(LONG_LINE));
        for (originator, expected) in [
            (blank(10), Undecided),
            (blank(512), Yes),
            (blank(5_000) + "GET / HTTP/1.1\r\n", Yes),
            (blank(100) + "GET / HTTP/1.1\r\n", Yes),
            (blank(100) + "EHLO x\r\n", Undecided),
            (long.clone(), Yes),
            (long[..LONG_LINE - 1].to_owned(), Undecided),
            (long.clone() + " RTSP/1.0\r\n", Yes),
            (long.replace("GET", "GOT"), Undecided),
        ] {
            let told = detected(&originator, "", 4_000, false);
            assert_eq!(told, expected, "{} {}", originator.len(), originator.trim());
        }
    }

    #[test]
    fn in_the_middle_only_whole_lines_are_believed() {
        assert_eq!(detected("GET / HTTP/1.1\r", "HTTP/1.1 200", 80, true), Detection::Yes);
        assert_eq!(detected("GET / HTTP/1.1\r", "HTTP/1.1 ", 80, true), Detection::Undecided);
        assert_eq!(detected("GET /", "HTTP/1.1 200", 80, true), Detection::Undecided);
        assert_eq!(detected("more of a body", "", 80, true), Detection::No);
        assert_eq!(detected("", "of another", 80, true), Detection::No);
        let response = |rest: &str| format!("HTTP/1.1 200 OK\r\nA: {rest}");
        let long = "x".repeat(LONG_RESPONSE);
        for (originator, responder, expected) in [
            ("", response(""), Detection::Undecided),
            ("", response(&long), Detection::Yes),
            ("", response(&long).replace("A:", "A"), Detection::Undecided),
            ("more of a body", response(&long), Detection::No),
            ("", response(&long).replace("HTTP", "html"), Detection::No),
        ] {
            assert_eq!(detected(originator, &responder, 4_000, true), expected, "{responder:.30}");
        }
    }
}
