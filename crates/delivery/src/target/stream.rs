//! A connection into which bytes are written: local, by TCP, or in TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::tls;
use crate::Address;

/// How long a connection may take to come about, and one write to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a connection goes.
#[derive(Debug)]
pub(super) enum Place {
    Local(PathBuf),
    Tcp(Vec<SocketAddr>),
    Tls(Vec<SocketAddr>, ServerName<'static>, Arc<ClientConfig>),
}

impl Place {
    /// That of an address; `is_tls` tells which of both it is, where it is not local.
    pub(super) fn of(
        address: &mut Address,
        is_tls: bool,
        port: Option<u16>,
    ) -> anyhow::Result<Self> {
        let found = address.resolve(port)?;
        if !is_tls {
            return Ok(Self::Tcp(found));
        }
        let name = ServerName::try_from(address.host_and_port(port)?.0.to_owned())?;
        Ok(Self::Tls(found, name, tls::config(address)?))
    }

    /// The ports that are connected to.
    pub(super) fn ports(&self) -> Vec<u16> {
        match self {
            Self::Local(_) => Vec::new(),
            Self::Tcp(found) | Self::Tls(found, ..) => {
                found.iter().map(SocketAddr::port).take(1).collect()
            }
        }
    }

    fn connect(&self) -> io::Result<Open> {
        match self {
            Self::Local(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Open::Local(stream))
            }
            Self::Tcp(found) => Ok(Open::Tcp(connect(found)?)),
            Self::Tls(found, name, config) => {
                let tls = ClientConnection::new(Arc::clone(config), name.clone());
                let mut stream = StreamOwned::new(tls.map_err(io::Error::other)?, connect(found)?);
                // Whoever is not trusted gets no row.
                let mut socket = Until { socket: &mut stream.sock, end: Instant::now() + PATIENCE };
                while stream.conn.is_handshaking() {
                    stream.conn.complete_io(&mut socket)?;
                }
                stream.sock.set_read_timeout(Some(PATIENCE))?;
                Ok(Open::Tls(Box::new(stream)))
            }
        }
    }
}

/// A socket that is read up to a time, however often a little comes.
struct Until<'a> {
    socket: &'a mut TcpStream,
    end: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = self.end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(rest))?;
        self.socket.read(into)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn connect(found: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut result = Err(ErrorKind::AddrNotAvailable.into());
    for address in found {
        result = TcpStream::connect_timeout(address, PATIENCE);
        if result.is_ok() {
            break;
        }
    }
    let stream = result?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

#[derive(Debug)]
enum Open {
    Local(UnixStream),
    Tcp(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Local(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    /// Whether the other side has closed: what is written then is lost without a sign.
    fn is_closed(&mut self) -> bool {
        let mut byte = [0; 64];
        let read = match self {
            Self::Local(stream) => look(stream, &mut byte, UnixStream::set_nonblocking),
            Self::Tcp(stream) => look(stream, &mut byte, TcpStream::set_nonblocking),
            Self::Tls(stream) => look_within(stream),
        };
        match read {
            Ok(length) => length == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }
}

fn look<S: Read>(
    stream: &mut S,
    byte: &mut [u8],
    set: fn(&S, bool) -> io::Result<()>,
) -> io::Result<usize> {
    set(stream, true)?;
    let read = stream.read(byte);
    set(stream, false)?;
    read
}

/// Reads what is there of TLS, such as tickets, which are no content.
fn look_within(stream: &mut StreamOwned<ClientConnection, TcpStream>) -> io::Result<usize> {
    stream.sock.set_nonblocking(true)?;
    let read = stream.conn.read_tls(&mut stream.sock);
    stream.sock.set_nonblocking(false)?;
    let read = read?;
    let state = stream.conn.process_new_packets().map_err(io::Error::other)?;
    Ok(if state.peer_has_closed() { 0 } else { read })
}

/// A connection that is made when it is needed, and made again behind an error.
#[derive(Debug)]
pub(super) struct Stream {
    place: Place,
    open: Option<Open>,
}

impl Stream {
    pub(super) const fn new(place: Place) -> Self {
        Self { place, open: None }
    }

    pub(super) fn ports(&self) -> Vec<u16> {
        self.place.ports()
    }

    /// Writes all bytes, into a connection that the other side has not closed yet.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.ready()?;
        self.write_on(bytes)
    }

    /// Makes sure that there is a connection, which the other side has not closed yet; returns whether it is a new one.
    pub(super) fn ready(&mut self) -> io::Result<bool> {
        if self.open.as_mut().is_some_and(Open::is_closed) {
            self.open = None;
        }
        let is_new = self.open.is_none();
        if is_new {
            self.open = Some(self.place.connect()?);
        }
        Ok(is_new)
    }

    /// Writes all bytes into the connection that there is.
    pub(super) fn write_on(&mut self, bytes: &[u8]) -> io::Result<()> {
        // Behind an error nobody knows how much came.
        let mut open = self.open.take().ok_or(ErrorKind::NotConnected)?;
        open.write(bytes)?;
        self.open = Some(open);
        Ok(())
    }
}

impl Drop for Stream {
    /// Says the end of TLS, without which a receiver takes a connection for a cut one.
    fn drop(&mut self) {
        if let Some(Open::Tls(stream)) = &mut self.open {
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    }
}
