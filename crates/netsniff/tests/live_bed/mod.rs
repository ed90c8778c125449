//! Namespaces for tests of live commands: a veth pair, a sender at one end, netsniff at the other.
#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

pub(crate) mod commands;
pub(crate) mod hosts;
mod logs;
mod run;
mod sending;
mod setting;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::Duration;

pub(crate) use logs::{Last, Log};
use netsniff_capture::in_namespace;
use netsniff_testing::{Need, skip};
pub(crate) use run::{Done, Run};
pub(crate) use sending::Sent;
pub(crate) use setting::Setting;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/live/testbed.sh");

/// The namespaces, which go with this value.
pub(crate) struct Bed {
    name: String,
}

impl Bed {
    /// Makes them; `None`, said loudly, where this machine cannot.
    pub(crate) fn up(test: &str) -> Option<Self> {
        let name = format!("nsl-{test}-{}", std::process::id());
        match Command::new("bash").args([SCRIPT, "up", &name]).output() {
            Ok(up) if up.status.success() => Some(Self { name }),
            Ok(up) => {
                let why = String::from_utf8_lossy(&up.stderr).trim().to_owned();
                skip(
                    Need::Root,
                    format_args!("{test} needs namespaces, which cannot be made here: {why}"),
                );
                None
            }
            Err(error) => {
                skip(Need::Program("bash"), format_args!("{test} needs bash: {error}"));
                None
            }
        }
    }

    /// The receiving namespace.
    pub(crate) fn receiver(&self) -> String {
        format!("{}-rx", self.name)
    }

    /// The sending namespace.
    pub(crate) fn sender(&self) -> String {
        format!("{}-tx", self.name)
    }

    /// Calls ip(8) in the receiving namespace.
    pub(crate) fn ip(&self, arguments: &[&str]) {
        let out =
            Command::new("ip").args(["-n", &self.receiver()]).args(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Removes the pair and makes another one of the same names.
    pub(crate) fn renew(&self) {
        self.ip(&["link", "del", "rx0"]);
        thread::sleep(Duration::from_millis(300));
        self.add_pair(0);
    }

    /// Adds a pair of this number: tx1 and rx1, say.
    pub(crate) fn add_pair(&self, number: u32) {
        let script = format!(
            "ip link add name tx{number} netns {0}-tx type veth peer name rx{number} netns {0}-rx && \
             ip -n {0}-tx link set dev tx{number} arp off up && ip -n {0}-rx link set dev rx{number} arp off up",
            self.name
        );
        let out = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Chooses who pays for receiving, as `testbed.sh` has it.
    pub(crate) fn place(&self, mode: &str) {
        let out = Command::new("bash").args([SCRIPT, "place", &self.name, mode]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Runs something in a thread of the sending namespace.
    pub(crate) fn in_sender<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.sender(), work).unwrap()
    }

    /// Runs something in a thread of the receiving namespace.
    pub(crate) fn in_receiver<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        in_namespace(&self.receiver(), work).unwrap()
    }

    /// Asks a server in the receiving namespace for a page.
    pub(crate) fn fetch(&self, address: &str, path: &str) -> String {
        self.in_receiver(|| {
            let mut stream = TcpStream::connect(address).unwrap();
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).unwrap();
            page
        })
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = Command::new("bash").args([SCRIPT, "down", &self.name]).output();
    }
}
