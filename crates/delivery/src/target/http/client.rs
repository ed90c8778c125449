//! A client of HTTP that sends to one address, whose host was found before the process gave up its rights.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use base64ct::{Base64, Encoding as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ureq::config::Config;
use ureq::http::{HeaderValue, Uri, header};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};
use ureq::{Agent, Error};

use super::super::tls;
use crate::Address;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a request may take with its answer, unless told.
const REQUEST: Duration = Duration::from_secs(30);
/// Addresses of a host that are tried: the client has room for no more.
const ADDRESSES: usize = 16;
/// The most bytes of an answer that are read; the largest tells of each row of a batch.
const ANSWER: u64 = 8 << 20;

/// Sends requests.
pub(super) struct Client {
    agent: Agent,
    uri: String,
    port: u16,
    authorization: Option<String>,
    /// The same, as a receiver may repeat it.
    secrets: Vec<String>,
}

/// An answer.
pub(super) struct Reply {
    pub(super) status: u16,
    /// How long the receiver asks to wait.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

impl Client {
    /// Takes what it knows out of the parameters; the others stand in each request.
    pub(super) fn new(address: &mut Address) -> anyhow::Result<Self> {
        let usual = if address.scheme == "https" { 443 } else { 80 };
        let found = address.resolve(Some(usual))?;
        let (_, port) = address.host_and_port(Some(usual))?;
        let (authorization, secrets) = authorization(address)?;
        let timeout =
            address.take("timeout").map(|text| netsniff_console::quantity::interval(&text));
        let timeout = timeout.transpose().map_err(anyhow::Error::msg).context("timeout")?;
        let mut config = Agent::config_builder()
            .proxy(None)
            .max_redirects(0)
            .http_status_as_error(false)
            .user_agent(concat!("netsniff/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(timeout.unwrap_or(REQUEST)));
        if address.scheme == "https" {
            let certificates = tls::authorities(address)?;
            let certificates: Vec<_> =
                certificates.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::new_with_certs(&certificates))
                .unversioned_rustls_crypto_provider(tls::provider())
                .build();
            config = config.tls_config(tls);
        } else {
            ensure!(address.take("ca").is_none(), "ca= is of https");
        }
        let agent = Agent::with_parts(config.build(), DefaultConnector::default(), Found(found));
        Ok(Self { agent, uri: uri(address)?, port, authorization, secrets })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// Sends a body, with more parameters; the error is a sentence.
    pub(super) fn post(
        &self,
        content_type: &str,
        parameters: &[(&'static str, String)],
        body: &[u8],
    ) -> Result<Reply, String> {
        let mut uri = self.uri.clone();
        for (name, value) in parameters {
            append(&mut uri, name, value);
        }
        let mut request = self.agent.post(&uri).header(header::CONTENT_TYPE, content_type);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let mut response = request.send(body).map_err(|error| error.to_string())?;
        let asked = response.headers().get(header::RETRY_AFTER);
        let asked = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let body = response.body_mut().with_config().limit(ANSWER).read_to_vec();
        // Without its end an answer is none: what it says may be cut.
        let body = body.map_err(|error| format!("the answer was cut: {error}"))?;
        let status = response.status().as_u16();
        // What it says will be said, and there are receivers that say what they were sent.
        let body = if (200..300).contains(&status) { body } else { self.without_secrets(&body) };
        Ok(Reply { status, retry_after: asked.map(Duration::from_secs), body })
    }
}

impl Client {
    /// Some text without what was sent to show who sends.
    fn without_secrets(&self, text: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(text).into_owned();
        let hidden = self.secrets.iter().filter(|secret| !secret.is_empty());
        hidden.fold(text, |text, secret| text.replace(secret.as_str(), "***")).into_bytes()
    }
}

/// What tells who sends, and the secrets of it: `authorization` is the whole header, `user` and `password` are Basic.
fn authorization(address: &mut Address) -> anyhow::Result<(Option<String>, Vec<String>)> {
    let whole = address.take_secret("authorization")?;
    let (user, password) = (address.take("user"), address.take_secret("password")?);
    ensure!(whole.is_none() || user.is_none(), "authorization= and user= exclude each other");
    ensure!(user.is_some() == password.is_some(), "user= and password= belong together");
    let basic = user.as_ref().zip(password.as_ref()).map(|(user, password)| {
        format!("Basic {}", Base64::encode_string(format!("{user}:{password}").as_bytes()))
    });
    let header = whole.or(basic);
    let is_header = |text: &String| HeaderValue::from_str(text).is_ok();
    ensure!(
        header.as_ref().is_none_or(is_header),
        "authorization= has signs that no header may have"
    );
    // Behind the name of the scheme, or the whole where there is none.
    let sent = header.as_ref().and_then(|header| header.split_whitespace().last());
    let secrets = sent.map(str::to_owned).into_iter().chain(password).collect();
    Ok((header, secrets))
}

/// The address of requests.
fn uri(address: &Address) -> anyhow::Result<String> {
    let mut uri = format!("{}://{}{}", address.scheme, address.authority, address.path);
    for (name, value) in &address.parameters {
        append(&mut uri, name, value);
    }
    uri.parse::<Uri>().context("this is no address of HTTP")?;
    Ok(uri)
}

fn append(uri: &mut String, name: &str, value: &str) {
    uri.push(if uri.contains('?') { '&' } else { '?' });
    uri.extend(utf8_percent_encode(name, NON_ALPHANUMERIC));
    uri.push('=');
    uri.extend(utf8_percent_encode(value, NON_ALPHANUMERIC));
}

/// Addresses that were found before.
#[derive(Debug)]
struct Found(Vec<SocketAddr>);

impl Resolver for Found {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        self.0.iter().take(ADDRESSES).for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}
