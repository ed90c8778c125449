//! Certificates and hellos that came before, with what was made of them.

use std::sync::Arc;

use super::fingerprint::{self, Carrier};
use super::hello::{ClientHello, ServerHello};
use crate::protocol::session::recent::{Held, Recent};
use crate::protocol::x509::{Certificate, Presented};

/// What all conversations of a worker share.
#[derive(Debug, Default)]
pub(super) struct TlsCache {
    certificates: Recent<CachedCertificate>,
    /// By what JA3 and JA4 read of a ClientHello.
    clients: Recent<ClientPrint>,
    /// By what JA3S reads of a ServerHello.
    servers: Recent<Arc<str>>,
    /// What is to be looked for, in memory that is used again and again.
    key: Vec<u8>,
}

/// Fingerprints of a client.
#[derive(Clone, Debug)]
pub(super) struct ClientPrint {
    /// JA3.
    pub(super) ja3: Arc<str>,
    /// JA4.
    pub(super) ja4: Arc<str>,
}

/// A certificate, and when it was told.
#[derive(Debug)]
pub(super) struct CachedCertificate {
    /// The certificate with what was read of it.
    pub(super) certificate: Arc<Certificate>,
    /// The last day on which it was told, in each of its roles.
    told: [Option<i64>; Presented::ROLES],
}

impl CachedCertificate {
    /// Whether it was not told in this role on this day, which from now on it was.
    pub(super) fn is_news(&mut self, presented: &Presented) -> bool {
        let day = Some(presented.day());
        let told = self.told.get_mut(presented.role());
        told.is_none_or(|told| core::mem::replace(told, day) != day)
    }
}

impl TlsCache {
    /// The certificate that these bytes are; `None` where they are none.
    pub(super) fn certificate(&mut self, bytes: &[u8]) -> Option<&mut CachedCertificate> {
        self.certificates.of(bytes, |bytes| {
            let certificate = Arc::new(Certificate::of(bytes)?);
            Some(CachedCertificate { certificate, told: [None; Presented::ROLES] })
        })
    }

    /// The fingerprints of a client.
    pub(super) fn client(
        &mut self,
        hello: &ClientHello<'_>,
        carrier: Carrier,
    ) -> Option<ClientPrint> {
        self.key.clear();
        fingerprint::client_key(hello, carrier, &mut self.key);
        let make = |_: &[u8]| {
            let ja3 = fingerprint::ja3(hello).into();
            Some(ClientPrint { ja3, ja4: fingerprint::ja4(hello, carrier).into() })
        };
        self.clients.of(&self.key, make).cloned()
    }

    /// JA3S of a server.
    pub(super) fn server(&mut self, hello: &ServerHello<'_>) -> Option<Arc<str>> {
        self.key.clear();
        fingerprint::server_key(hello, &mut self.key);
        self.servers.of(&self.key, |_| Some(fingerprint::ja3s(hello).into())).cloned()
    }
}

impl Held for TlsCache {
    fn heap_bytes(&self) -> usize {
        self.certificates.heap_bytes() + self.clients.heap_bytes() + self.servers.heap_bytes()
    }
}

impl Held for CachedCertificate {
    fn heap_bytes(&self) -> usize {
        size_of::<Certificate>() + self.certificate.heap_bytes()
    }
}

impl Held for ClientPrint {
    fn heap_bytes(&self) -> usize {
        self.ja3.len() + self.ja4.len()
    }
}

impl Held for Arc<str> {
    fn heap_bytes(&self) -> usize {
        self.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::hello::tests::{client, server};
    use super::*;
    use crate::protocol::x509::tests::{example, presented};

    #[test]
    fn certificates_are_news_once_a_day_in_each_role() {
        let (mut known, bytes) = (TlsCache::default(), example());
        let mut is_news =
            |time, is_host| known.certificate(&bytes).unwrap().is_news(&presented(time, is_host));
        let day = 86_400_000_000_000;
        assert!(is_news(5, true));
        assert!(!is_news(day - 1, true));
        assert!(is_news(day - 1, false));
        assert!(is_news(day, true));
        assert!(!is_news(day, true));
    }

    #[test]
    fn the_same_bytes_are_the_same_certificate() {
        let (mut known, bytes) = (TlsCache::default(), example());
        let first = Arc::clone(&known.certificate(&bytes).unwrap().certificate);
        assert!(Arc::ptr_eq(&first, &known.certificate(&bytes).unwrap().certificate));
        assert!(known.certificate(&bytes[1..]).is_none());
        assert!(known.heap_bytes() > bytes.len() + first.heap_bytes());
    }

    /// Each difference that a fingerprint shows must be one of what it is looked for by.
    #[test]
    fn fingerprints_that_are_known_are_those_that_were_made() {
        let contents = [vec![], vec![0, 2, 0, 29], vec![1, 0], vec![3, 2, b'h', b'2']];
        let mut hellos = Vec::new();
        for version in [0x0301, 0x0303] {
            for suites in [&[47][..], &[47, 53], &[53, 47], &[0x0a0a, 47]] {
                for kind in [0, 10, 11, 13, 16, 43, 0x1a1a] {
                    for content in &contents {
                        hellos.push(client(version, &[], suites, &[(kind, content.clone())]));
                        let twice = [(kind, content.clone()), (13, vec![0, 2, 4, 3])];
                        hellos.push(client(version, &[], suites, &twice));
                    }
                }
            }
        }
        let mut known = TlsCache::default();
        for carrier in [Carrier::Tcp, Carrier::Quic, Carrier::Dtls] {
            for body in hellos.iter().chain(&hellos) {
                let hello = ClientHello::of(body, false).unwrap();
                let print = known.client(&hello, carrier).unwrap();
                assert_eq!(*print.ja3, *fingerprint::ja3(&hello));
                assert_eq!(*print.ja4, *fingerprint::ja4(&hello, carrier));
            }
        }
        let servers = [(0x0303, 47, 0), (0x0303, 53, 0), (0x0301, 47, 0), (0x0303, 47, 11)];
        for (version, cipher, kind) in servers.into_iter().chain(servers) {
            let body = server(version, &[], cipher, &[(kind, vec![])]);
            let hello = ServerHello::of(&body).unwrap();
            assert_eq!(*known.server(&hello).unwrap(), *fingerprint::ja3s(&hello));
        }
    }
}
