//! Frames to the order of others, who say over UDP what they want: `--listen`, and `netsniff generate ask`.

use std::io::{self, ErrorKind, stdout};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Parser as _;

use super::args::FrameArgs;
use super::order::{Answer, LEAST_KEY, MOST, Order, Seal, Word};
use super::{GenerateArgs, send, stop};
use crate::clock;
use crate::commands::{DONE, FAILED, USAGE, UsageError, keyfile, print, quantity, say};
use crate::sending::wire::Wire;
use crate::summary::number::exact;

/// Datagrams that are refused together, so that a flood of them does not keep everything else from being done.
const TURNED_AWAY: usize = 1000;

/// How often to look whether the run is to end.
const TICK: Duration = Duration::from_millis(100);

/// Where orders come from, and what they may ask for.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Orders of others")]
pub(super) struct ListenArgs {
    /// Wait at this address for orders over UDP, which `netsniff generate ask` sends; other addresses than those of
    /// loopback need --key
    #[arg(long, value_name = "ADDR:PORT", requires = "interface", conflicts_with_all = [
        "size", "count", "duration", "rate", "mbps", "ifg", "topspeed", "link", "burst", "poisson", "late", "flows",
        "proto", "ip", "port", "src_ip", "dst_ip", "src_mac", "dst_mac", "stream", "seed"])]
    pub(super) listen: Option<SocketAddr>,
    #[command(flatten)]
    key: KeyArgs,
    /// Frames that an order may ask for
    #[arg(long, value_name = "N", default_value = "1G", value_parser = quantity::count, requires = "listen")]
    most_frames: u64,
    /// Time that an order may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = quantity::interval, requires = "listen")]
    most_time: Duration,
}

#[derive(Debug, clap::Args)]
struct KeyArgs {
    /// A file with the key that both sides have: orders and answers carry a code of it
    #[arg(long = "key", value_name = "KEYFILE")]
    key_file: Option<PathBuf>,
}

impl KeyArgs {
    fn seal(&self) -> anyhow::Result<Seal> {
        let key = self.key_file.as_deref().map(keyfile::read).transpose()?;
        Seal::new(key.as_deref()).with_context(|| {
            format!("the key has less than {LEAST_KEY} bytes. {}", keyfile::MAKE_ONE)
        })
    }
}

/// Ask a `netsniff generate --listen` elsewhere for frames, and wait until they are sent
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    netsniff generate ask 192.0.2.7:7000 --key KEYFILE --size 512 --count 1M --ifg 12 --link 1g\n\n\
    Exit code: that of the sending, or 1 where no answer comes.")]
pub(super) struct AskArgs {
    /// Where it listens
    #[arg(value_name = "ADDR:PORT")]
    address: SocketAddr,
    #[command(flatten)]
    key: KeyArgs,
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

/// The options of an order.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
struct Wanted {
    #[command(flatten)]
    frames: FrameArgs,
}

impl Order {
    /// The frames that are meant; the error is a sentence.
    fn frames(self) -> Result<FrameArgs, String> {
        let wanted = Wanted::try_parse_from(self.options);
        wanted.map(|wanted| wanted.frames).map_err(|error| {
            let text = error.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }
}

/// Sends to the order of others until a signal ends it, and returns the exit code.
pub(super) fn listen(args: &GenerateArgs, address: SocketAddr) -> anyhow::Result<u8> {
    let stop = stop()?;
    let seal = args.listen.key.seal()?;
    if !address.ip().is_loopback() && !seal.has_key() {
        let said = format!("whoever reaches {address} could send frames from here: give a --key");
        return Err(UsageError(said).into());
    }
    let interface = args.output.to.interface.as_deref().unwrap_or_default();
    let mut wires = args.output.wire.open(interface, None)?;
    let socket = UdpSocket::bind(address)
        .with_context(|| format!("cannot listen at {address} for orders"))?;
    socket.set_read_timeout(Some(TICK)).context("cannot wait for orders")?;
    let at = socket.local_addr().context("cannot tell the address for orders")?;
    // Orders from before the start may have been recorded by somebody.
    let mut desk = Desk { args, seal, last: now(), refused: 0, has_sent: false };
    say(&format!("listening at {at}; SIGINT ends the run"));
    let mut datagram = [0; MOST];
    while !stop.load(Ordering::Relaxed) {
        let (len, from) = match socket.recv_from(&mut datagram) {
            Ok(received) => received,
            Err(error) if is_no_order(&error) => continue,
            Err(error) => return Err(error).context("cannot wait for orders"),
        };
        if let Some(answer) = desk.serve(&datagram[..len], from, &mut wires, &stop) {
            // Whoever asked may be gone.
            let _ = socket.send_to(answer.as_bytes(), from);
        }
        if core::mem::take(&mut desk.has_sent) {
            desk.turn_away(&socket, &mut datagram)?;
        }
    }
    Ok(DONE)
}

/// Whether it is merely that there was none, or that nobody waited for an answer.
fn is_no_order(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
    )
}

/// The time of day as a counter.
fn now() -> u64 {
    u64::try_from(clock::now().nanos()).unwrap_or(0)
}

/// Takes orders.
struct Desk<'a> {
    args: &'a GenerateArgs,
    seal: Seal,
    /// The counter of the last order.
    last: u64,
    /// Datagrams that were no orders of who has the key.
    refused: u64,
    /// Whether frames were sent since the desk was last looked at.
    has_sent: bool,
}

impl Desk<'_> {
    /// Does what a datagram asks for; `None` where nobody is to be answered.
    fn serve(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        wires: &mut [Wire],
        stop: &AtomicBool,
    ) -> Option<String> {
        let Some((counter, json)) = self.seal.take(Word::Order, datagram) else {
            self.refused += 1;
            // Once for each power of two, so that nobody fills a disk by it.
            if self.refused.is_power_of_two() {
                let refused = exact(self.refused.into());
                say(&format!(
                    "{refused} datagrams were no orders of who has the key; the last came from {from}"
                ));
            }
            return None;
        };
        let answer = match self.old(counter) {
            Some(refusal) => refusal,
            None => self.fulfil(json, from, wires, stop),
        };
        Some(self.seal.put(Word::Answer, counter, &serde_json::to_string(&answer).ok()?))
    }

