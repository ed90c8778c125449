//! Reading big-endian fields and vectors with a length in front, RFC 8446 section 3.

/// What is left of a message. Nothing is read past its end.
#[derive(Clone, Copy, Debug)]
pub(in crate::protocol) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(in crate::protocol) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(in crate::protocol) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether nothing is left.
    pub(in crate::protocol) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next `len` octets; `None` where there are fewer, and nothing is read.
    pub(in crate::protocol) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(len)?;
        self.bytes = tail;
        Some(head)
    }

    /// The next `N` octets.
    pub(in crate::protocol) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    pub(in crate::protocol) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[octet]| octet)
    }

    /// A number of two octets.
    pub(in crate::protocol) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A number of three octets.
    pub(in crate::protocol) fn u24(&mut self) -> Option<u32> {
        self.array().map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    /// A number of four octets.
    pub(in crate::protocol) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A vector whose length has one octet.
    pub(in crate::protocol) fn vector8(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(usize::from(len))
    }

    /// A vector whose length has two octets.
    pub(in crate::protocol) fn vector16(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }

    /// A vector whose length has three octets.
    pub(in crate::protocol) fn vector24(&mut self) -> Option<&'a [u8]> {
        let len = self.u24()?;
        self.take(usize::try_from(len).ok()?)
    }
}

/// The numbers of two octets in a list; an odd octet at its end is left out.
pub(in crate::protocol) fn numbers(list: &[u8]) -> impl Iterator<Item = u16> + Clone + '_ {
    list.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_in_order_and_never_past_the_end() {
        let mut reader = Reader::new(&[1, 0, 2, 0, 0, 3, 0, 0, 0, 4, 1, 9, 0, 1, 8, 0, 0, 1, 7]);
        assert_eq!((reader.u8(), reader.u16(), reader.u24()), (Some(1), Some(2), Some(3)));
        assert_eq!(reader.u32(), Some(4));
        assert_eq!((reader.vector8(), reader.vector16()), (Some(&[9][..]), Some(&[8][..])));
        assert_eq!((reader.vector24(), reader.is_empty()), (Some(&[7][..]), true));
        assert_eq!((reader.u8(), reader.take(1), reader.take(0)), (None, None, Some(&[][..])));
    }

    #[test]
    fn a_vector_that_is_cut_is_none() {
        assert_eq!(Reader::new(&[2, 1]).vector8(), None);
        assert_eq!(Reader::new(&[0, 2, 1]).vector16(), None);
        assert_eq!(Reader::new(&[0, 0, 2, 1]).vector24(), None);
    }

    #[test]
    fn lists_of_numbers_leave_an_odd_octet_out() {
        assert_eq!(numbers(&[0, 1, 2, 3, 4]).collect::<Vec<_>>(), [1, 0x0203]);
    }
}
