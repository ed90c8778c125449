//! What kind of file it is, by its first bytes and never by its name.
//!
//! The names are those that Zeek's logs have, so that both can be joined.

mod magic;

use std::sync::LazyLock;

use memchr::{memchr, memmem};

/// Bytes from which the kind of a file is told, Zeek's `default_file_bof_buffer_size`.
pub(crate) const HEAD: usize = 4_096;

/// Interpreters that a first line `#!/bin/NAME` names.
const INTERPRETERS: &[(&[u8], &str)] = &[
    (b"sh", "text/x-shellscript"),
    (b"bash", "text/x-shellscript"),
    (b"dash", "text/x-shellscript"),
    (b"zsh", "text/x-shellscript"),
    (b"ksh", "text/x-shellscript"),
    (b"csh", "text/x-shellscript"),
    (b"perl", "text/x-perl"),
    (b"python", "text/x-python"),
    (b"ruby", "text/x-ruby"),
    (b"node", "application/javascript"),
    (b"php", "text/x-php"),
    (b"lua", "text/x-lua"),
    (b"awk", "text/x-awk"),
    (b"tclsh", "text/x-tcl"),
];

/// What markup its first element or declaration tells, in lower case.
const ELEMENTS: &[(&[u8], &str)] = &[
    (b"!doctype html", "text/html"),
    (b"html", "text/html"),
    (b"meta http-equiv", "text/html"),
    (b"head", "text/html"),
    (b"title", "text/html"),
    (b"body", "text/html"),
    (b"rss", "text/rss"),
    (b"soap:envelope", "application/soap+xml"),
    (b"soap-env:envelope", "application/soap+xml"),
    (b"!doctype cross-domain-policy", "text/x-cross-domain-policy"),
    (b"cross-domain-policy", "text/x-cross-domain-policy"),
    (b"methodresponse>", "application/xml-rpc"),
];

/// Ways in which scripts for browsers often begin.
const JAVASCRIPT: &[&[u8]] = &[b"for (;;);", b"document.write(", b"document.writeln("];

/// What scripts of PHP have somewhere.
static PHP: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new(b"<?php"));

/// Characters by which plain text is told.
const TEXT: usize = 10;

/// The kind of a file that begins with `head`; `None` where that tells nothing.
#[must_use]
pub fn of(head: &[u8]) -> Option<&'static str> {
    script(head)
        .or_else(|| archive(head))
        .or_else(|| ocsp(head))
        .or_else(|| bitmap(head))
        .or_else(|| executable(head))
        .or_else(|| matroska(head))
        .or_else(|| mpeg(head))
        .or_else(|| magic::of(head))
        .or_else(|| javascript(head))
        .or_else(|| markup(head))
        .or_else(|| text(head))
        .or_else(|| ini(head))
        .or_else(|| json(head))
        .or_else(|| plain(head))
}

fn script(head: &[u8]) -> Option<&'static str> {
    let line = head.strip_prefix(b"#!")?;
    let line = &line[..line.iter().position(|&b| b == b'\n').unwrap_or(line.len())];
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let name = |path: &'_ [u8]| path.rsplit(|&b| b == b'/').next().map(<[u8]>::to_vec);
    let mut program = name(words.next()?)?;
    if program == b"env" {
        program = name(words.next()?)?;
    }
    let kind = INTERPRETERS.iter().filter(|(known, _)| program.starts_with(known));
    kind.max_by_key(|(known, _)| known.len()).map(|&(_, mime)| mime)
}

/// Programs of Unix, by what they are for (ELF, `e_type`), and what begins as Java's classes do.
fn executable(head: &[u8]) -> Option<&'static str> {
    if let Some(&[_, _, third, last]) =
        head.strip_prefix(b"\xca\xfe\xba\xbe").and_then(<[u8]>::first_chunk)
    {
        // Where a class has its version, a program for several processors has their number.
        return match (third, last) {
            (_, 0x2d..=0x34) => Some("application/x-java-applet"),
            (0, 0x01..=0x14) => Some("application/x-mach-o-executable"),
            _ => None,
        };
    }
    let rest = head.strip_prefix(b"\x7fELF")?;
    let kind = [*rest.get(12)?, *rest.get(13)?];
    let kind = match *rest.get(1)? {
        2 => u16::from_be_bytes(kind),
        _ => u16::from_le_bytes(kind),
    };
    Some(match kind {
        1 => "application/x-object",
        3 => "application/x-sharedlib",
        4 => "application/x-coredump",
        _ => "application/x-executable",
    })
}

