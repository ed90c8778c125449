//! Syslog (RFC 5424): a message for each row, whose structured data has the identity, and whose text is the row.

use std::io::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context as _, bail};
use netsniff_packet::Timestamp;

use super::stream::{Place, Stream};
use super::{Answer, Opened, Receiver, RowAnswer, said, stamp};
use crate::Address;
use crate::identity::Row;
use crate::spool::BatchBounds;

const BOUNDS: BatchBounds =
    BatchBounds { rows: 500, bytes: 256 << 10, linger: Duration::from_millis(200) };

/// Facility local0, severity informational (RFC 5424, 6.2.1).
const PRIORITY: u8 = 16 * 8 + 6;
/// The most bytes of a message in a datagram: that of UDP over IPv4.
const DATAGRAM: usize = 65_507;

pub(super) fn open(mut address: Address) -> anyhow::Result<Opened> {
    let scheme = address.scheme.clone();
    let (receiver, ports): (Box<dyn Receiver>, _) = match scheme.as_str() {
        "syslog" => {
            let found = address.resolve(Some(514))?;
            let to = *found.first().context("the host has no address")?;
            (Box::new(Datagrams { to, socket: None, message: Vec::new() }), Vec::new())
        }
        "syslog+tcp" | "syslog+tls" => {
            let is_tls = scheme == "syslog+tls";
            // RFC 6587 has no port of its own; RFC 5425 has.
            let usual = if is_tls { 6514 } else { 601 };
            let stream = Stream::new(Place::of(&mut address, is_tls, Some(usual))?);
            let ports = stream.ports();
            (Box::new(Frames { stream, message: Vec::new(), text: Vec::new() }), ports)
        }
        other => bail!("{other} is no way of syslog"),
    };
    address.no_more_parameters()?;
    Ok(Opened { receiver, ports, bounds: BOUNDS })
}

/// The name of the structured data. netsniff has no enterprise number; this one is for examples (RFC 5612).
const DATA: &str = "netsniff@32473";

/// Appends the message of a row.
fn message(row: &Row<'_>, out: &mut Vec<u8>) {
    let identity = row.identity;
    let _ = write!(out, "<{PRIORITY}>1 ");
    // Six decimals of seconds are the most (RFC 5424, 6.2.3).
    stamp(Timestamp::from_nanos(row.happened()), 6, out);
    // Names have no sign that a value escapes, and those of logs are short.
    let _ = write!(
        out,
        " {} netsniff {} {} [{DATA} sensor=\"{}\" run=\"{}\" log=\"{}\" seq=\"{}\"] ",
        identity.sensor, identity.run, row.log, identity.sensor, identity.run, row.log, row.seq
    );
    out.extend_from_slice(row.json);
}

/// A message in each datagram (RFC 5426).
struct Datagrams {
    to: SocketAddr,
    socket: Option<UdpSocket>,
    message: Vec<u8>,
}

impl Datagrams {
    fn socket(&mut self) -> std::io::Result<&UdpSocket> {
        if self.socket.is_none() {
            let any: SocketAddr =
                if self.to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
            let socket = UdpSocket::bind(any)?;
            // So that the system tells where nobody listens.
            socket.connect(self.to)?;
            self.socket = Some(socket);
        }
        self.socket.as_ref().ok_or_else(|| std::io::ErrorKind::NotConnected.into())
    }
}

impl Receiver for Datagrams {
    fn send(&mut self, rows: &[Row<'_>]) -> Answer {
        let mut answers = Vec::with_capacity(rows.len());
        let mut failure = None;
        for row in rows {
            if let Some(why) = &failure {
                answers.push(RowAnswer::Later(String::clone(why)));
                continue;
            }
            let mut message = core::mem::take(&mut self.message);
            message.clear();
            self::message(row, &mut message);
            if message.len() > DATAGRAM {
                let why = format!("a message of {} bytes fits into no datagram", message.len());
                answers.push(RowAnswer::Refused(why));
            } else {
                match self.socket().and_then(|socket| socket.send(&message)) {
                    Ok(_) => answers.push(RowAnswer::Accepted),
                    Err(error) => {
                        let why = said(&error.to_string());
                        answers.push(RowAnswer::Later(why.clone()));
                        failure = Some(why);
                        self.socket = None;
                    }
                }
            }
            self.message = message;
        }
        Answer::Each(answers)
    }
}

/// Messages with their lengths before them (RFC 6587, 3.4.1; RFC 5425, 4.3).
struct Frames {
    stream: Stream,
    message: Vec<u8>,
    text: Vec<u8>,
}

impl Receiver for Frames {
    fn send(&mut self, rows: &[Row<'_>]) -> Answer {
        self.text.clear();
        for row in rows {
            self.message.clear();
            message(row, &mut self.message);
            let _ = write!(self.text, "{} ", self.message.len());
            self.text.extend_from_slice(&self.message);
        }
        match self.stream.write(&self.text) {
            Ok(()) => Answer::Accepted,
            Err(error) => Answer::later(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    #[test]
    fn a_message_has_the_identity_and_the_row() {
        let identity = Identity::new("s", "r").unwrap();
        let json = br#"{"ts":1700000000.5,"a":"]\""}"#;
        let row = Row { identity: &identity, log: "conn", seq: 3, time: 0, json };
        let mut out = Vec::new();
        message(&row, &mut out);
        let expected = concat!(
            r#"<134>1 2023-11-14T22:13:20.500000Z s netsniff r conn [netsniff@32473 sensor="s" run="r" "#,
            r#"log="conn" seq="3"] {"ts":1700000000.5,"a":"]\""}"#
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_row_that_fits_into_no_datagram_is_refused_alone() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let identity = Identity::new("s", "r").unwrap();
        let long = vec![b'x'; DATAGRAM];
        let row = |seq, json| Row { identity: &identity, log: "dns", seq, time: 0, json };
        let rows = [row(0, &b"{}"[..]), row(1, &long), row(2, b"{}")];
        let mut sender = Datagrams { to, socket: None, message: Vec::new() };
        let Answer::Each(answers) = sender.send(&rows) else { panic!() };
        assert!(matches!(
            answers.as_slice(),
            [RowAnswer::Accepted, RowAnswer::Refused(_), RowAnswer::Accepted]
        ));
        for seq in [0, 2] {
            let mut bytes = [0; 1000];
            let length = socket.recv(&mut bytes).unwrap();
            let text = core::str::from_utf8(&bytes[..length]).unwrap();
            assert!(text.ends_with(&format!("seq=\"{seq}\"] {{}}")), "{text}");
        }
    }
}
