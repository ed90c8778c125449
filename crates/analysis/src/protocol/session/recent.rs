//! What was made of bytes that come again and again: hosts send the same certificates and the same
//! hellos for years, and to make something of them costs far more than to find them again.

use core::any::Any;
use core::cell::Cell;
use core::fmt::{self, Debug, Formatter};

use hashbrown::HashMap;

/// Bytes that both generations may take together.
const MAX_BYTES: usize = 8 << 20;

/// Bytes that an entry takes besides its key and what its value holds.
const ENTRY_BYTES: usize = 48;

/// Something that tells how much it holds.
pub(in crate::protocol) trait Held {
    /// Bytes that it holds outside itself.
    fn heap_bytes(&self) -> usize;
}

/// What one protocol made of content that comes again and again, in all conversations of a worker.
pub(in crate::protocol) trait Cache: Held + Debug + Send + Any {}

impl<C: Held + Debug + Send + Any> Cache for C {}

/// The caches of all protocols: one of each type, made when it is first asked for.
#[derive(Debug, Default)]
pub(in crate::protocol) struct Caches {
    all: Vec<Box<dyn Cache>>,
    /// Bytes that all of them take, where that was asked since one of them may have changed: with nearly every
    /// segment somebody asks, and hardly one changes a cache.
    held: Cell<Option<usize>>,
}

impl Caches {
    /// The cache of a type.
    pub(in crate::protocol) fn of<C: Cache + Default>(&mut self) -> &mut C {
        let is_it = |cache: &dyn Cache| (cache as &dyn Any).is::<C>();
        let at = self.all.iter().position(|cache| is_it(&**cache)).unwrap_or_else(|| {
            self.all.push(Box::<C>::default());
            self.all.len() - 1
        });
        self.held.set(None);
        let cache = &mut *self.all[at] as &mut dyn Any;
        cache.downcast_mut().expect("it was found by its type")
    }

    /// Bytes that all of them take.
    pub(super) fn heap_bytes(&self) -> usize {
        self.held.get().unwrap_or_else(|| {
            let held =
                self.all.iter().map(|cache| size_of_val(&**cache) + cache.heap_bytes()).sum();
            self.held.set(Some(held));
            held
        })
    }
}

/// Values by the bytes that they were made of, of which those that were not asked for in a long
/// time are forgotten.
///
/// There are two generations. What is asked for belongs to the younger one; when that is full, the
/// older one is forgotten and the younger one becomes it. So an entry costs no bookkeeping, and
/// someone who sends ever new bytes gains nothing but that others are made again.
#[derive(Debug)]
pub(in crate::protocol) struct Recent<V> {
    young: Generation<V>,
    old: Generation<V>,
}

struct Generation<V> {
    /// Places in `values`: looking a value up costs one hash of bytes that may be long.
    places: HashMap<Box<[u8]>, usize>,
    values: Vec<Option<V>>,
    /// Bytes that it takes.
    held: usize,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { young: Generation::default(), old: Generation::default() }
    }
}

impl<V> Default for Generation<V> {
    fn default() -> Self {
        Self { places: HashMap::new(), values: Vec::new(), held: 0 }
    }
}

impl<V> Debug for Generation<V> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let Self { values, held, .. } = self;
        formatter
            .debug_struct("Generation")
            .field("values", &values.len())
            .field("held", held)
            .finish()
    }
}

impl<V: Held> Recent<V> {
    /// The value of `bytes`, made where none is known; `None` where none can be made.
    pub(in crate::protocol) fn of(
        &mut self,
        bytes: &[u8],
        make: impl FnOnce(&[u8]) -> Option<V>,
    ) -> Option<&mut V> {
        let place = match self.young.places.get(bytes) {
            Some(place) => *place,
            None => {
                let value = match self.old.take(bytes) {
                    Some(value) => value,
                    None => make(bytes)?,
                };
                self.add(bytes, value)
            }
        };
        self.young.values.get_mut(place)?.as_mut()
    }

    /// Bytes that all entries take.
    pub(in crate::protocol) const fn heap_bytes(&self) -> usize {
        self.young.held + self.old.held
    }

    /// Adds a value, and returns its place.
    fn add(&mut self, bytes: &[u8], value: V) -> usize {
        let held = size_of::<V>() + ENTRY_BYTES + bytes.len() + value.heap_bytes();
        if self.young.held + held > MAX_BYTES / 2 {
            self.old = core::mem::take(&mut self.young);
        }
        let Generation { places, values, held: sum } = &mut self.young;
        *sum += held;
        places.insert(bytes.into(), values.len());
        values.push(Some(value));
        values.len() - 1
    }
}

impl<V> Generation<V> {
    fn take(&mut self, bytes: &[u8]) -> Option<V> {
        self.values.get_mut(*self.places.get(bytes)?)?.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Weight(usize);

    #[derive(Debug, Default)]
    struct Shelf(usize);

    impl Held for Shelf {
        fn heap_bytes(&self) -> usize {
            self.0
        }
    }

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
    fn caches_are_counted_anew_once_somebody_had_one() {
        let mut caches = Caches::default();
        for held in [1_000, 5_000, 2_000] {
            caches.of::<Shelf>().0 = held;
            assert_eq!(caches.heap_bytes(), size_of::<Shelf>() + held);
        }
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
