//! Whom connections with TLS trust.

use std::sync::Arc;

use anyhow::{Context as _, ensure};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::Address;

/// What computes.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Those whose certificates are trusted: of the file that the parameter `ca` names, or of the system.
pub(super) fn authorities(address: &mut Address) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let Some(path) = address.take("ca") else {
        let found = rustls_native_certs::load_native_certs();
        ensure!(
            !found.certs.is_empty(),
            "this system has no certificates of authorities; name a file of them by ca=FILE"
        );
        return Ok(found.certs);
    };
    let certificates =
        CertificateDer::pem_file_iter(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.with_context(|| format!("ca={path}"))?;
    ensure!(!certificates.is_empty(), "ca={path} has no certificate");
    Ok(certificates)
}

/// What a connection of our own is made by.
pub(super) fn config(address: &mut Address) -> anyhow::Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(authorities(address)?);
    ensure!(added > 0, "no certificate of an authority can be read");
    let config =
        ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::thread::JoinHandle;

    use rustls::pki_types::PrivateKeyDer;
    use rustls::{ServerConfig, ServerConnection, StreamOwned};

    use super::super::{Answer, open};
    use super::*;
    use crate::Identity;
    use crate::identity::Row;

    /// A receiver in TLS, which answers `answer` to what it reads first; its port, its authority, and what it read.
    fn receiver(name: &str, answer: &'static str) -> (u16, PathBuf, JoinHandle<String>) {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let path = std::env::temp_dir().join(format!("netsniff-tls-{}-{name}", std::process::id()));
        std::fs::write(&path, made.cert.pem()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let (socket, _) = listener.accept().unwrap();
            let tls = ServerConnection::new(Arc::new(config)).unwrap();
            let mut stream = StreamOwned::new(tls, socket);
            let mut bytes = Vec::new();
            let mut piece = [0; 4096];
            while let Ok(length) = stream.read(&mut piece)
                && length > 0
            {
                bytes.extend_from_slice(&piece[..length]);
                if bytes.ends_with(b"}\n") && stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        });
        (port, path, thread)
    }

    fn send(url: &str) -> Answer {
        let identity = Identity::new("s", "r").unwrap();
        let row = Row { identity: &identity, log: "dns", seq: 0, time: 0, json: b"{}" };
        let mut opened = open(Address::parse(url).unwrap()).unwrap();
        // Tickets come behind the first rows, and are no end.
        let first = opened.receiver.send(&[row]);
        if first != Answer::Accepted || url.starts_with("https") {
            return first;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        opened.receiver.send(&[row])
    }

    #[test]
    fn rows_go_to_whom_an_authority_vouches_for() {
        let line = "{\"sensor\":\"s\",\"run\":\"r\",\"log\":\"dns\",\"seq\":0}\n";
        let (port, ca, read) = receiver("lines", "");
        assert_eq!(send(&format!("tls://127.0.0.1:{port}?ca={}", ca.display())), Answer::Accepted);
        assert_eq!(read.join().unwrap(), line.repeat(2), "one connection has both");
        let (port, ca, read) =
            receiver("http", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        assert_eq!(
            send(&format!("https://127.0.0.1:{port}/?ca={}", ca.display())),
            Answer::Accepted
        );
        assert!(read.join().unwrap().ends_with(line));
        std::fs::remove_file(ca).unwrap();
    }

    #[test]
    fn nobody_else_gets_a_row() {
        let (_, ca, _) = receiver("other", "");
        for scheme in ["tls", "https", "syslog+tls", "ipfix+tls"] {
            let (port, own, read) = receiver(scheme, "");
            let url = format!("{scheme}://127.0.0.1:{port}?ca={}", ca.display());
            let Answer::Later { why, .. } = send(&url) else { panic!("{scheme}") };
            assert!(why.to_lowercase().contains("certificate"), "{why}");
            assert_eq!(read.join().unwrap(), "");
            std::fs::remove_file(own).unwrap();
        }
        std::fs::remove_file(ca).unwrap();
    }
}
