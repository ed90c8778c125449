//! Oddities by name: traffic that is not as it should be is recorded, never refused.

use crate::prefetch::prefetch;

/// Something that is odd about the traffic, by Zeek's name for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddity {
    /// Its name: Zeek's, where Zeek has one.
    pub name: &'static str,
    /// What more is known of it.
    pub detail: Detail,
}

/// What more is known of an oddity, as Zeek's `addl` tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// The name tells everything.
    #[default]
    None,
    /// A number that is not allowed, or a bound that was reached.
    Number(u64),
    /// Two numbers that should be equal.
    Unequal(u64, u64),
    /// A number that is larger than may be.
    Above(u64, u64),
    /// A word of the protocol.
    Word(Excerpt),
}

/// The begin of some bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; Self::LEN],
    len: u8,
}

impl Excerpt {
    /// The words of protocols are shorter, and what is no word need not be told as a whole.
    const LEN: usize = 23;
}

impl Detail {
    /// A word, or the begin of it.
    #[must_use]
    pub fn word(word: &[u8]) -> Self {
        let mut excerpt = Excerpt::default();
        for (to, from) in excerpt.bytes.iter_mut().zip(word) {
            *to = *from;
            excerpt.len += 1;
        }
        Self::Word(excerpt)
    }

    /// The detail as text, where there is one.
    #[must_use]
    pub fn text(&self) -> Option<Vec<u8>> {
        match self {
            Self::None => None,
            Self::Number(number) => Some(number.to_string().into_bytes()),
            Self::Above(number, most) => Some(format!("{number} > {most}").into_bytes()),
            Self::Unequal(one, other) => Some(format!("{one} != {other}").into_bytes()),
            Self::Word(Excerpt { bytes, len }) => {
                bytes.get(..usize::from(*len)).map(<[u8]>::to_vec)
            }
        }
    }
}

/// The oddities of one packet.
#[derive(Clone, Debug, Default)]
pub struct Weirds {
    oddities: [Oddity; Self::CAPACITY],
    len: usize,
}

impl Weirds {
    /// Headers show fewer at once. A crafted message may show thousands: the first ones are enough.
    const CAPACITY: usize = 12;

    /// Notes an oddity that has no detail.
    #[cold]
    pub fn add(&mut self, name: &'static str) {
        self.add_with(name, Detail::None);
    }

    /// Notes one of which more is known.
    #[cold]
    pub fn add_with(&mut self, name: &'static str, detail: Detail) {
        if let Some(slot) = self.oddities.get_mut(self.len) {
            *slot = Oddity { name, detail };
            self.len += 1;
        }
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All in the order in which they were noted.
    pub fn iter(&self) -> impl Iterator<Item = &Oddity> {
        self.oddities.iter().take(self.len)
    }

    /// All in the order in which they were noted, which empties this.
    pub fn drain(&mut self) -> impl Iterator<Item = Oddity> + use<> {
        let (oddities, len) = (self.oddities, core::mem::take(&mut self.len));
        oddities.into_iter().take(len)
    }
}

/// Oddities of which each is told once, however often it is met. What one session tells is then
/// bounded, and the same however its streams are cut.
#[derive(Clone, Debug, Default)]
pub struct Once(Vec<&'static str>);

impl Once {
    /// Takes those out that were told before.
    #[inline]
    pub fn filter(&mut self, weirds: &mut Weirds) {
        if !weirds.is_empty() {
            self.filter_some(weirds);
        }
    }

    #[cold]
    fn filter_some(&mut self, weirds: &mut Weirds) {
        for Oddity { name, detail } in weirds.drain() {
            if self.note(name) {
                weirds.add_with(name, detail);
            }
        }
    }

    /// Notes that one is told, and tells whether it was not before.
    pub fn note(&mut self, name: &'static str) -> bool {
        let is_new = !self.0.contains(&name);
        if is_new {
            self.0.push(name);
        }
        is_new
    }

    /// Asks for the first of them.
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.0.iter().take(1).for_each(prefetch);
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<&str>()
    }
}
