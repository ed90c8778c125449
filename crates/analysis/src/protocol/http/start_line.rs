//! Request lines and status lines, RFC 9112 sections 3 and 4, as tolerant as Zeek reads them.

use super::uri::{decode, is_uri_byte};
use crate::protocol::mime;
use crate::weird::Weirds;

/// A version. 0.0 is one that could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) major: u8,
    pub(super) minor: u8,
}

impl Version {
    /// Nothing but a line, and the body.
    pub(super) const V0_9: Self = Self { major: 0, minor: 9 };
    /// The version with chunks.
    pub(super) const V1_1: Self = Self { major: 1, minor: 1 };

    /// Reads a digit, a dot and a digit.
    fn parse(text: &[u8]) -> Self {
        match text {
            &[major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9', ..] => {
                Self { major: major - b'0', minor: minor - b'0' }
            }
            _ => Self::default(),
        }
    }

    /// Its digits with the dot, as the log has it.
    pub(super) fn to_text(self) -> String {
        [b'0' + self.major, b'.', b'0' + self.minor].map(char::from).iter().collect()
    }

    /// Whether connections persist without being asked to.
    pub(super) const fn keeps_alive(self) -> bool {
        self.major > 1 || (self.major == 1 && self.minor > 0)
    }
}

/// A request line (RFC 9112, 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestLine<'a> {
    pub(super) method: &'a [u8],
    /// What is requested, decoded.
    pub(super) uri: Vec<u8>,
    /// `None` where it is too short to be one.
    pub(super) version: Option<Version>,
}

/// A status line (RFC 9112, 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusLine<'a> {
    pub(super) version: Version,
    /// 0 where there is no number.
    pub(super) code: u16,
    pub(super) reason: Option<&'a [u8]>,
}

/// Whether a byte may stand in a method.
pub(super) const fn is_token_byte(byte: u8) -> bool {
    mime::is_token_byte(byte) && !matches!(byte, b'{' | b'}')
}

/// Reads a request line; an error is the name of what is wrong with it.
pub(super) fn request<'a>(
    line: &'a [u8],
    weirds: &mut Weirds,
) -> Result<RequestLine<'a>, &'static str> {
    const BAD: &str = "bad_HTTP_request";
    let end = line.iter().position(|&byte| !is_token_byte(byte)).unwrap_or(line.len());
    let (method, rest) = line.split_at(end);
    if method.is_empty() {
        let tail = line.len().checked_sub(9).and_then(|at| line.get(at..)).unwrap_or_default();
        let has_version = tail.get(..6).is_some_and(|tail| tail.eq_ignore_ascii_case(b" HTTP/"));
        return Err(if has_version { "bad_HTTP_request_with_version" } else { BAD });
    }
    let target = skip_blanks(rest);
    if target.len() == rest.len() {
        return Err(BAD);
    }
    let (uri, version) = target_and_version(target, weirds);
    // Much that is no HTTP has a blank somewhere: version 0.9 knows only GET and needs a URI.
    if version == Some(Version::V0_9) && (method.len() < 3 || uri.is_empty()) {
        return Err(BAD);
    }
    Ok(RequestLine { method, uri: decode(uri, weirds), version })
}

/// The URI, up to the version, and that.
fn target_and_version<'a>(target: &'a [u8], weirds: &mut Weirds) -> (&'a [u8], Option<Version>) {
    let end = target.iter().position(|&byte| !is_uri_byte(byte)).unwrap_or(target.len());
    let mut from = end;
    if let Some(is_exact) = protocol_name(target) {
        if !is_exact {
            weirds.add("lowercase_HTTP_keyword");
        }
        if end == target.len() {
            weirds.add("missing_HTTP_uri");
            from = 0;
        }
    }
    // What stands before the version is all of the URI, blanks and other bytes, too.
    for at in from..target.len() {
        let name = skip_blanks(target.get(at..).unwrap_or_default());
        if let Some(is_exact) = protocol_name(name) {
            if !is_exact {
                weirds.add("lowercase_HTTP_keyword");
            }
            let version = name.get(5..).filter(|version| version.len() >= 3).map(Version::parse);
            return (target.get(..at).unwrap_or_default(), version);
        }
    }
    (target.trim_ascii_end(), Some(Version::V0_9))
}

