//! Certificates of a negotiation, and what OCSP says of them.

use std::sync::Arc;

use super::{Negotiation, Sender, Unreadable};
use crate::protocol::file_transfer::FileTransfer;
use crate::protocol::session::findings::Findings;
use crate::protocol::tls::known::TlsCache;
use crate::protocol::tls::reader::Reader;
use crate::protocol::x509::Presented;

/// Certificates of one side that are told. Chains have five; a side that sends more in one message
/// after another would fill the log.
const MAX_CERTIFICATES: usize = 100;

/// `ocsp`, RFC 6066 section 8.
const OCSP: u8 = 1;

/// Replies of OCSP of one conversation that are told. A handshake has one.
const MAX_STAPLES: u64 = 20;

impl Negotiation {
    /// Takes the certificates of a side.
    pub(super) fn certificates(
        &mut self,
        sender: Sender,
        body: &[u8],
        found: &mut Findings,
    ) -> Result<(), Unreadable> {
        let mut list = Reader::new(Reader::new(body).vector24().ok_or("SSL_invalid_certificates")?);
        let mut is_first = true;
        while !list.is_empty() {
            let certificate = list.vector24().ok_or("SSL_invalid_certificates")?;
            self.certificate(sender, certificate, is_first, found);
            is_first = false;
        }
        Ok(())
    }

    /// Takes the reply of OCSP that a server sends beside its certificate, which is a file (RFC 6066,
    /// section 8).
    pub(super) fn certificate_status(&mut self, sender: Sender, body: &[u8], found: &mut Findings) {
        let mut reader = Reader::new(body);
        let (Some(files), Some(OCSP), Some(_)) = (self.files, reader.u8(), reader.u24()) else {
            return;
        };
        if self.staples >= MAX_STAPLES {
            found.weirds.add("SSL_too_many_staples");
            return;
        }
        let mut file = FileTransfer::begin(files, self.staples, sender.from, "SSL");
        self.staples += 1;
        file.set_ocsp_reply();
        file.bytes(sender.time, reader.rest(), found);
        file.end(found);
    }

    /// Takes one of them.
    pub(super) fn certificate(
        &mut self,
        sender: Sender,
        bytes: &[u8],
        is_host: bool,
        found: &mut Findings,
    ) {
        if bytes.is_empty() {
            found.weirds.add("zero_length_certificate");
            return;
        }
        let is_client = self.is_client(sender.from);
        let chain = self.row.chain(is_client);
        let is_first_of_server = !is_client && chain.is_empty();
        if chain.len() >= MAX_CERTIFICATES {
            found.weirds.add("SSL_too_many_certificates");
            return;
        }
        let Some(seen) = found.caches.of::<TlsCache>().certificate(bytes) else {
            found.weirds.add("x509_cert_parse_error");
            return;
        };
        chain.push(Arc::clone(seen.certificate.fingerprint()));
        if is_first_of_server && is_host {
            let name = self.row.server_name.as_deref();
            self.row.sni_matches_cert = name.map(|name| seen.certificate.is_for(name));
        }
        let certificate = Arc::clone(&seen.certificate);
        let presented = Presented { certificate, time: sender.time, is_host, is_client };
        if seen.is_news(&presented) {
            found.fact(presented);
        }
    }
}
