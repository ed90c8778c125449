//! Messages out of sockets, one thread each. Where nobody takes them, they wait in the kernel, which counts what it drops.

use std::io::{ErrorKind, Read as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use netsniff_console::{clock, say};
use netsniff_ipfix::framing::Framer;
use netsniff_ipfix::{Exporter, Transport};
use netsniff_packet::{Address, Timestamp};

/// How often threads look whether the run ends.
const LOOK: Duration = Duration::from_millis(100);
/// How long what the kernel keeps is taken after the end: more may come all the time.
const LAST: Duration = Duration::from_secs(2);
/// Bytes that the kernel may keep for a socket, if it lets us.
const KERNEL_BUFFER: usize = 8 << 20;
/// More than any datagram has.
const LARGEST: usize = 1 << 16;
/// Connections at once.
const CONNECTIONS: usize = 256;

/// What a socket has to tell.
pub(super) enum Event {
    /// A message came.
    Message(Exporter, Timestamp, Box<[u8]>),
    /// A connection ended.
    Disconnected(Exporter),
}

/// What all threads share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) events: SyncSender<Event>,
    pub(super) end: Arc<AtomicBool>,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.end.load(Ordering::Relaxed)
    }
}

fn exporter(peer: SocketAddr, transport: Transport) -> Exporter {
    Exporter { address: Address::from(peer.ip().to_canonical()), port: peer.port(), transport }
}

/// Binds a socket for datagrams.
pub(super) fn bind(address: SocketAddr) -> anyhow::Result<UdpSocket> {
    let failed = || format!("cannot listen at {address} (UDP)");
    let socket = UdpSocket::bind(or_v4(address)).with_context(failed)?;
    // Less is worse and no failure.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket.as_fd(), KERNEL_BUFFER);
    socket.set_read_timeout(Some(LOOK)).with_context(failed)?;
    Ok(socket)
}

/// The address of all of IPv4, where this host has no IPv6.
fn or_v4(address: SocketAddr) -> SocketAddr {
    let has_v6 = || UdpSocket::bind("[::]:0").is_ok();
    match address.ip() {
        IpAddr::V6(all) if all.is_unspecified() && !has_v6() => {
            ([0, 0, 0, 0], address.port()).into()
        }
        _ => address,
    }
}

/// Hands over what comes to a socket, until the run ends and the kernel keeps nothing more.
pub(super) fn datagrams(socket: UdpSocket, shared: Shared) -> anyhow::Result<JoinHandle<()>> {
    let take = move || {
        let mut buffer = vec![0; LARGEST];
        let mut last: Option<Instant> = None;
        loop {
            if shared.is_over() && last.is_none() {
                last = Some(Instant::now() + LAST);
                let _ = socket.set_nonblocking(true);
            }
            let is_last = last.is_some();
            if last.is_some_and(|last| Instant::now() > last) {
                return;
            }
            match socket.recv_from(&mut buffer) {
                Ok((len, peer)) => {
                    let message = buffer.get(..len).unwrap_or_default().into();
                    let from = exporter(peer, Transport::Udp);
                    let event = Event::Message(from, clock::now(), message);
                    if shared.events.send(event).is_err() {
                        return;
                    }
                }
                Err(error) if is_timeout(error.kind()) && is_last => return,
                Err(error) if is_timeout(error.kind()) => {}
                Err(error) => {
                    say(&format!("cannot receive: {error}"));
                    if is_last {
                        return;
                    }
                    thread::sleep(LOOK);
                }
            }
        }
    };
    thread::Builder::new().name("udp".to_owned()).spawn(take).context("cannot start a thread")
}

const fn is_timeout(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Binds a socket for connections.
pub(super) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let failed = || format!("cannot listen at {address} (TCP)");
    let listener = TcpListener::bind(or_v4(address)).with_context(failed)?;
    listener.set_nonblocking(true).with_context(failed)?;
    Ok(listener)
}

