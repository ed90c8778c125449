//! SNMP: versions 1 (RFC 1157) and 2c (RFC 1901, RFC 3416), and of version 3 (RFC 3412) what is not encrypted, with
//! the user's name (RFC 3414). One row tells of all messages of a flow, as in Zeek.

use core::ops::RangeInclusive;

use netsniff_packet::Timestamp;

use super::syntax::der::{
    Element, Elements, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, context, unsigned,
};
use super::{Datagram, DatagramVerdict, Findings, Protocol, Role, Session, SessionContext};
use crate::record::{Interval, LogType};
use crate::weird::{Detail, Once};

crate::record! {
    /// One row for each flow of the Simple Network Management Protocol.
    pub(super) struct Summary => "snmp" {
        /// Time of the first message.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek;
        /// Time from the first message to the last.
        duration: Interval => "duration", interval, Seconds, Plain, Zeek;
        /// Version of the first message: 1, 2c or 3.
        version: &'static str => "version", string, None, Plain, Zeek;
        /// Community of the first message, which is a password; of version 3 the first user that has a name.
        community: Option<Box<[u8]>> => "community", string, None, User, Zeek;
        /// Variables that GetRequest and GetNextRequest ask for.
        get_requests: u64 => "get_requests", count, None, Plain, Zeek;
        /// Variables of GetBulkRequest.
        get_bulk_requests: u64 => "get_bulk_requests", count, None, Plain, Zeek;
        /// Variables of responses.
        get_responses: u64 => "get_responses", count, None, Plain, Zeek;
        /// Variables that SetRequest sets.
        set_requests: u64 => "set_requests", count, None, Plain, Zeek;
        /// What the last response with sysDescr.0 says of the system.
        display_string: Option<Box<[u8]>> => "display_string", string, None, FreeText, Zeek;
        /// When the system began, by the last response with sysUpTime.0.
        up_since: Option<Timestamp> => "up_since", time, Seconds, Plain, Zeek;
    }
}

/// The protocol, whose messages are datagrams.
#[derive(Debug)]
pub(super) struct Snmp;

/// Of agents, and of who takes their notifications (RFC 3417, section 3.2).
const PORTS: [u16; 2] = [161, 162];

/// The most octets of a text that a flow remembers: descriptions have at most 255 (RFC 3418), names of users 32.
const MAX_TEXT: usize = 4096;

/// The most octets of a component of an identifier, of which 64 bits are left.
const MAX_COMPONENT: usize = 10;

/// `sysDescr.0` and `sysUpTime.0` (RFC 3418).
const DESCRIPTION: &[u8] = &[0x2b, 6, 1, 2, 1, 1, 1, 0];
const UP_TIME: &[u8] = &[0x2b, 6, 1, 2, 1, 1, 3, 0];

/// Types of values (RFC 3416, section 3), as tags.
const IP_ADDRESS: u8 = 0x40;
const COUNTER_32: u8 = 0x41;
const UNSIGNED_32: u8 = 0x42;
const TIME_TICKS: u8 = 0x43;
const COUNTER_64: u8 = 0x46;
/// What stands in place of values: NULL, noSuchObject, noSuchInstance and endOfMibView.
const NO_VALUES: [u8; 4] = [0x05, 0x80, 0x81, 0x82];

/// Messages (RFC 1157, section 4.1; RFC 3416, section 3), as tags.
const GET: u8 = context(0);
const GET_NEXT: u8 = context(1);
const RESPONSE: u8 = context(2);
const SET: u8 = context(3);
const TRAP: u8 = context(4);
const GET_BULK: u8 = context(5);
const REPORT: u8 = context(8);

/// The security model whose parameters name a user (RFC 3411, section 5).
const USER_BASED: u64 = 3;

/// A tick of `TimeTicks`, a hundredth of a second, in nanoseconds.
const TICK: i64 = 10_000_000;

