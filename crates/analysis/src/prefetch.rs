//! Memory that is asked for before it is needed. The processor goes on meanwhile, where a read would have to be
//! waited for.

/// Asks for the cache line in which something begins.
#[inline(always)]
pub(crate) fn prefetch<T>(it: &T) {
    prefetch_index::prefetch_index(core::slice::from_ref(it), 0);
}
