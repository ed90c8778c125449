//! Which processors capture, and how the kernel and taskset(1) are told of them.

use std::thread;

use super::{CAPTURE_CPU, SENDER_CPU};

/// The word for all processors that there are.
const ALL: &str = "all";

/// Bits of each group of a mask, which the kernel takes no more of at a time.
const GROUP: usize = 32;

/// Processors that this process may run on.
pub(super) fn there() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// How many processors are to capture, of so many that are there.
///
/// # Errors
///
/// A sentence, where there are not as many.
pub(super) fn parse(text: &str, there: usize) -> Result<u32, String> {
    let number = if text == ALL { Some(there) } else { text.parse().ok() };
    let number = number.filter(|number| (1..=there).contains(number));
    let number = number.and_then(|number| u32::try_from(number).ok());
    number
        .ok_or_else(|| format!("{text:?} is no number of processors from 1 to {there}, nor {ALL}"))
}

/// Processors that a capture runs on, and that the kernel receives on for it where the placement says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processors(Vec<usize>);

impl Processors {
    /// So many of those that are there: from [`CAPTURE_CPU`] on, and the sender's as the last one, which it shares then.
    pub(super) fn of(number: u32, there: usize) -> Self {
        let all = (CAPTURE_CPU..there).chain(0..CAPTURE_CPU);
        Self(all.take(number as usize).collect())
    }

    /// The processors on which the sender runs.
    pub(super) fn sender() -> Self {
        Self(vec![SENDER_CPU])
    }

    pub(crate) fn numbers(&self) -> &[usize] {
        &self.0
    }

    /// The words that run others on them.
    pub(super) fn taskset(&self) -> [String; 3] {
        let list: Vec<_> = self.0.iter().map(usize::to_string).collect();
        ["taskset".to_owned(), "-c".to_owned(), list.join(",")]
    }

    /// A bit for each, as files of sysfs take it: groups of 32 bits in hexadecimal digits, the highest first.
    pub(super) fn mask(&self) -> String {
        let groups = self.0.iter().max().map_or(1, |most| most / GROUP + 1);
        let group = |at: usize| {
            let bits = self.0.iter().filter(|number| **number / GROUP == at);
            bits.fold(0_u32, |mask, number| mask | 1 << (number % GROUP))
        };
        let digits = (0..groups).rev().enumerate().map(|(place, at)| match place {
            0 => format!("{:x}", group(at)),
            _ => format!("{:08x}", group(at)),
        });
        digits.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_senders_processor_is_the_last_one() {
        let of = |number, there| Processors::of(number, there).0;
        assert_eq!((of(1, 2), of(2, 2)), (vec![1], vec![1, 0]));
        assert_eq!((of(3, 8), of(8, 8).last()), (vec![1, 2, 3], Some(&SENDER_CPU)));
    }

    #[test]
    fn as_many_as_there_are() {
        assert_eq!((parse("1", 4), parse("4", 4), parse(ALL, 4)), (Ok(1), Ok(4), Ok(4)));
        for wrong in ["0", "5", "", "-1", "every", "1.5"] {
            assert!(parse(wrong, 4).unwrap_err().contains("from 1 to 4"), "{wrong}");
        }
    }

    #[test]
    fn the_kernel_is_told_in_groups_of_bits() {
        let mask = |numbers: &[usize]| Processors(numbers.to_vec()).mask();
        assert_eq!(
            (mask(&[1]), mask(&[1, 0]), mask(&[31])),
            ("2".into(), "3".into(), "80000000".into())
        );
        assert_eq!(
            (mask(&[32]), mask(&[64, 33, 1])),
            ("1,00000000".into(), "1,00000002,00000002".into())
        );
        assert_eq!(Processors(vec![1, 0]).taskset(), ["taskset", "-c", "1,0"]);
    }
}
