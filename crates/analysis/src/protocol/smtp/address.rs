//! Addresses in the text of commands and header fields, as Zeek's scripts find them.

use core::net::IpAddr;

use netsniff_packet::Address;

/// The mail addresses in an argument of MAIL or RCPT behind `FROM:` or `TO:`, as RFC 5321, section
/// 4.1.2 has paths. Servers take them without brackets, too, and some clients put a name before.
/// Empty paths and words without a host are none, as in Zeek. The parameter ORCPT (RFC 3461, section
/// 4.2) tells an address of its own.
pub(super) fn mailboxes(argument: &[u8]) -> Vec<Box<[u8]>> {
    let begin = argument.iter().position(|&byte| byte == b':').map_or(0, |at| at + 1);
    let mut rest = argument[begin..].trim_ascii_start();
    let mut found = Vec::new();
    while let Some((path, behind)) = path(rest) {
        let address = without_route(path);
        if let Some(at) = address.iter().rposition(|&byte| byte == b'@')
            && at > 0
            && at + 1 < address.len()
        {
            found.push(address.into());
        }
        rest = behind.trim_ascii_start();
        match rest.strip_prefix(b",") {
            Some(more) => rest = more.trim_ascii_start(),
            None => break,
        }
    }
    const ORIGINAL: &[u8] = b"ORCPT=rfc822;";
    let mut words = rest.split(|&byte| byte == b' ');
    let original = words.find_map(|word| {
        let (name, address) = word.split_at_checked(ORIGINAL.len())?;
        name.eq_ignore_ascii_case(ORIGINAL).then_some(address)
    });
    found.extend(original.filter(|address| address.contains(&b'@')).map(Box::from));
    found
}

/// The path that a text begins with, without its brackets, and what follows.
fn path(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(inner) = text.strip_prefix(b"<") {
        let end = unquoted(inner, |byte| byte == b'>');
        return Some((&inner[..end], inner.get(end + 1..).unwrap_or_default()));
    }
    let end = unquoted(text, |byte| matches!(byte, b' ' | b'\t' | b',' | b';' | b'<' | b'>'));
    let (word, behind) = text.split_at(end);
    if word.contains(&b'@') {
        return Some((word, behind));
    }
    let bracket = unquoted(text, |byte| byte == b'<');
    if bracket < text.len() { path(&text[bracket..]) } else { None }
}

/// Where a text first has such a byte outside quotes and literals, or else its length.
fn unquoted(text: &[u8], is_end: impl Fn(u8) -> bool) -> usize {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.iter().position(|&byte| {
        let was_escaped = is_escaped;
        is_escaped = byte == b'\\' && !was_escaped;
        if byte == b'"' && !was_escaped {
            is_quoted = !is_quoted;
        }
        !is_quoted && !was_escaped && is_end(byte)
    });
    match end {
        Some(end) => end,
        // A quote that nobody closed is no quote.
        None if is_quoted => text.iter().position(|&byte| is_end(byte)).unwrap_or(text.len()),
        None => text.len(),
    }
}

/// A path without the hosts that it should go by, which are to be ignored (appendix C).
fn without_route(path: &[u8]) -> &[u8] {
    if !path.starts_with(b"@") {
        return path;
    }
    let colon = path.iter().position(|&byte| byte == b':');
    colon.and_then(|colon| path.get(colon + 1..)).unwrap_or_default()
}

