//! The `ssh` log: one row for each SSH connection, as Zeek writes it.

use netsniff_packet::Timestamp;

use crate::record::Connection;

crate::words! {
    /// Whether a connection leaves the site.
    pub(super) enum Direction {
        /// From a global address to a local one.
        Inbound => "INBOUND",
        /// From a local address to a global one.
        Outbound => "OUTBOUND",
    }
}

crate::record! {
    /// One row for each SSH connection: who speaks, what they agree on, and whether the login
    /// seems to have succeeded.
    pub(super) struct Ssh => "ssh" {
        /// Time of the first identification string; on other ports than 22 of the second one.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek, Self::place;
        /// Version that both sides speak, 1 or 2.
        version: Option<u8> => "version", count, None, Plain, Zeek;
        /// Whether the last attempt to log in succeeded, inferred from the sizes of the server's
        /// encrypted answers; unset where they do not tell, and where they are compressed.
        auth_success: Option<bool> => "auth_success", bool, None, Plain, Zeek;
        /// Attempts to log in that were seen. The first failure only tells how failures look. Unset where
        /// the stream is cut so that sizes do not tell.
        auth_attempts: Option<u64> => "auth_attempts", count, Times, Plain, Zeek;
        /// Whether the connection leaves the site; unset where both ends are local, or none is.
        direction: Option<Direction> => "direction", enum, None, Plain, Zeek;
        /// The client's identification string.
        client: Option<Box<[u8]>> => "client", string, None, FreeText, Zeek;
        /// The server's identification string.
        server: Option<Box<[u8]>> => "server", string, None, FreeText, Zeek;
        /// Cipher that is agreed on; where the directions differ, what each uses.
        cipher_alg: Option<Box<[u8]>> => "cipher_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Message authentication code that is agreed on, where the cipher needs one.
        mac_alg: Option<Box<[u8]>> => "mac_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Compression that is agreed on.
        compression_alg: Option<Box<[u8]>> => "compression_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Key exchange that is agreed on.
        kex_alg: Option<Box<[u8]>> => "kex_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Type of the server's host key that is agreed on.
        host_key_alg: Option<Box<[u8]>> => "host_key_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Begin of the fingerprint of the server's host key as `ssh-keygen -l` prints it: like Zeek,
        /// the first 32 of its 43 letters.
        host_key_fingerprint: Option<String> => "host_key_fingerprint", string, None, ContentHash, Zeek;
        /// HASSH: MD5 of what the client offers.
        hassh: Option<String> => "hassh", string, None, ContentHash, Netsniff;
        /// HASSHServer: MD5 of what the server offers.
        hassh_server: Option<String> => "hassh_server", string, None, ContentHash, Netsniff;
    }
}

impl Ssh {
    /// Sets the direction, which the connection tells.
    fn place(&mut self, connection: &Connection) {
        self.direction = match connection.local {
            [true, false] => Some(Direction::Outbound),
            [false, true] => Some(Direction::Inbound),
            _ => None,
        };
    }
}
