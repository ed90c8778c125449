//! What header fields tell of the body: how far it reaches (RFC 9112, section 6), whether it is
//! compressed, whether it is a part of something larger.

use super::coding::{Codings, members};
use super::start_line::Version;
use crate::protocol::mime::Field;
use crate::weird::Weirds;

/// What the header of one message tells so far.
#[derive(Debug, Default)]
pub(super) struct Framing {
    length: Option<u64>,
    has_length: bool,
    has_host: bool,
    /// Codings of the transfer were told, of which each is known.
    has_transfer: bool,
    has_unknown_transfer: bool,
    range: Option<Range>,
    is_chunked: bool,
    codings: Codings,
    expects_continue: bool,
    boundary: Option<Box<[u8]>>,
}

/// A part of something larger, RFC 9110 section 14.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u64,
    len: u64,
    /// How long the whole is, where that is told.
    pub(super) total: Option<u64>,
}

impl Range {
    /// Reads a field `Content-Range`, and notes what is odd.
    pub(super) fn parse(field: &Field<'_>, weirds: &mut Weirds) -> Option<Self> {
        let (unit, rest) = field.token().unwrap_or_default();
        if unit != b"bytes" {
            weirds.add("HTTP_content_range_unknown_byte_unit");
            return None;
        }
        let text: Vec<u8> = rest.iter().copied().filter(|&byte| byte != b' ').collect();
        let mut halves = text.splitn(2, |&byte| byte == b'/');
        let (span, total) = (halves.next().unwrap_or_default(), halves.next());
        let mut ends = span.splitn(2, |&byte| byte == b'-').map(|end| number(end, 10));
        let (Some(total), Some(Some(first)), Some(Some(last))) = (total, ends.next(), ends.next())
        else {
            weirds.add("HTTP_content_range_cannot_parse");
            return None;
        };
        let Some(len) = last.checked_sub(first).map(|len| len + 1) else {
            weirds.add("HTTP_non_positive_content_range");
            return None;
        };
        if i64::try_from(len).is_err() {
            weirds.add("HTTP_content_range_overflow");
            return None;
        }
        let whole = number(total, 10);
        if whole.is_none() && total != b"*" {
            weirds.add("HTTP_content_range_invalid_instance");
        }
        Some(Self { first, len, total: whole })
    }
}

/// What the meaning of fields depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct FramingContext {
    /// Whether the message is a response with the status 206.
    pub(super) is_partial: bool,
    /// The version that tells whether there are chunks.
    pub(super) version: Version,
}

/// Whether a message of its kind has a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// It never has one.
    Never,
    /// It has one if its header tells its length: a request.
    IfTold,
    /// It has one, without a length up to the end of the connection: a response.
    Always,
}

/// How far a body reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The message has no body.
    Empty,
    /// Its length, by `Content-Length`.
    Length(u64),
    /// To the last chunk.
    Chunks,
    /// To the last boundary of its parts.
    Boundary,
    /// To the end of the connection.
    Close,
}

impl Framing {
    /// Takes a field of the header or the trailer.
    pub(super) fn field(&mut self, field: &Field<'_>, around: FramingContext, weirds: &mut Weirds) {
        if field.is("content-length") {
            self.content_length(field, weirds);
        } else if field.is("content-range") && around.is_partial {
            self.content_range(field, weirds);
        } else if field.is("transfer-encoding") {
            self.transfer_encoding(field, around.version, weirds);
        } else if field.is("host") {
            self.host(field, weirds);
        } else if field.is("content-encoding") {
            self.codings.content(field);
        } else if field.is("content-type") {
            self.boundary = field.boundary().map(Vec::into_boxed_slice);
        } else if field.is("expect") {
            // Not a token, since it has a hyphen after digits, but Zeek reads it as one.
            if field.token().is_some() && !field.says("100-continue") {
                weirds.add("HTTP_expect_not_100_continue");
            }
            self.expects_continue = true;
            self.check_expectation(weirds);
        }
    }

