//! Hosts at both ends of the pair, which talk over TCP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::Bed;

/// No dialogue waits longer, whatever goes wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a server answers to one request.
pub(crate) struct Answer<'a> {
    /// The size that it announces.
    pub(crate) announced: usize,
    /// What follows.
    pub(crate) body: &'a [u8],
}

impl<'a> Answer<'a> {
    pub(crate) const fn whole(body: &'a [u8]) -> Self {
        Self { announced: body.len(), body }
    }
}

impl Bed {
    /// Gives both ends an address.
    pub(crate) fn address(&self) {
        for (end, address) in [("tx", "192.0.2.1/24"), ("rx", "192.0.2.2/24")] {
            let (namespace, interface) = (format!("{}-{end}", self.name), format!("{end}0"));
            let ip = |arguments: &[&str]| {
                let out = Command::new("ip").args(["-n", &namespace]).args(arguments).output();
                let out = out.unwrap();
                assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            };
            ip(&["link", "set", "dev", &interface, "arp", "on"]);
            ip(&["addr", "add", address, "dev", &interface]);
        }
    }

    /// Lets the stack merge segments and leave checksums to the interface, as veth does unless told otherwise;
    /// `false` where that cannot be.
    pub(crate) fn offload(&self) -> bool {
        ["tx", "rx"].iter().all(|end| {
            let namespace = format!("{}-{end}", self.name);
            let mut ethtool = Command::new("ip");
            ethtool.args(["netns", "exec", &namespace, "ethtool", "-K", &format!("{end}0")]);
            ethtool
                .args(["sg", "on", "tx", "on", "rx", "on", "tso", "on", "gso", "on", "gro", "on"]);
            ethtool.output().is_ok_and(|out| out.status.success())
        })
    }

    /// Sends so many datagrams within the receiver's end, by its loopback interface.
    pub(crate) fn send_to_itself(&self, count: u64) {
        self.in_receiver(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let to = socket.local_addr().unwrap();
            (0..count).for_each(|_| assert_eq!(socket.send_to(b"x", to).unwrap(), 1));
        });
    }

    /// Lets a server at the sender's end and a client at the receiver's talk, until both have ended.
    pub(crate) fn talk(
        &self,
        server: impl FnOnce(&TcpListener) + Send,
        client: impl FnOnce(SocketAddr) + Send,
    ) {
        let listener =
            self.in_sender(|| TcpListener::bind("192.0.2.1:80").expect("the address is there"));
        let address = listener.local_addr().unwrap();
        thread::scope(|scope| {
            let serving = scope.spawn(|| server(&listener));
            self.in_receiver(|| client(address));
            serving.join().unwrap();
        });
    }

    /// Downloads by HTTP, each answer over a connection of its own.
    pub(crate) fn download(&self, answers: &[Answer<'_>]) {
        let server = |listener: &TcpListener| {
            for Answer { announced, body } in answers {
                let stream = accept(listener);
                let mut lines = BufReader::new(&stream).lines();
                while !lines.next().unwrap().unwrap().is_empty() {}
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n");
                (&stream).write_all(head.as_bytes()).unwrap();
                (&stream).write_all(body).unwrap();
            }
        };
        let client = |address: SocketAddr| {
            for Answer { body, .. } in answers {
                let mut stream = connect(address);
                stream.write_all(b"GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n").unwrap();
                let mut got = Vec::new();
                stream.read_to_end(&mut got).unwrap();
                assert!(got.ends_with(body));
            }
        };
        self.talk(server, client);
    }
}

pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Bytes that do not repeat.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}