/// Matroska and WebM: the type of document stands within the first elements (EBML, RFC 8794).
fn matroska(head: &[u8]) -> Option<&'static str> {
    let rest = head.strip_prefix(b"\x1aE\xdf\xa3")?;
    let at = rest.windows(2).position(|pair| pair == b"B\x82")?;
    let name = rest.get(at + 3..)?;
    if name.starts_with(b"webm") {
        Some("video/webm")
    } else {
        name.starts_with(b"matroska").then_some("video/x-matroska")
    }
}

/// Streams of MPEG, by how packets and frames begin.
fn mpeg(head: &[u8]) -> Option<&'static str> {
    match *head {
        [0, 0, 1, 0xb0..=0xb2 | 0xb4..=0xbb, ..] => Some("video/mpeg"),
        [0, 0, 0, 1, byte, ..] if byte & 0x1f == 7 => Some("video/h264"),
        [0xff, 0xe2 | 0xe3 | 0xf2 | 0xf3 | 0xf6 | 0xf7 | 0xfa..=0xfd, ..] => Some("audio/mpeg"),
        _ => None,
    }
}

/// Scripts within elements, and a function that is called at once.
fn javascript(head: &[u8]) -> Option<&'static str> {
    let is_called = head.strip_prefix(b"(function()").is_some_and(|rest| {
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n')).count();
        rest.get(blank) == Some(&b'{')
    });
    let is_within = || {
        let rest = strip_word(head.trim_ascii_start(), b"<script")?;
        if let Some(rest) = rest.strip_prefix(b">") {
            let rest = rest.trim_ascii_start();
            return (rest.starts_with(b"var ") || rest.starts_with(b"function ")).then_some(());
        }
        let rest = rest
            .first()
            .filter(|byte| matches!(byte, b' ' | b'\t'))
            .map(|_| rest.trim_ascii_start())?;
        let rest = strip_word(rest, b"type=").or_else(|| strip_word(rest, b"language="))?;
        let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
        strip_word(strip_word(rest, b"text/").unwrap_or(rest), b"javascript").map(|_| ())
    };
    let begins = |begin: &&[u8]| head.trim_ascii_start().starts_with(begin);
    let is_script = is_called || JAVASCRIPT.iter().any(begins) || is_within().is_some();
    is_script.then_some("application/javascript")
}

/// What follows a word in lower case.
fn strip_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (begin, rest) = text.split_at_checked(word.len())?;
    begin.eq_ignore_ascii_case(word).then_some(rest)
}

/// Texts that their first words tell: batches of DOS, mails, and PHP somewhere.
fn text(head: &[u8]) -> Option<&'static str> {
    if let Some(rest) = head.strip_prefix(b"@") {
        let echo = strip_word(rest.trim_ascii_start(), b"echo ");
        let is_off = echo.is_some_and(|rest| strip_word(rest.trim_ascii_start(), b"off").is_some());
        let is_batch =
            is_off || strip_word(rest, b"rem").is_some() || strip_word(rest, b"set ").is_some();
        return is_batch.then_some("text/x-msdos-batch");
    }
    if strip_word(head, b"return-path:").or_else(|| strip_word(head, b"delivered-to:")).is_some() {
        return Some("message/rfc822");
    }
    PHP.find(head).map(|_| "text/x-php")
}

/// Zip archives: what they hold tells more.
fn archive(head: &[u8]) -> Option<&'static str> {
    let rest = head.strip_prefix(b"PK\x03\x04")?;
    if let Some(kind) = rest.get(26..).and_then(|name| name.strip_prefix(b"mimetypeapplication/")) {
        return document(kind);
    }
    // The first entry's name, behind 22 more bytes of header and two lengths.
    let name_len = usize::from(u16::from_le_bytes([*rest.get(22)?, *rest.get(23)?]));
    let name = rest.get(26..)?;
    let name = name.get(..name_len).unwrap_or(name);
    let has = |part: &[u8]| memmem::find(head, part).is_some();
    Some(if name.starts_with(b"META-INF/") {
        "application/java-archive"
    } else if name == b"[Content_Types].xml" || name.starts_with(b"_rels/") {
        if has(b"word/") {
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        } else if has(b"xl/") {
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
        } else if has(b"ppt/") {
            "application/vnd.openxmlformats-officedocument.presentationml.presentation"
        } else {
            "application/vnd.openxmlformats-officedocument"
        }
    } else {
        "application/zip"
    })
}

