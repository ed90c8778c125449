//! Messages as the RFCs have them, and as they should not be.

use super::*;
use crate::protocol::syntax::line;

/// Puts down what it is told, a line each.
#[derive(Default)]
struct Told(Vec<String>);

impl Visitor for Told {
    fn begin(&mut self) {
        self.0.push("begin".to_owned());
    }

    fn header(&mut self, header: &Field<'_>) {
        self.0.push(format!("header {}", header.name.escape_ascii()));
    }

    fn content(&mut self, _: &Part, data: &[u8]) {
        let text = data.escape_ascii().to_string();
        match self.0.last_mut() {
            Some(last) if last.starts_with("content ") => last.push_str(&text),
            _ => self.0.push(format!("content {text}")),
        }
    }

    fn end(&mut self, part: &Part) {
        let text = |text: &Option<Box<[u8]>>| match text {
            Some(text) => text.escape_ascii().to_string(),
            None => "-".to_owned(),
        };
        self.0.push(format!("end {} {}", text(&part.content_type), text(&part.filename)));
    }

    fn weird(&mut self, name: &'static str) {
        self.0.push(format!("weird {name}"));
    }
}

fn parsed(message: &str) -> Vec<String> {
    let (mut told, mut reader) = (Told::default(), MimeMessage::new());
    let mut rest = message.as_bytes();
    while !rest.is_empty() {
        let line = line::next(rest).unwrap();
        reader.line(line.text, line.end, &mut told);
        rest = &rest[line.len..];
    }
    reader.finish(&mut told);
    told.0
}

#[test]
fn a_message_is_header_and_body() {
    let message = "From: a\r\nSubject: b\r\n c\r\n\r\nHello\r\n\r\nyou\r\n";
    let expected =
        ["begin", "header From", "header Subject", "content Hello\\r\\n\\r\\nyou\\r\\n", "end - -"];
    assert_eq!(parsed(message), expected);
}

#[test]
fn parts_end_before_the_line_end_of_the_boundary() {
    let message = "Content-Type: multipart/mixed; boundary=x\r\n\r\nnobody's\r\n--x\r\n\r\n1\r\n2\r\n\
        --x\r\nContent-Type: Image/PNG; name=a.png\r\nContent-Transfer-Encoding: BASE64\r\n\r\n\
        Zm9v\r\nYm\r\nFy\r\n--x--\r\nnobody's\r\n--x\r\nnor this\r\n";
    let expected = [
        "begin",
        "header Content-Type",
        "begin",
        "content 1\\r\\n2",
        "end - -",
        "begin",
        "header Content-Type",
        "header Content-Transfer-Encoding",
        "content foobar",
        "end image/png a.png",
    ];
    assert_eq!(parsed(message), expected);
}

#[test]
fn the_boundary_of_an_outer_multipart_ends_the_inner_ones() {
    let message = "Content-Type: multipart/mixed; boundary=out\r\n\r\n--out\r\n\
        Content-Type: multipart/alternative; boundary=in\r\n\r\n--in\r\n\r\na\r\n--out\r\n\
        Content-Type: message/rfc822\r\n\r\nSubject: enclosed\r\n\r\nb\r\n--out--\r\n";
    let expected = [
        "begin",
        "header Content-Type",
        "begin",
        "header Content-Type",
        "begin",
        "content a",
        "end - -",
        "begin",
        "header Content-Type",
        "begin",
        "header Subject",
        "content b\\r\\n",
        "end - -",
    ];
    assert_eq!(parsed(message), expected);
}

#[test]
fn content_disposition_names_the_file_before_content_type() {
    let message = "Content-Disposition: attachment; filename*=utf-8''b.txt\r\n\
        Content-Type: text/plain; name=a.txt\r\n\r\nx\r\n";
    assert_eq!(parsed(message).last().unwrap(), "end text/plain b.txt");
}

#[test]
fn a_multipart_without_a_boundary_has_no_parts() {
    let message = "Content-Type: multipart/mixed\r\n\r\n--x\r\na\r\n";
    let expected =
        ["begin", "header Content-Type", "content --x\\r\\na\\r\\n", "end multipart/mixed -"];
    assert_eq!(parsed(message), expected);
}

#[test]
fn nesting_is_bounded() {
    let message = "Content-Type: message/rfc822\r\n\r\n".repeat(MAX_DEPTH + 20);
    let told = parsed(&message);
    assert_eq!(told.iter().filter(|line| *line == "begin").count(), MAX_DEPTH + 1);
    assert_eq!(told.iter().filter(|line| line.starts_with("weird")).count(), 1);
}

#[test]
fn header_fields_are_bounded() {
    let message = format!("X: {}\r\n", " abc\r\n".repeat(MAX_HEADER_BYTES / 3));
    let (mut told, mut reader) = (Told::default(), MimeMessage::new());
    for line in message.split_inclusive("\r\n") {
        reader.line(line.trim_end().as_bytes(), LineEnd::Crlf, &mut told);
        assert!(reader.heap_bytes() < 3 * MAX_HEADER_BYTES);
    }
    assert!(told.0.contains(&"weird exceeded_mime_max_header_bytes".to_owned()));
}
