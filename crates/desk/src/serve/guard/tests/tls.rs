//! TLS as a client by rustls sees it.

use std::sync::Arc;

use base64ct::Encoding as _;
use rcgen::KeyPair;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    StreamOwned,
};

use super::secrets::{Folder, refusal};
use super::*;

/// A certificate for 127.0.0.1 with its key, as PEM.
fn made() -> (String, String) {
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    (certificate.cert.pem(), certificate.signing_key.serialize_pem())
}

/// An answer over TLS, of a server that has this certificate.
fn ask(server: &Server, certificate: &str, name: &str, head: &str) -> std::io::Result<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, server.connect());
    stream.write_all(request(head).as_bytes())?;
    Ok(Answer::read(&mut stream))
}

#[test]
fn pages_are_served_over_tls_to_who_knows_the_token() {
    let folder = Folder::new("tls");
    let (certificate, key) = made();
    let (cert, key) =
        (folder.file("cert.pem", &certificate, 0o644), folder.file("key.pem", &key, 0o600));
    let mut guard =
        open(&["--listen", "0.0.0.0:0", "--tls-cert", &cert, "--tls-key", &key]).unwrap();
    guard.patience = Duration::from_secs(2);
    let server = Server::start(guard);
    let token = server.token().to_owned();
    let status = |head: &str| ask(&server, &certificate, "127.0.0.1", head).unwrap().status;
    assert_eq!(status("GET / HTTP/1.1"), 401);
    assert_eq!(status(&format!("GET / HTTP/1.1\r\nAuthorization: Bearer {token}")), 200);
    let opened = format!("GET /?token={token} HTTP/1.1");
    let opened = ask(&server, &certificate, "127.0.0.1", &opened).unwrap();
    let cookie = opened.header("set-cookie").unwrap();
    let port = server.address.port();
    assert!(cookie.starts_with(&format!("__Host-netsniff-{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(status(&format!("GET / HTTP/1.1\r\nCookie: {pair}")), 200);

    // Who speaks no TLS has no answer; who says nothing holds up nobody, and has its time.
    let mut plain = server.connect();
    plain.write_all(request("GET / HTTP/1.1").as_bytes()).unwrap();
    let mut said = Vec::new();
    let _ = plain.read_to_end(&mut said);
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    let mut silent = server.connect();
    assert_eq!(status("GET / HTTP/1.1"), 401);
    assert_eq!(silent.read_to_end(&mut said).map(|_| ()).ok(), Some(()));
}

/// The certificate that a server shows to who trusts nobody, since it stands in the handshake before it is judged.
fn certificate_of(server: &Server) -> Vec<u8> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    connection.complete_io(&mut server.connect()).unwrap();
    connection.peer_certificates().unwrap()[0].to_vec()
}

/// Trusts whatever it is shown.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[test]
fn a_certificate_that_is_made_has_the_names_and_the_fingerprint_that_are_told() {
    let guard = open(&["--tls-self-signed", "--name", "sensor.example"]).unwrap();
    let told = guard.identity.as_ref().unwrap().fingerprint.clone();
    let server = Server::start(guard);
    // A first connection only to see the certificate, as a browser shows it before it is trusted.
    let certificate = certificate_of(&server);
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&certificate);
    let hex: Vec<_> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    assert_eq!(told, hex.join(":"));
    let lines = base64ct::Base64::encode_string(&certificate);
    let pem = format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n");
    for name in ["127.0.0.1", "localhost", "sensor.example"] {
        assert_eq!(ask(&server, &pem, name, "GET / HTTP/1.1").unwrap().status, 200, "{name}");
    }
    assert!(ask(&server, &pem, "other.example", "GET / HTTP/1.1").is_err());
}

#[test]
fn keys_that_others_can_read_or_of_another_certificate_are_refused() {
    let folder = Folder::new("keys");
    let (certificate, key) = made();
    let cert = folder.file("cert.pem", &certificate, 0o644);
    let other = KeyPair::generate().unwrap().serialize_pem();
    for (name, content, mode, said) in [
        ("open", key.as_str(), 0o604, "chmod 600"),
        ("other", &other, 0o600, "cannot be used with the key"),
        ("none", "what?", 0o600, "no private key"),
        ("certificate", &certificate, 0o600, "no private key"),
    ] {
        let key = folder.file(name, content, mode);
        assert!(refusal(&["--tls-cert", &cert, "--tls-key", &key]).contains(said), "{name}");
    }
    let key = folder.file("key.pem", &key, 0o640);
    assert!(open(&["--tls-cert", &cert, "--tls-key", &key]).is_ok());
    let empty = folder.file("empty.pem", "", 0o644);
    assert!(refusal(&["--tls-cert", &empty, "--tls-key", &key]).contains("no certificate"));
}
