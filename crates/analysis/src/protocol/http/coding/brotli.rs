//! br, RFC 7932.

use core::fmt;

use brotli_decompressor::{
    Allocator, BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapper, SliceWrapperMut,
};

use super::{Outcome, Step};

/// Undoes br.
///
/// Its window grows with what comes out, up to the size that the first byte tells. Its tables take some
/// three megabytes at most: 256 trees of 1,080 codes of three kinds (RFC 7932, section 10).
pub(super) struct Brotli {
    state: BrotliState<Counted, Counted, Counted>,
    /// Bytes of a block that is not decoded yet.
    block: Vec<u8>,
    /// How many of them were read.
    read: usize,
}

/// Bytes that are decoded together. How much comes out before the data breaks depends on how it is cut,
/// so it is cut here, always in the same way.
const BLOCK: usize = 256;

/// Memory that is counted.
#[derive(Debug, Default)]
struct Counted {
    bytes: usize,
}

/// Some of that memory.
#[derive(Debug, Default)]
struct Memory<T>(Vec<T>);

/// The size of the window that the first byte of a stream tells (RFC 7932, section 9.1); `None` for a
/// large one, which is no part of br as HTTP has it.
pub(super) const fn window(first: u8) -> Option<u64> {
    let bits = match (first & 1, first >> 1 & 7, first >> 4 & 7) {
        (0, ..) => 16,
        (_, 0, 0) => 17,
        (_, 0, 1) => return None,
        (_, 0, more) => 8 + more,
        (_, more, _) => 17 + more,
    };
    Some(1 << bits)
}

impl Default for Brotli {
    fn default() -> Self {
        let counted = Counted::default;
        let state = BrotliState::new_strict(counted(), counted(), counted());
        Self { state, block: Vec::new(), read: 0 }
    }
}

impl Brotli {
    /// Decodes some of `data` to `out`: whole blocks, and the last one as it is.
    pub(super) fn step(&mut self, data: &[u8], is_last: bool, out: &mut [u8]) -> Step {
        let took = data.len().min(BLOCK.saturating_sub(self.block.len()));
        self.block.extend_from_slice(&data[..took]);
        if self.block.len() < BLOCK && !(is_last && took == data.len()) {
            return Step { took, gave: 0, outcome: Outcome::Open };
        }
        let mut available_in = self.block.len().saturating_sub(self.read);
        let (mut available_out, mut gave, mut total) = (out.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut available_in,
            &mut self.read,
            &self.block,
            &mut available_out,
            &mut gave,
            out,
            &mut total,
            &mut self.state,
        );
        let outcome = match result {
            BrotliResult::NeedsMoreOutput => Outcome::Open,
            BrotliResult::NeedsMoreInput => {
                self.block.clear();
                self.read = 0;
                Outcome::Open
            }
            BrotliResult::ResultSuccess => Outcome::Ended,
            BrotliResult::ResultFailure => Outcome::Broken,
        };
        Step { took, gave, outcome }
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let state = &self.state;
        let tables = state.alloc_u32.bytes + state.alloc_hc.bytes;
        state.alloc_u8.bytes + tables + self.block.capacity()
    }
}

impl fmt::Debug for Brotli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Brotli").field("heap_bytes", &self.heap_bytes()).finish_non_exhaustive()
    }
}

impl<T: Clone + Default> Allocator<T> for Counted {
    type AllocatedMemory = Memory<T>;

    fn alloc_cell(&mut self, len: usize) -> Memory<T> {
        self.bytes += len * size_of::<T>();
        Memory(vec![T::default(); len])
    }

    fn free_cell(&mut self, memory: Memory<T>) {
        self.bytes = self.bytes.saturating_sub(memory.0.len() * size_of::<T>());
    }
}

impl<T> SliceWrapper<T> for Memory<T> {
    fn slice(&self) -> &[T] {
        &self.0
    }
}

impl<T> SliceWrapperMut<T> for Memory<T> {
    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