impl Protocol for Snmp {
    fn name(&self) -> &'static str {
        "snmp"
    }

    fn analyzer(&self) -> &'static str {
        "SNMP"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[Summary::LOG]
    }

    fn udp_ports(&self) -> &'static [u16] {
        &PORTS
    }

    fn is_datagram_alone(&self) -> bool {
        true
    }

    fn is_known_by_port(&self) -> bool {
        true
    }

    fn datagram_heads(&self) -> &'static [RangeInclusive<u8>] {
        &[SEQUENCE..=SEQUENCE]
    }

    /// A message has so many tags and lengths that agree that nothing else is one.
    fn detect_datagram(&self, payload: &[u8]) -> bool {
        SnmpMessage::read(payload).is_some_and(|message| match message.body {
            Body::Pdu(pdu) => (GET..=REPORT).contains(&pdu.tag),
            Body::Encrypted => true,
            Body::Unknown => false,
        })
    }

    fn session(&self, _: &SessionContext<'_>) -> Box<dyn Session> {
        Box::new(SnmpSession::default())
    }
}

/// The messages of a flow.
#[derive(Debug, Default)]
struct SnmpSession {
    row: Option<Summary>,
    /// Whether the side that answers has sent a message, as Zeek wants it.
    is_confirmed: bool,
    told: Once,
}

impl Session for SnmpSession {
    fn datagram(&mut self, datagram: &Datagram<'_>, found: &mut Findings) -> DatagramVerdict {
        if datagram.payload.is_empty() {
            return DatagramVerdict::Fits;
        }
        let Some(message) = SnmpMessage::read(datagram.payload) else {
            found.weirds.add("SNMP_malformed_message");
            self.told.filter(&mut found.weirds);
            return DatagramVerdict::Contradicts;
        };
        self.is_confirmed |= datagram.from == Role::Responder;
        let row = self.row.get_or_insert_with(|| Summary::begun(datagram.time, message.version));
        row.duration = Interval::in_micros(row.ts, datagram.time);
        if row.community.is_none() {
            row.community = message.community.map(text);
        }
        if let Body::Pdu(pdu) = message.body {
            let (mut count, mut overlong) = (0, None);
            for binding in pdu.bindings() {
                count += 1;
                if pdu.tag == RESPONSE {
                    row.describe(&binding, datagram.time);
                }
                overlong = overlong.or_else(|| binding.overlong());
            }
            row.count(pdu.tag, count);
            if let Some(len) = overlong {
                let len = Detail::Number(len as u64);
                found.weirds.add_with("asn_oid_subidentifier_too_long", len);
                self.told.filter(&mut found.weirds);
            }
        }
        DatagramVerdict::Fits
    }

    fn end(&mut self, found: &mut Findings) {
        if let Some(row) = self.row.take() {
            found.row(row);
        }
    }

    fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    fn heap_bytes(&self) -> usize {
        let texts = self.row.iter().flat_map(|row| [&row.community, &row.display_string]);
        let held: usize = texts.flatten().map(|text| text.len()).sum();
        size_of::<Self>() + held + self.told.heap_bytes()
    }
}

/// What is remembered of a text.
fn text(octets: &[u8]) -> Box<[u8]> {
    octets[..octets.len().min(MAX_TEXT)].into()
}

impl Summary {
    const fn begun(ts: Timestamp, version: &'static str) -> Self {
        Self {
            ts,
            duration: Interval::from_nanos(0),
            version,
            community: None,
            get_requests: 0,
            get_bulk_requests: 0,
            get_responses: 0,
            set_requests: 0,
            display_string: None,
            up_since: None,
        }
    }

    /// Counts the variables of a message.
    const fn count(&mut self, tag: u8, variables: u64) {
        let counter = match tag {
            GET | GET_NEXT => &mut self.get_requests,
            GET_BULK => &mut self.get_bulk_requests,
            RESPONSE => &mut self.get_responses,
            SET => &mut self.set_requests,
            _ => return,
        };
        *counter = counter.saturating_add(variables);
    }

    /// Takes what a variable of a response tells of the system.
    fn describe(&mut self, binding: &Binding<'_>, now: Timestamp) {
        let Element { tag, content, .. } = binding.value;
        match tag {
            COUNTER_32 | UNSIGNED_32 | TIME_TICKS | COUNTER_64 if binding.name == UP_TIME => {
                let ticks = unsigned(content).and_then(|ticks| i64::try_from(ticks).ok());
                let begin =
                    ticks.and_then(|ticks| now.nanos().checked_sub(ticks.checked_mul(TICK)?));
                self.up_since = begin.map(Timestamp::from_nanos);
            }
            COUNTER_32 | UNSIGNED_32 | TIME_TICKS | COUNTER_64 => {}
            INTEGER | OBJECT | IP_ADDRESS => {}
            _ if NO_VALUES.contains(&tag) || binding.name != DESCRIPTION => {}
            _ => self.display_string = Some(text(content)),
        }
    }
}

