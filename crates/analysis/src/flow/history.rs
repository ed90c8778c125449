//! The history of a connection as letters, as Zeek's `history` column has it.

/// Letters in the order in which things first happened; capitals for the originator.
///
/// Fourteen letters, more than almost every connection has, need no allocation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Letters(Storage);

#[derive(Clone, Debug, PartialEq)]
enum Storage {
    Inline {
        len: u8,
        bytes: [u8; INLINE],
    },
    #[expect(clippy::box_collection, reason = "a word less in every flow")]
    Heap(Box<String>),
}

/// The history of a flow while a packet changes it: which kinds of things were seen, which every
/// packet asks for, and the letters, which few packets change.
#[derive(Debug)]
pub struct History<'a> {
    /// One bit for each kind.
    pub seen: &'a mut u32,
    /// The letters of the history so far.
    pub letters: &'a mut Letters,
    /// Bytes that the letters take more outside themselves than before.
    pub grown: usize,
}

/// The kind of X: something that could not be read, Zeek's `HIST_UNKNOWN_PKT`. It is of either side; all
/// other kinds of the responder are 16 bits further up than those of the originator.
pub(super) const UNKNOWN: u32 = 0x400;

const INLINE: usize = 14;

/// Letters that one connection may have; floods of resets stop here. Zeek knows no such bound,
/// and no connection of its test-suite comes near it.
const MAX_LEN: usize = 4096;

impl Default for Storage {
    fn default() -> Self {
        Self::Inline { len: 0, bytes: [0; INLINE] }
    }
}

impl History<'_> {
    /// Adds `letter` where it is the first of its kind, and tells whether one was there before.
    /// `kind` is one bit.
    #[inline]
    pub fn once(&mut self, kind: u32, letter: u8) -> bool {
        if *self.seen & kind != 0 {
            return true;
        }
        *self.seen |= kind;
        self.push(letter);
        false
    }

    /// Whether this is the first of its kind, for which there is no letter. `kind` is one bit.
    pub const fn is_first(&mut self, kind: u32) -> bool {
        let is_first = *self.seen & kind == 0;
        *self.seen |= kind;
        is_first
    }

    /// Adds a letter, as far as there is room.
    pub fn push(&mut self, letter: u8) {
        let before = self.letters.heap_bytes();
        self.letters.push(letter);
        self.grown += self.letters.heap_bytes() - before;
    }
}

impl Letters {
    /// Adds a letter, as far as there is room.
    pub fn push(&mut self, letter: u8) {
        match &mut self.0 {
            Storage::Inline { len, bytes } => match bytes.get_mut(usize::from(*len)) {
                Some(slot) => {
                    *slot = letter;
                    *len += 1;
                }
                None => {
                    let mut text: String = bytes.iter().map(|&b| char::from(b)).collect();
                    text.push(char::from(letter));
                    self.0 = Storage::Heap(Box::new(text));
                }
            },
            Storage::Heap(text) if text.len() < MAX_LEN => text.push(char::from(letter)),
            Storage::Heap(_) => {}
        }
    }

    /// The letters in the order in which they were noted.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Storage::Inline { len, bytes } => bytes
                .get(..usize::from(*len))
                .and_then(|letters| core::str::from_utf8(letters).ok())
                .unwrap_or_default(),
            Storage::Heap(text) => text,
        }
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Storage::Inline { .. } => 0,
            Storage::Heap(text) => size_of::<String>() + text.capacity(),
        }
    }
}

/// Tells the 1st, 10th, 100th … time of something, which is when Zeek adds a letter for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scaled(u32);

impl Scaled {
    /// Counts once more and tells whether that was a power of ten.
    pub const fn hit(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        is_power_of_ten(self.0)
    }

    /// How many times so far.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.0
    }
}

/// Whether it is the 1st, 10th, 100th … time of something, given how many times there were.
#[must_use]
pub const fn is_power_of_ten(times: u32) -> bool {
    times > 0 && 10_u32.pow(times.ilog10()) == times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_outgrow_the_inline_space_and_stop_at_the_bound() {
        let mut history = Letters::default();
        for _ in 0..INLINE {
            history.push(b'R');
        }
        assert_eq!(history.heap_bytes(), 0);
        history.push(b'r');
        assert_eq!(history.as_str(), "RRRRRRRRRRRRRRr");
        for _ in 0..2 * MAX_LEN {
            history.push(b'R');
        }
        assert_eq!(history.as_str().len(), MAX_LEN);
    }

    #[test]
    fn once_adds_a_kind_once() {
        let (mut seen, mut letters) = (0, Letters::default());
        let mut history = History { seen: &mut seen, letters: &mut letters, grown: 0 };
        assert!(!history.once(1, b'S'));
        assert!(history.once(1, b'S'));
        assert!(!history.once(2, b'h'));
        assert_eq!(letters.as_str(), "Sh");
    }

    #[test]
    fn scaled_hits_at_powers_of_ten() {
        let mut scaled = Scaled::default();
        let hits: Vec<u32> = (1..=1000).filter(|_| scaled.hit()).collect();
        assert_eq!(hits, [1, 10, 100, 1000]);
    }
}
