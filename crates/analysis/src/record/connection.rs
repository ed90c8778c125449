//! The connection that a row tells of, and its columns, which are the same in every log.

use core::iter::Enumerate;
use core::slice::Iter;

use netsniff_packet::{Address, Timestamp};

use super::{FieldInfo, IntoValue, Origin, Port, Visitor};
use crate::key::Endpoint;
use crate::key::uid::Uid;

crate::words! {
    /// The transport protocol of a connection, in Zeek's words.
    pub enum Proto {
        /// TCP (RFC 9293).
        Tcp => "tcp",
        /// UDP (RFC 768).
        Udp => "udp",
        /// ICMP or ICMPv6.
        Icmp => "icmp",
        /// Any other protocol over IP; `ip_proto` tells which.
        Unknown => "unknown_transport",
    }
}

/// The flow that a row belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The identifier that every row of the flow has.
    pub uid: Uid,
    /// The host that began.
    pub originator: Endpoint,
    /// The host that answers.
    pub responder: Endpoint,
    /// TCP, UDP or ICMP.
    pub proto: Proto,
    /// Time of its first packet; `None` where the connection is older than that.
    pub start: Option<Timestamp>,
    /// Whether the host that began is local, and whether the one that answers is.
    pub local: [bool; 2],
}

impl Connection {
    /// That of rows which are of no single connection.
    pub const NONE: Self = {
        let nobody = Endpoint { address: Address::from_v4([0; 4]), port: 0 };
        let (uid, proto) = (Uid::NONE, Proto::Unknown);
        Self { uid, originator: nobody, responder: nobody, proto, start: None, local: [false; 2] }
    };

    /// How many columns of a row are those of its connection.
    pub const COLUMNS: usize = 5;

    /// Those columns: `uid` and the four of `id`.
    #[must_use]
    pub const fn fields(origin: Origin) -> [FieldInfo; Self::COLUMNS] {
        let mut fields = [
            crate::field_info!(
                "Identifier of the connection, the same in every log.",
                Uid,
                "uid",
                string,
                None,
                Plain,
                Zeek
            ),
            crate::field_info!(
                "Address of the originator.",
                Address,
                "id.orig_h",
                addr,
                None,
                Address,
                Zeek
            ),
            crate::field_info!(
                "Port of the originator.",
                Port,
                "id.orig_p",
                port,
                None,
                Plain,
                Zeek
            ),
            crate::field_info!(
                "Address of the responder.",
                Address,
                "id.resp_h",
                addr,
                None,
                Address,
                Zeek
            ),
            crate::field_info!(
                "Port of the responder.",
                Port,
                "id.resp_p",
                port,
                None,
                Plain,
                Zeek
            ),
        ];
        let mut at = 0;
        while at < fields.len() {
            fields[at].origin = origin;
            at += 1;
        }
        fields
    }

    /// Tells `visitor` these columns, which are the next ones of `fields`.
    pub fn visit(
        &self,
        fields: &mut Enumerate<Iter<'static, FieldInfo>>,
        visitor: &mut dyn Visitor,
    ) {
        let [orig, resp] = [self.originator, self.responder];
        let ports = [Port(orig.port), Port(resp.port)];
        let values = [
            self.uid.value(),
            orig.address.value(),
            ports[0].value(),
            resp.address.value(),
            ports[1].value(),
        ];
        for (value, (index, info)) in values.into_iter().zip(fields) {
            visitor.field(index, info, value);
        }
    }
}
