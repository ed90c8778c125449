//! What the service manager is told, by the protocol of sd_notify(3).

use std::env;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

/// Where the service manager listens.
const SOCKET: &str = "NOTIFY_SOCKET";

/// How often it is to hear of us, in microseconds.
const WATCHDOG: &str = "WATCHDOG_USEC";

/// The process from which it is to hear that.
const WATCHDOG_PROCESS: &str = "WATCHDOG_PID";

/// A socket to the service manager.
#[derive(Debug)]
pub(super) struct Notifier {
    socket: UnixDatagram,
    watchdog: Option<Watchdog>,
}

/// Tells that all threads go on, as long as they do.
#[derive(Debug)]
struct Watchdog {
    /// How often it is told: a quarter of the time after which the manager gives a process up.
    every: Duration,
    told: Instant,
    /// How far the rings were then.
    turns: Vec<u64>,
}

impl Notifier {
    /// That of the environment, if there is one. It is connected, since a process that gave up its rights may not.
    ///
    /// # Errors
    ///
    /// Where nobody listens there.
    pub(super) fn of_environment() -> anyhow::Result<Option<Self>> {
        let Some(address) = env::var_os(SOCKET).filter(|address| !address.is_empty()) else {
            return Ok(None);
        };
        let text = address.to_string_lossy();
        let socket = UnixDatagram::unbound().context("cannot make a socket")?;
        let connected = connect(&socket, &text);
        connected
            .with_context(|| format!("cannot tell {text} of this run, which {SOCKET} names"))?;
        // Whoever does not read must not keep us waiting.
        socket.set_nonblocking(true).context("cannot use a socket without waiting")?;
        Ok(Some(Self { socket, watchdog: Watchdog::of_environment()? }))
    }

    /// Tells a state. Where the manager is too slow, it is not told: the next state says more.
    pub(super) fn tell(&self, state: &str) {
        let _ = self.socket.send(state.as_bytes());
    }

    /// Tells the watchdog that the rings go on, if it is time and all of them have since the last time.
    pub(super) fn look(&mut self, turns: &[u64], now: Instant) {
        let Some(watchdog) = &mut self.watchdog else { return };
        if watchdog.is_alive(turns, now) {
            self.tell("WATCHDOG=1");
        }
    }
}

/// Connects to a path, or to a name that stands in no directory (unix(7)).
fn connect(socket: &UnixDatagram, address: &str) -> anyhow::Result<()> {
    match address.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', name @ ..] => {
            use std::os::linux::net::SocketAddrExt as _;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            Ok(socket.connect_addr(&address)?)
        }
        [b'/', ..] => Ok(socket.connect(address)?),
        _ => bail!("a name begins with / or @"),
    }
}

impl Watchdog {
    fn of_environment() -> anyhow::Result<Option<Self>> {
        let number = |name| -> anyhow::Result<Option<u64>> {
            let Some(text) = env::var_os(name) else { return Ok(None) };
            let number = text.to_str().and_then(|text| text.parse().ok());
            number.map(Some).with_context(|| format!("{name} is no number: {}", text.display()))
        };
        let is_other =
            number(WATCHDOG_PROCESS)?.is_some_and(|of| of != u64::from(std::process::id()));
        let limit = number(WATCHDOG)?.filter(|limit| *limit > 0 && !is_other);
        Ok(limit.map(|limit| Self::new(Duration::from_micros(limit))))
    }

    fn new(limit: Duration) -> Self {
        Self { every: limit / 4, told: Instant::now(), turns: Vec::new() }
    }

    /// Whether every ring came round since the last time that this was so; told no more often than it must be.
    fn is_alive(&mut self, turns: &[u64], now: Instant) -> bool {
        if now.saturating_duration_since(self.told) < self.every {
            return false;
        }
        let went_on = |(ring, turns): (usize, &u64)| self.turns.get(ring) != Some(turns);
        if !turns.iter().enumerate().all(went_on) {
            return false;
        }
        self.told = now;
        self.turns = turns.to_vec();
        true
    }
}

/// The time of the monotonic clock, as the manager wants it told where a service begins to load its configuration anew.
pub(super) fn reloading() -> String {
    let micros = netsniff_capture::monotonic() / 1000;
    format!("RELOADING=1\nMONOTONIC_USEC={micros}")
}

impl Drop for Notifier {
    fn drop(&mut self) {
        // It is gone already where the run ended as it should.
        let _: io::Result<()> = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ring_that_hangs_is_enough_for_silence() {
        let begin = Instant::now();
        let mut watchdog = Watchdog { told: begin, ..Watchdog::new(Duration::from_secs(4)) };
        let at = |millis| begin + Duration::from_millis(millis);
        assert!(!watchdog.is_alive(&[5, 5], at(900)), "it is too early");
        assert!(watchdog.is_alive(&[5, 5], at(1000)));
        assert!(!watchdog.is_alive(&[9, 9], at(1900)), "it was told just now");
        assert!(!watchdog.is_alive(&[9, 5], at(2000)), "ring 1 hangs");
        assert!(!watchdog.is_alive(&[99, 5], at(9000)), "it still does");
        assert!(watchdog.is_alive(&[99, 6], at(9001)));
    }

    #[test]
    fn states_come_to_paths_and_to_names_without_one() {
        let path = env::temp_dir().join(format!("netsniff-notify-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixDatagram::bind(&path).unwrap();
        let socket = UnixDatagram::unbound().unwrap();
        connect(&socket, path.to_str().unwrap()).unwrap();
        let notifier = Notifier { socket, watchdog: None };
        notifier.tell("READY=1");
        let mut state = [0; 32];
        let len = listener.recv(&mut state).unwrap();
        assert_eq!(&state[..len], b"READY=1");
        std::fs::remove_file(path).unwrap();
        let socket = UnixDatagram::unbound().unwrap();
        assert!(connect(&socket, "vsock:2:1234").is_err());
        assert!(connect(&socket, "@netsniff-nobody-listens-here").is_err());
    }
}
