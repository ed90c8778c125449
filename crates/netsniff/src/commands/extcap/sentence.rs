//! What Wireshark is told, in the sentences of its protocol: a word, and values in braces.

use std::fmt::Write as _;

use netsniff_capture::interface::Interface;
use netsniff_packet::LinkType;

use super::interface::Offered;

/// An option of an interface, as Wireshark shows it.
struct Shown {
    /// The option, without dashes.
    call: &'static str,
    display: &'static str,
    /// Its type, and what else is to be known of the value.
    value: &'static str,
    tooltip: &'static str,
}

/// Those of an extraction.
const EXTRACTION: &[Shown] = &[
    Shown {
        call: "file",
        display: "Capture file or directory",
        value: "{type=fileselect}{required=true}{mustexist=true}",
        tooltip: "pcap or pcapng, packed or not; of a directory all captures in it",
    },
    Shown {
        call: "more-files",
        display: "Further ones, with colons between",
        value: "{type=string}",
        tooltip: "All of them are read as one traffic, by time",
    },
    Shown {
        call: "uid",
        display: "uid",
        value: "{type=string}",
        tooltip: "Connections by the column uid of any log; several with commas between",
    },
    Shown {
        call: "community-id",
        display: "Community ID",
        value: "{type=string}",
        tooltip: "Connections by the column community_id of conn; several with commas between",
    },
    Shown {
        call: "fuid",
        display: "fuid",
        value: "{type=string}",
        tooltip: "The connections that carried a file of the log files; several with commas between",
    },
    Shown {
        call: "where",
        display: "Condition on rows of conn",
        value: "{type=string}",
        tooltip: "As id.resp_p = 443 AND orig_bytes > 1e6",
    },
    Shown {
        call: "from",
        display: "From",
        value: "{type=string}",
        tooltip: "Packets stamped then or later: seconds since 1970 as in the logs, or 2026-11-28T17:30:00Z",
    },
    Shown {
        call: "to",
        display: "To",
        value: "{type=string}",
        tooltip: "Packets stamped before then",
    },
];

/// Those of a live capture.
const LIVE: &[Shown] = &[
    Shown {
        call: "snaplen",
        display: "Bytes of each packet that are kept",
        value: "{type=unsigned}{range=1,262144}",
        tooltip: "The kernel cuts; whole packets if it is not set",
    },
    Shown {
        call: "no-promiscuous",
        display: "Only what is for this machine",
        value: "{type=boolflag}{default=false}",
        tooltip: "Do not set the interface into promiscuous mode",
    },
];

/// The program.
pub(super) fn program() -> String {
    concat!(
        "extcap {version=",
        env!("CARGO_PKG_VERSION"),
        "}{help=",
        env!("CARGO_PKG_REPOSITORY"),
        "/blob/main/docs/wireshark.md}{display=netsniff}\n"
    )
    .to_owned()
}

/// The program and its interfaces.
pub(super) fn interfaces(all: &[Offered]) -> String {
    let mut text = program();
    for offered in all {
        let display = match offered {
            Offered::Extraction => "netsniff: packets of connections".to_owned(),
            Offered::Live(interface) => format!("netsniff: {interface} with its losses"),
        };
        // Text takes whatever is written.
        let _ = writeln!(text, "interface {{value={}}}{{display={display}}}", offered.name());
    }
    text
}

/// The link type of an interface. Files may have any, which their own bytes tell.
///
/// # Errors
///
/// Where there is no such interface, or none that can be captured.
pub(super) fn link_type(offered: &Offered) -> anyhow::Result<String> {
    let link_type = match offered {
        Offered::Extraction => LinkType::ETHERNET,
        Offered::Live(interface) => Interface::find(interface)?.link_type,
    };
    let name = link_type.name().unwrap_or("unknown");
    Ok(format!("dlt {{number={}}}{{name={name}}}{{display={name}}}\n", link_type.0))
}

/// The options of an interface.
pub(super) fn options(offered: &Offered) -> String {
    let shown = match offered {
        Offered::Extraction => EXTRACTION,
        Offered::Live(_) => LIVE,
    };
    let mut text = String::new();
    for (number, Shown { call, display, value, tooltip }) in shown.iter().enumerate() {
        let _ = writeln!(
            text,
            "arg {{number={number}}}{{call=--{call}}}{{display={display}}}{value}{{tooltip={tooltip}}}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Args as _;

    use super::*;
    use crate::commands::extcap::args::{ExtractionSettings, LiveSettings};

    /// Whatever Wireshark shows is an option of this command, and no other option is left out.
    #[test]
    fn options_that_are_shown_are_those_that_are_taken() {
        let declared = |command: clap::Command| {
            let long = |arg: &clap::Arg| arg.get_long().map(str::to_owned);
            command.get_arguments().filter_map(long).collect::<BTreeSet<_>>()
        };
        let shown = |shown: &[Shown]| shown.iter().map(|it| it.call.to_owned()).collect();
        let extraction = ExtractionSettings::augment_args(clap::Command::new("x"));
        assert_eq!(declared(extraction), shown(EXTRACTION));
        assert_eq!(declared(LiveSettings::augment_args(clap::Command::new("x"))), shown(LIVE));
    }

    /// A brace too many would make a value of another name.
    #[test]
    fn each_sentence_is_a_word_and_values_in_braces() {
        let live = Offered::Live("lo".to_owned());
        let all = [Offered::Extraction, live.clone()];
        let text = interfaces(&all)
            + &options(&all[0])
            + &options(&live)
            + &link_type(&all[0]).unwrap()
            + &link_type(&live).unwrap();
        for line in text.lines() {
            let (word, values) = line.split_once(' ').unwrap();
            assert!(["extcap", "interface", "dlt", "arg"].contains(&word), "{line}");
            let values = values.strip_prefix('{').unwrap().strip_suffix('}').unwrap();
            for value in values.split("}{") {
                assert!(value.contains('=') && !value.contains(['{', '}']), "{line}");
            }
        }
        assert!(text.contains("dlt {number=1}{name=ETHERNET}"), "{text}");
    }
}
