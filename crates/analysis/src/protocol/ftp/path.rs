//! Directories and files: what a name means in the directory that the client is in.

/// Bytes of a path; longer ones are cut.
const MAX_PATH: usize = 4_096;

/// The path of `name` in the directory `cwd`, without detours.
pub(super) fn join(cwd: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::new();
    if !is_absolute(name) {
        path.extend_from_slice(cwd);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    let mut path = straight(&path);
    path.truncate(MAX_PATH);
    path
}

/// The directory in the reply to PWD: the first absolute path, up to a quotation mark or a space.
pub(super) fn quoted(text: &[u8]) -> Option<&[u8]> {
    let begin = (0..text.len()).find(|&at| is_absolute(&text[at..]))?;
    let rest = &text[begin..];
    let is_end = |(at, &byte): (usize, &u8)| {
        byte == b'"' || (byte == b' ' && at.checked_sub(1).is_none_or(|at| rest[at] != b'\\'))
    };
    let end = rest.iter().enumerate().position(is_end).unwrap_or(rest.len());
    Some(&rest[..end.min(MAX_PATH)])
}

/// Whether a path begins at the root, or at a drive of DOS.
fn is_absolute(path: &[u8]) -> bool {
    match path {
        [b'/', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

/// A path without `//`, without `.` but at its begin, and without `..` where that is known.
fn straight(path: &[u8]) -> Vec<u8> {
    let root = usize::from(path.first() == Some(&b'/'));
    let mut names: Vec<&[u8]> = Vec::new();
    for (at, name) in path[root..].split(|&byte| byte == b'/').enumerate() {
        match name {
            b"" => {}
            b"." if root == 1 || at > 0 => {}
            b".." if names.last().is_some_and(|last| *last != b"..") => drop(names.pop()),
            b".." if root == 1 => {}
            _ => names.push(name),
        }
    }
    let mut straight = path[..root].to_vec();
    straight.extend(names.join(&b'/'));
    straight
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(cwd: &str, name: &str) -> String {
        String::from_utf8(join(cwd.as_bytes(), name.as_bytes())).unwrap()
    }

    #[test]
    fn names_are_within_their_directory() {
        for (cwd, name, path) in [
            (".", "robots.txt", "./robots.txt"),
            ("/", "rand.txt", "/rand.txt"),
            ("/pub", "a/b", "/pub/a/b"),
            ("/pub", "/etc//passwd", "/etc/passwd"),
            ("/pub/in", "../out/./x", "/pub/out/x"),
            ("/pub", "../../..", "/"),
            (".", "..", ""),
            ("", "../x", "/x"),
            ("/pub", "C:\\x", "C:\\x"),
        ] {
            assert_eq!(joined(cwd, name), path, "{cwd} {name}");
        }
        assert_eq!(join(b"/", &[b'x'; 9_000]).len(), MAX_PATH);
    }

    #[test]
    fn servers_quote_the_directory() {
        assert_eq!(quoted(b"\"/pub/x\" is your current location"), Some(&b"/pub/x"[..]));
        assert_eq!(quoted(b"\"/my\\ dir\" is it"), Some(&b"/my\\ dir"[..]));
        assert_eq!(quoted(b"none"), None);
    }
}
