//! Headers between the link layer and the network layer: each moves the headers of everything that
//! is bound after it.

use super::link::{Kind, Layout, ether_type};
use super::{Binder, Id, Refusal};

/// MPLS unicast in PPP, RFC 3032, 4.3.
const PPP_MPLS_UNICAST: u32 = 0x0281;

impl Binder {
    /// An IEEE 802.1Q or 802.1ad tag; what comes after looks behind it.
    pub(super) fn vlan(&mut self, number: Option<u32>) -> Result<Id, Refusal> {
        if self.layout.is_labelled() {
            return Err("no VLAN can be matched after \"mpls\"".to_owned());
        }
        if self.layout.kind != Kind::Ethernet {
            return Err(self.layout.refuse("\"vlan\""));
        }
        let at = self.layout.type_field;
        let tags = [ether_type::VLAN, ether_type::SERVICE_VLAN, ether_type::OLD_QINQ]
            .map(|tag| self.equal(at, 2, tag));
        let two = self.or(tags[0], tags[1]);
        let mut tagged = self.or(two, tags[2]);
        if let Some(number) = number {
            let same = self.masked(self.layout.network()?, 2, number, 0xfff);
            tagged = self.and(tagged, same);
        }
        self.layout.type_field = at.wrapping_add(4);
        self.layout.payload = self.layout.payload.wrapping_add(4);
        Ok(tagged)
    }

    /// An MPLS label, RFC 3032; what comes after looks behind it.
    pub(super) fn mpls(&mut self, label: Option<u32>) -> Result<Id, Refusal> {
        let network = self.layout.network()?;
        let mut labelled = match self.layout.kind {
            // The label before is not the last one.
            _ if self.layout.is_labelled() => self.masked(network.wrapping_sub(2), 1, 0, 1),
            Kind::Ethernet => self.link_type(ether_type::MPLS)?,
            Kind::Ppp => self.link_type(PPP_MPLS_UNICAST)?,
            _ => return Err(self.layout.refuse("\"mpls\"")),
        };
        if let Some(label) = label {
            let same = self.masked(network, 4, label << 12, 0xffff_f000);
            labelled = self.and(labelled, same);
        }
        self.layout.network = self.layout.network.wrapping_add(4);
        self.layout.network_after_llc = self.layout.network_after_llc.wrapping_add(4);
        self.layout.labels += 1;
        Ok(labelled)
    }

    /// A PPPoE session packet, RFC 2516; what comes after looks at the PPP packet in it.
    pub(super) fn pppoe_session(&mut self, session: Option<u32>) -> Result<Id, Refusal> {
        let mut is_session = self.link_type(ether_type::PPPOE_SESSION)?;
        let network = self.layout.network()?;
        if let Some(session) = session {
            let same = self.masked(network, 4, session, 0xffff);
            is_session = self.and(is_session, same);
        }
        let packet = network.wrapping_add(6);
        self.layout = Layout {
            kind: Kind::Ppp,
            link_header: packet,
            type_field: packet,
            payload: packet.wrapping_add(2),
            network: 0,
            network_after_llc: 0,
            ..self.layout
        };
        Ok(is_session)
    }
}
