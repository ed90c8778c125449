//! Conditions on rows, in the language of `netsniff extract --where`.

use std::borrow::Cow;
use std::collections::HashMap;

use netsniff_output::condition::Condition;

use super::Subject;
use crate::logs::seconds;
use crate::watch::data::connections::conn_log;
use crate::watch::data::figures::Figures;
use crate::watch::data::row::{LogRow, log_named};

/// A condition, with its words.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) text: String,
    condition: Condition,
}

impl Filter {
    /// Understands a condition on the rows of a table.
    ///
    /// # Errors
    ///
    /// What cannot be understood.
    pub(crate) fn parse(text: &str, subject: &Subject) -> Result<Self, String> {
        let log = match subject {
            Subject::Hosts | Subject::Services => log_named("series"),
            Subject::Connections | Subject::ConnectionsOf(_) | Subject::Processes => conn_log(),
            Subject::Rows(_) => None,
        };
        let log = log.ok_or("rows of several logs have no condition in common")?;
        let condition = Condition::parse(text, log).map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), condition })
    }

    /// Whether it holds for a row.
    pub(crate) fn holds(&self, row: &LogRow) -> bool {
        self.condition.matches(row)
    }

    /// Whether it holds for a host or service with these figures, of which a column is only set where all is known.
    pub(crate) fn holds_for(
        &self,
        subject: &Subject,
        name: Option<&str>,
        figures: &Figures,
        is_exact: bool,
    ) -> bool {
        let Some(log) = log_named("series") else { return false };
        let (kind, sent, received) = match subject {
            Subject::Hosts => {
                ("host", ["sent_packets", "sent_bytes"], ["received_packets", "received_bytes"])
            }
            _ => ("service", ["orig_pkts", "orig_ip_bytes"], ["resp_pkts", "resp_ip_bytes"]),
        };
        let mut cells = HashMap::from([("kind", kind.to_owned())]);
        if let Some(name) = name {
            cells.insert(kind, name.to_owned());
        }
        let traffic = [(sent, figures.sent), (received, figures.received)];
        let traffic = traffic
            .into_iter()
            .flat_map(|([packets, bytes], it)| [(packets, it.packets.0), (bytes, it.bytes.0)]);
        let counts = [
            ("new_flows", figures.new_flows.0),
            ("retransmitted", figures.retransmitted.0),
            ("network_lost", figures.network_lost.0),
            ("capture_lost", figures.capture_lost.0),
            ("unknown_lost", figures.unknown_lost.0),
        ];
        for (column, value) in traffic.chain(counts).filter(|_| is_exact) {
            if let Some(value) = value {
                cells.insert(column, value.to_string());
            }
        }
        let times = [
            ("rtt_min", figures.rtt.min),
            ("rtt_p50", figures.rtt.median),
            ("rtt_max", figures.rtt.max),
        ];
        for (column, nanos) in times {
            if let Some(nanos) = nanos {
                cells.insert(column, seconds(nanos));
            }
        }
        self.holds(&LogRow::with(log, |column| cells.get(column).map(Cow::from)))
    }
}
