//! Telling the processor which memory will be read.

/// Begins to fetch the cache line in which byte `at` lies, if there is one.
///
/// Packets in a ring were written by the kernel, often on another processor: waiting for each of them takes
/// longer than all that is done with its bytes.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(byte) = bytes.get(at) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction reads nothing that a program could see, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(byte).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, at);
}