/// A message, all of whose tags and lengths agree.
#[derive(Clone, Copy, Debug)]
struct SnmpMessage<'a> {
    version: &'static str,
    /// Of version 3 the user, if it has a name.
    community: Option<&'a [u8]>,
    body: Body<'a>,
}

/// What a message carries.
#[derive(Clone, Copy, Debug)]
enum Body<'a> {
    Pdu(Pdu<'a>),
    Encrypted,
    /// Something that RFC 3412 does not have.
    Unknown,
}

impl<'a> SnmpMessage<'a> {
    fn read(payload: &'a [u8]) -> Option<Self> {
        let [message] = parts(payload)?;
        let content = of(message, SEQUENCE)?;
        let version = match integer(Elements::new(content).next()?)? {
            0 => "1",
            1 => "2c",
            3 => return Self::version_3(content),
            _ => return None,
        };
        let [_, community, pdu] = parts(content)?;
        let community = Some(of(community, OCTET_STRING)?);
        Some(Self { version, community, body: Body::Pdu(Pdu::read(pdu)?) })
    }

    /// Of version 3 (RFC 3412, section 6).
    fn version_3(content: &'a [u8]) -> Option<Self> {
        let [_, header, parameters, data] = parts(content)?;
        let [id, max_size, flags, model] = parts(of(header, SEQUENCE)?)?;
        let (_, _, model) = (integer(id)?, integer(max_size)?, integer(model)?);
        if of(flags, OCTET_STRING)?.len() != 1 {
            return None;
        }
        let parameters = of(parameters, OCTET_STRING)?;
        let community = Some(parameters).filter(|_| model == USER_BASED).and_then(user);
        let body = match data.tag {
            SEQUENCE => {
                let [engine, name, pdu] = parts(data.content)?;
                let (_, _) = (of(engine, OCTET_STRING)?, of(name, OCTET_STRING)?);
                Body::Pdu(Pdu::read(pdu)?)
            }
            OCTET_STRING => Body::Encrypted,
            _ => Body::Unknown,
        };
        Some(Self { version: "3", community, body })
    }
}

/// The name in the parameters of the user-based security model (RFC 3414, section 2.4), if there is one.
fn user(parameters: &[u8]) -> Option<&[u8]> {
    let [parameters] = parts(parameters)?;
    let [.., name, _, _] = parts::<6>(of(parameters, SEQUENCE)?)?;
    of(name, OCTET_STRING).filter(|name| !name.is_empty())
}

/// A request, a response or a notification.
#[derive(Clone, Copy, Debug)]
struct Pdu<'a> {
    tag: u8,
    /// The variables, each of which is whole.
    list: &'a [u8],
}

impl<'a> Pdu<'a> {
    fn read(element: Element<'a>) -> Option<Self> {
        let Element { tag, content, .. } = element;
        let list = match tag {
            TRAP => {
                // Of version 1 (RFC 1157, section 4.1.6).
                let [enterprise, agent, generic, specific, time, list] = parts(content)?;
                let (_, _) = (of(enterprise, OBJECT)?, of(agent, IP_ADDRESS)?);
                let (_, _, _) = (integer(generic)?, integer(specific)?, of(time, TIME_TICKS)?);
                list
            }
            GET..=REPORT => {
                let [id, one, other, list] = parts(content)?;
                let (_, _, _) = (integer(id)?, integer(one)?, integer(other)?);
                list
            }
            _ => return Some(Self { tag, list: &[] }),
        };
        let list = of(list, SEQUENCE)?;
        let mut whole = 0;
        for element in Elements::new(list) {
            Binding::read(element)?;
            whole += element.whole.len();
        }
        (whole == list.len()).then_some(Self { tag, list })
    }