/// Kinds that archives begin with, as OpenDocument and EPUB want it.
const DOCUMENTS: &[(&[u8], &str)] = &[
    (b"epub+zip", "application/epub+zip"),
    (b"vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text"),
    (b"vnd.oasis.opendocument.text-template", "application/vnd.oasis.opendocument.text-template"),
    (b"vnd.oasis.opendocument.text-web", "application/vnd.oasis.opendocument.text-web"),
    (b"vnd.oasis.opendocument.text-master", "application/vnd.oasis.opendocument.text-master"),
    (b"vnd.oasis.opendocument.graphics", "application/vnd.oasis.opendocument.graphics"),
    (b"vnd.oasis.opendocument.presentation", "application/vnd.oasis.opendocument.presentation"),
    (b"vnd.oasis.opendocument.spreadsheet", "application/vnd.oasis.opendocument.spreadsheet"),
    (b"vnd.oasis.opendocument.chart", "application/vnd.oasis.opendocument.chart"),
    (b"vnd.oasis.opendocument.formula", "application/vnd.oasis.opendocument.formula"),
    (b"vnd.oasis.opendocument.database", "application/vnd.oasis.opendocument.database"),
    (b"vnd.oasis.opendocument.image", "application/vnd.oasis.opendocument.image"),
];

/// The kind of document that an archive says it is.
fn document(kind: &[u8]) -> Option<&'static str> {
    let told = DOCUMENTS.iter().filter(|(known, _)| kind.starts_with(known));
    let longest = told.max_by_key(|(known, _)| known.len()).map(|&(_, mime)| mime);
    longest.or(Some("application/zip"))
}

/// OCSP, RFC 6960: the object identifiers behind the first lengths of its DER.
fn ocsp(head: &[u8]) -> Option<&'static str> {
    const SHA1: &[u8] = b"\x06\x05\x2b\x0e\x03\x02\x1a";
    const BASIC: &[u8] = b"\x06\x09\x2b\x06\x01\x05\x05\x07\x30\x01\x01";
    if head.first() != Some(&0x30) {
        return None;
    }
    (11..=19).find_map(|at| {
        let rest = head.get(at..)?;
        if rest.starts_with(SHA1) {
            Some("application/ocsp-request")
        } else {
            rest.starts_with(BASIC).then_some("application/ocsp-response")
        }
    })
}

/// Bitmaps of Windows: two letters are too few, so the length of the header must fit, too.
fn bitmap(head: &[u8]) -> Option<&'static str> {
    let is_header = |len: &[u8]| matches!(len, [12 | 40 | 64 | 108 | 124 | 128, 0, ..]);
    (head.starts_with(b"BM") && head.get(14..).is_some_and(is_header)).then_some("image/x-ms-bmp")
}

/// The head without a byte order mark and blanks.
fn trimmed(head: &[u8]) -> &[u8] {
    without_mark(head).trim_ascii_start()
}

fn without_mark(head: &[u8]) -> &[u8] {
    let marks: [&[u8]; 3] = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"];
    marks.iter().find_map(|mark| head.strip_prefix(*mark)).unwrap_or(head)
}

/// Settings by sections: a first line in square brackets, also in UTF-16.
fn ini(head: &[u8]) -> Option<&'static str> {
    let is_blank = |byte: &u8| matches!(byte, 0 | b'\t' | b'\n' | b'\r' | b' ');
    let head = without_mark(head);
    let rest = head.get(head.iter().position(|byte| !is_blank(byte))?..)?.strip_prefix(b"[")?;
    let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let line = rest.get(..end)?;
    let last = line.iter().rposition(|byte| !is_blank(byte))?;
    (last > 0 && line.get(last) == Some(&b']')).then_some("text/ini")
}

/// Whether XML is declared in UTF-16: every other byte is 0.
fn is_wide_xml(head: &[u8]) -> bool {
    without_mark(head).iter().filter(|&&byte| byte != 0).take(6).eq(b"<?xml ")
}

/// What the begin of an element tells of feeds: those of Atom say so.
fn feed(element: &[u8]) -> Option<&'static str> {
    let end = || memchr(b'>', element).unwrap_or(element.len());
    let has = |part: &[u8]| memmem::find(&element[..end()], part).is_some();
    let is_atom = (begins_with(element, b"rss") && has(b"xmlns:atom"))
        || (begins_with(element, b"feed") && has(b"http://www.w3.org/2005/Atom"));
    is_atom.then_some("text/atom")
}

