//! `netsniff deliver`: what runs left in their spools goes to its receivers.

mod args;

use std::path::PathBuf;

use anyhow::Context as _;
use netsniff_console::{DONE, UNDELIVERED, UsageError, say};
use netsniff_delivery::address::bare;
use netsniff_delivery::delivery::targets as urls;
use netsniff_delivery::{Books, Delivery, Target};

pub use self::args::{Delivering, DeliveryArgs, DeliveryBounds, DeliveryPlan, undelivered};

/// Deliver what earlier runs left in their spools
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    netsniff deliver spool/                        what --spool spool/ kept goes to its receivers\n  \
    netsniff deliver spool/ --deliver-wait 1h      the same, with more patience\n\n\
    Exit code: 0 all is delivered; 1 failed; 2 wrong usage; 5 something was not delivered")]
pub struct DeliverArgs {
    /// The directory that --spool named
    #[arg(value_name = "DIR")]
    spool: PathBuf,
    /// Deliver only what is for this URL; may be repeated
    #[arg(long, value_name = "URL")]
    only: Vec<String>,
    #[command(flatten)]
    bounds: DeliveryBounds,
    /// Print the books as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and where spools cannot be used.
pub fn run(args: &DeliverArgs) -> anyhow::Result<u8> {
    let mut found = urls(&args.spool)?;
    if let Some(missing) = args.only.iter().find(|only| !found.contains(only)) {
        let said = format!("{} has nothing for {missing}", args.spool.display());
        return Err(UsageError(said).into());
    }
    found.retain(|url| args.only.is_empty() || args.only.contains(url));
    if found.is_empty() {
        say(&format!("{} has no spool", args.spool.display()));
    }
    let DeliveryPlan { settings, patience, .. } = args.bounds.plan(&args.spool, Vec::new());
    let start = |url: &String| {
        let target = Target::open(url).with_context(|| bare(url))?;
        let delivery = Delivery::start(target, &settings)?;
        delivery.spool().close();
        Ok(delivery)
    };
    // One that cannot be delivered to, for want of a secret, say, keeps nobody from the others.
    let (started, failed): (Vec<_>, Vec<anyhow::Result<_>>) =
        found.iter().map(start).partition(Result::is_ok);
    failed.iter().filter_map(|it| it.as_ref().err()).for_each(|error| say(&format!("{error:#}")));
    let books = Delivering::new(started.into_iter().flatten().collect(), patience).finish();
    undelivered(&books).for_each(|said| say(&said));
    print(args, &books)?;
    let is_whole = failed.is_empty() && books.iter().all(Books::is_whole);
    Ok(if is_whole { DONE } else { UNDELIVERED })
}

fn print(args: &DeliverArgs, books: &[Books]) -> anyhow::Result<()> {
    let text = if args.json {
        serde_json::to_string_pretty(books)? + "\n"
    } else {
        books
            .iter()
            .map(|of| format!("{}: {} found, {} delivered\n", of.target, of.found, of.delivered))
            .collect()
    };
    Ok(netsniff_console::print(std::io::stdout().lock(), &text)?)
}
