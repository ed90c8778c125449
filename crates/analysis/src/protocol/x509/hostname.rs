//! Whether a certificate is for a host, RFC 6125, as OpenSSL's `X509_check_host` finds it.

/// Whether `pattern`, a name in a certificate, is for `host`.
pub(super) fn matches(pattern: &[u8], host: &[u8]) -> bool {
    match star(pattern) {
        Some(at) => wildcard_matches(pattern, at, host),
        None => pattern.eq_ignore_ascii_case(host) && !pattern.is_empty(),
    }
}

/// Where the wildcard of a pattern is, if it has a valid one: one alone, at an end of the first
/// label, which two more follow.
fn star(pattern: &[u8]) -> Option<usize> {
    let mut stars = pattern.iter().enumerate().filter(|(_, octet)| **octet == b'*');
    let (at, _) = stars.next()?;
    let first_dot = pattern.iter().position(|octet| *octet == b'.')?;
    let labels: Vec<&[u8]> = pattern.split(|octet| *octet == b'.').collect();
    let is_name = |label: &&[u8]| {
        let is_plain =
            |octet: &u8| octet.is_ascii_alphanumeric() || [b'-', b'*', b'_'].contains(octet);
        !label.is_empty() && label.iter().all(is_plain)
    };
    let is_valid = stars.next().is_none()
        && at < first_dot
        && (at == 0 || at + 1 == first_dot)
        && labels.len() >= 3
        && labels.iter().all(is_name)
        && (first_dot == 1 || !is_idna(labels.first()?));
    is_valid.then_some(at)
}

fn is_idna(label: &[u8]) -> bool {
    label.get(..4).is_some_and(|begin| begin.eq_ignore_ascii_case(b"xn--"))
}

/// Whether the host is what the pattern says before and behind its wildcard, with a part of one
/// label between.
fn wildcard_matches(pattern: &[u8], at: usize, host: &[u8]) -> bool {
    let (prefix, suffix) = (pattern.get(..at), pattern.get(at + 1..));
    let (Some(prefix), Some(suffix)) = (prefix, suffix) else { return false };
    let Some((begin, rest)) = host.split_at_checked(prefix.len()) else { return false };
    let Some(middle) = rest.len().checked_sub(suffix.len()) else { return false };
    let (middle, end) = rest.split_at(middle);
    if !begin.eq_ignore_ascii_case(prefix) || !end.eq_ignore_ascii_case(suffix) {
        return false;
    }
    let is_whole_label = prefix.is_empty() && suffix.first() == Some(&b'.');
    // A whole label is never empty; a part of one is none of an encoded name.
    if is_whole_label && middle.is_empty() || !is_whole_label && is_idna(host) {
        return false;
    }
    middle.iter().all(|octet| octet.is_ascii_alphanumeric() || *octet == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_whatever_their_case() {
        assert!(matches(b"www.Example.org", b"WWW.example.org"));
        assert!(!matches(b"example.org", b"www.example.org") && !matches(b"", b""));
    }

    #[test]
    fn a_wildcard_stands_for_one_label_or_a_part_of_it() {
        for host in ["a.example.org", "x-1.example.org", "xn--a.example.org"] {
            assert!(matches(b"*.example.org", host.as_bytes()), "{host}");
        }
        for host in ["example.org", ".example.org", "a.b.example.org", "a_b.example.org"] {
            assert!(!matches(b"*.example.org", host.as_bytes()), "{host}");
        }
        assert!(
            matches(b"f*.example.org", b"foo.example.org")
                && matches(b"*o.example.org", b"o.example.org")
        );
        assert!(!matches(b"f*.example.org", b"go.example.org"));
    }

    #[test]
    fn wildcards_elsewhere_are_no_wildcards() {
        for pattern in [
            "*.org",
            "a.*.example.org",
            "*.*.example.org",
            "f*o.example.org",
            "xn--a*.example.org",
            "*..org",
        ] {
            assert!(!matches(pattern.as_bytes(), b"foo.example.org"), "{pattern}");
        }
        assert!(matches(b"*.org", b"*.org"));
    }
}
