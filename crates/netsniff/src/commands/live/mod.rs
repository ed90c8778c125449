//! What commands that capture have in common: their arguments, opening, and the ruling thread.

mod args;
mod confine;
mod contention;
mod monitor;
mod open;
mod reload;
mod ring_size;
mod session;
mod single;
mod supervisor;
mod wanted;
mod work;

pub use args::CaptureArgs;
pub use confine::{Reopener, confine, give_up};
pub use monitor::{Monitor, MonitorParts};
pub use open::{Opening, Ring, Rings, print_rings};
pub use reload::{Reloading, Reread, said as reload_said};
pub use session::Session;
pub use single::one_ring;
pub use supervisor::{ReportedLine, RunHooks, Signals, Supervisor, warn};
pub use wanted::{Split, Wanted};
pub use work::work;
