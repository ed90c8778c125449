//! The `imap` log: what became of connections and mailboxes in IMAP. Zeek has none.

use netsniff_packet::Timestamp;

use crate::key::uid::Uid;

crate::record! {
    /// One row for each connection in IMAP, without a mailbox, and one for each mailbox that it
    /// selected or added mails to.
    #[derive(Default)]
    pub(super) struct Imap => "imap" {
        /// Time of the greeting, or when the mailbox was first selected or added to.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        connection Netsniff;
        /// What the server says first.
        greeting: Option<Box<[u8]>> => "greeting", string, None, FreeText, Netsniff;
        /// Who the client says it is, in its last attempt.
        user: Option<Box<[u8]>> => "user", string, None, User, Netsniff;
        /// How it proves that: `LOGIN`, or a known SASL mechanism.
        auth_mechanism: Option<&'static str> => "auth_mechanism", string, None, Plain, Netsniff;
        /// Whether the server believed it; unset without an attempt, and before it said so.
        auth_success: Option<bool> => "auth_success", bool, None, Plain, Netsniff;
        /// Attempts that the server refused.
        auth_failures: u32 => "auth_failures", count, Times, Plain, Netsniff;
        /// Whether the connection changed to TLS.
        tls: bool => "tls", bool, None, Plain, Netsniff;
        /// Name of the mailbox; unset in the row of the connection.
        mailbox: Option<Box<[u8]>> => "mailbox", string, None, FreeText, Netsniff;
        /// Whether it was selected to read only.
        read_only: Option<bool> => "read_only", bool, None, Plain, Netsniff;
        /// Mails in it, as the server told last.
        exists: Option<u64> => "exists", count, Times, Plain, Netsniff;
        /// Commands that the server accepted while it was selected; for the connection all others.
        commands: u32 => "commands", count, Times, Plain, Netsniff;
        /// Commands that the server refused while it was selected; for the connection all others.
        errors: u32 => "errors", count, Times, Plain, Netsniff;
        /// Commands among them that fetched something of mails.
        fetches: u32 => "fetches", count, Times, Plain, Netsniff;
        /// Those that changed flags.
        stores: u32 => "stores", count, Times, Plain, Netsniff;
        /// Those that searched.
        searches: u32 => "searches", count, Times, Plain, Netsniff;
        /// Those that copied or moved mails out of it.
        copies: u32 => "copies", count, Times, Plain, Netsniff;
        /// Those that added mails to it, whichever mailbox was selected.
        appends: u32 => "appends", count, Times, Plain, Netsniff;
        /// Mails that were removed from it.
        expunged: u32 => "expunged", count, Times, Plain, Netsniff;
        /// Bytes of mails and of their parts that were fetched as literals.
        fetched_bytes: u64 => "fetched_bytes", count, Bytes, Plain, Netsniff;
        /// Identifiers of the files in the mails that were fetched or added as a whole.
        fuids: Vec<Uid> => "fuids", vector[string], None, Plain, Netsniff;
    }
}
