//! Which codings header fields tell, RFC 9110 section 8.4 and RFC 9112 section 6.1.

use crate::protocol::mime::{Field, token};

/// Codings of a body that are undone. Servers apply one, and a proxy may apply another.
const MAX_CODINGS: usize = 4;

/// A coding that can be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol::http) enum Coding {
    /// gzip or deflate: servers mix them up.
    Deflate,
    /// `br` (RFC 7932).
    Brotli,
}

/// The codings of a body, in the order in which they were applied.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::protocol::http) struct Codings {
    /// Content codings (RFC 9110, 8.4.1).
    content: List,
    /// Of its transfer, which were applied later.
    transfer: List,
}

#[derive(Clone, Copy, Debug, Default)]
struct List {
    /// `None` is one that cannot be undone.
    codings: [Option<Coding>; MAX_CODINGS],
    len: usize,
    has_more: bool,
}

impl Codings {
    /// Takes a field `Content-Encoding`, which may come again.
    pub(in crate::protocol::http) fn content(&mut self, field: &Field<'_>) {
        members(field.value).for_each(|member| self.content.add(member.word));
    }

    /// Takes a member of a field `Transfer-Encoding` that is not `chunked`. Returns whether it is known.
    pub(in crate::protocol::http) fn transfer(&mut self, word: &[u8]) -> bool {
        self.transfer.add(word);
        coding(word).is_some() || word.eq_ignore_ascii_case(b"identity")
    }

    /// Whether there are more than are undone.
    pub(in crate::protocol::http) const fn has_too_many(&self) -> bool {
        let len = self.content.len + self.transfer.len;
        len > MAX_CODINGS || self.content.has_more || self.transfer.has_more
    }

    /// Those that are undone, in that order, and whether one is surely applied: those of the content up to the
    /// first that is not known. Of several that is the outermost: servers name one twice. Nobody asks for those
    /// of the transfer, and no browser undoes them.
    pub(super) fn undone(&self) -> impl Iterator<Item = (Coding, bool)> + use<> {
        let most = if self.has_too_many() { 0 } else { MAX_CODINGS };
        let (content, transfer) = (self.content, self.transfer);
        let applied = move |list: List| (0..list.len).rev().map(move |at| list.codings[at]);
        let is_around = applied(transfer).any(|coding| coding.is_none());
        let transfer = applied(transfer).flatten().map(|coding| (coding, false));
        let content = applied(content).map_while(|coding| coding).enumerate();
        let content = content.map(move |(at, coding)| (coding, at == 0 && !is_around));
        transfer.chain(content).take(most)
    }

    /// Whether none that is undone is surely applied.
    pub(in crate::protocol::http) fn is_doubtful(&self) -> bool {
        self.undone().all(|(_, is_sure)| !is_sure)
    }

    /// Whether there is none that is undone.
    pub(in crate::protocol::http) fn is_empty(&self) -> bool {
        self.undone().next().is_none()
    }
}

impl List {
    fn add(&mut self, word: &[u8]) {
        if word.eq_ignore_ascii_case(b"identity") {
            return;
        }
        match self.codings.get_mut(self.len) {
            Some(slot) => {
                *slot = coding(word);
                self.len += 1;
            }
            None => self.has_more = true,
        }
    }
}

fn coding(word: &[u8]) -> Option<Coding> {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if ["gzip", "x-gzip", "deflate"].into_iter().any(is) {
        Some(Coding::Deflate)
    } else {
        is("br").then_some(Coding::Brotli)
    }
}

/// A member of a list of codings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::protocol::http) struct Member<'a> {
    /// Its first token, which names the coding.
    pub(in crate::protocol::http) word: &'a [u8],
    /// Whether there is nothing else but parameters.
    pub(in crate::protocol::http) is_exact: bool,
}

/// The members of a list, RFC 9110 section 5.6.1. What is no token does not hide a name, as for Zeek.
pub(in crate::protocol::http) fn members(value: &[u8]) -> impl Iterator<Item = Member<'_>> {
    value.split(|&byte| byte == b',').filter_map(|member| {
        let (word, _) = token(member)?;
        let end = member.iter().position(|&byte| byte == b';').unwrap_or(member.len());
        let is_exact = member.get(..end).is_some_and(|name| name.trim_ascii() == word);
        Some(Member { word, is_exact })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &[&str], transfer: &[&str]) -> Vec<Coding> {
        let mut codings = Codings::default();
        for value in content {
            codings.content(&Field { name: b"", value: value.as_bytes() });
        }
        for word in transfer {
            codings.transfer(word.as_bytes());
        }
        codings.undone().map(|(coding, _)| coding).collect()
    }

    #[test]
    fn what_was_applied_last_is_undone_first() {
        use Coding::{Brotli, Deflate};
        for (content, transfer, undone) in [
            (&["gzip"][..], &[][..], vec![Deflate]),
            (&[" X-GZip\t"], &[], vec![Deflate]),
            (&["gzip, br"], &[], vec![Brotli, Deflate]),
            (&["br", "identity", "deflate;x=1"], &[], vec![Deflate, Brotli]),
            (&["br, ,gzip,"], &["gzip"], vec![Deflate, Deflate, Brotli]),
            (&["zstd, gzip"], &[], vec![Deflate]),
            (&["gzip, zstd"], &[], vec![]),
            (&["identity"], &["identity"], vec![]),
            (&["", "brotli"], &[], vec![]),
            (&["gzip,gzip,gzip,gzip"], &[], vec![Deflate; 4]),
            (&["gzip,gzip,gzip"], &["gzip", "gzip"], vec![]),
            (&["gzip,gzip,gzip,gzip,gzip"], &[], vec![]),
            // `HTTP_Entity::SubmitHeader` takes the first token, whatever stands around it.
            (&["gzip x"], &[], vec![Deflate]),
            (&[": gzip", "(a) \"br\""], &[], vec![Brotli, Deflate]),
            (&["x gzip"], &["xgzip"], vec![]),
            (&["gzip"], &["lalala"], vec![Deflate]),
        ] {
            assert_eq!(of(content, transfer), undone, "{content:?} {transfer:?}");
        }
    }
}
