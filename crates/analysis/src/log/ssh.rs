//! The `ssh` log: one row for each SSH connection, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::Port;
use crate::uid::Uid;

crate::words! {
    /// Whether a connection leaves the site.
    pub enum Direction {
        /// From a global address to a local one.
        Inbound => "INBOUND",
        /// From a local address to a global one.
        Outbound => "OUTBOUND",
    }
}

crate::record! {
    /// One row for each SSH connection: who speaks, what they agree on, and whether the login
    /// seems to have succeeded.
    pub struct Ssh<'a> => "ssh" {
        /// Time of the first identification string; on other ports than 22 of the second one.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the connection, the same in every log.
        uid: Uid => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Address => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Port => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Address => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Port => "id.resp_p", port, None, Plain, Zeek;
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
        client: Option<&'a [u8]> => "client", string, None, FreeText, Zeek;
        /// The server's identification string.
        server: Option<&'a [u8]> => "server", string, None, FreeText, Zeek;
        /// Cipher that is agreed on; where the directions differ, what each uses.
        cipher_alg: Option<&'a [u8]> => "cipher_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Message authentication code that is agreed on, where the cipher needs one.
        mac_alg: Option<&'a [u8]> => "mac_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Compression that is agreed on.
        compression_alg: Option<&'a [u8]> => "compression_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Key exchange that is agreed on.
        kex_alg: Option<&'a [u8]> => "kex_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Type of the server's host key that is agreed on.
        host_key_alg: Option<&'a [u8]> => "host_key_alg", string, None, Word(SshAlgorithm), Zeek;
        /// Begin of the fingerprint of the server's host key as `ssh-keygen -l` prints it: like Zeek,
        /// the first 32 of its 43 letters.
        host_key_fingerprint: Option<&'a str> => "host_key_fingerprint", string, None, ContentHash, Zeek;
        /// HASSH: MD5 of what the client offers.
        hassh: Option<&'a str> => "hassh", string, None, ContentHash, Netsniff;
        /// HASSHServer: MD5 of what the server offers.
        hassh_server: Option<&'a str> => "hassh_server", string, None, ContentHash, Netsniff;
    }
}
