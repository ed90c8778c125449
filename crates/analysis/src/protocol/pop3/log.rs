//! The `pop3` log: one row for each connection in which mails are fetched by POP3. Zeek has none.

use netsniff_packet::Timestamp;

use crate::key::uid::Uid;

crate::record! {
    /// One row for each connection in POP3: who logged in, and what became of the mails.
    #[derive(Default)]
    pub(super) struct Pop3 => "pop3" {
        /// Time of the greeting.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        connection Netsniff;
        /// What the server says first.
        greeting: Option<Box<[u8]>> => "greeting", string, None, FreeText, Netsniff;
        /// Who the client says it is, in its last attempt.
        user: Option<Box<[u8]>> => "user", string, None, User, Netsniff;
        /// How it proves that: `USER` for USER and PASS, `APOP`, or a known SASL mechanism.
        auth_mechanism: Option<&'static str> => "auth_mechanism", string, None, Plain, Netsniff;
        /// Whether the server believed it; unset without an attempt, and before it said so.
        auth_success: Option<bool> => "auth_success", bool, None, Plain, Netsniff;
        /// Attempts that the server refused.
        auth_failures: u32 => "auth_failures", count, Times, Plain, Netsniff;
        /// Whether the connection changed to TLS.
        tls: bool => "tls", bool, None, Plain, Netsniff;
        /// Mails that lie there, by the last reply to STAT.
        mailbox_messages: Option<u64> => "mailbox_messages", count, Times, Plain, Netsniff;
        /// Bytes that they take, by the same reply.
        mailbox_bytes: Option<u64> => "mailbox_bytes", count, Bytes, Plain, Netsniff;
        /// Mails that were fetched: commands RETR that the server accepted.
        retrieved: u32 => "retrieved", count, Times, Plain, Netsniff;
        /// Bytes of mails and begins of mails that came, each line with two for its end.
        retrieved_bytes: u64 => "retrieved_bytes", count, Bytes, Plain, Netsniff;
        /// Mails that were marked to be deleted.
        deleted: u32 => "deleted", count, Times, Plain, Netsniff;
        /// Commands that the server refused.
        errors: u32 => "errors", count, Times, Plain, Netsniff;
        /// Whether the server accepted QUIT, which is when it deletes what is marked.
        quit: bool => "quit", bool, None, Plain, Netsniff;
        /// Identifiers of the files in the mails.
        fuids: Vec<Uid> => "fuids", vector[string], None, Plain, Netsniff;
    }
}
