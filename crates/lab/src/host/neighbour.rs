//! Busy neighbours of a capture: processes that want its processors, as on a host that does other work, too.

use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

/// More of them on a processor tell nothing new.
const MOST: u32 = 64;

/// Before an ordinary capture, so that few of them leave it little.
const NICE: &str = "-10";

/// How many run on each processor that captures.
///
/// # Errors
///
/// A sentence, where it is no such number.
pub(crate) fn parse(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number <= MOST);
    number.ok_or_else(|| format!("{text:?} is no number of neighbours up to {MOST}"))
}

/// They end with this value.
#[derive(Debug)]
pub(crate) struct Neighbours(Vec<Child>);

impl Neighbours {
    /// Starts so many on each of these processors; `mark` makes commands those of a bed.
    ///
    /// # Errors
    ///
    /// Without taskset(1) or nice(1).
    pub(crate) fn start(
        number: u32,
        processors: &[usize],
        mark: impl Fn(&mut Command),
    ) -> anyhow::Result<Self> {
        let mut all = Self(Vec::new());
        for processor in processors {
            for _ in 0..number {
                let mut command = Command::new("taskset");
                command.args(["-c", &processor.to_string(), "nice", "-n", NICE]);
                command.args(["sh", "-c", "while :; do :; done"]);
                command.stdin(Stdio::null()).stdout(Stdio::null());
                mark(&mut command);
                all.0.push(command.spawn().context("cannot start a neighbour with taskset")?);
            }
        }
        Ok(all)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_counted() {
        assert_eq!((parse("0"), parse("64")), (Ok(0), Ok(64)));
        for wrong in ["", "-1", "65", "two", "1.5"] {
            assert!(parse(wrong).unwrap_err().contains("up to 64"), "{wrong}");
        }
    }

    #[test]
    fn they_end_with_their_value() {
        let neighbours = Neighbours::start(2, &[0], |_| {}).unwrap();
        let pids: Vec<_> = neighbours.0.iter().map(Child::id).collect();
        drop(neighbours);
        assert_eq!(pids.len(), 2);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid}");
        }
    }
}
