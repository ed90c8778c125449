//! The interfaces that Wireshark shows.

use netsniff_capture::host::HostReader;
use netsniff_capture::interface::Interface;
use netsniff_console::UsageError;

/// The interface that gives packets of capture files.
const EXTRACT: &str = "netsniff-extract";
/// What stands before the names of interfaces of this machine, which Wireshark lists without it.
const LIVE: &str = "netsniff-live-";

/// An interface that is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Offered {
    /// Packets of connections, out of capture files.
    Extraction,
    /// An interface of this machine, by the name that the kernel has for it.
    Live(String),
}

impl Offered {
    /// The interface that Wireshark means by a name.
    ///
    /// # Errors
    ///
    /// Where none has it.
    pub(super) fn of(name: &str) -> Result<Self, UsageError> {
        if name == EXTRACT {
            return Ok(Self::Extraction);
        }
        let live = name.strip_prefix(LIVE).filter(|rest| !rest.is_empty());
        live.map(|live| Self::Live(live.to_owned())).ok_or_else(|| {
            let said = format!(
                "there is no interface {name}: --extcap-interfaces lists those that there are"
            );
            UsageError(said)
        })
    }

    /// The name that Wireshark has for it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Extraction => EXTRACT.to_owned(),
            Self::Live(interface) => format!("{LIVE}{interface}"),
        }
    }
}

/// All of them. Whether the user may capture on one is told by capturing.
///
/// # Errors
///
/// Where the system does not tell its interfaces.
pub(super) fn all() -> anyhow::Result<Vec<Offered>> {
    let names = HostReader::open()?.interfaces()?.names();
    // What cannot be captured is not shown, nor a name that would not be read as one.
    let live = names.into_iter().filter(|name| is_plain(name) && Interface::find(name).is_ok());
    Ok([Offered::Extraction].into_iter().chain(live.map(Offered::Live)).collect())
}

/// Whether a name can stand in a sentence, whose values are in braces.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_interfaces_and_of_no_other() {
        for offered in [Offered::Extraction, Offered::Live("eth0".to_owned())] {
            assert_eq!(Offered::of(&offered.name()).unwrap(), offered);
        }
        for name in ["eth0", "netsniff-live-", "netsniff", ""] {
            let error = Offered::of(name).unwrap_err().to_string();
            assert!(error.contains("--extcap-interfaces"), "{error}");
        }
        assert!(is_plain("eth0.7") && !is_plain("a{b") && !is_plain("a}") && !is_plain("\u{e4}"));
    }

    #[test]
    fn loopback_is_offered() {
        let all = all().unwrap();
        assert_eq!(all[0], Offered::Extraction);
        assert!(all.contains(&Offered::Live("lo".to_owned())), "{all:?}");
    }
}
