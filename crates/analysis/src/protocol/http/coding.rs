//! Compressed bodies, RFC 9110 section 8.4.1: gzip, deflate and br. Others are taken as they are, as by
//! Zeek.
//!
//! | module | concern |
//! |---|---|
//! | [`deflate`] | gzip and deflate |
//! | [`brotli`] | br |

mod brotli;
mod deflate;

use crate::limits::Limits;
use crate::protocol::mime::Field;
use brotli::Brotli;
use deflate::Deflate;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// gzip or deflate: servers mix them up.
    Deflate,
    /// br.
    Brotli,
}

/// How much decoding may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How many bytes may come out of one body.
    pub(super) room: u64,
    /// The largest window, in bytes.
    pub(super) window: u64,
}

/// Undoes one body's compression.
#[derive(Debug)]
pub(super) struct Decoder {
    state: State,
    bounds: Bounds,
}

#[derive(Debug)]
enum State {
    /// Nothing came yet.
    Begin(Coding),
    Deflate(Deflate),
    Brotli(Box<Brotli>),
    /// Its window is too large: it is taken as it is.
    Untouched,
    /// Complete, broken, or there would be more than may be. What follows counts for nothing.
    Over,
}

/// How decoding went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// All is well.
    Well,
    /// The data is broken, which is told once, by this name.
    Broken(&'static str),
    /// More came out than may, which is told once.
    TooMuch,
    /// The data needs a larger window than may be, which is told once: it is taken as it is.
    TooLargeWindow,
}

/// What became of some data.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Bytes that were taken.
    took: usize,
    /// Bytes that came out.
    gave: usize,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// More may come, also of what was taken where all room for it was used.
    Open,
    Ended,
    Broken,
}

impl Coding {
    /// The compression that a field `Content-Encoding` tells. Of several the first counts, as for
    /// Zeek; br is undone only where it is alone, since what is compressed twice ends with another.
    pub(super) fn of(field: &Field<'_>) -> Option<Self> {
        if ["gzip", "x-gzip", "deflate"].iter().any(|word| field.says(word)) {
            return Some(Self::Deflate);
        }
        let (token, rest) = field.token()?;
        let is_alone = rest.trim_ascii().is_empty();
        (is_alone && token.eq_ignore_ascii_case(b"br")).then_some(Self::Brotli)
    }
}

impl From<&Limits> for Bounds {
    fn from(limits: &Limits) -> Self {
        Self { room: limits.http_decoded_bytes, window: limits.http_window_bytes }
    }
}

impl Decoder {
    /// A decoder for one body.
    pub(super) const fn new(coding: Coding, bounds: Bounds) -> Self {
        Self { state: State::Begin(coding), bounds }
    }

    /// Decodes `data`, and hands what comes out to `take`.
    pub(super) fn decode(&mut self, data: &[u8], take: impl FnMut(&[u8])) -> Decoded {
        self.run(data, false, take)
    }

    /// Hands out what waits for more to come, since none does.
    pub(super) fn finish(&mut self, take: impl FnMut(&[u8])) -> Decoded {
        self.run(&[], true, take)
    }

    fn run(&mut self, mut data: &[u8], is_last: bool, mut take: impl FnMut(&[u8])) -> Decoded {
        if let (&State::Begin(coding), Some(&first)) = (&self.state, data.first()) {
            self.state = State::begin(coding, first, self.bounds.window);
            if matches!(self.state, State::Untouched) {
                take(data);
                return Decoded::TooLargeWindow;
            }
        }
        let mut out = [0; 4_096];
        loop {
            let (step, broken) = match &mut self.state {
                State::Deflate(deflate) => (deflate.step(data, &mut out), "inflate_failed"),
                State::Brotli(brotli) => (brotli.step(data, is_last, &mut out), "brotli_failed"),
                State::Untouched => {
                    take(data);
                    return Decoded::Well;
                }
                State::Begin(_) | State::Over => return Decoded::Well,
            };
            data = data.get(step.took..).unwrap_or_default();
            let given = out.get(..step.gave).unwrap_or_default();
            let room = usize::try_from(self.bounds.room).unwrap_or(usize::MAX);
            let allowed = given.get(..room).unwrap_or(given);
            self.bounds.room -= allowed.len() as u64;
            take(allowed);
            if allowed.len() < given.len() {
                self.state = State::Over;
                return Decoded::TooMuch;
            }
            match step.outcome {
                // Without room in `out` there may be more to come, even from no input.
                Outcome::Open if step.gave == out.len() => {}
                Outcome::Open if step.took > 0 && !data.is_empty() => {}
                Outcome::Open => return Decoded::Well,
                Outcome::Ended => {
                    self.state = State::Over;
                    return Decoded::Well;
                }
                Outcome::Broken => {
                    self.state = State::Over;
                    return Decoded::Broken(broken);
                }
            }
        }
    }

    /// Learns that bytes are missing, behind which nothing can be read. Returns whether those behind
    /// count all the same.
    pub(super) fn gap(&mut self) -> bool {
        let is_untouched = matches!(self.state, State::Untouched);
        if !is_untouched {
            self.state = State::Over;
        }
        is_untouched
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + match &self.state {
                State::Deflate(deflate) => deflate.heap_bytes(),
                State::Brotli(brotli) => size_of::<Brotli>() + brotli.heap_bytes(),
                State::Begin(_) | State::Untouched | State::Over => 0,
            }
    }
}

impl State {
    /// Begins with the first byte of a body, which tells how large a window br needs.
    fn begin(coding: Coding, first: u8, window: u64) -> Self {
        match coding {
            Coding::Deflate => Self::Deflate(Deflate::default()),
            Coding::Brotli => match brotli::window(first).filter(|&len| len <= window) {
                Some(_) => Self::Brotli(Box::default()),
                None => Self::Untouched,
            },
        }
    }
}

#[cfg(test)]
mod tests;