/// The addressees of a header field, each with its name. Commas in quotes and comments part none.
pub(super) fn addressees(text: &[u8]) -> Vec<&[u8]> {
    let (mut found, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_quoted,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if is_quoted {
        // A quote that nobody closed is no quote.
        return text
            .split(|&byte| byte == b',')
            .map(<[u8]>::trim_ascii)
            .filter(not_empty)
            .collect();
    }
    found.push(&text[start..]);
    found.into_iter().map(<[u8]>::trim_ascii).filter(not_empty).collect()
}

fn not_empty(text: &&[u8]) -> bool {
    !text.is_empty()
}

/// The IP address that a header field Received tells of the host before
/// (`find_address_in_smtp_header`): the second one between blanks or brackets, or else the first.
pub(super) fn received_from(text: &[u8]) -> Option<Address> {
    let wrapped = |&(address, start, end): &(Address, usize, usize)| {
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        let is_wrapped = matches!(
            (before, text.get(end)),
            (None, None)
                | (Some(b'['), Some(b']'))
                | (Some(b'('), Some(b')'))
                | (Some(b'{'), Some(b'}'))
                | (Some(b' '), Some(b' '))
        );
        is_wrapped.then_some(address)
    };
    let mut addresses = ip_addresses(text).filter_map(|found| wrapped(&found));
    let first = addresses.next();
    addresses.next().or(first)
}

/// The first IP address in a text.
pub(super) fn first_ip_address(text: &[u8]) -> Option<Address> {
    ip_addresses(text).next().map(|(address, ..)| address)
}

/// The IP addresses in a text, each with where it begins and ends: at each place as long as can be.
fn ip_addresses(text: &[u8]) -> impl Iterator<Item = (Address, usize, usize)> {
    let mut from = 0;
    core::iter::from_fn(move || {
        while from < text.len() {
            let rest = &text[from..];
            let v4 = if rest[0].is_ascii_digit() { longest_v4(rest) } else { None };
            let v6 = if may_be_v6(rest) { longest_v6(rest) } else { None };
            let start = from;
            let Some(len) = v6.max(v4) else {
                from += 1;
                continue;
            };
            from += len;
            let address = match rest[..len].contains(&b':') {
                true => core::str::from_utf8(&rest[..len]).ok().and_then(|text| text.parse().ok()),
                false => Some(IpAddr::from(dotted(&rest[..len]))),
            };
            if let Some(address) = address {
                return Some((Address::from(address), start, from));
            }
        }
        None
    })
}

/// Whether a text may begin with an address of groups: nearly no place of a text does, which its
/// first bytes show.
fn may_be_v6(text: &[u8]) -> bool {
    let digits = text.iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
    text.get(digits) == Some(&b':')
}

/// The dotted address that a text is. Some write its numbers with zeros before them, and mean no other
/// number by that.
fn dotted(text: &[u8]) -> [u8; 4] {
    let mut address = [0_u8; 4];
    for (number, digits) in address.iter_mut().zip(text.split(|&byte| byte == b'.')) {
        *number = digits.iter().fold(0, |v, digit| v.wrapping_mul(10).wrapping_add(digit - b'0'));
    }
    address
}

/// The length of the dotted address that a text begins with.
fn longest_v4(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    for number in 0..4 {
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let fits = |len: &usize| {
            let value =
                text[at..at + len].iter().fold(0, |v, digit| v * 10 + u32::from(digit - b'0'));
            value <= 255
        };
        if number == 3 {
            return (1..=digits.min(3)).rev().find(fits).map(|len| at + len);
        }
        if !(1..=3).contains(&digits) || !fits(&digits) || text.get(at + digits) != Some(&b'.') {
            return None;
        }
        at += digits + 1;
    }
    None
}

/// The length of the address of groups and colons that a text begins with.
fn longest_v6(text: &[u8]) -> Option<usize> {
    let (lead, mut at) = groups(text, 8);
    if lead == 8 {
        return Some(at);
    }
    if lead == 6 && text.get(at) == Some(&b':') {
        return longest_v4(&text[at + 1..]).map(|len| at + 1 + len);
    }
    if !text.get(at..).is_some_and(|rest| rest.starts_with(b"::")) {
        return None;
    }
    at += 2;
    let rest = &text[at..];
    let (behind, len) = groups(rest, 7 - lead);
    let dotted = (0..=behind.min(5)).rev().find_map(|count| {
        let (_, len) = groups(rest, count);
        let colon = usize::from(count > 0);
        if count > 0 && rest.get(len) != Some(&b':') {
            return None;
        }
        longest_v4(rest.get(len + colon..)?).map(|dotted| len + colon + dotted)
    });
    Some(at + dotted.unwrap_or(0).max(len))
}

/// How many groups of up to four digits with colons between a text begins with, at most `most`, and
/// their length.
fn groups(text: &[u8], most: usize) -> (usize, usize) {
    let (mut count, mut at) = (0, 0);
    while count < most {
        let start = if count == 0 { 0 } else { at + 1 };
        if count > 0 && text.get(at) != Some(&b':') {
            break;
        }
        let rest = text.get(start..).unwrap_or_default();
        let digits = rest.iter().take(4).take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits == 0 {
            break;
        }
        (count, at) = (count + 1, start + digits);
    }
    (count, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        mailboxes(text.as_bytes()).iter().map(|it| String::from_utf8_lossy(it).into()).collect()
    }

    #[test]
    fn mailboxes_are_paths() {
        for (argument, expected) in [
            ("FROM:<a.b@example.org> SIZE=4333", &["a.b@example.org"][..]),
            ("FROM: <a@b>", &["a@b"]),
            ("FROM: a@b", &["a@b"]),
            ("FROM:a@b", &["a@b"]),
            ("to:a@b SIZE=9 BODY=8BITMIME", &["a@b"]),
            ("FROM:a@b AUTH=<>", &["a@b"]),
            ("FROM:<>", &[]),
            ("FROM:<> SIZE=9", &[]),
            ("TO:<a@b> ORCPT=rfc822;a@b", &["a@b", "a@b"]),
            ("TO:<a@b>,<c@d>", &["a@b", "c@d"]),
            ("TO:Bob <a@b>", &["a@b"]),
            // Routes, quotes and literals (4.1.1.3, 4.1.2, 4.1.3).
            ("TO:<@a,@b:user@host>", &["user@host"]),
            ("TO:@a,@b:user@host", &["user@host"]),
            (r#"TO:<"a b, <c>: d"@host>"#, &[r#""a b, <c>: d"@host"#]),
            (r#"TO:"a b\" c"@host X=1"#, &[r#""a b\" c"@host"#]),
            ("TO:<user@[IPv6:2001:db8::1]>", &["user@[IPv6:2001:db8::1]"]),
            ("TO:user@[192.0.2.1]", &["user@[192.0.2.1]"]),
            ("TO:<\"a@b>", &["\"a@b"]),
            ("TO:<a@b", &["a@b"]),
            ("FROM:<@b>", &[]),
            ("FROM:a@", &[]),
            ("FROM:", &[]),
        ] {
            assert_eq!(found(argument), expected, "{argument}");
        }
    }

    #[test]
    fn addressees_are_parted_by_commas_outside_quotes() {
        let text = b" A <a@b>,\t\"Doe, John\" <j@d> , ,c@d";
        let expected: [&[u8]; 3] = [b"A <a@b>", b"\"Doe, John\" <j@d>", b"c@d"];
        assert_eq!(addressees(text), expected);
        let open: [&[u8]; 2] = [b"\"A <a@b>", b"c@d"];
        assert_eq!(addressees(b"\"A <a@b>, c@d"), open);
    }

    fn received(text: &str) -> Option<String> {
        received_from(text.as_bytes()).map(|address| address.to_string())
    }

    #[test]
    fn the_host_before_stands_between_brackets() {
        let text = "from a.example ([192.0.2.19]:56766 \"EHLO a.example\") by b.example";
        assert_eq!(received(text).unwrap(), "192.0.2.19");
        let text = "from 192.0.2.1 (HELO x) (192.0.2.2) by b.example";
        assert_eq!(received(text).unwrap(), "192.0.2.2");
        assert_eq!(received("by 192.0.2.1 with SMTP").unwrap(), "192.0.2.1");
        assert_eq!(received("id 1.2.3.4.5; v192.0.2.1"), None);
        assert_eq!(received("from x ([2001:db8::1])").unwrap(), "2001:db8::1");
        assert_eq!(received("from [10.000.000.002] (helo=[10.000.00.03])").unwrap(), "10.0.0.3");
        assert_eq!(received("from x ([IPv6:2001:db8::1])"), None, "as in Zeek");
        assert_eq!(received("from x"), None);
    }

    #[test]
    fn addresses_are_as_long_as_can_be() {
        let first = |text: &str| first_ip_address(text.as_bytes()).map(|it| it.to_string());
        for text in ["::", "::1", "2001:db8::1", "1:2:3:4:5:6:7:8", "fe80::1:2", "::ffff:a00:1"] {
            let expected: IpAddr = text.parse().unwrap();
            assert_eq!(first(text).unwrap(), Address::from(expected).to_string(), "{text}");
        }
        assert_eq!(first("[203.0.113.255]").unwrap(), "203.0.113.255");
        assert_eq!(first("x310.1.1.1").unwrap(), "10.1.1.1");
        assert_eq!(first("300.1.1.1").unwrap(), "0.1.1.1", "00.1.1.1 is as long as can be");
        assert_eq!(first("[10.000.00.004]").unwrap(), "10.0.0.4");
        assert_eq!(first("::ffff:10.000.00.004"), None);
        assert_eq!(first("1.2.3"), None);
        assert_eq!(first("12:30:59"), None);
        assert_eq!(first("64:ff9b::192.0.2.33").unwrap(), "64:ff9b::c000:221");
    }
}
