//! `netsniff extcap`: what Wireshark shows as interfaces, by its extcap protocol (extcap(4)).
//!
//! Wireshark runs each program in its extcap folder: once to list interfaces, once to be told the options of each, and
//! once for each capture, whose packets it reads from a pipe. Interfaces of this machine are captured as by
//! `netsniff record`; one more interface gives the packets that `netsniff extract` finds.
//!
//! | module | concern |
//! |---|---|
//! | [`args`] | the words of the protocol |
//! | `interface` | which interfaces there are |
//! | `sentence` | what Wireshark is told of them |
//! | `captured` | a capture, as the command that makes it |
//! | `install` | the link in Wireshark's folder |

pub mod args;
mod captured;
mod install;
mod interface;
mod sentence;

use std::io::stdout;

use anyhow::Context as _;
use netsniff_console::{DONE, UsageError, print};

pub use self::args::ExtcapArgs;
use self::interface::Offered;
use crate::commands::filters::filters;

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// [`UsageError`], and whatever the capture fails with.
pub fn run(args: &ExtcapArgs) -> anyhow::Result<u8> {
    if args.install || args.uninstall {
        return install::run(args.dir.as_deref(), args.uninstall);
    }
    let asked = &args.asked;
    if asked.interfaces {
        return told(&sentence::interfaces(&interface::all()?));
    }
    let Some(name) = &asked.interface else {
        if asked.version.is_some() {
            return told(&sentence::program());
        }
        return usage(
            "Wireshark runs this command: --install makes it do so, and --extcap-interfaces shows what it is told",
        );
    };
    let offered = Offered::of(name)?;
    if asked.dlts {
        told(&sentence::link_type(&offered)?)
    } else if asked.config {
        told(&sentence::options(&offered))
    } else if asked.capture {
        captured::run(&offered, args)
    } else if let Some(filter) = &asked.filter {
        // Whatever is printed tells that the filter is none.
        let said = filters([Some(filter.as_str())]).err().map(|error| format!("{error}\n"));
        told(&said.unwrap_or_default())
    } else {
        usage("what of the interface: --extcap-dlts, --extcap-config or --capture?")
    }
}

fn told(text: &str) -> anyhow::Result<u8> {
    print(stdout(), text).context("cannot print")?;
    Ok(DONE)
}

fn usage(said: &str) -> anyhow::Result<u8> {
    Err(UsageError(said.to_owned()).into())
}