    fn bindings(&self) -> impl Iterator<Item = Binding<'a>> + use<'a> {
        Elements::new(self.list).filter_map(Binding::read)
    }
}

/// A variable with its value.
#[derive(Clone, Copy, Debug)]
struct Binding<'a> {
    name: &'a [u8],
    value: Element<'a>,
}

impl<'a> Binding<'a> {
    fn read(element: Element<'a>) -> Option<Self> {
        let [name, value] = parts(of(element, SEQUENCE)?)?;
        Some(Self { name: of(name, OBJECT)?, value })
    }

    /// Octets of the first component of an identifier in it that is too long.
    fn overlong(&self) -> Option<usize> {
        let value = if self.value.tag == OBJECT { self.value.content } else { &[] };
        let components = |object: &'a [u8]| object.split_inclusive(|octet| octet & 0x80 == 0);
        let lengths = components(self.name).chain(components(value)).map(<[u8]>::len);
        lengths.into_iter().find(|&len| len > MAX_COMPONENT)
    }
}

/// The elements that octets are, if they are so many and nothing else.
fn parts<const N: usize>(octets: &[u8]) -> Option<[Element<'_>; N]> {
    let mut elements = Elements::new(octets);
    let mut parts = [Element { tag: 0, content: &[], whole: &[] }; N];
    let mut whole = 0;
    for part in &mut parts {
        *part = elements.next()?;
        whole += part.whole.len();
    }
    (whole == octets.len()).then_some(parts)
}

/// The content of an element, which must have this tag.
fn of(element: Element<'_>, tag: u8) -> Option<&[u8]> {
    (element.tag == tag).then_some(element.content)
}

/// A number of any sign, as it would be without one.
fn integer(element: Element<'_>) -> Option<u64> {
    of(element, INTEGER).filter(|octets| !octets.is_empty()).and_then(unsigned)
}

#[cfg(test)]
mod tests {
    use super::super::syntax::der::tests::element;
    use super::*;

    const OPAQUE: u8 = 0x44;
    const INFORM: u8 = context(6);

    fn number(value: u8) -> Vec<u8> {
        element(INTEGER, &[value])
    }

    fn binding(name: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        element(SEQUENCE, &[element(OBJECT, name), element(tag, value)].concat())
    }

    fn pdu(tag: u8, bindings: &[Vec<u8>]) -> Vec<u8> {
        let list = element(SEQUENCE, &bindings.concat());
        element(tag, &[number(7), number(0), number(0), list].concat())
    }

    fn community(version: u8, pdu: &[u8]) -> Vec<u8> {
        let parts = [number(version), element(OCTET_STRING, b"public"), pdu.to_vec()];
        element(SEQUENCE, &parts.concat())
    }

    /// A message of version 3 with a user and what follows the parameters.
    fn version_3(name: &[u8], flags: &[u8], data: &[u8]) -> Vec<u8> {
        let flags = element(OCTET_STRING, flags);
        let header = [number(1), element(INTEGER, &[0, 255, 227]), flags, number(3)].concat();
        let name = element(OCTET_STRING, name);
        let empty = element(OCTET_STRING, b"");
        let user = [empty.clone(), number(0), number(0), name, empty.clone(), empty].concat();
        let parameters = element(OCTET_STRING, &element(SEQUENCE, &user));
        let parts = [number(3), element(SEQUENCE, &header), parameters, data.to_vec()];
        element(SEQUENCE, &parts.concat())
    }

    fn scoped(pdu: &[u8]) -> Vec<u8> {
        let empty = element(OCTET_STRING, b"");
        element(SEQUENCE, &[&empty, &empty, pdu].concat())
    }

    fn trap() -> Vec<u8> {
        let source = [element(OBJECT, &[0x2b, 6]), element(IP_ADDRESS, &[192, 0, 2, 1])].concat();
        let kind = [number(6), number(1), element(TIME_TICKS, &[9])].concat();
        let list = element(SEQUENCE, &binding(DESCRIPTION, 5, b""));
        community(0, &element(TRAP, &[source, kind, list].concat()))
    }