    fn content_length(&mut self, field: &Field<'_>, weirds: &mut Weirds) {
        if self.is_chunked {
            weirds.add("HTTP_content_length_and_chunked");
        }
        let mut members = field.value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let is_valid = members.all(|it| !it.is_empty() && it.iter().all(u8::is_ascii_digit));
        if core::mem::replace(&mut self.has_length, true) || field.value.contains(&b',') {
            weirds.add("HTTP_repeated_content_length");
        }
        let Some((token, _)) = field.token() else { return };
        let length = number(token, 10);
        if length.is_none() || !is_valid {
            weirds.add("HTTP_bad_content_length");
        }
        let Some(length) = length else {
            self.length = Some(0);
            return;
        };
        if length > 0 && token.first() == Some(&b'0') {
            weirds.add("HTTP_content_length_leading_zeros");
        }
        self.length = Some(length);
        self.check_range(weirds);
        self.check_expectation(weirds);
    }

    /// Which of several hosts is meant, or what is behind a blank or a slash, is taken differently
    /// (RFC 9112, 3.2).
    fn host(&mut self, field: &Field<'_>, weirds: &mut Weirds) {
        if core::mem::replace(&mut self.has_host, true) {
            weirds.add("HTTP_repeated_host");
        }
        let is_bad = |byte: &u8| matches!(byte, b' ' | b'\t' | b'/' | b'\\' | b'@' | b'?' | b'#');
        if field.value.trim_ascii().iter().any(is_bad) {
            weirds.add("HTTP_bad_host");
        }
    }

    fn content_range(&mut self, field: &Field<'_>, weirds: &mut Weirds) {
        if self.is_chunked {
            weirds.add("HTTP_content_range_and_chunked");
        }
        let Some(range) = Range::parse(field, weirds) else { return };
        self.range = Some(range);
        if self.length.is_none_or(|length| length == 0) {
            self.length = Some(range.len);
        } else {
            self.check_range(weirds);
        }
    }

    /// What is chunked is the last of several codings.
    fn transfer_encoding(&mut self, field: &Field<'_>, version: Version, weirds: &mut Weirds) {
        for member in members(field.value) {
            let is_chunked = member.word.eq_ignore_ascii_case(b"chunked");
            if self.is_chunked {
                // What is chunked is the last coding (RFC 9112, 6.1).
                weirds.add("HTTP_chunked_multi");
            } else if !is_chunked {
                self.has_transfer = true;
                if !self.codings.transfer(member.word) {
                    self.has_unknown_transfer = true;
                    weirds.add("HTTP_unknown_transfer_encoding");
                }
            } else if version != Version::V1_1 {
                // The framing is faulty then (RFC 9112, 6.1).
                weirds.add("HTTP_chunked_before_version_1.1");
            } else {
                if !member.is_exact {
                    // Some read chunks, as Zeek does, and others up to the end.
                    weirds.add("HTTP_unknown_transfer_encoding");
                }
                self.is_chunked = true;
                if self.length.is_some() {
                    weirds.add("HTTP_content_length_and_chunked");
                }
            }
        }
    }

    /// A length and a range that differ may be an evasion: the larger one counts.
    fn check_range(&mut self, weirds: &mut Weirds) {
        if let (Some(range), Some(length)) = (self.range, self.length)
            && range.len != length
        {
            weirds.add("HTTP_range_not_matching_len");
            self.length = Some(length.max(range.len));
        }
    }

    fn check_expectation(&self, weirds: &mut Weirds) {
        if self.length == Some(0) && self.expects_continue {
            weirds.add("HTTP_content_length_0_and_expect_100_cont");
        }
    }

    /// How far the body reaches, now that the header is complete.
    pub(super) fn extent(&self, expected: Expected, weirds: &mut Weirds) -> Extent {
        if expected == Expected::Never {
            return Extent::Empty;
        }
        if self.codings.has_too_many() {
            weirds.add("HTTP_too_many_codings");
        }
        let is_open = self.has_transfer && !self.has_unknown_transfer && !self.is_chunked;
        if is_open && expected == Expected::IfTold {
            // Where such a request ends nobody knows (RFC 9112, 6.3).
            weirds.add("HTTP_request_not_chunked");
        }
        if self.is_chunked {
            if self.boundary.is_some() {
                weirds.add("HTTP_chunked_transfer_for_multipart_message");
            }
            return Extent::Chunks;
        }
        match self.length {
            Some(0) => Extent::Empty,
            Some(length) => Extent::Length(length),
            None if self.boundary.is_some() && self.codings.is_empty() => Extent::Boundary,
            None if expected == Expected::Always => Extent::Close,
            None => Extent::Empty,
        }
    }

