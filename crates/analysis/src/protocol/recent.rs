//! What was made of bytes that come again and again: hosts send the same certificates and the same
//! hellos for years, and to make something of them costs far more than to find them again.

use core::fmt::{self, Debug, Formatter};

use hashbrown::HashMap;

/// Bytes that both generations may take together, by default of all their users.
const MAX_BYTES: usize = 8 << 20;

/// Bytes that an entry takes besides its key and what its value holds.
const ENTRY_BYTES: usize = 48;

/// Something that tells how much it holds.
pub(super) trait Held {
    /// Bytes that it holds outside itself.
    fn heap_bytes(&self) -> usize;
}

/// Values by the bytes that they were made of, of which those that were not asked for in a long
/// time are forgotten.
///
/// There are two generations. What is asked for belongs to the younger one; when that is full, the
/// older one is forgotten and the younger one becomes it. So an entry costs no bookkeeping, and
/// someone who sends ever new bytes gains nothing but that others are made again.
pub(super) struct Recent<V> {
    young: HashMap<Box<[u8]>, V>,
    old: HashMap<Box<[u8]>, V>,
    /// Bytes that the younger generation takes, and the older one.
    held: [usize; 2],
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), held: [0; 2] }
    }
}

impl<V> Debug for Recent<V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (young, old) = (self.young.len(), self.old.len());
        formatter.debug_struct("Recent").field("young", &young).field("old", &old).finish()
    }
}

impl<V: Held> Recent<V> {
    /// The value of `bytes`, made where none is known; `None` where none can be made.
    pub(super) fn of(
        &mut self,
        bytes: &[u8],
        make: impl FnOnce(&[u8]) -> Option<V>,
    ) -> Option<&mut V> {
        if !self.young.contains_key(bytes) {
            let (key, value) = match self.old.remove_entry(bytes) {
                Some(entry) => entry,
                None => (bytes.into(), make(bytes)?),
            };
            self.add(key, value);
        }
        self.young.get_mut(bytes)
    }

    /// Bytes that all entries take.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.held[0] + self.held[1]
    }

    fn add(&mut self, key: Box<[u8]>, value: V) {
        let bytes = size_of::<V>() + ENTRY_BYTES + key.len() + value.heap_bytes();
        if self.held[0] + bytes > MAX_BYTES / 2 {
            self.old = core::mem::take(&mut self.young);
            self.held = [0, self.held[0]];
        }
        self.held[0] += bytes;
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Weight(usize);

    impl Held for Weight {
        fn heap_bytes(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn made_once() {
        let mut recent = Recent::default();
        let mut made = 0;
        for _ in 0..3 {
            recent.of(b"a", |bytes| {
                made += 1;
                Some(Weight(bytes.len()))
            });
        }
        assert_eq!(made, 1);
        assert!(recent.of(b"b", |_| None).is_none());
        assert_eq!(recent.of(b"b", |_| Some(Weight(7))).unwrap().0, 7);
    }

    #[test]
    fn what_is_asked_for_stays() {
        let mut recent = Recent::default();
        let mut made = 0;
        for number in 0..10_000_u32 {
            recent.of(&number.to_be_bytes(), |_| Some(Weight(MAX_BYTES / 100)));
            recent.of(b"asked for", |_| {
                made += 1;
                Some(Weight(1))
            });
            assert!(recent.heap_bytes() <= MAX_BYTES + 2 * MAX_BYTES / 100);
        }
        assert_eq!(made, 1);
        assert!(recent.of(&0_u32.to_be_bytes(), |_| None).is_none());
    }
}
