//! The `smtp` log: one row for each mail, as Zeek writes it.

use netsniff_packet::{Address, Timestamp};

use crate::record::Connection;

use crate::key::uid::Uid;

crate::record! {
    /// One row for each mail that a client sends or tries to send, and for each connection that
    /// changes to TLS.
    #[derive(Default)]
    pub(super) struct Smtp => "smtp" {
        /// Time of the greeting, of the final reply to the mail before, or of the first command.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        connection Zeek, Self::place;
        /// The how-manieth mail of the connection it is.
        trans_depth: u32 => "trans_depth", count, None, Plain, Zeek;
        /// What the client calls itself.
        helo: Option<Box<[u8]>> => "helo", string, None, Name, Zeek;
        /// Address of the sender by the command MAIL.
        mailfrom: Option<Box<[u8]>> => "mailfrom", string, None, User, Zeek;
        /// Addresses of the recipients by the commands RCPT.
        rcptto: Option<Vec<Box<[u8]>>> => "rcptto", set[string], None, User, Zeek;
        /// Header field Date.
        date: Option<Box<[u8]>> => "date", string, None, FreeText, Zeek;
        /// Header field From.
        from: Option<Box<[u8]>> => "from", string, None, User, Zeek;
        /// The addressees in the header fields To.
        to: Option<Vec<Box<[u8]>>> => "to", set[string], None, User, Zeek;
        /// The addressees in the header fields Cc.
        cc: Option<Vec<Box<[u8]>>> => "cc", set[string], None, User, Zeek;
        /// Header field Reply-To.
        reply_to: Option<Box<[u8]>> => "reply_to", string, None, User, Zeek;
        /// Header field Message-ID.
        msg_id: Option<Box<[u8]>> => "msg_id", string, None, User, Zeek;
        /// Header field In-Reply-To.
        in_reply_to: Option<Box<[u8]>> => "in_reply_to", string, None, User, Zeek;
        /// Header field Subject, as it was written: encoded words stay encoded.
        subject: Option<Box<[u8]>> => "subject", string, None, FreeText, Zeek;
        /// The address in the header field X-Originating-IP.
        x_originating_ip: Option<Address> => "x_originating_ip", addr, None, Address, Zeek;
        /// The last header field Received, which tells where the mail began.
        first_received: Option<Box<[u8]>> => "first_received", string, None, FreeText, Zeek;
        /// The last but one header field Received.
        second_received: Option<Box<[u8]>> => "second_received", string, None, FreeText, Zeek;
        /// The last reply of the server to it, with its code.
        last_reply: Option<Box<[u8]>> => "last_reply", string, None, FreeText, Zeek;
        /// The hosts that it passed, the last first: both ends of the connection, then those of the
        /// header fields Received.
        path: Vec<Address> => "path", vector[addr], None, Address, Zeek;
        /// The program that wrote it: header field User-Agent, X-Mailer or X-User-Agent.
        user_agent: Option<Box<[u8]>> => "user_agent", string, None, FreeText, Zeek;
        /// Whether the connection changed to TLS.
        tls: bool => "tls", bool, None, Plain, Zeek;
        /// Identifiers of the files that it brings.
        fuids: Vec<Uid> => "fuids", vector[string], None, Plain, Zeek;
        /// Its parts that have no parts themselves; unset where its content was not seen.
        parts: Option<u64> => "parts", count, Times, Plain, Netsniff;
        /// Content types of the parts as they are told, in lower case.
        part_types: Option<Vec<Box<[u8]>>> => "part_types", vector[string], None, Word(MediaType), Netsniff;
        /// Names of the parts that have one, decoded.
        part_names: Option<Vec<Box<[u8]>>> => "part_names", vector[string], None, FreeText, Netsniff;
        /// How the client proved who it is: the SASL mechanism, where it is a known one.
        auth_mechanism: Option<&'static str> => "auth_mechanism", string, None, Plain, Netsniff;
        /// Who it said it is.
        auth_user: Option<Box<[u8]>> => "auth_user", string, None, User, Netsniff;
        /// Whether the server believed it; unset before it said so.
        auth_success: Option<bool> => "auth_success", bool, None, Plain, Netsniff;
    }
}

impl Smtp {
    /// Puts both ends of the connection before the hosts that the header fields tell.
    fn place(&mut self, connection: &Connection) {
        let hosts = core::mem::take(&mut self.path);
        self.path = vec![connection.responder.address, connection.originator.address];
        for host in hosts {
            if self.path.last() != Some(&host) {
                self.path.push(host);
            }
        }
    }
}
