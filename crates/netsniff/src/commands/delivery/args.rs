//! The arguments that say where rows are delivered to, and what they come to.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use netsniff_console::UsageError;
use netsniff_console::number::rows;
use netsniff_console::quantity::{interval, size};
use netsniff_delivery::address::bare;
use netsniff_delivery::spool::LEAST_BYTES;
use netsniff_delivery::{Books, Deliveries, Delivery, Identity, OnFull, Settings, Target};

/// Where rows are delivered to.
#[derive(Debug, clap::Args)]
pub struct DeliveryArgs {
    /// Deliver the rows of all logs to this receiver, as JSON with `sensor`, `run`, `log` and `seq`: http, https, kafka,
    /// kafka+tls, tcp, tls, unix, syslog, syslog+tcp or syslog+tls; or rows of `conn` as IPFIX: ipfix, ipfix+udp or
    /// ipfix+tls. docs/pipelines.md has the forms and parameters; may be repeated
    #[arg(long, value_name = "URL", requires = "spool")]
    deliver: Vec<String>,
    /// Keep rows in this directory until they are delivered; what earlier runs left there for the same URL is delivered first
    #[arg(long, value_name = "DIR", requires = "deliver")]
    spool: Option<PathBuf>,
    #[command(flatten)]
    bounds: DeliveryBounds,
    /// Name this sensor so in all rows that are delivered; the name of the machine unless told
    #[arg(long, value_name = "NAME", requires = "deliver")]
    sensor: Option<String>,
    /// Name this run so; a name of its own unless told. The same files under the same name are the same rows again
    #[arg(long, value_name = "NAME", requires = "deliver")]
    run_id: Option<String>,
}

/// How much may wait, and how long.
#[derive(Debug, clap::Args)]
pub struct DeliveryBounds {
    /// The most bytes that rows for one receiver may take in the spool, as 500M or 2G. Beyond, an analysis of files waits,
    /// and live rows are refused and counted
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = spool_size)]
    spool_size: u64,
    /// At the end, wait so long for a receiver that takes nothing; the rows stay in the spool
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = interval)]
    deliver_wait: Duration,
}

fn spool_size(text: &str) -> Result<u64, String> {
    match size(text)? as u64 {
        size if size < LEAST_BYTES => Err(format!("{LEAST_BYTES} bytes are the least")),
        size => Ok(size),
    }
}

impl DeliveryArgs {
    /// Whether rows are to be delivered.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        !self.deliver.is_empty()
    }

    /// Finds all receivers; `None` where there are none.
    ///
    /// # Errors
    ///
    /// [`UsageError`] where something of it makes no sense.
    pub fn plan(&self) -> Result<Option<DeliveryPlan>, UsageError> {
        let Some(spool) = self.spool.as_ref().filter(|_| self.is_wanted()) else { return Ok(None) };
        let usage = |error: anyhow::Error| UsageError(format!("{error:#}"));
        let targets = targets(&self.deliver)?;
        let sensor = self.sensor.clone().unwrap_or_else(machine);
        let run = self.run_id.clone().unwrap_or_else(new_run);
        let identity = Identity::new(&sensor, &run).map_err(usage)?;
        let plan = self.bounds.plan(spool, targets);
        Ok(Some(DeliveryPlan { identity, ..plan }))
    }
}

impl DeliveryBounds {
    /// A plan to deliver to some targets, by a name that no row gets.
    pub(super) fn plan(&self, spool: &Path, targets: Vec<Target>) -> DeliveryPlan {
        DeliveryPlan {
            targets,
            settings: Settings { spools: spool.to_owned(), spool_bytes: self.spool_size },
            identity: Identity { sensor: String::new(), run: String::new() },
            patience: self.deliver_wait,
        }
    }
}

/// The receivers of some URLs, each of which is there once.
fn targets(urls: &[String]) -> Result<Vec<Target>, UsageError> {
    let open = |(at, url): (usize, &String)| {
        if urls.iter().take(at).any(|before| before == url) {
            return Err(UsageError(format!("--deliver {} is there twice", bare(url))));
        }
        Target::open(url).map_err(|error| UsageError(format!("--deliver {}: {error:#}", bare(url))))
    };
    urls.iter().enumerate().map(open).collect()
}

/// The name of this machine.
fn machine() -> String {
    Identity::nearest_name(&rustix::system::uname().nodename().to_string_lossy())
}

/// A name that no other run has: when it began, and a number by chance.
fn new_run() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let chance = getrandom::u64().unwrap_or_else(|_| since.subsec_nanos().into());
    format!("{:x}-{chance:016x}", since.as_secs())
}

/// Receivers that were found, and how rows go to them.
#[derive(Debug)]
pub struct DeliveryPlan {
    pub(super) targets: Vec<Target>,
    pub(super) settings: Settings,
    identity: Identity,
    pub(super) patience: Duration,
}

impl DeliveryPlan {
    /// The ports of TCP that are connected to.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.targets.iter().flat_map(Target::ports).copied()
    }

    /// The directory of the spools.
    #[must_use]
    pub fn spool(&self) -> &Path {
        &self.settings.spools
    }

    /// Starts to deliver.
    ///
    /// # Errors
    ///
    /// Where a spool cannot be used.
    pub fn start(self, on_full: OnFull) -> anyhow::Result<(Deliveries, Delivering)> {
        let (deliveries, targets) =
            Deliveries::start(self.targets, &self.settings, &self.identity, on_full)?;
        Ok((deliveries, Delivering { targets, patience: self.patience }))
    }
}

/// What is being delivered.
#[derive(Debug, Default)]
pub struct Delivering {
    targets: Vec<Delivery>,
    patience: Duration,
}

impl Delivering {
    /// Targets that have got their last rows.
    #[must_use]
    pub(super) const fn new(targets: Vec<Delivery>, patience: Duration) -> Self {
        Self { targets, patience }
    }

    /// The books so far.
    #[must_use]
    pub fn books(&self) -> Vec<Books> {
        self.targets.iter().map(|target| target.spool().books()).collect()
    }

    /// Waits until everything is delivered, or nobody takes it.
    #[must_use]
    pub fn finish(self) -> Vec<Books> {
        // All send at once, so that nobody's patience begins behind that with another one.
        let (begun, patience) = (Instant::now(), self.patience);
        self.targets.into_iter().map(|target| target.finish(begun, patience)).collect()
    }
}

/// What of the rows is not with its receiver, in a sentence for each.
pub fn undelivered(books: &[Books]) -> impl Iterator<Item = String> {
    books.iter().filter(|books| !books.is_whole()).map(|books| {
        let parts = [
            (books.spooled, "stay in the spool"),
            (books.refused_full, "found no room in the spool"),
            (books.refused_by_receiver, "were refused by the receiver"),
            (books.lost, "could not be read from the spool"),
        ];
        let told = parts.iter().filter(|(number, _)| *number > 0);
        let mut told: Vec<_> =
            told.map(|(number, what)| format!("{} {what}", rows(*number))).collect();
        if books.damaged_bytes > 0 {
            told.push(format!("{} bytes of the spool are damaged", books.damaged_bytes));
        }
        let why =
            books.last_error.as_ref().map_or_else(String::new, |why| format!("; last: {why}"));
        format!("not all was delivered to {}: {}{why}", books.target, told.join(", "))
    })
}
