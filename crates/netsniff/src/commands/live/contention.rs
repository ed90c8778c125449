//! Rings that wait busily on a processor where the kernel receives packets.

use netsniff_capture::host::HostReader;

/// Packets that a processor must have received since the last look to be one that receives.
const FEW: u64 = 1000;

/// Watches whether rings that never sleep take a processor from the kernel, which then drops packets before any
/// ring.
#[derive(Debug)]
pub struct Contention {
    host: HostReader,
    /// Processors of the rings; empty where they may run on any.
    cpus: Vec<usize>,
    rings: usize,
    before: Vec<u64>,
}

impl Contention {
    /// Begins to watch so many rings that wait busily; `None` where the system does not tell.
    #[must_use]
    pub fn begin(cpus: &[usize], rings: usize) -> Option<Self> {
        let mut host = HostReader::open().ok()?;
        let before = host.received().ok()?;
        Some(Self { host, cpus: cpus.iter().take(rings).copied().collect(), rings, before })
    }

    /// What there is to say since the last look.
    pub fn look(&mut self) -> Option<String> {
        let now = self.host.received().ok()?;
        let before = core::mem::replace(&mut self.before, now);
        let received: Vec<u64> = (0..self.before.len())
            .map(|cpu| {
                self.before[cpu].saturating_sub(before.get(cpu).copied().unwrap_or_default())
            })
            .collect();
        contended(&received, &self.cpus, self.rings)
    }
}

/// What there is to say where each processor received so many packets.
fn contended(received: &[u64], cpus: &[usize], rings: usize) -> Option<String> {
    let all: u64 = received.iter().sum();
    // Where rings may run anywhere, the scheduler keeps them away while there is another processor.
    let is_ours =
        |cpu: usize| if cpus.is_empty() { rings >= received.len() } else { cpus.contains(&cpu) };
    let (cpu, most) =
        received.iter().enumerate().filter(|(cpu, _)| is_ours(*cpu)).max_by_key(|of| of.1)?;
    // A tenth comes by chance, as from other interfaces.
    (*most >= FEW && most.saturating_mul(10) >= all).then(|| {
        let share = most.saturating_mul(100) / all;
        format!(
            "a ring waits busily on processor {cpu}, where the kernel receives {share} % of all packets and \
             needs the time: choose others with --cpus, or --wait adaptive"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_that_share_a_processor_with_the_kernel_are_told() {
        let said = |received: &[u64], cpus: &[usize], rings| {
            contended(received, cpus, rings).unwrap_or_default()
        };
        assert!(said(&[0, 5000], &[1], 1).contains("processor 1, where the kernel receives 100 %"));
        assert!(
            said(&[45_000, 5000], &[1], 1).contains("processor 1, where the kernel receives 10 %")
        );
        assert_eq!(said(&[46_000, 5000], &[1], 1), "");
        assert_eq!(said(&[0, 5000], &[0], 1), "");
        assert_eq!(said(&[0, 999], &[1], 1), "", "too few to tell");
        assert_eq!(said(&[5000, 0], &[], 1), "", "there is another processor");
        assert!(said(&[5000, 0], &[], 2).contains("processor 0"));
        assert_eq!(said(&[], &[], 2), "");
    }

    #[test]
    fn the_host_is_read() {
        let mut contention = Contention::begin(&[], 1).unwrap();
        contention.before.iter_mut().for_each(|packets| *packets = 0);
        contention.look();
        assert!(!contention.before.is_empty());
    }
}
