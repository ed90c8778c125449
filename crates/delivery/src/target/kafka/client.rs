//! A client of Kafka in the thread of a sender, which waits until it has an answer for each record.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64ct::{Base64, Encoding as _};
use krafka::auth::{AuthConfig, TlsConfig};
use krafka::producer::{Acks, Producer};
use krafka::{Compression, Kafka, KrafkaError, Record};
use rustls::RootCertStore;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, timeout, timeout_at};

use super::super::{said, tls};
use crate::Address;

/// The port of a broker, unless told.
const PORT: u16 = 9092;
/// How long records may take with all their retries, unless told.
const PATIENCE: Duration = Duration::from_secs(30);
/// The least of it: a request within it must have time for an answer.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long the client waits for more records, though it has been given all. They are flushed.
const LINGER: Duration = Duration::from_millis(5);
/// Bytes of the records that go to a partition together. A broker takes 1 MiB unless told.
const TOGETHER: usize = 256 << 10;

/// Sends records to a cluster.
pub(super) struct Client {
    brokers: String,
    security: Security,
    compression: Compression,
    patience: Duration,
    open: Option<Open>,
}

/// Who sends, and whom it trusts.
struct Security {
    config: AuthConfig,
    /// What must not be said.
    password: Option<String>,
}

/// A connection to a cluster. Its tasks run while something is sent.
struct Open {
    producer: Option<Producer>,
    runtime: Option<Runtime>,
    patience: Duration,
}

impl Client {
    /// Takes what it knows out of the parameters, and returns the ports that it connects to, too.
    pub(super) fn new(address: &mut Address) -> anyhow::Result<(Self, Vec<u16>)> {
        let (brokers, ports) = brokers(address)?;
        let security = Security::of(address)?;
        let compression = match address.take("compression").as_deref() {
            Some("none") => Compression::None,
            Some("gzip") => Compression::Gzip,
            Some("snappy") => Compression::Snappy,
            None | Some("lz4") => Compression::Lz4,
            Some(other) => {
                bail!("compression={other} is not known; there are lz4, snappy, gzip and none")
            }
        };
        let patience =
            address.take("timeout").map(|text| netsniff_console::quantity::interval(&text));
        let patience = patience.transpose().map_err(anyhow::Error::msg).context("timeout")?;
        let patience = patience.unwrap_or(PATIENCE);
        ensure!(patience >= LEAST_PATIENCE, "timeout is at least {LEAST_PATIENCE:?}");
        Ok((Self { brokers, security, compression, patience, open: None }, ports))
    }

    /// Sends records and waits for what becomes of each: its error, where it has one.
    pub(super) fn send(&mut self, records: Vec<Record>) -> Vec<Option<KrafkaError>> {
        let count = records.len();
        let open = match self.open.take().map_or_else(|| self.connect(), Ok) {
            Ok(open) => open,
            Err(error) => return vec![Some(error); count],
        };
        let results = open.send(records);
        // Behind an error that is not of records a new connection is made, since the client may have given up for good.
        if results.iter().flatten().all(super::is_of_records) {
            self.open = Some(open);
        }
        results
    }

    fn connect(&self) -> Result<Open, KrafkaError> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        // What is left of it is shut down with it, also behind an error.
        let mut open = Open { producer: None, runtime: None, patience: self.patience };
        let request = self.patience / 2;
        let kafka = Kafka::builder(&self.brokers)
            .client_id("netsniff")
            .security(self.security.config.clone())
            .request_timeout(request)
            .connect_timeout(CONNECT.min(request))
            // Whether it makes topics is the broker's to decide.
            .allow_auto_create_topics(true);
        let made = async {
            let kafka = kafka.connect().await?;
            let producer = kafka.producer().acks(Acks::All).compression(self.compression);
            let producer = producer.batch_size(TOGETHER).linger(LINGER);
            let producer = producer.delivery_timeout(self.patience).max_block(request);
            producer.metrics_push(false).build().await
        };
        let made = runtime.block_on(async { timeout(self.patience, made).await });
        open.runtime = Some(runtime);
        open.producer = Some(made??);
        Ok(open)
    }

    /// An error as a sentence without secrets.
    pub(super) fn told(&self, error: &KrafkaError) -> String {
        let text = error.to_string();
        let hidden = self.security.password.as_ref().filter(|password| !password.is_empty());
        said(&hidden.map_or_else(|| text.clone(), |password| text.replace(password, "***")))
    }
}

