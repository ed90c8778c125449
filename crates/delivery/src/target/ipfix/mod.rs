//! IPFIX (RFC 7011): rows of `conn` as records of flows, for collectors.

mod row;

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail, ensure};
use netsniff_console::quantity::interval;
use netsniff_ipfix::exporter::{Built, Exporter, LONGEST, Settings};

use self::row::Parsed;
use super::stream::{Place, Stream};
use super::{Answer, Opened, Receiver, RowAnswer, said, set};
use crate::Address;
use crate::identity::Row;
use crate::spool::BatchBounds;

const BOUNDS: BatchBounds =
    BatchBounds { rows: 500, bytes: 512 << 10, linger: Duration::from_millis(200) };

/// The log whose rows are records of flows.
const CONN: &str = "conn";
/// Ports of IANA for IPFIX, and for IPFIX in TLS.
const PORT: u16 = 4739;
const TLS_PORT: u16 = 4740;
/// The enterprise of examples (RFC 5612): netsniff has none.
const EXAMPLES: u32 = 32473;
/// Bytes of a message in a connection: collectors have room for each, whatever its length, and small ones are read early.
const MESSAGE: usize = 16 << 10;
/// The largest packets that a path has, unless told: those of Ethernet.
const MTU: usize = 1500;
/// Headers of IPv4 or IPv6 and UDP.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;
/// After how long templates are told again over UDP, unless told, and after how many messages.
const REFRESH: Duration = Duration::from_secs(60);
const REFRESH_MESSAGES: u32 = 100;
/// How long a collector over UDP has to learn a template, before the next message comes: those that read in several threads may
/// read both at once.
const LEARN: Duration = Duration::from_millis(10);
/// How long a host has to tell that nobody listens, where that was so before.
const ASK: Duration = Duration::from_millis(100);

pub(super) fn open(mut address: Address) -> anyhow::Result<Opened> {
    let enterprise = number(&mut address, "pen")?.unwrap_or(EXAMPLES);
    let domain = number(&mut address, "domain")?;
    let is_nanoseconds = match address.take("time").as_deref() {
        None | Some("ms") => false,
        Some("ns") => true,
        Some(other) => bail!("time={other} is neither ms nor ns"),
    };
    let settings = Settings { enterprise, is_nanoseconds, longest: MESSAGE };
    let scheme = address.scheme.clone();
    let (receiver, ports): (Box<dyn Receiver>, _) = match scheme.as_str() {
        "ipfix+udp" => (Box::new(datagrams(&mut address, domain, settings)?), Vec::new()),
        "ipfix" | "ipfix+tls" => {
            let is_tls = scheme == "ipfix+tls";
            let usual = if is_tls { TLS_PORT } else { PORT };
            let stream = Stream::new(Place::of(&mut address, is_tls, Some(usual))?);
            let ports = stream.ports();
            let sender = Sender { domain, exporter: Exporter::new(settings) };
            (Box::new(Connected { stream, sender, text: Vec::new() }), ports)
        }
        other => bail!("{other} is no way of IPFIX"),
    };
    address.no_more_parameters()?;
    Ok(Opened { receiver, ports, bounds: BOUNDS })
}

fn datagrams(
    address: &mut Address,
    domain: Option<u32>,
    settings: Settings,
) -> anyhow::Result<Datagrams> {
    let found = address.resolve(Some(PORT))?;
    let to = *found.first().context("the host has no address")?;
    let mtu = number(address, "mtu")?.map_or(MTU, |mtu| mtu as usize);
    let headers = if to.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
    let least = Settings::LEAST + headers;
    ensure!(
        (least..=LONGEST).contains(&mtu),
        "mtu={mtu} is not between {least} and {LONGEST} bytes"
    );
    let refresh = address.take("refresh").map(|text| interval(&text));
    let refresh = refresh.transpose().map_err(anyhow::Error::msg).context("refresh")?;
    let rate = number(address, "rate")?;
    ensure!(rate != Some(0), "rate=0 sends nothing");
    let pause = rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate);
    let settings = Settings { longest: mtu - headers, ..settings };
    let sender = Sender { domain, exporter: Exporter::new(settings) };
    let refresh = refresh.unwrap_or(REFRESH);
    let due = Instant::now();
    let (socket, told, messages, is_doubtful) = (None, None, 0, false);
    Ok(Datagrams { to, socket, sender, refresh, told, messages, pause, due, is_doubtful })
}

fn number(address: &mut Address, name: &str) -> anyhow::Result<Option<u32>> {
    let text = address.take(name);
    let number = text.map(|text| text.parse().with_context(|| format!("{name}={text}")));
    number.transpose()
}

/// Makes messages of rows.
struct Sender {
    /// The observation domain, where it was told.
    domain: Option<u32>,
    exporter: Exporter,
}