/// Whether text begins with `HTTP/`, and whether in capitals.
fn protocol_name(text: &[u8]) -> Option<bool> {
    let name = text.get(..5)?;
    name.eq_ignore_ascii_case(b"HTTP/").then(|| name == b"HTTP/")
}

/// Reads a status line; `None` for what is none.
pub(super) fn status<'a>(line: &'a [u8], weirds: &mut Weirds) -> Option<StatusLine<'a>> {
    if !protocol_name(line)? {
        weirds.add("lowercase_HTTP_keyword");
    }
    let version = line.get(5..)?;
    let rest = skip_blanks(from_blank(version)?);
    let (code, rest) = rest.split_first_chunk::<3>()?;
    let code = if code.iter().all(u8::is_ascii_digit) {
        code.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'))
    } else {
        0
    };
    let reason = from_blank(rest).map(skip_blanks);
    Some(StatusLine { version: Version::parse(version), code, reason })
}

/// The text from its first blank on.
fn from_blank(text: &[u8]) -> Option<&[u8]> {
    let at = text.iter().position(|&byte| matches!(byte, b' ' | b'\t'))?;
    text.get(at..)
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn v(major: u8, minor: u8) -> Version {
        Version { major, minor }
    }

    #[test]
    fn request_lines_are_read_as_far_as_they_can_be() {
        for (line, method, uri, version, weird) in [
            ("GET / HTTP/1.1", "GET", "/", Some(v(1, 1)), None),
            ("GET\t/a%41 \t HTTP/1.0 x", "GET", "/aA", Some(v(1, 0)), None),
            (
                "get http://a:8/?q=1 http/1.1",
                "get",
                "http://a:8/?q=1",
                Some(v(1, 1)),
                Some("lowercase_HTTP_keyword"),
            ),
            ("GET /a b\u{e9} c HTTP/1.1", "GET", "/a b\u{e9} c", Some(v(1, 1)), None),
            ("GET /x", "GET", "/x", Some(v(0, 9)), None),
            ("GET /HTTP/1.1", "GET", "/HTTP/1.1", Some(v(0, 9)), None),
            ("OPTIONS HTTP/1.1", "OPTIONS", "", Some(v(1, 1)), Some("missing_HTTP_uri")),
            ("GET / HTTP/x.y", "GET", "/", Some(v(0, 0)), None),
            ("GET / HTTP/1", "GET", "/", None, None),
        ] {
            let mut weirds = Weirds::default();
            let expected = RequestLine { method: method.as_bytes(), uri: uri.into(), version };
            assert_eq!(request(line.as_bytes(), &mut weirds), Ok(expected), "{line}");
            assert!(weirds.drain().map(|oddity| oddity.name).eq(weird), "{line}");
        }
    }

    #[test]
    fn what_is_no_request_line_is_told() {
        for (line, name) in [
            ("", "bad_HTTP_request"),
            ("GET", "bad_HTTP_request"),
            ("GET/ HTTP/1.1", "bad_HTTP_request"),
            ("\u{c3}/ HTTP/1.1", "bad_HTTP_request_with_version"),
            ("\u{c3}/HTTP/1.1", "bad_HTTP_request"),
            ("NO x", "bad_HTTP_request"),
            ("GET ", "bad_HTTP_request"),
        ] {
            let read = request(line.as_bytes(), &mut Weirds::default());
            assert_eq!(read, Err(name), "{line}");
        }
    }

    #[test]
    fn status_lines_may_lack_a_reason() {
        for (line, version, code, reason) in [
            ("HTTP/1.1 200 OK then", v(1, 1), 200, Some("OK then")),
            ("HTTP/1.0  404\tx", v(1, 0), 404, Some("x")),
            ("http/1.1 204", v(1, 1), 204, None),
            ("HTTP/1.1 204 ", v(1, 1), 204, Some("")),
            ("HTTP/1.1 2xx no", v(1, 1), 0, Some("no")),
            ("HTTP/one 200 OK", v(0, 0), 200, Some("OK")),
        ] {
            let read = status(line.as_bytes(), &mut Weirds::default());
            let reason = reason.map(str::as_bytes);
            assert_eq!(read, Some(StatusLine { version, code, reason }), "{line}");
        }
        for line in ["", "HTTP/1.1", "HTTP/1.1 20", "SIP/2.0 200 OK"] {
            assert_eq!(status(line.as_bytes(), &mut Weirds::default()), None, "{line}");
        }
    }
}
