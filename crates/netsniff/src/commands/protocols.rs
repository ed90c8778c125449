//! `netsniff protocols`: which application protocols are understood, and what they log.

use std::io::{self, ErrorKind, Write};

use netsniff_analysis::protocol::{PROTOCOLS, Protocol, ProtocolId, ProtocolSet};
use netsniff_analysis::record::LogType;
use netsniff_console::terminal::table::{Align, Table};
use serde_json::{Value, json};

/// Print which application protocols are understood, and which logs they write
#[derive(Clone, Debug, Default, clap::Args)]
#[command(after_help = "Example: netsniff protocols\n\n\
    A protocol over TCP is found by what is said, on any port; over UDP where its port is named\n\
    here, or where a datagram is surely its own. netsniff analyze --protocols takes these names.")]
pub struct ProtocolsArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Prints the list to `out`.
///
/// # Errors
///
/// When `out` cannot be written to.
pub fn run(args: &ProtocolsArgs, out: &mut impl Write) -> io::Result<()> {
    let text = if args.json { format!("{:#}\n", json_of(PROTOCOLS)) } else { table(PROTOCOLS) };
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads, `head` for one, may have enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

fn table(protocols: &[&dyn Protocol]) -> String {
    let logs_of = |protocol: &&dyn Protocol| match protocol.logs() {
        [] => "conn only".to_owned(),
        logs => names(logs).join(", "),
    };
    let mut table =
        Table::new(&["protocol", "logs", "usual ports"].map(|head| (head, Align::Left)));
    for protocol in protocols {
        let ports = ["tcp", "udp"].into_iter().zip([protocol.tcp_ports(), protocol.udp_ports()]);
        let ports: Vec<_> = ports
            .flat_map(|(over, ports)| ports.iter().map(move |port| format!("{port}/{over}")))
            .collect();
        table.row([protocol.name().to_owned(), logs_of(protocol), ports.join(" ")]);
    }
    table.text()
}

fn names(logs: &[&LogType]) -> Vec<&'static str> {
    logs.iter().map(|log| log.path).collect()
}

fn json_of(protocols: &[&dyn Protocol]) -> Value {
    let each = |protocol: &&dyn Protocol| {
        json!({
            "name": protocol.name(),
            "logs": names(protocol.logs()),
            "tcp_ports": protocol.tcp_ports(),
            "udp_ports": protocol.udp_ports(),
        })
    };
    protocols.iter().map(each).collect()
}

/// The protocols that a list of names with commas between means; also `all` and `none`.
///
/// # Errors
///
/// A sentence that tells the name that there is not.
pub fn parse(text: &str) -> Result<ProtocolSet, String> {
    match text {
        "all" => return Ok(ProtocolSet::ALL),
        "none" => return Ok(ProtocolSet::NONE),
        _ => {}
    }
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let set = names.clone().try_fold(ProtocolSet::NONE, |set, name| {
        let id = ProtocolId::named(name).ok_or_else(|| {
            format!("there is no protocol {name:?}; netsniff protocols lists what there is")
        })?;
        Ok::<_, String>(set.with(id))
    })?;
    if set.is_empty() {
        return Err("no protocol is named; there are all, none, and a list of names".to_owned());
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_in_the_list_and_can_be_chosen() {
        let text = table(PROTOCOLS);
        for protocol in PROTOCOLS {
            assert!(text.lines().any(|line| line.starts_with(protocol.name())));
            // However many logs there are, ports stand apart from them.
            let ports = protocol.tcp_ports().iter().map(|port| format!(" {port}/tcp"));
            assert!(ports.into_iter().all(|port| text.contains(&port)));
            let set = parse(protocol.name()).unwrap();
            assert!(set.iter().map(|id| id.protocol().name()).eq([protocol.name()]));
        }
        assert_eq!(text.lines().count(), PROTOCOLS.len() + 1);
    }

    #[test]
    fn names_that_do_not_exist_are_told() {
        assert!(parse("dns,gopher").unwrap_err().contains("gopher"));
        assert!(parse("").is_err() && parse(",").is_err());
        assert_eq!(parse("none"), Ok(ProtocolSet::NONE));
        assert_eq!(parse("all"), Ok(ProtocolSet::ALL));
    }
}
