//! The secret that clients show: once in the address, then as a cookie; scripts show it in a header.

use std::path::Path;

use anyhow::{Context as _, bail};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use base64ct::{Base64UrlUnpadded, Encoding as _};
use netsniff_console::UsageError;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::secret_file;

/// Bytes of chance in a token that is made here.
const CHANCE: usize = 32;
/// Fewer signs can be guessed.
const LEAST: usize = 16;
/// More have no use, and would not fit into an address.
const MOST: usize = 256;

/// How to make one.
const MAKE_ONE: &str =
    "to make one: (umask 077; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > FILE)";

/// The parameter of an address that holds the token.
pub(super) const PARAMETER: &str = "token";

/// How a client has shown that it knows the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// In a header, as no browser does by itself.
    Header,
    /// In the cookie, which a browser sends whatever page has asked it to.
    Cookie,
}

/// A token, and the cookie that stands for it in this run.
pub(super) struct Token {
    token: String,
    /// Another secret than the token, so that browsers keep nothing that opens the next run.
    session: String,
    cookie: String,
    is_made_here: bool,
}

impl Token {
    /// A token by chance.
    ///
    /// # Errors
    ///
    /// Where the system has no random numbers.
    pub(super) fn random() -> anyhow::Result<Self> {
        Self::new(chance()?, true)
    }

    /// The token that a file contains.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, others can read it, or it is no good token.
    pub(super) fn from_file(path: &Path) -> anyhow::Result<Self> {
        let content = secret_file::read(path, "token file")?;
        let text = String::from_utf8(content).unwrap_or_default();
        let token = text.trim();
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-._~".contains(sign);
        if !(LEAST..=MOST).contains(&token.len()) || !token.chars().all(is_plain) {
            bail!(UsageError(format!(
                "the token in {} must have {LEAST} to {MOST} letters, digits or signs of `-._~`; {MAKE_ONE}",
                path.display()
            )));
        }
        Self::new(token.to_owned(), false)
    }

    fn new(token: String, is_made_here: bool) -> anyhow::Result<Self> {
        Ok(Self { token, session: chance()?, cookie: String::new(), is_made_here })
    }

    /// Gives the cookie a name. Cookies of one host are told apart by their names alone, not by ports.
    pub(super) fn name_cookie(&mut self, port: u16, has_tls: bool) {
        // Browsers take a name with this beginning only from the host itself, and only over TLS.
        let prefix = if has_tls { "__Host-" } else { "" };
        self.cookie = format!("{prefix}netsniff-{port}");
    }

    /// The token, if it is to be told: one from a file is known to whoever may know it.
    pub(super) fn told(&self) -> Option<&str> {
        self.is_made_here.then_some(&*self.token)
    }

    /// The cookie to set, as the value of a header.
    pub(super) fn set_cookie(&self, has_tls: bool) -> String {
        let secure = if has_tls { "; Secure" } else { "" };
        let (name, session) = (&self.cookie, &self.session);
        format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict{secure}")
    }

    /// Whether the parameters of an address have the token, and the parameters without it.
    pub(super) fn in_query(&self, query: &str) -> Option<String> {
        let value = |pair: &str| pair.strip_prefix(PARAMETER)?.strip_prefix('=').map(str::to_owned);
        let has_it = query.split('&').filter_map(value).any(|value| same(&value, &self.token));
        let rest: Vec<_> = query.split('&').filter(|pair| value(pair).is_none()).collect();
        has_it.then(|| rest.join("&"))
    }

    /// How the headers of a request show the token, if they do.
    pub(super) fn in_headers(&self, headers: &HeaderMap) -> Option<Shown> {
        let texts = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let mut bearers = texts(AUTHORIZATION).filter_map(bearer);
        if bearers.any(|value| same(value, &self.token)) {
            return Some(Shown::Header);
        }
        let pairs = texts(COOKIE).flat_map(|value| value.split(';'));
        let mut values = pairs.filter_map(|pair| pair.trim().split_once('='));
        let is_ours = |(name, value)| name == self.cookie && same(value, &self.session);
        values.any(is_ours).then_some(Shown::Cookie)
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn chance() -> anyhow::Result<String> {
    let mut bytes = [0; CHANCE];
    getrandom::fill(&mut bytes).context("the system has no random numbers for a token")?;
    Ok(Base64UrlUnpadded::encode_string(&bytes))
}

/// Whether two secrets are the same, in a time that tells nothing of where they differ, nor of their lengths.
fn same(shown: &str, known: &str) -> bool {
    let [shown, known] = [shown, known].map(|secret| Sha256::digest(secret.as_bytes()));
    shown.as_slice().ct_eq(known.as_slice()).into()
}