/// Pictures whose element stands somewhere behind a declaration.
fn svg(head: &[u8]) -> Option<&'static str> {
    let rest = head.strip_prefix(b"<?xml version=\"")?;
    memmem::find(rest.get(4..)?, b"<svg").map(|_| "image/svg+xml")
}

/// HTML, XML and their kin, by the first element behind comments and declarations.
fn markup(head: &[u8]) -> Option<&'static str> {
    let mut rest = trimmed(head);
    let mut is_xml = false;
    // Crafted comments must not be looked at for ever.
    for _ in 0..16 {
        let (end, skipped): (&[u8], usize) = if rest.starts_with(b"<!--") {
            (b"-->", 4)
        } else if rest.starts_with(b"<?xml ") {
            is_xml = true;
            (b"?>", 6)
        } else {
            break;
        };
        let Some(at) = rest.get(skipped..).and_then(|rest| memmem::find(rest, end)) else { break };
        rest = rest[skipped + at + end.len()..].trim_ascii_start();
    }
    if let Some(element) = rest.strip_prefix(b"<") {
        if let Some(mime) = feed(element) {
            return Some(mime);
        }
        let begins = |&&(name, _): &&(&[u8], &str)| begins_with(element, name);
        if let Some(&(_, mime)) = ELEMENTS.iter().find(begins) {
            return Some(mime);
        }
    }
    is_xml |= is_wide_xml(head);
    svg(head).or_else(|| is_xml.then_some("application/xml"))
}

/// Whether text begins with a name in lower case, where any blanks stand for one.
fn begins_with(text: &[u8], name: &[u8]) -> bool {
    let mut at = 0;
    for &wanted in name {
        let Some(&byte) = text.get(at) else { return false };
        at += 1;
        if wanted == b' ' {
            if !byte.is_ascii_whitespace() {
                return false;
            }
            at += text[at..].iter().take_while(|b| b.is_ascii_whitespace()).count();
        } else if byte.to_ascii_lowercase() != wanted {
            return false;
        }
    }
    true
}

/// JSON, RFC 8259: an object or list whose begin is one.
fn json(head: &[u8]) -> Option<&'static str> {
    let text = trimmed(head);
    let is_json = match text.split_first()? {
        (b'{', rest) => is_object(rest.trim_ascii_start()),
        (b'[', rest) => is_list(rest.trim_ascii_start()),
        _ => false,
    };
    is_json.then_some("text/json")
}

fn is_object(rest: &[u8]) -> bool {
    let behind_name = match rest.split_first() {
        Some((b'}', end)) => return end.trim_ascii().is_empty(),
        Some((b'"', name)) => {
            let len = name.iter().take_while(|&&b| b != b'"').count();
            if len == 0 {
                return false;
            }
            name.get(len + 1..)
        }
        Some((first, _)) if first.is_ascii_alphabetic() => {
            let is_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'\\');
            rest.get(rest.iter().take_while(is_name).count()..)
        }
        _ => None,
    };
    let value = behind_name.map(<[u8]>::trim_ascii_start).and_then(|rest| rest.strip_prefix(b":"));
    value.map(<[u8]>::trim_ascii_start).is_some_and(is_value)
}

fn is_value(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'"' | b'[' | b'{' | b'0'..=b'9'))
        || text.starts_with(b"true")
        || text.starts_with(b"false")
}

fn is_list(rest: &[u8]) -> bool {
    match rest.first() {
        Some(b']') => rest[1..].trim_ascii().is_empty(),
        Some(b'{' | b'[') => true,
        Some(b'"') => {
            let len = rest[1..].iter().take_while(|&&b| b != b'"').count();
            let behind = rest.get(len + 2..).unwrap_or_default().trim_ascii_start();
            len > 0 && behind.starts_with(b",")
        }
        Some(b'0'..=b'9' | b't' | b'f') => {
            let is_word = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'.';
            let word = &rest[..rest.iter().take_while(is_word).count()];
            let is_number = word.iter().all(|b| b.is_ascii_digit() || *b == b'.');
            (is_number || word == b"true" || word == b"false")
                && rest[word.len()..].trim_ascii_start().starts_with(b",")
        }
        _ => false,
    }
}

