//! Where a self-test sends frames: a veth pair between two namespaces, or the loopback interface.

use netsniff_capture::in_namespace;
use netsniff_lab::testbed::{Layout, Placement, Testbed};

/// A wire with two ends.
pub(super) enum Wire {
    /// Between namespaces, which go with this value.
    Pair(Box<Testbed>),
    /// Frames that are sent come in again.
    Loopback,
}

impl Wire {
    /// Makes a pair, or takes the loopback interface, and tells why there is no pair.
    pub(super) fn make(is_loopback: bool) -> (Self, Option<String>) {
        if is_loopback {
            return (Self::Loopback, None);
        }
        match pair() {
            Ok(bed) => (Self::Pair(Box::new(bed)), None),
            Err(why) => (Self::Loopback, Some(format!("{why:#}"))),
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Self::Pair(_) => "through a veth pair between two network namespaces".to_owned(),
            Self::Loopback => "on the loopback interface".to_owned(),
        }
    }

    /// The interface that sends.
    pub(super) const fn sender(&self) -> &'static str {
        match self {
            Self::Pair(_) => "tx0",
            Self::Loopback => "lo",
        }
    }

    /// The interface that receives.
    pub(super) const fn receiver(&self) -> &'static str {
        match self {
            Self::Pair(_) => "rx0",
            Self::Loopback => "lo",
        }
    }

    /// Does something where frames are sent.
    pub(super) fn at_sender<T: Send>(
        &self,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        match self {
            Self::Pair(bed) => in_namespace(&bed.sender(), work)?,
            Self::Loopback => work(),
        }
    }

    /// Does something where frames arrive.
    pub(super) fn at_receiver<T: Send>(
        &self,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        match self {
            Self::Pair(bed) => in_namespace(&bed.receiver(), work)?,
            Self::Loopback => work(),
        }
    }
}

fn pair() -> anyhow::Result<Testbed> {
    let program = std::env::current_exe()?;
    let warden = [&program.display().to_string(), "lab", "warden"].map(str::to_owned);
    // Where it is received does not matter here, and nothing of the machine is changed.
    let layout = Layout { placement: Placement::None, queues: 2, ..Layout::default() };
    Testbed::make(&warden, &layout)
}