/// Takes connections until the run ends, and waits for theirs.
pub(super) fn connections(listener: TcpListener, shared: Shared) -> anyhow::Result<JoinHandle<()>> {
    let take = move || {
        let open = Arc::new(AtomicUsize::new(0));
        let mut threads: Vec<JoinHandle<()>> = Vec::new();
        while !shared.is_over() {
            threads.retain(|thread| !thread.is_finished());
            match listener.accept() {
                Ok((_, peer)) if open.load(Ordering::Relaxed) >= CONNECTIONS => {
                    say(&format!("no room for one more connection, from {peer}"));
                }
                Ok((stream, peer)) => {
                    open.fetch_add(1, Ordering::Relaxed);
                    let (shared, counted) = (shared.clone(), Arc::clone(&open));
                    let serve = move || {
                        connection(stream, peer, &shared);
                        counted.fetch_sub(1, Ordering::Relaxed);
                    };
                    match thread::Builder::new().name("tcp".to_owned()).spawn(serve) {
                        Ok(thread) => threads.push(thread),
                        Err(error) => {
                            open.fetch_sub(1, Ordering::Relaxed);
                            say(&format!("cannot start a thread for {peer}: {error}"));
                        }
                    }
                }
                Err(error) => {
                    if !is_timeout(error.kind()) {
                        say(&format!("cannot take a connection: {error}"));
                    }
                    thread::sleep(LOOK);
                }
            }
        }
        threads.into_iter().for_each(|thread| _ = thread.join());
    };
    thread::Builder::new().name("accept".to_owned()).spawn(take).context("cannot start a thread")
}

/// Hands over the messages of a connection.
fn connection(mut stream: TcpStream, peer: SocketAddr, shared: &Shared) {
    let from = exporter(peer, Transport::Tcp);
    if let Err(error) = messages(&mut stream, from, shared) {
        say(&format!("{peer}: {error}"));
    }
    let _ = shared.events.send(Event::Disconnected(from));
}

fn messages(stream: &mut TcpStream, from: Exporter, shared: &Shared) -> anyhow::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut framer = Framer::default();
    let mut buffer = vec![0; LARGEST];
    let mut last: Option<Instant> = None;
    loop {
        // An exporter that never falls silent must not keep the run from its end.
        if shared.is_over() && Instant::now() > *last.get_or_insert_with(|| Instant::now() + LAST) {
            return Ok(());
        }
        match stream.read(&mut buffer) {
            Ok(0) if framer.is_between_messages() => return Ok(()),
            Ok(0) => anyhow::bail!("the connection ended in the midst of a message"),
            Ok(len) => {
                let now = clock::now();
                let read = framer.push(buffer.get(..len).unwrap_or_default(), |message| {
                    let _ = shared.events.send(Event::Message(from, now, message.into()));
                });
                if read.is_err() {
                    anyhow::bail!("what comes is no IPFIX; the connection is closed");
                }
            }
            Err(error) if is_timeout(error.kind()) => {
                if shared.is_over() {
                    return Ok(());
                }
            }
            Err(error) => return Err(error).context("the connection broke"),
        }
    }
}

/// Datagrams for which a socket had no room, as the kernel counts them; `None` where it does not tell.
pub(super) fn dropped(socket: &UdpSocket) -> Option<u64> {
    let inode = rustix::fs::fstat(socket.as_fd()).ok()?.st_ino.to_string();
    let lists = ["/proc/net/udp6", "/proc/net/udp"];
    lists.iter().find_map(|list| drops_in(&std::fs::read_to_string(list).ok()?, &inode))
}

/// The last column of the line of this inode, the tenth.
fn drops_in(list: &str, inode: &str) -> Option<u64> {
    let of = |line: &str| {
        let columns: Vec<_> = line.split_whitespace().collect();
        (columns.get(9) == Some(&inode)).then(|| columns.last()?.parse().ok()).flatten()
    };
    list.lines().skip(1).find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_those_of_the_socket() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n \
            77: 00000000:0807 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1234 2 0000000000000000 17\n \
            78: 00000000:0808 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 17 2 0000000000000000 4\n";
        assert_eq!(
            (drops_in(list, "1234"), drops_in(list, "17"), drops_in(list, "4")),
            (Some(17), Some(4), None)
        );
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(dropped(&socket), Some(0));
    }
}
