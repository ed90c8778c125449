//! Positions in a ring that two sides share: arithmetic only, without the memory.
//!
//! Positions are numbers of 32 bits that wrap around; the size is a power of two. The producer writes its
//! position behind the entries that are ready, the consumer writes its own behind those that it has taken.

/// The side that fills a ring.
#[derive(Clone, Debug)]
pub(crate) struct Producer {
    size: u32,
    /// Where the next entry goes.
    position: u32,
    /// Up to where the other side is known to have taken entries.
    consumed: u32,
}

impl Producer {
    /// An empty ring of `size` entries, a power of two.
    pub(crate) const fn new(size: u32) -> Self {
        debug_assert!(size.is_power_of_two());
        Self { size, position: 0, consumed: 0 }
    }

    /// Notes the position that the consumer has published. One that cannot be is ignored, since the other
    /// side is not ours.
    pub(crate) const fn update(&mut self, consumed: u32) {
        if self.position.wrapping_sub(consumed) <= self.size {
            self.consumed = consumed;
        }
    }

    /// Entries that are not taken yet, as far as known.
    pub(crate) const fn used(&self) -> u32 {
        self.position.wrapping_sub(self.consumed)
    }

    /// Entries that fit in, as far as known.
    pub(crate) const fn room(&self) -> u32 {
        self.size - self.used()
    }

    /// The slot of the next entry; `None` where the ring is full.
    pub(crate) const fn reserve(&mut self) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        let slot = self.position & (self.size - 1);
        self.position = self.position.wrapping_add(1);
        Some(slot)
    }

    /// What to publish once the entries are written.
    pub(crate) const fn position(&self) -> u32 {
        self.position
    }
}

/// The side that empties a ring.
#[derive(Clone, Debug)]
pub(crate) struct Consumer {
    size: u32,
    /// The next entry to take.
    position: u32,
    /// Up to where the other side is known to have filled the ring.
    produced: u32,
}

impl Consumer {
    /// An empty ring of `size` entries, a power of two.
    pub(crate) const fn new(size: u32) -> Self {
        debug_assert!(size.is_power_of_two());
        Self { size, position: 0, produced: 0 }
    }

    /// Notes the position that the producer has published; one that cannot be is ignored.
    pub(crate) const fn update(&mut self, produced: u32) {
        if produced.wrapping_sub(self.position) <= self.size {
            self.produced = produced;
        }
    }

    /// Whether all entries that are known of are taken.
    pub(crate) const fn is_empty(&self) -> bool {
        self.produced == self.position
    }

    /// Entries that are known of and not taken.
    pub(crate) const fn available(&self) -> u32 {
        self.produced.wrapping_sub(self.position)
    }

    /// The slot of the next entry, which is not taken yet; `None` where none is known.
    pub(crate) const fn peek(&self) -> Option<u32> {
        if self.is_empty() { None } else { Some(self.position & (self.size - 1)) }
    }

    /// Takes the next entry and returns its slot; `None` where none is known.
    pub(crate) const fn take(&mut self) -> Option<u32> {
        let slot = self.peek();
        if slot.is_some() {
            self.position = self.position.wrapping_add(1);
        }
        slot
    }

    /// What to publish once the entries are read.
    pub(crate) const fn position(&self) -> u32 {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_full_ring_takes_no_more_and_an_empty_one_gives_nothing() {
        let (mut producer, mut consumer) = (Producer::new(4), Consumer::new(4));
        assert_eq!(consumer.take(), None);
        let slots: Vec<_> = std::iter::from_fn(|| producer.reserve()).collect();
        assert_eq!(slots, [0, 1, 2, 3]);
        assert_eq!((producer.room(), producer.used()), (0, 4));
        consumer.update(producer.position());
        assert_eq!((consumer.available(), consumer.peek()), (4, Some(0)));
        assert_eq!([consumer.take(), consumer.take()], [Some(0), Some(1)]);
        assert_eq!((consumer.available(), consumer.peek()), (2, Some(2)));
        producer.update(consumer.position());
        assert_eq!(
            [producer.reserve(), producer.reserve(), producer.reserve()],
            [Some(0), Some(1), None]
        );
    }

    #[test]
    fn positions_wrap_around() {
        let start = u32::MAX - 1;
        let mut producer = Producer { size: 8, position: start, consumed: start };
        let mut consumer = Consumer { size: 8, position: start, produced: start };
        for number in 0..100_u32 {
            let slot = producer.reserve().unwrap();
            assert_eq!(slot, start.wrapping_add(number) & 7);
            consumer.update(producer.position());
            assert_eq!(consumer.take(), Some(slot));
            producer.update(consumer.position());
            assert_eq!(producer.room(), 8);
        }
    }

    #[test]
    fn positions_that_cannot_be_are_ignored() {
        let mut producer = Producer::new(4);
        producer.reserve();
        producer.update(2);
        producer.update(u32::MAX - 8);
        assert_eq!(producer.room(), 3, "nobody takes what is not there");
        let mut consumer = Consumer::new(4);
        consumer.update(5);
        assert_eq!(consumer.available(), 0, "nobody has filled more than fits");
    }

    /// Memory that two threads share, as the kernel and we share a ring.
    struct Memory {
        produced: AtomicU32,
        consumed: AtomicU32,
        entries: [AtomicU32; SIZE as usize],
    }

    const SIZE: u32 = 2;
    const COUNT: u32 = 3;

    /// How often one thread may be interrupted by the other in one run: more find nothing new here, and
    /// take ever longer.
    const INTERRUPTIONS: usize = 2;

    /// Before the first number goes through, so that positions wrap around while they do.
    const START: u32 = u32::MAX - 1;

    /// Puts numbers from 1 on into the ring.
    fn fill(memory: &Memory) {
        let mut producer = Producer { size: SIZE, position: START, consumed: START };
        for number in 1..=COUNT {
            let slot = loop {
                producer.update(memory.consumed.load(Ordering::Acquire));
                if let Some(slot) = producer.reserve() {
                    break slot;
                }
                loom::thread::yield_now();
            };
            memory.entries[slot as usize].store(number, Ordering::Relaxed);
            memory.produced.store(producer.position(), Ordering::Release);
        }
    }

    /// Each number goes through once and in order, in every order in which two threads can run and with
    /// every value that the memory model lets them see.
    #[test]
    fn entries_pass_between_threads() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(INTERRUPTIONS);
        model.check(|| {
            let memory = Arc::new(Memory {
                produced: AtomicU32::new(START),
                consumed: AtomicU32::new(START),
                entries: std::array::from_fn(|_| AtomicU32::new(0)),
            });
            let theirs = Arc::clone(&memory);
            let filler = loom::thread::spawn(move || fill(&theirs));
            let mut consumer = Consumer { size: SIZE, position: START, produced: START };
            let mut next = 1;
            while next <= COUNT {
                consumer.update(memory.produced.load(Ordering::Acquire));
                while let Some(slot) = consumer.peek() {
                    assert_eq!(memory.entries[slot as usize].load(Ordering::Relaxed), next);
                    assert_eq!(consumer.take(), Some(slot));
                    next += 1;
                }
                memory.consumed.store(consumer.position(), Ordering::Release);
                loom::thread::yield_now();
            }
            filler.join().unwrap();
        });
    }
}
