//! Compressed bodies, RFC 9110 section 8.4.1 and RFC 9112 section 7.2: gzip, deflate and br, also several
//! around each other. Others are taken as they are, as by Zeek.
//!
//! | module | concern |
//! |---|---|
//! | [`budget`] | how much one connection may decode |
//! | [`codings`] | which codings header fields tell |
//! | [`deflate`] | deflate in any wrapping |
//! | [`gzip`] | the wrapping of gzip |
//! | [`inflater`] | inflating, in memory that is used again |
//! | [`brotli`] | br |

mod brotli;
mod budget;
mod codings;
mod deflate;
mod gzip;
mod inflater;

use brotli::Brotli;
pub(super) use budget::{BLOCK, Budget};
use codings::Coding;
pub(super) use codings::{Codings, members};
use deflate::Deflate;

/// The most bytes that come out of one of deflate: two bits may stand for 258 of them.
const DEFLATE_RATIO: u64 = 1_032;

/// Bytes that went in before and may not have come out, at most.
const PENDING: u64 = 64;

/// Bytes that may come out of a decoder at once: more than out of most segments.
const ROOM: usize = 8 << 10;

/// How what is carried goes into the outermost layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// In blocks, of which whoever takes what comes out may want to know.
    Blocks,
    /// As much as comes, where that cannot matter.
    Together,
}

/// Undoes one body's codings.
#[derive(Debug)]
pub(super) struct Decoder {
    /// That which was applied last comes first.
    layers: Vec<Layer>,
}

/// Undoes one coding of a list.
#[derive(Debug)]
struct Layer {
    state: State,
    /// Bytes that it took.
    taken: u64,
    /// What it took while nothing came out, where it may turn out that it was never applied.
    spare: Option<Vec<u8>>,
}

