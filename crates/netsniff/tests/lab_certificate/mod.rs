//! Certificates that tests make, of rates that were never measured.
#![allow(dead_code, reason = "no test needs all of it")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use netsniff_lab::certificate::facts::{Capture, Configuration};
use netsniff_lab::certificate::key::PrivateKey;
use netsniff_lab::certificate::{Certified, Statement, page};
use netsniff_lab::host::machine::Machine;
use netsniff_lab::search::HighestRate;
use netsniff_lab::testbed::{Layout, Placement};
use netsniff_lab::tools::Tool;

/// By openssl genpkey -algorithm ed25519, and its public key by openssl pkey -pubout.
pub(crate) const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
    MC4CAQAwBQYDK2VwBCIEIIDpecF2fQOdPfFuDnm9y+y7/lG60z/o+pp5iB2zJTiw\n\
    -----END PRIVATE KEY-----\n";
pub(crate) const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
    MCowBQYDK2VwAyEAO0fbpw7KH/LDMLBKdXYOphxXhZQ+nbeNWeKp4Ak53fg=\n\
    -----END PUBLIC KEY-----\n";

/// A rate that any host captures.
pub(crate) const MODEST: f64 = 5000.0;

pub(crate) fn layout() -> Layout {
    Layout { placement: Placement::Rps, ..Layout::default() }
}

/// A directory that goes with this value, with a pair of keys in it.
pub(crate) struct Files(pub(crate) PathBuf);

impl Files {
    pub(crate) fn make(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("netsniff-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        let files = Self(path);
        files.write("key.pem", PRIVATE, 0o600);
        files.write("key.pub.pem", PUBLIC, 0o644);
        files
    }

    pub(crate) fn at(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str, mode: u32) {
        fs::write(self.at(name), text).unwrap();
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A certificate of this machine, for a rate that was never measured.
    pub(crate) fn certify(
        &self,
        found: &[(u32, HighestRate)],
        change: impl Fn(&mut Configuration),
    ) {
        let mut configuration = Configuration {
            netsniff: env!("CARGO_PKG_VERSION").to_owned(),
            machine: Machine::here(&[]),
            testbed: layout(),
            sender: None,
            tool: Capture::of(&Tool::all()[0]),
        };
        change(&mut configuration);
        let size = |&(size, found): &(u32, HighestRate)| Certified {
            found,
            not_certified: None,
            ..Certified::unavailable(size, "")
        };
        let sizes = found.iter().map(size).collect();
        let key = PrivateKey::of_pem(PRIVATE).unwrap();
        let made = "2026-01-02T03:04:05Z".to_owned();
        let statement = Statement::new(made, configuration, sizes, &key.public()).unwrap();
        let certificate = statement.sign(&key).unwrap();
        self.write("certificate.json", &certificate, 0o644);
        self.write("certificate.html", &page::report(&statement, &certificate).html(), 0o644);
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
