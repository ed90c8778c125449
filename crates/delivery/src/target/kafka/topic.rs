//! The topics that rows go to.

use anyhow::{Context as _, ensure};
use netsniff_analysis::rows::LOGS;
use percent_encoding::percent_decode_str;

use crate::Address;
use crate::identity::RUN_END;

/// What stands for the log in the name of a topic.
const LOG: &str = "{log}";
/// The longest name of a topic that a broker takes.
const LONGEST: usize = 249;

/// The name of a topic, in which `{log}` stands for the log of a row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Topic(String);

impl Topic {
    /// That which the path of an address names.
    pub(super) fn of(address: &Address) -> anyhow::Result<Self> {
        let scheme = &address.scheme;
        let path = address.path.trim_start_matches('/');
        let name = percent_decode_str(path).decode_utf8().context("the topic is no text")?;
        ensure!(
            !name.is_empty(),
            "{scheme}:// names no topic: {scheme}://HOST:9092/TOPIC, or {scheme}://HOST:9092/netsniff.{LOG}"
        );
        let topic = Self(name.into_owned());
        for log in LOGS.iter().map(|log| log.path).chain([RUN_END]) {
            let name = topic.of_log(log);
            ensure!(
                is_name(&name),
                "{:?} is no name of a topic: it has 1 to {LONGEST} letters, digits and ._- and may have {LOG}",
                topic.0
            );
        }
        Ok(topic)
    }

    /// The topic of a log.
    pub(super) fn of_log(&self, log: &str) -> String {
        self.0.replace(LOG, log)
    }
}

/// What a broker takes for a name (`org.apache.kafka.common.internals.Topic`).
fn is_name(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_fit) && !matches!(name, "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_of_all_logs_or_of_each() {
        let of = |path: &str| Topic::of(&Address::parse(&format!("kafka://h{path}")).unwrap());
        assert_eq!(of("/rows").unwrap().of_log("conn"), "rows");
        for path in ["/net.{log}-1", "/net.%7Blog%7D-1"] {
            assert_eq!(of(path).unwrap().of_log("conn"), "net.conn-1");
        }
        let long = format!("/{}", "a".repeat(250));
        for wrong in ["", "/", "/a/b", "/a b", "/.", "/%ff", "/{logs}", "/ä", &long] {
            let why = of(wrong).unwrap_err().to_string();
            assert!(why.contains("topic"), "{wrong}: {why}");
        }
        assert!(of(&long[..250]).is_ok());
    }
}
