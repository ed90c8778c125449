//! Certificates: those of files, and one that is made for a run.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, bail};
use netsniff_console::UsageError;
use rcgen::{CertificateParams, DnType, KeyPair};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use super::secret_file;

const DAY: Duration = Duration::from_hours(24);
/// Clients refuse certificates that hold for longer.
const VALID_DAYS: u32 = 397;
/// More than any chain of certificates has.
const MOST: u64 = 1 << 20;

/// A certificate with its key.
pub(super) struct Identity {
    acceptor: TlsAcceptor,
    /// SHA-256 of the certificate, as browsers show it.
    pub(super) fingerprint: String,
}

impl Identity {
    /// The certificate of a file, with those between it and its authority, and the key of another one, both PEM.
    ///
    /// # Errors
    ///
    /// Where they cannot be read, everybody can read the key, or the two do not belong together.
    pub(super) fn from_files(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let name = certificate.display();
        let facts = std::fs::metadata(certificate);
        let facts = facts.with_context(|| format!("cannot open the certificate {name}"))?;
        if facts.len() > MOST {
            bail!(UsageError(format!("{name} is too long for certificates")));
        }
        let content = std::fs::read(certificate);
        let content = content.with_context(|| format!("cannot read the certificate {name}"))?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&content)
            .collect::<Result<_, _>>()
            .map_err(|error| UsageError(format!("{name} is no certificate in PEM: {error}")))?;
        if chain.is_empty() {
            bail!(UsageError(format!("{name} has no certificate in PEM")));
        }
        let secret = secret_file::read(key, "key")?;
        let secret = PrivateKeyDer::from_pem_slice(&secret).map_err(|error| {
            UsageError(format!("{} has no private key in PEM: {error}", key.display()))
        })?;
        Self::new(chain, secret).map_err(|error| {
            let said = format!("{name} cannot be used with the key {}: {error}", key.display());
            UsageError(said).into()
        })
    }

    /// A certificate for these names that nobody but itself vouches for.
    ///
    /// # Errors
    ///
    /// Names that no certificate can have.
    pub(super) fn self_signed(names: &[String]) -> anyhow::Result<Self> {
        let make = || -> Result<_, rcgen::Error> {
            let mut wanted = CertificateParams::new(names.to_vec())?;
            wanted.distinguished_name.push(DnType::CommonName, "netsniff serve");
            let now = SystemTime::now();
            // The clocks of browsers may be late.
            wanted.not_before = (now - DAY).into();
            wanted.not_after = (now + DAY * (VALID_DAYS - 1)).into();
            let key = KeyPair::generate()?;
            Ok((wanted.self_signed(&key)?, key))
        };
        let (certificate, key) = make().context("cannot make a certificate")?;
        let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
        Self::new(vec![certificate.der().clone()], key).context("cannot use the certificate made")
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let fingerprint = fingerprint(&chain[0]);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint })
    }

    /// What takes up a connection.
    pub(super) const fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    let mut text = String::new();
    for (index, byte) in Sha256::digest(certificate).iter().enumerate() {
        let _ = write!(text, "{}{byte:02X}", if index == 0 { "" } else { ":" });
    }
    text
}

/// A name of this host as the argument `--name` has it: a name of the DNS or an address, in small letters.
pub(super) fn name(text: &str) -> Result<String, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let is_label = |label: &str| {
        let is_plain = |sign: u8| sign.is_ascii_alphanumeric() || sign == b'-' || sign == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_plain)
    };
    if text.len() > 253 || !text.split('.').all(is_label) {
        return Err("give a name such as sensor.example.org, or an address".to_owned());
    }
    Ok(text.to_ascii_lowercase())
}
