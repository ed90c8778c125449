//! Random headers for round-trip tests, the same in every run.

/// The generator `xorshift64*` of Vigna, 2016.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        (self.next() >> 56) as u8
    }

    pub(crate) fn word(&mut self) -> u16 {
        (self.next() >> 48) as u16
    }

    pub(crate) fn long(&mut self) -> u32 {
        (self.next() >> 32) as u32
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.long() as usize % bound
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.flag() { Some(value(self)) } else { None }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        core::array::from_fn(|_| self.byte())
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

/// Runs a test on a thousand states of the generator.
pub(crate) fn cases(mut test: impl FnMut(&mut Random)) {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..1000 {
        test(&mut random);
    }
}

/// A header comes back as it was written; neither a buffer nor data a byte too short will do.
macro_rules! assert_round_trip {
    ($header:ident, $parse:path) => {{
        let mut buffer = [0xa5; 512];
        let len = $header.emit(&mut buffer).expect("the buffer is long enough");
        assert_eq!($parse(&buffer[..len]), Some($header));
        assert_eq!($parse(&buffer[..len - 1]), None, "cut: {:?}", $header);
        assert_eq!($header.emit(&mut [0; 512][..len - 1]), None, "short: {:?}", $header);
        assert!(buffer[len..].iter().all(|byte| *byte == 0xa5), "wrote beyond {len}");
    }};
}
pub(crate) use assert_round_trip;
