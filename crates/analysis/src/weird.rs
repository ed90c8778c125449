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
        for name in weirds.drain() {
            if !self.0.contains(&name) {
                self.0.push(name);
                weirds.add(name);
            }
        }
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub const fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<&str>()
    }
}
