//! A connection up to its login: a row of the log.

use netsniff_packet::Timestamp;
use sha2::{Digest, Sha256};

use super::algorithms::Agreed;
use super::version::{Speaks, Version};
use crate::flow::roles::is_local;
use crate::log::ssh::{Direction, Ssh};
use crate::protocol::{Connection, Role, base64};
use crate::record::Port;

/// Letters of a host key's fingerprint that Zeek writes: those of the first 24 bytes.
const FINGERPRINT_BYTES: usize = 24;

/// What an SSH connection tells of itself before it is encrypted, and how its login ended.
#[derive(Debug)]
pub struct Login {
    /// Time of the first identification string; on ports of others, of the second.
    pub(super) start: Timestamp,
    /// Identification strings, by [`Role`].
    pub(super) identifications: [Option<Box<[u8]>>; 2],
    pub(super) agreed: Option<Agreed>,
    pub(super) host_key_fingerprint: Option<String>,
    /// HASSH and HASSHServer.
    pub(super) hassh: [Option<String>; 2],
    /// Whether the login succeeded.
    pub(super) success: Option<bool>,
    /// Attempts that were seen; `None` where nothing tells.
    pub(super) attempts: Option<u64>,
}

impl Login {
    /// A login of which nothing is known but when it began.
    pub(super) const fn begun(start: Timestamp) -> Self {
        Self {
            start,
            identifications: [None, None],
            agreed: None,
            host_key_fingerprint: None,
            hassh: [None, None],
            success: None,
            attempts: Some(0),
        }
    }

    /// What a side says that it speaks.
    pub(super) fn speaks(&self, side: Role) -> Option<Speaks> {
        Speaks::of(self.identifications[side.index()].as_deref()?)
    }

    /// Takes the server's host key.
    pub(super) fn host_key(&mut self, key: &[u8]) {
        let digest = Sha256::digest(key);
        let text = format!("SHA256:{}", base64::encode(&digest[..FINGERPRINT_BYTES]));
        self.host_key_fingerprint = Some(text);
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let texts = self.hassh.iter().chain([&self.host_key_fingerprint]).flatten();
        self.identifications.iter().flatten().map(|text| text.len()).sum::<usize>()
            + texts.map(String::capacity).sum::<usize>()
            + self.agreed.as_ref().map_or(0, Agreed::heap_bytes)
    }

    /// Hands the row of the log to `take`.
    pub fn report<T>(&self, connection: &Connection, take: impl FnOnce(&Ssh<'_>) -> T) -> T {
        let [client, server] = [Role::Originator, Role::Responder].map(|side| self.speaks(side));
        let version = client.zip(server).and_then(|(client, server)| client.agreed(server));
        let [orig, resp] = [connection.originator, connection.responder];
        let direction = match [orig, resp].map(|end| is_local(end.address)) {
            [true, false] => Some(Direction::Outbound),
            [false, true] => Some(Direction::Inbound),
            _ => None,
        };
        let agreed = self.agreed.as_ref();
        take(&Ssh {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: orig.address,
            id_orig_p: Port(orig.port),
            id_resp_h: resp.address,
            id_resp_p: Port(resp.port),
            version: version.map(|version| match version {
                Version::One => 1,
                Version::Two => 2,
            }),
            auth_success: self.success,
            auth_attempts: self.attempts,
            direction,
            client: self.identifications[0].as_deref(),
            server: self.identifications[1].as_deref(),
            cipher_alg: agreed.map(|agreed| &*agreed.cipher),
            mac_alg: agreed.map(|agreed| &*agreed.mac),
            compression_alg: agreed.map(|agreed| &*agreed.compression),
            kex_alg: agreed.map(|agreed| &*agreed.key_exchange),
            host_key_alg: agreed.map(|agreed| &*agreed.host_key),
            host_key_fingerprint: self.host_key_fingerprint.as_deref(),
            hassh: self.hassh[0].as_deref(),
            hassh_server: self.hassh[1].as_deref(),
        })
    }
}