    /// Refuses an order that came before, or notes its counter.
    fn old(&mut self, counter: u64) -> Option<Answer> {
        if counter > self.last {
            self.last = counter;
            return None;
        }
        let said = "an order with this counter or a later one came before: is the clock right?";
        Some(refusal(said.to_owned()))
    }

    fn fulfil(
        &mut self,
        json: &str,
        from: SocketAddr,
        wires: &mut [Wire],
        stop: &AtomicBool,
    ) -> Answer {
        let frames = serde_json::from_str::<Order>(json)
            .map_err(|error| error.to_string())
            .and_then(Order::frames)
            .and_then(|frames| self.bounded(frames));
        let sent = match frames {
            Ok(frames) => {
                say(&format!("{from} asks for {}", json.chars().take(300).collect::<String>()));
                self.has_sent = true;
                send(&frames, wires, stop)
            }
            Err(said) => return refusal(said),
        };
        match sent.and_then(|(sent, report)| Ok((sent, report.json()?, report))) {
            Ok((sent, json, report)) => {
                let shortfall = report.shortfall(self.args.output.tolerance);
                let failure = sent.failure.map(|failure| format!("{failure:#}"));
                let code = match (&failure, &shortfall) {
                    (Some(_), _) => FAILED,
                    (None, Some(_)) => super::BELOW_QUALITY,
                    (None, None) => DONE,
                };
                let report = serde_json::from_str(&json).ok();
                Answer { code, error: failure.or(shortfall), report }
            }
            Err(error) => {
                let code = if error.is::<UsageError>() { USAGE } else { FAILED };
                Answer { code, error: Some(format!("{error:#}")), report: None }
            }
        }
    }

    /// Frames within what an order may ask for.
    fn bounded(&self, mut frames: FrameArgs) -> Result<FrameArgs, String> {
        let ListenArgs { most_frames, most_time, .. } = self.args.listen;
        if frames.count.is_some_and(|count| count > most_frames) {
            return Err(format!("an order may ask for {} frames", exact(most_frames.into())));
        }
        if frames.duration.is_some_and(|duration| duration > most_time) {
            return Err(format!("an order may take {} s", most_time.as_secs_f64()));
        }
        if frames.count.is_none() && frames.duration.is_none() {
            return Err("an order needs --count or --duration".to_owned());
        }
        frames.count.get_or_insert(most_frames);
        frames.duration.get_or_insert(most_time);
        Ok(frames)
    }

    /// Refuses what came meanwhile: nobody waits for frames so long.
    fn turn_away(&mut self, socket: &UdpSocket, datagram: &mut [u8]) -> anyhow::Result<()> {
        socket.set_nonblocking(true).context("cannot look for orders")?;
        for _ in 0..TURNED_AWAY {
            let Ok((len, from)) = socket.recv_from(datagram) else { break };
            let Some((counter, _)) = self.seal.take(Word::Order, &datagram[..len]) else {
                self.refused += 1;
                continue;
            };
            let busy = || refusal("another order was being sent: ask again".to_owned());
            let answer = self.old(counter).unwrap_or_else(busy);
            if let Ok(json) = serde_json::to_string(&answer) {
                // Whoever asked may be gone.
                let _ =
                    socket.send_to(self.seal.put(Word::Answer, counter, &json).as_bytes(), from);
            }
        }
        socket.set_nonblocking(false).context("cannot wait for orders")
    }
}

fn refusal(said: String) -> Answer {
    Answer { code: USAGE, error: Some(said), report: None }
}

/// Sends an order, waits for the answer, and returns its exit code.
pub(super) fn ask(args: &AskArgs) -> anyhow::Result<u8> {
    let seal = args.key.seal()?;
    let unspecified = match args.address {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((unspecified, 0)).context("cannot open a socket")?;
    socket.connect(args.address).with_context(|| format!("cannot reach {}", args.address))?;
    let counter = now();
    let json = serde_json::to_string(&Order { options: args.options.clone() })?;
    let order = seal.put(Word::Order, counter, &json);
    anyhow::ensure!(order.len() <= MOST, "the order has more than {MOST} bytes");
    socket.send(order.as_bytes()).with_context(|| format!("cannot reach {}", args.address))?;
    let begin = Instant::now();
    let mut datagram = [0; MOST];
    loop {
        let left = args.wait.saturating_sub(begin.elapsed());
        if left.is_zero() {
            bail!("no answer came from {}; it answers only who has its key", args.address);
        }
        socket.set_read_timeout(Some(left)).context("cannot wait for the answer")?;
        let len = match socket.recv(&mut datagram) {
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                bail!("nobody listens at {}", args.address);
            }
            Err(error) if is_no_order(&error) => continue,
            Err(error) => return Err(error).context("cannot wait for the answer"),
        };
        // Anything else is no answer to this order.
        let Some((_, json)) =
            seal.take(Word::Answer, &datagram[..len]).filter(|(of, _)| *of == counter)
        else {
            continue;
        };
        let answer: Answer = serde_json::from_str(json).context("the answer makes no sense")?;
        if let Some(report) = &answer.report {
            print(stdout(), &format!("{report}\n")).context("cannot print the report")?;
        }
        if let Some(error) = &answer.error {
            say(error);
        }
        return Ok(answer.code);
    }
}