    /// How the body is compressed.
    pub(super) const fn codings(&self) -> &Codings {
        &self.codings
    }

    /// Which part of something larger the body is, where that is told.
    pub(super) const fn range(&self) -> Option<Range> {
        self.range
    }

    /// What stands between the parts of the body.
    pub(super) fn boundary(&self) -> Option<&[u8]> {
        self.boundary.as_deref()
    }

    /// How many bytes the file will have, where that is told.
    pub(super) fn file_len(&self) -> Option<u64> {
        if !self.codings.is_empty() || self.is_chunked {
            return None;
        }
        match self.range {
            Some(range) => range.total,
            None => self.length,
        }
        .filter(|&len| len > 0)
    }

    /// How many bytes the file would have by a length that chunks override (RFC 9112, 6.3), or if a coding
    /// was not applied.
    pub(super) fn claimed_len(&self) -> Option<u64> {
        self.length.filter(|_| self.range.is_none() && self.codings.is_doubtful())
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.boundary.as_ref().map_or(0, |boundary| boundary.len())
    }
}

/// The number that the digits at the begin of `text` make; `None` without any, or if it is too
/// large for a length.
pub(super) fn number(text: &[u8], radix: u32) -> Option<u64> {
    let digits = text.iter().map_while(|&byte| char::from(byte).to_digit(radix));
    let mut number = None;
    for digit in digits {
        let so_far: u64 = number.unwrap_or(0);
        number = Some(so_far.checked_mul(radix.into())?.checked_add(digit.into())?);
    }
    number.filter(|&number| i64::try_from(number).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> (Extent, Vec<&'static str>) {
        let (mut framing, mut weirds) = (Framing::default(), Weirds::default());
        let around = FramingContext { is_partial: true, version: Version::V1_1 };
        for (name, value) in fields {
            let field = Field { name: name.as_bytes(), value: value.as_bytes() };
            framing.field(&field, around, &mut weirds);
        }
        let extent = framing.extent(Expected::Always, &mut weirds);
        (extent, weirds.drain().map(|oddity| oddity.name).collect())
    }

    #[test]
    fn lengths_chunks_and_ranges() {
        let (length, range) = ("Content-Length", "Content-Range");
        let (transfer, kind) = ("Transfer-Encoding", "Content-Type");
        for (fields, extent, weirds) in [
            (vec![], Extent::Close, vec![]),
            (vec![(length, "7")], Extent::Length(7), vec![]),
            (vec![(length, "x")], Extent::Empty, vec!["HTTP_bad_content_length"]),
            (vec![(length, "-7")], Extent::Empty, vec!["HTTP_bad_content_length"]),
            (vec![(length, "007")], Extent::Length(7), vec!["HTTP_content_length_leading_zeros"]),
            (vec![(length, "5, 5")], Extent::Length(5), vec!["HTTP_repeated_content_length"]),
            (
                vec![(length, "0"), (length, "43")],
                Extent::Length(43),
                vec!["HTTP_repeated_content_length"],
            ),
            (vec![(length, "5g")], Extent::Length(5), vec!["HTTP_bad_content_length"]),
            (vec![(length, "+5")], Extent::Empty, vec!["HTTP_bad_content_length"]),
            (vec![(length, " 5 ")], Extent::Length(5), vec![]),
            (vec![("Host", "a"), ("host", "a")], Extent::Close, vec!["HTTP_repeated_host"]),
            (vec![("Host", "a:80")], Extent::Close, vec![]),
            (vec![("Host", "a b")], Extent::Close, vec!["HTTP_bad_host"]),
            (vec![(transfer, "chunked")], Extent::Chunks, vec![]),
            (vec![(transfer, "gzip, chunked")], Extent::Chunks, vec![]),
            (vec![(transfer, "gzip"), (transfer, "chunked")], Extent::Chunks, vec![]),
            (
                vec![(transfer, "chunked"), (transfer, "chunked")],
                Extent::Chunks,
                vec!["HTTP_chunked_multi"],
            ),
            (
                vec![(transfer, "xchunked"), (length, "5")],
                Extent::Length(5),
                vec!["HTTP_unknown_transfer_encoding"],
            ),
            (vec![(transfer, "Chunked, gzip")], Extent::Chunks, vec!["HTTP_chunked_multi"]),
            (vec![(transfer, "identity"), (length, "3")], Extent::Length(3), vec![]),
            (
                vec![(transfer, "\u{feff}chunked")],
                Extent::Chunks,
                vec!["HTTP_unknown_transfer_encoding"],
            ),
            (
                vec![(transfer, "chunked\u{b}x")],
                Extent::Chunks,
                vec!["HTTP_unknown_transfer_encoding"],
            ),
            (vec![(transfer, "chunked;a=b")], Extent::Chunks, vec![]),
            (
                vec![(length, "6"), (transfer, "chunked")],
                Extent::Chunks,
                vec!["HTTP_content_length_and_chunked"],
            ),
            (
                vec![(transfer, "chunked"), (length, "6")],
                Extent::Chunks,
                vec!["HTTP_content_length_and_chunked"],
            ),
            (vec![(range, "bytes 0-9/100")], Extent::Length(10), vec![]),
            (
                vec![(length, "5"), (range, "bytes 0-9/*")],
                Extent::Length(10),
                vec!["HTTP_range_not_matching_len"],
            ),
            (
                vec![(range, "bytes 9-0/100")],
                Extent::Close,
                vec!["HTTP_non_positive_content_range"],
            ),
            (
                vec![(range, "lines 0-9/100")],
                Extent::Close,
                vec!["HTTP_content_range_unknown_byte_unit"],
            ),
            (vec![(range, "bytes 0-9")], Extent::Close, vec!["HTTP_content_range_cannot_parse"]),
            // As in Zeek's trace `http/invalid-content-ranges.pcap`.
            (
                vec![(length, "10"), (range, "bytes 0-9223372036854775807/9223372036854775808")],
                Extent::Length(10),
                vec!["HTTP_content_range_overflow"],
            ),
            (vec![(kind, "multipart/mixed; boundary=x")], Extent::Boundary, vec![]),
            (vec![(kind, "multipart/mixed; boundary=x"), (length, "9")], Extent::Length(9), vec![]),
            (
                vec![("Expect", "100-continue"), (length, "0")],
                Extent::Empty,
                vec!["HTTP_content_length_0_and_expect_100_cont"],
            ),
            (vec![("Expect", "200-ok")], Extent::Close, vec!["HTTP_expect_not_100_continue"]),
        ] {
            assert_eq!(of(&fields), (extent, weirds), "{fields:?}");
        }
    }

    #[test]
    fn the_kind_of_message_rules() {
        let mut framing = Framing::default();
        let mut weirds = Weirds::default();
        assert_eq!(framing.extent(Expected::IfTold, &mut weirds), Extent::Empty);
        framing.length = Some(9);
        assert_eq!(framing.extent(Expected::IfTold, &mut weirds), Extent::Length(9));
        assert_eq!(framing.extent(Expected::Never, &mut weirds), Extent::Empty);
    }

    #[test]
    fn numbers_end_at_the_first_other_character() {
        assert_eq!(number(b"12x", 10), Some(12));
        assert_eq!(number(b"1A;ext=1", 16), Some(26));
        assert_eq!(number(b"-1", 10), None);
        assert_eq!(number(b"", 10), None);
        assert_eq!(number(b"9223372036854775807", 10), Some(i64::MAX as u64));
        assert_eq!(number(b"9223372036854775808", 10), None);
        assert_eq!(number(b"fffffffffffffffffffff", 16), None);
    }
}
