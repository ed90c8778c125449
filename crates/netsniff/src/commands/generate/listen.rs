//! Frames to the order of others, who say over UDP what they want: `--listen`, and `netsniff generate ask`.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use crate::commands::wire::WireArgs;
use anyhow::Context as _;
use clap::Parser as _;
use netsniff_console::number::exact;
use netsniff_console::{BELOW_QUALITY, DONE, FAILED, USAGE, UsageError, quantity, say};
use netsniff_pipeline::sending::wire::Wire;
use serde::Serialize;

use super::args::FrameArgs;
use super::request::{self, Answer, DatagramCodec, GenerateRequest, Hello, MOST, Ticket, Word};
use super::{GenerateArgs, send, stop};
use crate::commands::live::give_up;
use crate::sandbox::{Outputs, SafetyArgs};

/// What an order may ask for where nothing else is said.
const MOST_FRAMES: u64 = 1_000_000_000;
const MOST_TIME: Duration = Duration::from_secs(60);

/// Orders that may wait while frames are being sent.
const WAITING: usize = 16;

/// How often to look whether the run is to end.
const TICK: Duration = Duration::from_millis(100);

/// Where orders come from, and what they may ask for.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Orders of others")]
pub(super) struct ListenArgs {
    /// Wait at this address for orders over UDP, which `netsniff generate ask` sends; other addresses than those of
    /// loopback need --key
    #[arg(long, value_name = "ADDR:PORT", group = "opened", requires = "interface", conflicts_with_all = [
        "size", "count", "duration", "rate", "mbps", "ifg", "topspeed", "link", "burst", "poisson", "late", "flows",
        "proto", "ip", "port", "src_ip", "dst_ip", "src_mac", "dst_mac", "stream", "seed", "json", "quiet"])]
    pub(super) listen: Option<SocketAddr>,
    /// A file with the key that both sides have: orders and answers carry a code of it
    #[arg(long, value_name = "KEYFILE")]
    key: Option<PathBuf>,
    /// Frames that an order may ask for; 1G where it is not given
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    most_frames: Option<u64>,
    /// Time that an order may take; 60s where it is not given
    #[arg(long, value_name = "TIME", value_parser = quantity::interval)]
    most_time: Option<Duration>,
    #[command(flatten)]
    safety: SafetyArgs,
}

impl ListenArgs {
    /// Refuses options without effect. (clap takes any argument that is in conflict with --listen for it.)
    ///
    /// # Errors
    ///
    /// [`UsageError`] where there are some.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let is_idle = self.key.is_none() && self.most_frames.is_none() && self.most_time.is_none();
        if self.listen.is_some() || is_idle {
            return Ok(());
        }
        let said = "--key, --most-frames and --most-time are for --listen";
        Err(UsageError(said.to_owned()).into())
    }
}

/// The options of an order.
#[derive(Debug, clap::Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
struct RequestedOptions {
    #[command(flatten)]
    frames: FrameArgs,
}