impl Open {
    fn send(&self, records: Vec<Record>) -> Vec<Option<KrafkaError>> {
        let (Some(runtime), Some(producer)) = (&self.runtime, &self.producer) else {
            return Vec::new();
        };
        runtime.block_on(async {
            let mut handles = Vec::with_capacity(records.len());
            let mut failed: Vec<(String, KrafkaError)> = Vec::new();
            let end = Instant::now() + self.patience;
            for record in records {
                // A topic that cannot be found takes its time to be so, for one record, and many take no more than all may.
                let is_late = Instant::now() >= end;
                let before = failed.iter().find(|(topic, _)| is_late || *topic == record.topic);
                if let Some((_, error)) = before {
                    handles.push(Err(error.clone()));
                    continue;
                }
                let topic = record.topic.clone();
                let handle = producer.enqueue(record).await;
                if let Err(error) = &handle {
                    failed.push((topic, error.clone()));
                }
                handles.push(handle);
            }
            // Each has an outcome within the time that records may take, if the client keeps to it.
            let end = Instant::now() + self.patience * 2;
            let _ = timeout_at(end, producer.flush()).await;
            let mut results = Vec::with_capacity(handles.len());
            for handle in handles {
                results.push(match handle {
                    Ok(handle) => match timeout_at(end, handle).await {
                        Ok(done) => done.err(),
                        Err(late) => Some(late.into()),
                    },
                    Err(error) => Some(error),
                });
            }
            results
        })
    }
}

impl Drop for Open {
    /// Ends without waiting for anybody.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            {
                let _within = runtime.enter();
                drop(self.producer.take());
            }
            runtime.shutdown_background();
        }
    }
}

/// The brokers of an address, and the ports of them.
fn brokers(address: &Address) -> anyhow::Result<(String, Vec<u16>)> {
    let (mut list, mut ports) = (String::new(), Vec::new());
    for authority in address.authority.split(',') {
        let one = Address { authority: authority.to_owned(), ..address.clone() };
        // What cannot be found is said at once, and not once a run has begun.
        one.resolve(Some(PORT))?;
        let (host, port) = one.host_and_port(Some(PORT))?;
        let comma = if list.is_empty() { "" } else { "," };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let _ = write!(list, "{comma}{host}:{port}");
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    Ok((list, ports))
}

impl Security {
    fn of(address: &mut Address) -> anyhow::Result<Self> {
        let mechanism = address.take("sasl");
        let (user, password) = (address.take("user"), address.take_secret("password")?);
        let named = user.clone().zip(password.clone());
        ensure!(
            named.is_some() || (user.is_none() && password.is_none()),
            "user= and password= belong together"
        );
        let mut config = match (mechanism.as_deref(), named) {
            (None, None) => AuthConfig::plaintext(),
            (Some(name), None) => bail!("sasl={name} needs user=NAME and password=env:NAME"),
            (None | Some("plain"), Some((user, password))) => {
                AuthConfig::sasl_plain(user, password)
            }
            (Some("scram-sha-256"), Some((user, password))) => {
                AuthConfig::sasl_scram_sha256(user, password)
            }
            (Some("scram-sha-512"), Some((user, password))) => {
                AuthConfig::sasl_scram_sha512(user, password)
            }
            (Some(name), Some(_)) => {
                bail!("sasl={name} is not known; there are plain, scram-sha-256 and scram-sha-512")
            }
        };
        if address.scheme == "kafka+tls" {
            let tls = TlsConfig::new().with_ca_cert_pem(authorities(address)?);
            config = if password.is_some() { config.with_tls(tls) } else { AuthConfig::ssl(tls) };
        } else {
            ensure!(address.take("ca").is_none(), "ca= is of kafka+tls");
        }
        Ok(Self { config, password })
    }
}

/// Certificates of authorities as the client takes them, without those that nobody can read.
fn authorities(address: &mut Address) -> anyhow::Result<String> {
    let mut pem = String::new();
    for certificate in tls::authorities(address)? {
        if RootCertStore::empty().add(certificate.clone()).is_ok() {
            let text = Base64::encode_string(&certificate);
            let _ = write!(pem, "-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        }
    }
    ensure!(!pem.is_empty(), "no certificate of an authority can be read");
    Ok(pem)
}
