//! Oddities by name: traffic that is not as it should be is recorded, never refused.

/// The oddities of one packet, by Zeek's names where Zeek has one.
#[derive(Clone, Debug, Default)]
pub struct Weirds {
    names: [&'static str; Self::CAPACITY],
    len: usize,
}

impl Weirds {
    /// Headers show fewer at once. A crafted message may show thousands: the first ones are enough.
    const CAPACITY: usize = 12;

    /// Notes one.
    #[cold]
    pub fn add(&mut self, name: &'static str) {
        if let Some(slot) = self.names.get_mut(self.len) {
            *slot = name;
            self.len += 1;
        }
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The names in the order in which they were noted, which empties this.
    pub fn drain(&mut self) -> impl Iterator<Item = &'static str> + use<> {
        let (names, len) = (self.names, core::mem::take(&mut self.len));
        names.into_iter().take(len)
    }
}
