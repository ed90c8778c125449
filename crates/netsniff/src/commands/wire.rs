//! The arguments of commands that send on an interface.

use netsniff_pipeline::sending::wire::WireOptions;

/// How to send on an interface.
#[derive(Clone, Debug, clap::Args)]
pub struct WireArgs {
    /// How frames get to the kernel: af-xdp, tx-ring or sendmmsg; the first of them that works, which is the
    /// order of their speed
    #[arg(long, value_name = "WAY", requires = "interface")]
    way: Option<String>,
    /// The queue of the interface that af-xdp sends on
    #[arg(long, value_name = "N", default_value_t = 0, requires = "interface")]
    queue: u32,
    /// The processor to send on
    #[arg(long, value_name = "N", requires = "interface")]
    cpu: Option<usize>,
}

impl WireArgs {
    /// The same without the command line.
    pub(super) fn options(&self) -> WireOptions<'_> {
        let Self { way, queue, cpu } = self;
        WireOptions { way: way.as_deref(), queue: *queue, cpu: *cpu }
    }
}
