//! Captures whose messages of DNS are listed as a whole.
//!
//! `questions`: each question of a message has a row here; Zeek's one row has the last.
//!
//! `group`: what goes to a group joins nothing here; Zeek joins it by the identifier alone, which is 0 in most of
//! multicast DNS (RFC 6762, section 18.1).

use std::collections::BTreeSet;

use netsniff_packet::decode::{Decoded, Transport};

use super::super::compare::Difference;

/// Length of the header of a datagram of UDP, and of a message of DNS.
const UDP: usize = 8;
const HEADER: usize = 12;

/// Columns of the reply.
const OF_REPLY: [&str; 8] =
    ["rtt", "rcode", "rcode_name", "AA", "RA", "answers", "TTLs", "rejected"];

/// What messages of DNS tell, by what names their rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    /// Ends and identifiers of messages with several questions: `addr port addr port id`.
    several: BTreeSet<String>,
    /// The same of messages to a group, with the time before it, and whether they are replies.
    to_group: BTreeSet<(String, bool)>,
}

impl Messages {
    /// Takes a packet that has the time `ts` in rows. Of a fragmented datagram the first fragment tells.
    pub(super) fn packet(&mut self, ts: &str, decoded: &Decoded, data: &[u8]) {
        let Some(ip) = decoded.ip else { return };
        let begin = match (decoded.transport, ip.fragment) {
            (Transport::Udp(udp), _) => udp.payload_offset as usize,
            (_, Some(fragment)) if ip.protocol == 17 && fragment.offset == 0 => {
                ip.payload_offset as usize + UDP
            }
            _ => return,
        };
        let (Some(ports), Some(message)) =
            (data.get(begin - UDP..begin - 4), data.get(begin..begin + HEADER))
        else {
            return;
        };
        let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let name = format!(
            "{} {} {} {} udp {}",
            ip.source,
            word(ports, 0),
            ip.destination,
            word(ports, 2),
            word(message, 0)
        );
        if word(message, 4) > 1 {
            self.several.insert(name.clone());
        }
        if ip.destination.to_string().parse::<std::net::IpAddr>().unwrap().is_multicast() {
            self.to_group.insert((format!("{ts} {name}"), message[2] & 0x80 != 0));
        }
    }

    /// Whether a row that only we have is of a message with several questions, of which Zeek has another row.
    pub(super) fn is_further_question(
        &self,
        key: &str,
        difference: &Difference,
        theirs: &BTreeSet<String>,
    ) -> bool {
        let behind_time = key.split_once(' ').map_or("", |(_, name)| name);
        *difference == Difference::Extra
            && self.several.contains(behind_time)
            && theirs.contains(key)
    }

    /// Whether a row differs only by a message to a group that Zeek joined to another one: what the reply tells is
    /// missing in the row of the query, or has a row of its own.
    pub(super) fn is_joined(&self, key: &str, difference: &Difference) -> bool {
        let sent = |is_reply| self.to_group.contains(&(key.to_owned(), is_reply));
        match difference {
            Difference::Extra => sent(true),
            Difference::Missing => false,
            Difference::Cells(cells) => {
                sent(false) && cells.iter().all(|(name, ..)| OF_REPLY.contains(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use netsniff_packet::LinkType;
    use netsniff_packet::decode;

    use super::*;

    /// An IPv4 datagram of UDP from 10.0.0.2 with a header of DNS: identifier 7, these flags and number of questions.
    fn dns_datagram(group: bool, flags: u8, questions: u8) -> Messages {
        let to: [u8; 4] = if group { [224, 0, 0, 251] } else { [10, 0, 0, 3] };
        let mut data = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 2];
        data.extend(to);
        data.extend([0x14, 0xe9, 0x14, 0xe9, 0, 20, 0, 0]);
        data.extend([0, 7, flags, 0, 0, questions, 0, 0, 0, 0, 0, 0]);
        let mut messages = Messages::default();
        messages.packet("1.000000", &decode::packet(LinkType::RAW, &data, 40), &data);
        messages
    }

    const KEY: &str = "1.000000 10.0.0.2 5353 10.0.0.3 5353 udp 7";
    const TO_GROUP: &str = "1.000000 10.0.0.2 5353 224.0.0.251 5353 udp 7";

    #[test]
    fn only_messages_with_several_questions_of_which_zeek_tells_one_count() {
        let theirs = BTreeSet::from([KEY.to_owned()]);
        for (questions, expected) in [(1, false), (2, true)] {
            let messages = dns_datagram(false, 0, questions);
            assert_eq!(messages.is_further_question(KEY, &Difference::Extra, &theirs), expected);
            assert!(!messages.is_further_question(KEY, &Difference::Missing, &theirs));
            assert!(!messages.is_further_question(KEY, &Difference::Extra, &BTreeSet::new()));
        }
    }

    #[test]
    fn only_what_a_reply_tells_may_differ_in_a_group() {
        let cells = |name| Difference::Cells(vec![(name, "1".to_owned(), "-".to_owned())]);
        assert!(dns_datagram(true, 0, 1).is_joined(TO_GROUP, &cells("answers")));
        assert!(!dns_datagram(true, 0, 1).is_joined(TO_GROUP, &cells("query")));
        assert!(!dns_datagram(true, 0, 1).is_joined(TO_GROUP, &Difference::Extra));
        assert!(dns_datagram(true, 0x80, 1).is_joined(TO_GROUP, &Difference::Extra));
        assert!(!dns_datagram(true, 0x80, 1).is_joined(TO_GROUP, &Difference::Missing));
        assert!(!dns_datagram(false, 0x80, 1).is_joined(KEY, &Difference::Extra));
    }
}