impl GenerateRequest {
    /// The frames that are meant; the error is a sentence.
    fn frames(self) -> Result<FrameArgs, String> {
        let wanted = RequestedOptions::try_parse_from(self.options);
        wanted.map(|wanted| wanted.frames).map_err(|error| {
            let text = error.to_string();
            text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }
}

/// Sends to the order of others until a signal ends it, and returns the exit code.
pub(super) fn listen(args: &GenerateArgs, address: SocketAddr) -> anyhow::Result<u8> {
    let stop = stop()?;
    let seal = DatagramCodec::open(args.listen.key.as_deref())?;
    if !address.ip().is_loopback() && !seal.has_key() {
        let said = format!("whoever reaches {address} could send frames from here: give a --key");
        return Err(UsageError(said).into());
    }
    let socket = UdpSocket::bind(address)
        .with_context(|| format!("cannot listen at {address} for orders"))?;
    socket.set_read_timeout(Some(TICK)).context("cannot wait for orders")?;
    let at = socket.local_addr().context("cannot tell the address for orders")?;
    let (name, next) = (request::name()?, AtomicU64::new(1));
    let mut desk = ControlServer {
        args,
        seal: &seal,
        stop: &stop,
        name: &name,
        next: &next,
        wires: Vec::new(),
        door: None,
    };
    // An interface that cannot be sent on is told now.
    desk.open()?;
    let (output, safety) = (&args.output, &args.listen.safety);
    let door = || Door::start(output.wire.clone(), output.to.interface.clone().unwrap_or_default());
    desk.door = give_up(safety, Outputs::default(), false, Some(door))?;
    say(&format!("listening at {at}; SIGINT ends the run"));
    let (orders, taken) = sync_channel(WAITING);
    let counter = Counter { seal: &seal, stop: &stop, name: &name, next: &next, has_warned: false };
    let answer_to = &socket;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("orders".to_owned());
        let counter = thread.spawn_scoped(scope, move || counter.run(answer_to, &orders));
        let counter = counter.context("cannot start a thread for orders")?;
        while let Ok(PendingRequest { number, json, from }) = taken.recv() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            if let Some(answer) = desk.answer_to(number, &json, from) {
                // Whoever asked may be gone.
                let _ = socket.send_to(answer.as_bytes(), from);
            }
        }
        drop(taken);
        let ended = counter.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        ended.context("cannot wait for orders")
    })?;
    Ok(DONE)
}

/// Whether it is merely that there was none, or that nobody waited for an answer.
pub(super) fn is_no_order(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
    )
}

/// An order that waits to be carried out.
struct PendingRequest {
    number: u64,
    json: String,
    from: SocketAddr,
}

/// Takes orders and hands tickets out, also while frames are being sent.
struct Counter<'a> {
    seal: &'a DatagramCodec,
    stop: &'a AtomicBool,
    /// What orders must name, and the number of the next one.
    name: &'a str,
    next: &'a AtomicU64,
    /// Whether it was told of those who have no key.
    has_warned: bool,
}

impl Counter<'_> {
    /// Serves until the end of the run.
    fn run(mut self, socket: &UdpSocket, orders: &SyncSender<PendingRequest>) -> io::Result<()> {
        // Not on the processor that frames are sent on, where that was chosen.
        let _ = netsniff_capture::unpin();
        let mut datagram = [0; MOST];
        while !self.stop.load(Ordering::Relaxed) {
            let (len, from) = match socket.recv_from(&mut datagram) {
                Ok(received) => received,
                Err(error) if is_no_order(&error) => continue,
                Err(error) => return Err(error),
            };
            if let Some(answer) = self.serve(&datagram[..len], from, orders) {
                // Whoever asked may be gone.
                let _ = socket.send_to(answer.as_bytes(), from);
            }
        }
        Ok(())
    }

    /// Does what a datagram asks for; `None` where nobody is to be answered here.
    fn serve(
        &mut self,
        datagram: &[u8],
        from: SocketAddr,
        orders: &SyncSender<PendingRequest>,
    ) -> Option<String> {
        if let Some((_, json)) = self.seal.take(Word::Hello, datagram) {
            let Hello { asker } = serde_json::from_str(json).ok()?;
            let ticket = Ticket { asker, listener: self.name.to_owned() };
            return put(self.seal, Word::Ticket, self.next.load(Ordering::Relaxed), &ticket);
        }
        if let Some((number, json)) = self.seal.take(Word::Order, datagram) {
            // Where too many wait, whoever asks gets no answer, and asks again.
            let _ = orders.try_send(PendingRequest { number, json: json.to_owned(), from });
            return None;
        }
        // Once, so that nobody fills a disk by it.
        if !core::mem::replace(&mut self.has_warned, true) {
            let what = if self.seal.has_key() { "not of who has the key" } else { "no order" };
            say(&format!("a datagram from {from} is {what}; others like it are not told of"));
        }
        None
    }
}

fn put(seal: &DatagramCodec, word: Word, number: u64, content: &impl Serialize) -> Option<String> {
    Some(seal.put(word, number, &serde_json::to_string(content).ok()?))
}

/// Opens the interface again, in a thread that kept the right to do so and does nothing else.
struct Door(SyncSender<SyncSender<anyhow::Result<Wire>>>);

