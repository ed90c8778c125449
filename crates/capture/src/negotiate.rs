//! How much memory the kernel grants: ask, and halve while it says that there is not enough.
//!
//! The rule is that of CAIA-TR-051027A, with the outcome told instead of hidden.

use std::io;

use crate::host::{available_memory, mappable_memory};

/// What was asked for and what was had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiation {
    /// Bytes that were wanted.
    pub wanted: usize,
    /// Bytes that were granted.
    pub granted: usize,
    /// Sizes that were refused, with the reason.
    pub refused: Vec<(usize, String)>,
}

impl Negotiation {
    /// Milliseconds of traffic that the granted memory holds at a link's speed.
    #[must_use]
    pub fn millis_at(&self, megabits_per_second: u32) -> Option<u64> {
        let bits = (self.granted as u64).checked_mul(8)?;
        bits.checked_div(u64::from(megabits_per_second) * 1000)
    }
}

/// Memory that is free, in bytes; `None` where nobody tells, and where there is no limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreeMemory {
    /// Of the machine. Rather than refuse more, the kernel would kill processes for it.
    machine: Option<usize>,
    /// That the process may map. The kernel would find memory for more in seconds, in vain.
    mappable: Option<usize>,
}

impl FreeMemory {
    /// What is free now.
    pub(crate) fn now() -> Self {
        Self { machine: available_memory(), mappable: mappable_memory() }
    }

    /// Why the kernel is not to be asked for so many bytes, if so.
    fn refusal(self, bytes: usize) -> Option<&'static str> {
        let exceeds = |free: Option<usize>| free.is_some_and(|free| bytes > free / 2);
        if exceeds(self.machine) {
            return Some("it is more than half of the memory that is free");
        }
        exceeds(self.mappable)
            .then_some("it is more than half of what the process may map yet (ulimit -v)")
    }
}

/// Asks for `wanted` bytes by `ask`, and for half as much while the kernel lacks memory (`ENOMEM`,
/// `ENOBUFS`), down to `least`. `ask` returns what it got, with its size. For more than half of what is `free` the
/// kernel is not asked.
///
/// # Errors
///
/// Any other error at once, and lack of memory for the least size.
pub(crate) fn negotiate<T>(
    wanted: usize,
    least: usize,
    free: FreeMemory,
    mut ask: impl FnMut(usize) -> io::Result<(T, usize)>,
) -> io::Result<(T, Negotiation)> {
    let mut refused = Vec::new();
    let mut size = wanted.max(least);
    loop {
        if size > least
            && let Some(why) = free.refusal(size)
        {
            refused.push((size, why.to_owned()));
            size = (size / 2).max(least);
            continue;
        }
        match ask(size) {
            Ok((got, granted)) => return Ok((got, Negotiation { wanted, granted, refused })),
            Err(error) if lacks_memory(&error) && size > least => {
                refused.push((size, error.to_string()));
                size = (size / 2).max(least);
            }
            Err(error) => return Err(error),
        }
    }
}

fn lacks_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOMEM | libc::ENOBUFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuse(code: i32) -> io::Error {
        io::Error::from_raw_os_error(code)
    }

    #[test]
    fn the_size_is_halved_while_memory_is_short() {
        let (got, negotiation) = negotiate(64 << 20, 1 << 20, FreeMemory::default(), |size| {
            if size > 20 << 20 { Err(refuse(libc::ENOMEM)) } else { Ok(("ring", size)) }
        })
        .unwrap();
        assert_eq!((got, negotiation.granted), ("ring", 16 << 20));
        let sizes: Vec<_> = negotiation.refused.iter().map(|(size, _)| *size >> 20).collect();
        assert_eq!(sizes, [64, 32]);
        assert!(negotiation.refused[0].1.contains("memory"), "{:?}", negotiation.refused);
        assert_eq!(negotiation.millis_at(1000), Some(134));
        assert_eq!(negotiation.millis_at(0), None);
    }

    #[test]
    fn the_kernel_is_not_asked_for_what_it_would_kill_for() {
        let of = |machine, mappable| {
            let mut asked = Vec::new();
            let free = FreeMemory { machine, mappable };
            let (_, negotiation) = negotiate(1 << 40, 1 << 20, free, |size| {
                asked.push(size);
                Ok(((), size))
            })
            .unwrap();
            let reasons = negotiation.refused.into_iter().map(|(_, why)| why);
            (asked, reasons.collect::<Vec<_>>())
        };
        let (asked, reasons) = of(Some(6 << 30), None);
        assert_eq!((asked, reasons.len()), (vec![2 << 30], 9));
        assert!(reasons.iter().all(|why| why.contains("half of the memory that is free")));
        let (asked, reasons) = of(Some(6 << 30), Some(2 << 30));
        assert_eq!((asked, reasons.len()), (vec![1 << 30], 10));
        assert!(reasons[9].contains("ulimit -v"), "{reasons:?}");
        assert_eq!(of(Some(0), Some(0)).0, [1 << 20], "the least is asked for");
    }

    #[test]
    fn other_errors_and_the_least_size_end_it() {
        let mut asked = 0;
        let denied = negotiate(1 << 20, 4096, FreeMemory::default(), |_| {
            asked += 1;
            Err::<((), usize), _>(refuse(libc::EPERM))
        });
        assert_eq!((denied.unwrap_err().raw_os_error(), asked), (Some(libc::EPERM), 1));
        let mut sizes = Vec::new();
        let none = negotiate(20_000, 4096, FreeMemory::default(), |size| {
            sizes.push(size);
            Err::<((), usize), _>(refuse(libc::ENOBUFS))
        });
        assert_eq!(none.unwrap_err().raw_os_error(), Some(libc::ENOBUFS));
        assert_eq!(sizes, [20_000, 10_000, 5000, 4096]);
    }

    /// The kernel of CAIA-TR-051027A: FreeBSD's `BIOCGBLEN` and `BIOCSBLEN` under two sysctls.
    struct Bsd {
        bufsize: usize,
        maxbufsize: usize,
    }

    impl Bsd {
        /// Asks for what the sysctl says, at least 32 kB; the kernel clips it silently.
        fn effective(&self) -> Negotiation {
            let wanted = self.bufsize.max(32_768);
            let ask = |size: usize| Ok(((), size.min(self.maxbufsize)));
            negotiate(wanted, 512, FreeMemory::default(), ask).unwrap().1
        }
    }

    #[test]
    fn the_three_examples_of_the_report_hold() {
        for (bufsize, maxbufsize, effective) in
            [(4096, 524_288, 32_768), (4096, 16_384, 16_384), (524_288, 1 << 20, 524_288)]
        {
            assert_eq!(Bsd { bufsize, maxbufsize }.effective().granted, effective);
        }
    }
}
