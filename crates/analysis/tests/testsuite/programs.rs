//! When a file has a row in `pe`: as soon as the headers that tell what it is came, and only then.

use crate::support::wire::{Client, Server, Wire};

/// Where the header of the file begins, behind that of DOS, and how long it is with the signature.
const FILE_HEADER: std::ops::Range<usize> = 0x80..0x80 + 24;
/// Bytes of the header that only programs have, with 16 tables (Microsoft, PE Format).
const OPTIONAL: usize = 96 + 16 * 8;
const SECTION: usize = 40;

/// A program of 32 bits with one section, and bytes behind its headers.
fn program() -> Vec<u8> {
    let mut file = vec![0; FILE_HEADER.start];
    file[..2].copy_from_slice(b"MZ");
    file[60..64].copy_from_slice(&(FILE_HEADER.start as u32).to_le_bytes());
    file.extend(b"PE\0\0\x4c\x01\x01\x00");
    file.extend([0; 12]);
    file.extend((OPTIONAL as u16).to_le_bytes());
    file.extend(0x102_u16.to_le_bytes());
    let mut optional = vec![0; OPTIONAL];
    optional[..2].copy_from_slice(&0x10b_u16.to_le_bytes());
    optional[40] = 6;
    optional[68] = 3;
    file.extend(optional);
    file.extend(b".text\0\0\0");
    file.resize(FILE_HEADER.end + OPTIONAL + SECTION + 500, 0);
    file
}

/// The rows of `pe` and `files` where a server sends a body of which the capture lost a part.
fn rows(body: &[u8], lost: std::ops::Range<usize>) -> [Vec<String>; 2] {
    let mut wire = Wire::new(80);
    wire.open().says(Client, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    wire.sends(Server, head).sends(Server, &body[..lost.start]);
    wire.hides(Server, &body[lost.clone()]);
    wire.says(Server, &body[lost.end..]).ends(Server).ends(Client);
    let logs = wire.logs();
    let programs = logs.lines("pe", &["id", "machine", "is_exe", "section_names"]);
    [programs, logs.lines("files", &["fuid", "mime_type", "analyzers"])]
}

const KIND: &str = "application/x-dosexec";

#[test]
fn a_program_has_a_row_once_its_headers_came() {
    let program = program();
    let [optional, sections] = [FILE_HEADER.end, FILE_HEADER.end + OPTIONAL];
    let end = sections + SECTION;
    let all = Some("I386 T .text");
    let without_sections = Some("I386 T -");
    for (what, lost, expected) in [
        ("nothing", end..end, all),
        ("what is behind the headers", end..end + 100, all),
        ("the last byte of a section", end - 1..end, without_sections),
        ("all sections", sections..end, without_sections),
        ("the last byte of the header of programs", sections - 1..sections, None),
        ("the header of programs", optional..sections, None),
        ("the header of the file", FILE_HEADER, None),
        ("the signature", FILE_HEADER.start..FILE_HEADER.start + 4, None),
    ] {
        let [programs, files] = rows(&program, lost);
        let [file] = &files[..] else { panic!("{what}: {files:?}") };
        let (id, told) = file.split_once(' ').unwrap();
        // Its kind is that of its first bytes, and something looked into it.
        assert_eq!(told, format!("{KIND} PE"), "{what}");
        let expected: Vec<_> = expected.iter().map(|row| format!("{id} {row}")).collect();
        assert_eq!(programs, expected, "{what}");
    }
}

#[test]
fn what_is_no_program_has_no_row() {
    let program = program();
    let mut unsigned = program.clone();
    unsigned[FILE_HEADER.start] = b'N';
    let mut far = program.clone();
    far[60..64].copy_from_slice(&u32::MAX.to_le_bytes());
    let short = program[..FILE_HEADER.end].to_vec();
    for (what, body) in
        [("another signature", unsigned), ("a header far away", far), ("an end", short)]
    {
        let [programs, files] = rows(&body, 0..0);
        assert!(programs.is_empty(), "{what}: {programs:?}");
        assert!(files[0].ends_with(&format!("{KIND} PE")), "{what}: {files:?}");
    }
    // Without the mark of DOS it is no program, whatever follows.
    let mut other = program;
    other[..2].copy_from_slice(b"XX");
    let [programs, files] = rows(&other, 0..0);
    assert!(programs.is_empty() && !files[0].contains(" PE"), "{programs:?} {files:?}");
}
