//! The arguments that say where `netsniff serve` listens and who may look, and what they amount to.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use netsniff_console::UsageError;

use super::admission::{Door, Rules};
use super::connections::{Guard, PATIENCE};
use super::tls::{self, Identity};
use super::token::Token;
use super::users::Users;

/// Where to listen, and who may look.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Who may look")]
pub(crate) struct Listening {
    /// Address and port to listen on; port 0 takes a free one. Others than loopback need TLS, and a token is asked for
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:8477",
        value_parser = address
    )]
    listen: SocketAddr,
    /// Ask for a token on loopback, too: one is made at random and printed
    #[arg(long)]
    token: bool,
    /// Ask for the token in this file, which others must not be able to read
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate for TLS, as PEM, with those between it and its authority
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key, as PEM; others must not be able to read it
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Make a certificate for this run, and print its fingerprint
    #[arg(long, conflicts_with = "tls_cert")]
    tls_self_signed: bool,
    /// A further name or address by which this host is asked for; may be repeated
    #[arg(long = "name", value_name = "NAME", value_parser = tls::name)]
    names: Vec<String>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an address and a port, as 127.0.0.1:8477 or [::1]:0".to_owned())
}

impl Listening {
    /// Listens, with all that is needed to serve.
    ///
    /// # Errors
    ///
    /// What would let others look unasked, files that cannot be used, an address that is not free.
    pub(crate) fn open(&self) -> anyhow::Result<Guard> {
        let is_loopback = self.listen.ip().to_canonical().is_loopback();
        if !is_loopback && !self.tls_self_signed && self.tls_cert.is_none() {
            bail!(UsageError(format!(
                "others can reach {}, so that pages there need TLS: give --tls-cert and --tls-key, or \
                 --tls-self-signed",
                self.listen
            )));
        }
        let mut door = self.door(is_loopback)?;
        let names = self.own_names();
        let identity = self.identity(&names)?;
        let listener = std::net::TcpListener::bind(self.listen).with_context(|| {
            format!("cannot listen on {} (--listen ADDR:0 takes a free port)", self.listen)
        })?;
        listener.set_nonblocking(true).context("cannot wait for who asks")?;
        let bound = listener.local_addr().context("cannot tell the address that is listened on")?;
        let has_tls = identity.is_some();
        if let Door::Token(token) = &mut door {
            token.name_cookie(bound.port(), has_tls);
        }
        let shown = match bound.ip() {
            ip if !ip.is_unspecified() => bound.to_string(),
            _ => format!("{}:{}", bracketed(&names[0]), bound.port()),
        };
        let rules = Rules { door, names, has_tls };
        Ok(Guard { listener, rules, identity, shown, patience: PATIENCE })
    }

    fn door(&self, is_loopback: bool) -> anyhow::Result<Door> {
        if let Some(path) = &self.token_file {
            return Ok(Door::Token(Token::from_file(path)?));
        }
        if is_loopback
            && !self.token
            && let Some(users) = Users::own()
        {
            return Ok(Door::Users(users));
        }
        Ok(Door::Token(Token::random()?))
    }

    /// The names that were given; without any, that of the system. Never none.
    fn own_names(&self) -> Vec<String> {
        if !self.names.is_empty() {
            return self.names.clone();
        }
        vec![system_name().unwrap_or_else(|| "localhost".to_owned())]
    }

    fn identity(&self, names: &[String]) -> anyhow::Result<Option<Identity>> {
        if let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) {
            return Identity::from_files(certificate, key).map(Some);
        }
        if !self.tls_self_signed {
            return Ok(None);
        }
        let mut names = names.to_vec();
        let ip = self.listen.ip();
        if !ip.is_unspecified() {
            names.push(ip.to_string());
        }
        if ip.is_loopback() {
            names.push("localhost".to_owned());
        }
        Identity::self_signed(&names).map(Some)
    }
}

#[cfg(unix)]
fn system_name() -> Option<String> {
    let system = rustix::system::uname();
    tls::name(system.nodename().to_str().ok()?).ok()
}

#[cfg(not(unix))]
fn system_name() -> Option<String> {
    None
}

fn bracketed(name: &str) -> String {
    if name.contains(':') { format!("[{name}]") } else { name.to_owned() }
}