    /// A message of each kind.
    fn messages() -> Vec<Vec<u8>> {
        let described =
            [binding(DESCRIPTION, OCTET_STRING, b"x"), binding(UP_TIME, TIME_TICKS, &[1])];
        let mut messages = vec![trap(), version_3(b"u", &[3], &element(OCTET_STRING, &[9; 20]))];
        for tag in (GET..=REPORT).filter(|tag| *tag != TRAP) {
            messages.push(community(1, &pdu(tag, &described)));
            messages.push(version_3(b"u", &[4], &scoped(&pdu(tag, &described))));
        }
        messages
    }

    /// What a session makes of messages at whole seconds from 1000 on: its row, and the names of oddities.
    fn outcome(messages: &[(Role, Vec<u8>)]) -> (Option<Summary>, Vec<&'static str>, bool) {
        let (mut session, mut found) = (SnmpSession::default(), Findings::default());
        let mut weirds = Vec::new();
        for (second, (from, payload)) in (1000..).zip(messages) {
            let time = Timestamp::from_nanos(second * 1_000_000_000);
            let datagram = Datagram { time, from: *from, port: 161, payload };
            let contradicts =
                session.datagram(&datagram, &mut found) == DatagramVerdict::Contradicts;
            let is_message = payload.is_empty() || SnmpMessage::read(payload).is_some();
            assert_eq!(contradicts, !is_message, "{payload:?}");
            weirds.extend(found.weirds.drain().map(|oddity| oddity.name));
        }
        assert!(session.heap_bytes() <= size_of::<SnmpSession>() + 2 * MAX_TEXT + 256);
        (session.row.take(), weirds, session.is_confirmed())
    }

    /// The row of messages of an agent.
    fn answered(messages: &[Vec<u8>]) -> Summary {
        let list: Vec<_> = messages.iter().map(|it| (Role::Responder, it.clone())).collect();
        let (row, weirds, is_confirmed) = outcome(&list);
        assert!(weirds.is_empty() && is_confirmed);
        row.unwrap()
    }

    #[test]
    fn variables_are_counted_by_who_asks_and_who_answers() {
        let two = [binding(DESCRIPTION, 5, b""), binding(UP_TIME, 5, b"")];
        let tags = [GET, GET_NEXT, RESPONSE, SET, GET_BULK, INFORM, REPORT, 0xbe];
        let list = tags.map(|tag| (Role::Originator, community(1, &pdu(tag, &two))));
        let (row, weirds, is_confirmed) = outcome(&list);
        let row = row.unwrap();
        assert!(weirds.is_empty() && !is_confirmed, "nobody has answered");
        let Summary { get_requests, get_bulk_requests, get_responses, set_requests, .. } = row;
        assert_eq!([get_requests, get_bulk_requests, get_responses, set_requests], [4, 2, 2, 2]);
        assert_eq!((row.version, row.community.as_deref()), ("2c", Some(&b"public"[..])));
        assert_eq!((row.ts.nanos(), row.duration.nanos()), (1_000_000_000_000, 7_000_000_000));
        assert_eq!((row.display_string, row.up_since), (None, None));
    }

    #[test]
    fn responses_describe_the_system() {
        let respond = |bindings: &[Vec<u8>]| community(0, &pdu(RESPONSE, bindings));
        let up = |tag, ticks: &[u8]| respond(&[binding(UP_TIME, tag, ticks)]);
        let at = |row: Summary| row.up_since.map(Timestamp::nanos);
        assert_eq!(at(answered(&[up(TIME_TICKS, &[1, 0x2c])])), Some(997_000_000_000));
        assert_eq!(
            at(answered(&[up(COUNTER_64, &[0, 0, 0, 0, 0, 0, 0, 0, 100])])),
            Some(999_000_000_000)
        );
        for (tag, ticks) in [(COUNTER_64, &[1; 9][..]), (UNSIGNED_32, &[0xff; 8]), (INTEGER, &[1])]
        {
            assert_eq!(at(answered(&[up(tag, ticks)])), None, "{tag:#x}");
        }
        let says = |tag, value: &[u8]| respond(&[binding(DESCRIPTION, tag, value)]);
        let text = |messages: &[Vec<u8>]| answered(messages).display_string.map(<[u8]>::into_vec);
        assert_eq!(text(&[says(OCTET_STRING, b"a"), says(OPAQUE, b"b")]), Some(b"b".to_vec()));
        assert_eq!(
            text(&[says(OCTET_STRING, b"a"), says(INTEGER, b"b"), says(5, b"")]),
            Some(b"a".to_vec())
        );
        assert_eq!(text(&[respond(&[binding(UP_TIME, OCTET_STRING, b"a")])]), None);
        let long = text(&[says(OCTET_STRING, &[b'x'; MAX_TEXT + 1])]);
        assert_eq!(long.map(|text| text.len()), Some(MAX_TEXT));
    }

