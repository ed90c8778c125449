//! `netsniff generate ask`: an order to a `netsniff generate --listen` elsewhere.

use std::io::{ErrorKind, stdout};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use netsniff_console::{print, quantity, say};
use serde::de::DeserializeOwned;

use super::listen::is_no_order;
use super::request::{self, Answer, DatagramCodec, GenerateRequest, Hello, MOST, Ticket, Word};

/// How long to wait for a ticket until the hello is said again: one of the two may have been lost.
const AGAIN: Duration = Duration::from_millis(500);

/// How often it is said: a listener answers at once, also while it sends.
const TRIES: u32 = 4;

/// Ask a `netsniff generate --listen` elsewhere for frames, and wait until they are sent
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    netsniff generate ask 192.0.2.7:7000 --key KEYFILE --size 512 --count 1M --ifg 12 --link 1g\n\n\
    Exit code: that of the sending, or 1 where no answer comes.")]
pub(super) struct AskArgs {
    /// Where it listens
    #[arg(value_name = "ADDR:PORT")]
    address: SocketAddr,
    /// A file with the key that both sides have: orders and answers carry a code of it
    #[arg(long, value_name = "KEYFILE")]
    key: Option<PathBuf>,
    /// How long to wait for the answer, which comes when all is sent
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = quantity::interval)]
    wait: Duration,
    /// What to send: options of `netsniff generate`, as --size, --count, --rate, --ifg with --link, --flows, --burst
    #[arg(
        value_name = "OPTION",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    options: Vec<String>,
}

/// Sends an order, waits for the answer, and returns its exit code.
pub(super) fn ask(args: &AskArgs) -> anyhow::Result<u8> {
    let mut desk = ControlClient::open(args)?;
    let (number, listener) = desk.ticket()?;
    let order = GenerateRequest { listener, options: args.options.clone() };
    desk.send(Word::Order, number, &serde_json::to_string(&order)?)?;
    let is_mine = |(of, answer): &(u64, Answer)| *of == number && answer.listener == order.listener;
    let answer = loop {
        let received = desk.receive(Word::Answer, desk.end)?;
        let Some(received) = received else { bail!(desk.no_answer()) };
        if is_mine(&received) {
            break received.1;
        }
    };
    if let Some(report) = &answer.report {
        print(stdout(), &format!("{report}\n")).context("cannot print the report")?;
    }
    if let Some(error) = &answer.error {
        say(error);
    }
    Ok(answer.code)
}

/// Where it is asked.
struct ControlClient {
    address: SocketAddr,
    seal: DatagramCodec,
    socket: UdpSocket,
    /// When to wait no longer.
    end: Instant,
}

impl ControlClient {
    fn open(args: &AskArgs) -> anyhow::Result<Self> {
        let (address, seal) = (args.address, DatagramCodec::open(args.key.as_deref())?);
        let unspecified = match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((unspecified, 0)).context("cannot open a socket")?;
        socket.connect(address).with_context(|| format!("cannot reach {address}"))?;
        Ok(Self { address, seal, socket, end: Instant::now() + args.wait })
    }

    /// The number and the listener that an order needs.
    fn ticket(&mut self) -> anyhow::Result<(u64, String)> {
        let hello = Hello { asker: request::name()? };
        let json = serde_json::to_string(&hello)?;
        for _ in 0..TRIES {
            if Instant::now() >= self.end {
                break;
            }
            self.send(Word::Hello, 0, &json)?;
            let again = self.end.min(Instant::now() + AGAIN);
            while let Some((number, ticket)) = self.receive::<Ticket>(Word::Ticket, again)? {
                if ticket.asker == hello.asker {
                    return Ok((number, ticket.listener));
                }
            }
        }
        let why = if self.seal.has_key() {
            "it has another key than this one or none, or what is sent does not get there or back"
        } else {
            "it has a key, and --key says which; or what is sent does not get there or back"
        };
        bail!("no answer came from {} to {TRIES} tries: {why}", self.address)
    }

    fn no_answer(&self) -> String {
        format!("no answer came from {} in the time of --wait", self.address)
    }

    fn send(&self, word: Word, number: u64, json: &str) -> anyhow::Result<()> {
        let datagram = self.seal.put(word, number, json);
        ensure!(datagram.len() <= MOST, "the order has more than {MOST} bytes");
        match self.socket.send(datagram.as_bytes()) {
            // That of the datagram before.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.nobody(),
            sent => sent.map(drop).with_context(|| format!("cannot reach {}", self.address)),
        }
    }

    fn nobody<T>(&self) -> anyhow::Result<T> {
        bail!("nobody listens at {}", self.address)
    }

    /// The next datagram of a kind; `None` where none comes in time. Others are nothing.
    fn receive<T: DeserializeOwned>(
        &self,
        word: Word,
        end: Instant,
    ) -> anyhow::Result<Option<(u64, T)>> {
        let mut datagram = [0; MOST];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left)).context("cannot wait for an answer")?;
            let len = match self.socket.recv(&mut datagram) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return self.nobody(),
                Err(error) if is_no_order(&error) => continue,
                Err(error) => return Err(error).context("cannot wait for an answer"),
            };
            if let Some((number, json)) = self.seal.take(word, &datagram[..len]) {
                let content = serde_json::from_str(json).context("the answer makes no sense")?;
                return Ok(Some((number, content)));
            }
        }
    }
}