/// Text: some characters that have a shape, and nothing else. Marks of byte order count as a sign of
/// text, too.
fn plain(head: &[u8]) -> Option<&'static str> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let is_text = |b: &u8| matches!(b, 0x09..=0x0d | 0x20..=0x7e);
    let begin = head.get(..TEXT)?;
    begin.iter().all(is_text).then_some("text/plain")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_content() {
        for (head, expected) in [
            (b"\x89PNG\r\n\x1a\n".as_slice(), Some("image/png")),
            (b"#!/usr/bin/env python3\n", Some("text/x-python")),
            (b"#!/bin/bash\n", Some("text/x-shellscript")),
            (b"\xef\xbb\xbf <!-- a --> <!DOCTYPE  HTML>", Some("text/html")),
            (b"<?xml version='1.0'?><rss>", Some("text/rss")),
            (b"<?xml version='1.0'?><x>", Some("application/xml")),
            (b"<HTML><head>", Some("text/html")),
            (b"<!-- two\nlines --><html>", Some("text/html")),
            (b"<script type='text/JavaScript'>", Some("application/javascript")),
            (b"<SCRIPT language=javascript>", Some("application/javascript")),
            (b"<script> var x", Some("application/javascript")),
            (b"(function() {", Some("application/javascript")),
            (b"(function(a){ }", Some("text/plain")),
            (b"\0\0\0\x18ftypmp42", Some("video/mp4")),
            (b"\0\0\0\x18ftypM4A ", Some("audio/mp4")),
            (b"\0\0\0\x18ftyp3gp4", Some("video/3gpp")),
            (b"\0\0\0\x18ftypdash", None),
            (b"\x1aE\xdf\xa3\x01\0B\x82\x84webm", Some("video/webm")),
            (b"\x1aE\xdf\xa3\x01\0B\x82\x88matroska", Some("video/x-matroska")),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0", Some("application/x-sharedlib")),
            (b"\x7fELF\x01\x02\x01\0\0\0\0\0\0\0\0\0\0\x02", Some("application/x-executable")),
            (b"\xca\xfe\xba\xbe\0\0\0\x34", Some("application/x-java-applet")),
            (b"\xca\xfe\xba\xbe\0\0\0\x02", Some("application/x-mach-o-executable")),
            (b"\xff\xfb\x90\0", Some("audio/mpeg")),
            (b"@echo OFF\r\n", Some("text/x-msdos-batch")),
            (b"Return-Path: <a@b>", Some("message/rfc822")),
            (b"text <?php echo 1; ?>", Some("text/x-php")),
            (b"text \n <?php echo 1; ?>", Some("text/x-php")),
            (b"{\"a\": 1}", Some("text/json")),
            (b"{ }", Some("text/json")),
            (b"{a b}       ", Some("text/plain")),
            (b"[1, 2]", Some("text/json")),
            (b"[section] of a file", Some("text/plain")),
            (b"[section]\r\na=b", Some("text/ini")),
            (b"\xff\xfe[\0a\0]\0\r\0\n\0", Some("text/ini")),
            (b"[1, 2]\n", Some("text/ini")),
            (b"[]\n         ", Some("text/json")),
            (b"<?xml version=\"1.0\"?><svg>", Some("image/svg+xml")),
            (b"<?xml version=\"1.0\"?>\n<svg>", Some("image/svg+xml")),
            (b"<?xml version='1.0'?>\n<svg>", Some("application/xml")),
            (b"<svg xmlns=\"http:\">", Some("text/plain")),
            (b"\xff\xfe<\0?\0x\0m\0l\0 \0", Some("application/xml")),
            (b"<rss xmlns:atom=\"x\">", Some("text/atom")),
            (b"<feed xmlns=\"http://www.w3.org/2005/Atom\">", Some("text/atom")),
            (b"<feed id=\"\">", Some("text/plain")),
            (b"bplist00\xd1", Some("application/bplist")),
            (b"nine char", None),
            (b"ten chars.", Some("text/plain")),
            (b"\x00\x01\x02\x03\x04", None),
            (b"", None),
            (b"<!--", None),
            (b"<!-- a comment that does not end", Some("text/plain")),
        ] {
            assert_eq!(of(head), expected, "{}", head.escape_ascii());
        }
    }

    #[test]
    fn no_prefix_of_an_archive_panics() {
        let zip = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0META-INF/";
        assert_eq!(of(zip), Some("application/java-archive"));
        for len in 0..zip.len() {
            let _ = of(&zip[..len]);
        }
    }
}