    #[test]
    fn of_version_3_the_first_user_with_a_name_is_told() {
        let ask = scoped(&pdu(GET, &[binding(DESCRIPTION, 5, b"")]));
        let encrypted = element(OCTET_STRING, &[0x5a; 40]);
        let list = [
            version_3(b"", &[4], &ask),
            version_3(b"mary", &[7], &encrypted),
            version_3(b"john", &[4], &ask),
            version_3(b"john", &[4], &element(INTEGER, &[1])),
        ];
        let row = answered(&list);
        assert_eq!((row.version, row.community.as_deref()), ("3", Some(&b"mary"[..])));
        assert_eq!(row.get_requests, 2);
        let unknown =
            |flags: &[u8]| SnmpMessage::read(&version_3(b"u", flags, &encrypted)).is_none();
        assert!(unknown(&[]) && unknown(&[4, 4]) && !unknown(&[4]));
    }

    #[test]
    fn what_is_malformed_is_told_once_and_takes_back_nothing() {
        let good = community(0, &pdu(GET, &[]));
        let (early, late) = (community(2, &pdu(GET, &[])), [&good[..], &[0]].concat());
        let inner = element(GET, &[number(7), number(0), number(0), number(0), number(0)].concat());
        for malformed in
            [&early, &late, &community(0, &inner), &community(0, &pdu(GET, &[vec![0]]))]
        {
            assert!(SnmpMessage::read(malformed).is_none(), "{malformed:?}");
        }
        let list = [vec![], early, good, late, vec![0x30; 9]].map(|it| (Role::Originator, it));
        let (row, weirds, _) = outcome(&list);
        assert_eq!(row.unwrap().version, "1");
        assert_eq!(weirds, ["SNMP_malformed_message"]);
    }

    #[test]
    fn components_beyond_64_bits_are_told() {
        let object = |octets: usize| [&[0x2b][..], &vec![0x80; octets - 1], &[0]].concat();
        let ask = |name: &[u8], value: &[u8]| {
            let payload = community(0, &pdu(GET, &[binding(name, OBJECT, value)]));
            let (row, weirds, _) = outcome(&[(Role::Originator, payload)]);
            assert_eq!(row.unwrap().get_requests, 1);
            weirds
        };
        let short = object(MAX_COMPONENT);
        assert!(ask(&short, &short).is_empty());
        for (name, value) in [(object(11), short.clone()), (short, object(11))] {
            assert_eq!(ask(&name, &value), ["asn_oid_subidentifier_too_long"]);
        }
    }

    #[test]
    fn messages_are_known_anywhere_and_others_are_not() {
        for message in messages() {
            assert!(Snmp.detect_datagram(&message), "{message:?}");
        }
        for other in [community(1, &pdu(0xbe, &[])), version_3(b"u", &[4], &number(1)), vec![]] {
            assert!(!Snmp.detect_datagram(&other), "{other:?}");
        }
    }

    /// Every length that is cut, every octet changed: what is read lies within the message.
    #[test]
    fn messages_cut_or_changed_anywhere_do_no_harm() {
        for message in messages() {
            for at in 0..message.len() {
                assert!(SnmpMessage::read(&message[..at]).is_none(), "{at} of {message:?}");
                let mut changed = message.clone();
                for octet in 0..=255 {
                    changed[at] = octet;
                    let (row, weirds, _) = outcome(&[(Role::Responder, changed.clone())]);
                    let is_read = SnmpMessage::read(&changed).is_some();
                    assert_eq!(
                        (row.is_some(), !weirds.contains(&"SNMP_malformed_message")),
                        (is_read, is_read)
                    );
                }
            }
        }
    }
}