impl Door {
    /// Starts the thread, with the rights of the caller.
    fn start(how: WireArgs, interface: String) -> anyhow::Result<Self> {
        let (requests, asked) = sync_channel::<SyncSender<anyhow::Result<Wire>>>(1);
        let thread = std::thread::Builder::new().name("reopen".to_owned());
        let answer = move || {
            for answer in asked {
                let _ = answer.send(Wire::open(&how.options(), &interface));
            }
        };
        thread.spawn(answer).context("cannot start a thread")?;
        Ok(Self(requests))
    }

    fn open(&self) -> anyhow::Result<Wire> {
        let (answer, answered) = sync_channel(1);
        self.0.send(answer).ok().context("nobody opens the interface again")?;
        answered.recv().context("nobody opens the interface again")?
    }
}

struct ControlServer<'a> {
    args: &'a GenerateArgs,
    seal: &'a DatagramCodec,
    stop: &'a AtomicBool,
    /// What orders must name, and the number of the next one.
    name: &'a str,
    next: &'a AtomicU64,
    /// What is sent on; none where it failed.
    wires: Vec<Wire>,
    /// Who opens it again, once the rights for it were given up.
    door: Option<Door>,
}

impl ControlServer<'_> {
    /// Opens the interface, if it is not.
    fn open(&mut self) -> anyhow::Result<()> {
        let output = &self.args.output;
        if self.wires.is_empty() {
            let interface = output.to.interface.as_deref().unwrap_or_default();
            self.wires = match &self.door {
                Some(door) => vec![door.open()?],
                None => output.wire.options().open(interface, None)?,
            };
        }
        Ok(())
    }

    /// Carries an order out; `None` where the answer cannot be told.
    fn answer_to(&mut self, number: u64, json: &str, from: SocketAddr) -> Option<String> {
        let answer = self
            .answer(number, json, from)
            .unwrap_or_else(|said| Answer { error: Some(said), ..self.coded(USAGE) });
        put(self.seal, Word::Answer, number, &answer)
    }

    /// Sends what an order asks for; the error is a sentence why it is refused.
    fn answer(&mut self, number: u64, json: &str, from: SocketAddr) -> Result<Answer, String> {
        let order: GenerateRequest =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        if order.listener != self.name {
            return Err("the order is for another listener, or for one before this".to_owned());
        }
        if number != self.next.load(Ordering::Relaxed) {
            return Err("another order came first: ask again".to_owned());
        }
        self.next.store(number + 1, Ordering::Relaxed);
        let frames = self.bounded(order.frames()?)?;
        say(&format!("{from} asks for {}", json.chars().take(300).collect::<String>()));
        Ok(self.send(&frames).unwrap_or_else(|error| Answer {
            error: Some(format!("{error:#}")),
            ..self.coded(if error.is::<UsageError>() { USAGE } else { FAILED })
        }))
    }

    fn send(&mut self, frames: &FrameArgs) -> anyhow::Result<Answer> {
        self.open()?;
        let result = send(frames, &mut self.wires, self.stop);
        if result.as_ref().map_or(true, |(sent, _)| sent.failure.is_some()) {
            // With the frames that it did not take; another order may have more luck.
            self.wires.clear();
        }
        let (sent, report) = result?;
        let shortfall = report.shortfall(self.args.output.tolerance);
        let failure = sent.failure.map(|failure| format!("{failure:#}"));
        let code = match (&failure, &shortfall) {
            (Some(_), _) => FAILED,
            (None, Some(_)) => BELOW_QUALITY,
            (None, None) => DONE,
        };
        let report = serde_json::from_str(&report.json()?).ok();
        Ok(Answer { error: failure.or(shortfall), report, ..self.coded(code) })
    }

    fn coded(&self, code: u8) -> Answer {
        Answer { listener: self.name.to_owned(), code, error: None, report: None }
    }

    /// Frames within what an order may ask for.
    fn bounded(&self, mut frames: FrameArgs) -> Result<FrameArgs, String> {
        let ListenArgs { most_frames, most_time, .. } = self.args.listen;
        let most_frames = most_frames.unwrap_or(MOST_FRAMES);
        let most_time = most_time.unwrap_or(MOST_TIME);
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
}
