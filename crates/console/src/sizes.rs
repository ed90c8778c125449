//! Sizes of frames, as they are given in an argument.

use std::str::FromStr;

/// Sizes at most: each has a frame of its own in memory.
const MOST: usize = 4096;

/// Sizes that frames have in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(Vec<usize>);

impl Sizes {
    /// The sizes in their order.
    #[must_use]
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// The largest of the sizes.
    #[must_use]
    pub fn largest(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.parse::<usize>()
                .map_err(|_| "expected a size, a range as 76:1204:8, or several as 64,512,1518")
        };
        let mut sizes = Vec::new();
        for part in text.split(',') {
            let bounds = part.split(':').map(number).collect::<Result<Vec<_>, _>>()?;
            let (from, to, step) = match bounds[..] {
                [size] => (size, size, 1),
                [from, to] => (from, to, 1),
                [from, to, step] => (from, to, step),
                _ => {
                    return Err(format!("{part:?} is no range: it has a begin, an end and a step"));
                }
            };
            if from > to || step == 0 {
                return Err(format!("there is no size in {part:?}"));
            }
            sizes.extend((from..=to).step_by(step).take(MOST + 1));
            if sizes.len() > MOST {
                return Err(format!("more than {MOST} sizes"));
            }
        }
        Ok(Self(sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_sizes_in_turn() {
        let sizes = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.0);
        assert_eq!(sizes("64"), Ok(vec![64]));
        assert_eq!(sizes("64,1518,512"), Ok(vec![64, 1518, 512]));
        assert_eq!(sizes("64:67,100"), Ok(vec![64, 65, 66, 67, 100]));
        let swept = sizes("76:1204:8").unwrap();
        assert_eq!((swept.len(), swept[0], swept[141]), (142, 76, 1204));
        assert_eq!("64:100".parse::<Sizes>().unwrap().largest(), 100);
        for wrong in ["", "a", "64,", "100:64", "64:100:0", "1:2:3:4", "0:99999999999", "-1"] {
            assert!(sizes(wrong).is_err(), "{wrong}");
        }
    }
}
