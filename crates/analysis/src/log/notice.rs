//! The `notice` log: what deserves a look, in Zeek's form.

use std::borrow::Cow;

use netsniff_packet::{Address, Timestamp};

use crate::record::{Interval, Port};

crate::words! {
    /// How sure a finding is.
    pub enum Confidence {
        /// The packets show it themselves.
        High => "high",
        /// The packets show it, but something harmless can look the same.
        Medium => "medium",
        /// It rests on what was not seen, or on few packets.
        Low => "low",
    }
}

crate::record! {
    /// One row for each finding. The same finding has one row in the time of `suppress_for`.
    pub struct Notice => "notice" {
        /// Time at which it was found.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Identifier of the connection that shows it, if one does.
        uid: Option<String> => "uid", string, None, Plain, Zeek;
        /// Address of the originator.
        id_orig_h: Option<Address> => "id.orig_h", addr, None, Address, Zeek;
        /// Port of the originator.
        id_orig_p: Option<Port> => "id.orig_p", port, None, Plain, Zeek;
        /// Address of the responder.
        id_resp_h: Option<Address> => "id.resp_h", addr, None, Address, Zeek;
        /// Port of the responder.
        id_resp_p: Option<Port> => "id.resp_p", port, None, Plain, Zeek;
        /// Identifier of the file that shows it, if one does.
        fuid: Option<String> => "fuid", string, None, Plain, Zeek;
        /// Transport protocol of the connection.
        proto: Option<&'static str> => "proto", enum, None, Plain, Zeek;
        /// What was found, by name.
        note: Cow<'static, str> => "note", enum, None, Plain, Zeek;
        /// What was found, in a sentence that names nobody.
        msg: String => "msg", string, None, Plain, Zeek;
        /// What the traffic itself says about it, such as the subject of a certificate.
        sub: Option<Box<[u8]>> => "sub", string, None, Name, Zeek;
        /// The host that did it.
        src: Option<Address> => "src", addr, None, Address, Zeek;
        /// The host to which it was done.
        dst: Option<Address> => "dst", addr, None, Address, Zeek;
        /// The port to which it was done.
        p: Option<Port> => "p", port, None, Plain, Zeek;
        /// How many: of what, `msg` says.
        n: Option<u64> => "n", count, None, Plain, Zeek;
        /// Name of the process that found it.
        peer_descr: &'static str => "peer_descr", string, None, Plain, Zeek;
        /// What is done about it: it is written to this log.
        actions: Vec<&'static str> => "actions", set[enum], None, Plain, Zeek;
        /// Time in which the same finding has no other row.
        suppress_for: Interval => "suppress_for", interval, Seconds, Plain, Zeek;
        /// How sure it is.
        confidence: Confidence => "confidence", enum, None, Plain, Netsniff;
        /// Identifiers of connections that show it, at most 10.
        uids: Vec<String> => "uids", vector[string], None, Plain, Netsniff;
        /// Quality of the capture of the connection that shows it, as in `conn`; unset where no row of `conn` was asked.
        quality: Option<String> => "quality", string, None, Plain, Netsniff;
        /// How many times the same finding was found and not told, since it was told before; unset the first time.
        suppressed: Option<u64> => "suppressed", count, None, Plain, Netsniff;
        /// What to do.
        advice: Cow<'static, str> => "advice", string, None, Plain, Netsniff;
    }
}