impl Sender {
    /// The observation domain of rows: that of their sensor.
    fn domain(&self, rows: &[Row<'_>]) -> u32 {
        let sensor = rows.first().map_or("", |row| &row.identity.sensor);
        // 0 is of no domain (RFC 7011, 3.1).
        self.domain.unwrap_or_else(|| crc32fast::hash(sensor.as_bytes()).max(1))
    }

    /// Makes messages of all rows, and hands each to `send`. Returns what became of each row: those that can be told in
    /// no record are refused, and behind a failure all wait.
    fn send(
        &mut self,
        rows: &[Row<'_>],
        mut send: impl FnMut(&[u8], &Built, &mut Exporter) -> std::io::Result<()>,
    ) -> Vec<RowAnswer> {
        let domain = self.domain(rows);
        let parsed: Vec<_> = rows.iter().map(Parsed::of).collect();
        let mut answers = vec![RowAnswer::Accepted; rows.len()];
        let (mut told, mut of_row) = (Vec::new(), Vec::new());
        for ((at, row), parsed) in rows.iter().enumerate().zip(&parsed) {
            match parsed.as_ref().map_err(String::clone).and_then(|parsed| parsed.told(row)) {
                Ok(record) => {
                    told.push(record);
                    of_row.push(at);
                }
                Err(why) => set(&mut answers, at, RowAnswer::Refused(why)),
            }
        }
        let mut done = 0;
        let mut message = Vec::new();
        while let Some(rest) = told.get(done..).filter(|rest| !rest.is_empty()) {
            message.clear();
            match self.exporter.build(domain, now(), rest, &mut message) {
                Err(why) => {
                    of_row.get(done).into_iter().for_each(|&at| {
                        set(&mut answers, at, RowAnswer::Refused(why.words().to_owned()));
                    });
                    done += 1;
                }
                Ok(built) => match send(&message, &built, &mut self.exporter) {
                    Ok(()) => {
                        self.exporter.sent(&built);
                        done += built.records;
                    }
                    Err(error) => {
                        let why = said(&error.to_string());
                        let waiting = of_row.get(done..).unwrap_or_default();
                        waiting
                            .iter()
                            .for_each(|&at| set(&mut answers, at, RowAnswer::Later(why.clone())));
                        break;
                    }
                },
            }
        }
        answers
    }
}

/// The time of a message, in seconds since 1970.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Messages in a connection (RFC 7011, 10.4). There is no acknowledgement: a row is delivered when the system took it.
struct Connected {
    stream: Stream,
    sender: Sender,
    text: Vec<u8>,
}

impl Receiver for Connected {
    fn send(&mut self, rows: &[Row<'_>]) -> Answer {
        match self.stream.ready() {
            Ok(true) => self.sender.exporter.begin(),
            Ok(false) => {}
            Err(error) => return Answer::later(error),
        }
        self.text.clear();
        let text = &mut self.text;
        let answers = self.sender.send(rows, |message, _, _| {
            text.extend_from_slice(message);
            Ok(())
        });
        // Behind a failure the connection is a new one, where all is told anew.
        match self.stream.write_on(&self.text) {
            Ok(()) => Answer::Each(answers),
            Err(error) => Answer::later(error),
        }
    }

    fn logs(&self) -> Option<&'static [&'static str]> {
        Some(&[CONN])
    }
}

/// Messages in datagrams (RFC 7011, 10.3).
struct Datagrams {
    to: SocketAddr,
    socket: Option<UdpSocket>,
    sender: Sender,
    refresh: Duration,
    /// When templates were told for the first time, or anew.
    told: Option<Instant>,
    /// Messages since then.
    messages: u32,
    /// From one message to the next at least.
    pause: Duration,
    /// When the next one may be sent.
    due: Instant,
    /// Whether nobody listened the last time.
    is_doubtful: bool,
}

impl Datagrams {
    fn socket(&mut self) -> std::io::Result<UdpSocket> {
        if let Some(socket) = self.socket.take() {
            return Ok(socket);
        }
        let any: SocketAddr =
            if self.to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
        let socket = UdpSocket::bind(any)?;
        // So that the system tells where nobody listens.
        socket.connect(self.to)?;
        self.sender.exporter.begin();
        Ok(socket)
    }

    /// Whether somebody listens again: a message without records is sent, since the system tells only behind a datagram that
    /// nobody took it.
    fn ask(&self, socket: &UdpSocket, domain: u32) -> std::io::Result<()> {
        let mut message = Vec::new();
        let built = self.sender.exporter.build(domain, now(), &[], &mut message);
        built.map_err(|why| std::io::Error::other(why.words()))?;
        socket.send(&message)?;
        std::thread::sleep(ASK);
        socket.take_error()?.map_or(Ok(()), Err)
    }
}

impl Receiver for Datagrams {
    fn send(&mut self, rows: &[Row<'_>]) -> Answer {
        let socket = match self.socket() {
            Ok(socket) => socket,
            Err(error) => return Answer::later(error),
        };
        if self.is_doubtful {
            if let Err(error) = self.ask(&socket, self.sender.domain(rows)) {
                self.socket = Some(socket);
                return Answer::later(error);
            }
            self.is_doubtful = false;
        }
        if self.told.is_none_or(|told| told.elapsed() >= self.refresh) {
            self.sender.exporter.tell_templates_again();
            (self.told, self.messages) = (Some(Instant::now()), 0);
        }
        let (told, messages) = (&mut self.told, &mut self.messages);
        let (pause, due, is_doubtful) = (self.pause, &mut self.due, &mut self.is_doubtful);
        let answers = self.sender.send(rows, |message, built, exporter| {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            // What was not sent in time is not made up for.
            *due = (*due).max(Instant::now()) + pause;
            // What failed is told by the next call: then the collector may have been started anew.
            if let Err(error) = socket.send(message) {
                (*told, *is_doubtful) = (None, true);
                exporter.forget_templates();
                return Err(error);
            }
            if built.has_news {
                std::thread::sleep(LEARN);
            }
            *messages += 1;
            if messages.is_multiple_of(REFRESH_MESSAGES) {
                exporter.tell_templates_again();
            }
            Ok(())
        });
        // The session goes on, so that a collector misses what did not come.
        self.socket = Some(socket);
        Answer::Each(answers)
    }

    fn logs(&self) -> Option<&'static [&'static str]> {
        Some(&[CONN])
    }
}

#[cfg(test)]
mod tests;