#[derive(Debug)]
enum State {
    /// Before the first byte.
    Begin(Coding),
    Deflate(Deflate),
    Brotli(Box<Brotli>),
    /// Its window is too large: it is taken as it is.
    Untouched,
    /// Complete, broken, or there would be more than may be. What follows counts for nothing.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoded {
    /// Everything that came could be decoded.
    Well,
    /// The data is broken, which is told once, by this name.
    Broken(&'static str),
    /// More would come out than the connection may decode.
    TooMuch,
    /// Whoever takes what comes out has enough, with what was odd before.
    Enough(Option<&'static str>),
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

/// Gets what comes out of a decoder, and how much the connection carried for that. Tells whether there may come more.
type Take<'a> = &'a mut dyn FnMut(&[u8], u64) -> bool;

impl Decoded {
    /// Whether nothing is decoded behind this.
    const fn is_last(self) -> bool {
        matches!(self, Self::TooMuch | Self::Enough(_))
    }

    /// What was odd about the data, by its name.
    pub(super) const fn oddity(self) -> Option<&'static str> {
        match self {
            Self::Broken(name) => Some(name),
            Self::TooLargeWindow => Some("HTTP_window_too_large_to_decode"),
            Self::Enough(odd) => odd,
            Self::Well | Self::TooMuch => None,
        }
    }

    /// The same where something else became of the data before.
    const fn behind(self, before: Self) -> Self {
        match (self, before.oddity()) {
            (Self::Enough(_), Some(odd)) => Self::Enough(Some(odd)),
            _ => self,
        }
    }
}

impl Decoder {
    /// A decoder for one body; `None` where nothing is to be undone.
    pub(super) fn new(codings: &Codings) -> Option<Self> {
        let layer = |(coding, is_sure): (_, bool)| Layer {
            state: State::Begin(coding),
            taken: 0,
            spare: (!is_sure).then(Vec::new),
        };
        let layers: Vec<_> = codings.undone().map(layer).collect();
        (!layers.is_empty()).then_some(Self { layers })
    }

    /// Decodes `data`, and hands what comes out to `take`.
    pub(super) fn decode(
        &mut self,
        data: &[u8],
        pace: Pace,
        budget: &mut Budget,
        take: Take<'_>,
    ) -> Decoded {
        self.run(data, pace, false, budget, take)
    }

    /// Hands out what waits for more to come, since none does.
    pub(super) fn finish(&mut self, budget: &mut Budget, take: Take<'_>) -> Decoded {
        self.run(&[], Pace::Blocks, true, budget, take)
    }

    fn run(
        &mut self,
        data: &[u8],
        pace: Pace,
        is_last: bool,
        budget: &mut Budget,
        take: Take<'_>,
    ) -> Decoded {
        let told = run(&mut self.layers, Some(pace), data, is_last, budget, take);
        if told == Decoded::TooMuch {
            self.layers.iter_mut().for_each(|layer| layer.state = State::Over);
        }
        told
    }

    /// Learns that bytes are missing, behind which nothing can be read. Returns whether those behind
    /// count all the same.
    pub(super) fn gap(&mut self) -> bool {
        let is_untouched = self.is_untouched();
        if !is_untouched {
            self.layers.iter_mut().for_each(|layer| layer.state = State::Over);
        }
        is_untouched
    }

    /// Whether what comes is taken as it is.
    pub(super) fn is_untouched(&self) -> bool {
        self.layers.iter().all(|it| matches!(it.state, State::Untouched))
    }

    /// Lets go of all that it holds, since nothing more is to be decoded.
    pub(super) fn stop(&mut self) {
        for layer in &mut self.layers {
            (layer.state, layer.spare) = (State::Over, None);
        }
    }

    /// Whether it undoes deflate alone, in whatever wrapping.
    pub(super) fn is_deflate(&self) -> bool {
        matches!(self.layers.as_slice(), [Layer { state: State::Deflate(_), .. }])
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let layers = self.layers.iter().map(|layer| size_of::<Layer>() + layer.heap_bytes());
        size_of::<Self>() + layers.sum::<usize>()
    }
}

/// Sends `data` through layers, the outermost first. Each byte that goes into an inner one, and each that
/// comes out of the innermost, is one that was decoded. What was carried and what was decoded is looked at
/// in blocks, so that the outcome is the same however a body is cut. Only the outermost layer has a pace.
fn run(
    layers: &mut [Layer],
    pace: Option<Pace>,
    mut data: &[u8],
    is_last: bool,
    budget: &mut Budget,
    take: Take<'_>,
) -> Decoded {
    let Some((layer, inner)) = layers.split_first_mut() else {
        let (allowed, is_all) = budget.spend(data.len());
        return match take(data.get(..allowed).unwrap_or(data), budget.carried()) {
            false => Decoded::Enough(None),
            true if is_all => Decoded::Well,
            true => Decoded::TooMuch,
        };
    };
    let mut told = Decoded::Well;
    while !data.is_empty() {
        let begun = layer.taken % BLOCK;
        let mut len = data.len().min((BLOCK - begun) as usize);
        if begun == 0 {
            match pace {
                Some(Pace::Together) if layer.may_take(data.len(), inner, budget) => {
                    len = data.len();
                    budget.carry((len as u64).div_ceil(BLOCK) * BLOCK);
                }
                Some(_) => budget.carry(BLOCK),
                None if !budget.spend(BLOCK as usize).1 => return Decoded::TooMuch,
                None => {}
            }
        }
        let (block, rest) = data.split_at(len);
        (layer.taken, data) = (layer.taken + len as u64, rest);
        match layer.decode(block, false, inner, budget, take) {
            last if last.is_last() => return last.behind(told),
            odd if told == Decoded::Well => told = odd,
            _ => {}
        }
    }
    if is_last {
        for odd in [
            layer.decode(&[], true, inner, budget, take),
            run(inner, None, &[], true, budget, take),
        ] {
            if told == Decoded::Well || odd.is_last() {
                told = odd.behind(told);
            }
        }
    }
    told
}

impl Layer {
    /// Whether so many bytes may go in at once: what comes out of them may be decoded whatever they are credited with,
    /// so that it does not matter when they are. What begins, begins in blocks, of which the first may be all it was.
    fn may_take(&self, len: usize, inner: &[Self], budget: &Budget) -> bool {
        let most = (len as u64 + PENDING).saturating_mul(DEFLATE_RATIO);
        matches!(self.state, State::Deflate(_)) && inner.is_empty() && budget.allows(most)
    }

    fn decode(
        &mut self,
        mut data: &[u8],
        is_last: bool,
        inner: &mut [Self],
        budget: &mut Budget,
        take: Take<'_>,
    ) -> Decoded {
        let mut told = self.begin(data, budget);
        let mut out = [0; ROOM];
        loop {
            let (step, broken) = match &mut self.state {
                State::Deflate(deflate) => (deflate.step(data, &mut out), "inflate_failed"),
                State::Brotli(brotli) => (brotli.step(data, is_last, &mut out), "brotli_failed"),
                State::Untouched if data.is_empty() => return told,
                State::Untouched => {
                    let odd = run(inner, None, data, false, budget, take);
                    return if told == Decoded::Well || odd.is_last() {
                        odd.behind(told)
                    } else {
                        told
                    };
                }
                State::Begin(_) | State::Over => return told,
            };
            data = data.get(step.took..).unwrap_or_default();
            if step.gave > 0 {
                self.spare = None;
                let given = out.get(..step.gave).unwrap_or_default();
                match run(inner, None, given, false, budget, take) {
                    last if last.is_last() => return last.behind(told),
                    odd if told == Decoded::Well => told = odd,
                    _ => {}
                }
            }
            match step.outcome {
                // Without room in `out` there may be more to come, even from no input.
                Outcome::Open if step.gave == out.len() => {}
                Outcome::Open if step.took > 0 && !data.is_empty() => {}
                Outcome::Open => return told,
                Outcome::Ended => {
                    self.state = State::Over;
                    return told;
                }
                Outcome::Broken => {
                    let given = self.give_up(inner, budget, take);
                    return match told {
                        _ if given.is_last() => given.behind(Decoded::Broken(broken)).behind(told),
                        Decoded::Well => Decoded::Broken(broken),
                        _ => told,
                    };
                }
            }
        }
    }

    /// Keeps the first bytes, and chooses a decoder by the very first one.
    fn begin(&mut self, data: &[u8], budget: &Budget) -> Decoded {
        if self.taken > BLOCK {
            self.spare = None;
        } else if let Some(spare) = &mut self.spare {
            spare.extend_from_slice(data);
        }
        if let (&State::Begin(coding), Some(&first)) = (&self.state, data.first()) {
            self.state = State::begin(coding, first, budget.window());
            if matches!(self.state, State::Untouched) {
                return Decoded::TooLargeWindow;
            }
        }
        Decoded::Well
    }

    /// Ends a layer that is no such coding. What does not even begin as one is without it. Returns what became of
    /// that.
    fn give_up(&mut self, inner: &mut [Self], budget: &mut Budget, take: Take<'_>) -> Decoded {
        let Some(spare) = self.spare.take() else {
            self.state = State::Over;
            return Decoded::Well;
        };
        self.state = State::Untouched;
        run(inner, None, &spare, false, budget, take)
    }

    /// Bytes that it holds outside itself.
    fn heap_bytes(&self) -> usize {
        let spare = self.spare.as_ref().map_or(0, Vec::capacity);
        spare
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
