//! A connection up to its login: a row of the log.

use netsniff_packet::Timestamp;
use sha2::{Digest, Sha256};

use super::algorithms::Agreed;
use super::log::Ssh;
use super::version::{Speaks, Version};
use crate::protocol::Role;
use crate::protocol::syntax::base64;

/// Letters of a host key's fingerprint that Zeek writes: those of the first 24 bytes.
const FINGERPRINT_BYTES: usize = 24;

/// What an SSH connection tells of itself before it is encrypted.
#[derive(Debug)]
pub(super) struct Login {
    /// The row of the log, as far as it is known.
    pub(super) row: Ssh,
    pub(super) agreed: Option<Agreed>,
}

impl Login {
    /// A login of which nothing is known but when it began.
    pub(super) const fn begun(ts: Timestamp) -> Self {
        let row = Ssh {
            ts,
            version: None,
            auth_success: None,
            auth_attempts: Some(0),
            direction: None,
            client: None,
            server: None,
            cipher_alg: None,
            mac_alg: None,
            compression_alg: None,
            kex_alg: None,
            host_key_alg: None,
            host_key_fingerprint: None,
            hassh: None,
            hassh_server: None,
        };
        Self { row, agreed: None }
    }

    /// The identification string of a side.
    pub(super) const fn identification(&mut self, side: Role) -> &mut Option<Box<[u8]>> {
        match side {
            Role::Originator => &mut self.row.client,
            Role::Responder => &mut self.row.server,
        }
    }

    /// Whether a side has sent its identification string.
    pub(super) const fn is_identified(&self, side: Role) -> bool {
        match side {
            Role::Originator => self.row.client.is_some(),
            Role::Responder => self.row.server.is_some(),
        }
    }

    /// HASSH of the client, HASSHServer of the server.
    pub(super) const fn hassh(&mut self, side: Role) -> &mut Option<String> {
        match side {
            Role::Originator => &mut self.row.hassh,
            Role::Responder => &mut self.row.hassh_server,
        }
    }

    /// What a side says that it speaks.
    pub(super) fn speaks(&self, side: Role) -> Option<Speaks> {
        let identification = match side {
            Role::Originator => &self.row.client,
            Role::Responder => &self.row.server,
        };
        Speaks::of(identification.as_deref()?)
    }

    /// Takes the server's host key.
    pub(super) fn host_key(&mut self, key: &[u8]) {
        let digest = Sha256::digest(key);
        let text = format!("SHA256:{}", base64::encode(&digest[..FINGERPRINT_BYTES]));
        self.row.host_key_fingerprint = Some(text);
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let row = &self.row;
        let texts =
            [&row.hassh, &row.hassh_server, &row.host_key_fingerprint].into_iter().flatten();
        let identifications = [&row.client, &row.server].into_iter().flatten();
        identifications.map(|text| text.len()).sum::<usize>()
            + texts.map(String::capacity).sum::<usize>()
            + self.agreed.as_ref().map_or(0, Agreed::heap_bytes)
    }

    /// The row of the log, with what became of the attempts to log in.
    pub(super) fn into_row(self, success: Option<bool>, attempts: Option<u64>) -> Ssh {
        let [client, server] = [Role::Originator, Role::Responder].map(|side| self.speaks(side));
        let version = client.zip(server).and_then(|(client, server)| client.agreed(server));
        let Self { mut row, agreed } = self;
        row.version = version.map(|version| match version {
            Version::One => 1,
            Version::Two => 2,
        });
        (row.auth_success, row.auth_attempts) = (success, attempts);
        if let Some(agreed) = agreed {
            row.cipher_alg = Some(agreed.cipher);
            row.mac_alg = Some(agreed.mac);
            row.compression_alg = Some(agreed.compression);
            row.kex_alg = Some(agreed.key_exchange);
            row.host_key_alg = Some(agreed.host_key);
        }
        row
    }
}
