//! The protocol layers that a walk met, and oddities that did not end it.

macro_rules! layers {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// One protocol layer below the application.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Layer {
            $($(#[$doc])* $variant,)*
        }

        impl Layer {
            /// Every layer, in the order of its numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name as Wireshark's protocol hierarchy has it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

layers! {
    /// Ethernet II or IEEE 802.3.
    Ethernet = "eth",
    /// Linux cooked capture, either version.
    Cooked = "sll",
    /// BSD null or loopback.
    Loopback = "null",
    /// PPP.
    Ppp = "ppp",
    /// IEEE 802.11.
    Wlan = "wlan",
    /// Radiotap.
    Radiotap = "radiotap",
    /// Netfilter log.
    Nflog = "nflog",
    /// 802.1Q or 802.1ad.
    Vlan = "vlan",
    /// VN-Tag, which port extenders put before the tags of VLANs.
    VnTag = "vntag",
    /// E-TAG of IEEE 802.1BR.
    ETag = "etag",
    /// The service instance of provider backbone bridging, IEEE 802.1ah.
    Pbb = "ieee8021ah",
    /// High-availability seamless redundancy, IEC 62439-3.
    Hsr = "hsr",
    /// Cisco metadata: the tag of a security group.
    Cmd = "cmd",
    /// MACsec, IEEE 802.1AE.
    Macsec = "macsec",
    /// Network service header, RFC 8300.
    Nsh = "nsh",
    /// MPLS.
    Mpls = "mpls",
    /// PPPoE session.
    Pppoe = "pppoes",
    /// PPPoE discovery.
    PppoeDiscovery = "pppoed",
    /// IEEE 802.2 LLC, with or without SNAP.
    Llc = "llc",
    /// ARP.
    Arp = "arp",
    /// IPv4.
    Ipv4 = "ip",
    /// IPv6.
    Ipv6 = "ipv6",
    /// An IP fragment.
    Fragment = "fragment",
    /// TCP.
    Tcp = "tcp",
    /// UDP.
    Udp = "udp",
    /// ICMP.
    Icmp = "icmp",
    /// ICMPv6.
    Icmpv6 = "icmpv6",
    /// SCTP.
    Sctp = "sctp",
    /// GRE.
    Gre = "gre",
    /// IP in IP of any version.
    IpInIp = "ipip",
    /// VXLAN.
    Vxlan = "vxlan",
    /// Geneve.
    Geneve = "geneve",
    /// GTP-U.
    Gtpu = "gtp",
    /// Teredo.
    Teredo = "teredo",
    /// AYIYA.
    Ayiya = "ayiya",
    /// Another protocol above the link layer.
    OtherNetwork = "other-network",
    /// Another protocol above IP.
    OtherTransport = "other-transport",
}

/// A set of [`Layer`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers(u64);

impl Layers {
    /// Adds a layer to the set.
    #[inline]
    pub const fn insert(&mut self, layer: Layer) {
        self.0 |= 1 << layer as u8;
    }

    /// The layers of both sets.
    #[must_use]
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The set with one more layer.
    #[must_use]
    #[inline]
    pub const fn with(self, layer: Layer) -> Self {
        Self(self.0 | 1 << layer as u8)
    }

    /// Whether the layer was met.
    #[must_use]
    #[inline]
    pub const fn contains(self, layer: Layer) -> bool {
        self.0 & (1 << layer as u8) != 0
    }

    /// The set as bits; bit n is the layer with number n.
    #[must_use]
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

macro_rules! oddities {
    ($($(#[$doc:meta])* $variant:ident = $weird:literal,)*) => {
        /// Something strange in a header that did not end the walk.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Oddity {
            $($(#[$doc])* $variant,)*
        }

        impl Oddity {
            /// Every oddity, in the order of its numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name for the `weird` log.
            #[must_use]
            pub const fn weird(self) -> &'static str {
                match self {
                    $(Self::$variant => $weird,)*
                }
            }
        }
    };
}

oddities! {
    /// The IP header says length 0; the frame's length was taken.
    ZeroLength = "ip_hdr_len_zero",
    /// An IPv6 routing header of type 0, RFC 5095.
    RoutingType0 = "routing0_hdr",
    /// An IPv6 routing header of type 0 whose length is no whole number of addresses.
    OddRoutingLength = "odd_routing0_len",
    /// An IPv6 routing header of a type that is not known.
    RoutingTypeUnknown = "unknown_routing_type",
    /// PPPoE: the frame is longer than its header says, if only by padding.
    PppoeExtraData = "pppoe_extra_data_after_payload",
    /// An IEEE 802.11 aggregate (A-MSDU) of several frames, of which only the first is read.
    AggregateRest = "802_11_aggregate_rest",
}

/// A set of [`Oddity`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities(u8);

impl Oddities {
    /// Adds an oddity to the set.
    #[inline]
    pub const fn insert(&mut self, oddity: Oddity) {
        self.0 |= 1 << oddity as u8;
    }

    /// Whether there is none.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the oddity was met.
    #[must_use]
    #[inline]
    pub const fn contains(self, oddity: Oddity) -> bool {
        self.0 & (1 << oddity as u8) != 0
    }

    /// The oddities, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Oddity> {
        Oddity::ALL.iter().copied().filter(move |oddity| self.contains(*oddity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_and_oddity_has_a_bit_of_its_own() {
        let mut layers = Layers::default();
        for (count, layer) in Layer::ALL.iter().enumerate() {
            assert_eq!(layers.bits().count_ones() as usize, count);
            layers.insert(*layer);
            assert!(layers.contains(*layer));
        }
        let mut oddities = Oddities::default();
        for oddity in Oddity::ALL {
            assert!(!oddities.contains(*oddity));
            oddities.insert(*oddity);
        }
        assert_eq!(oddities.iter().collect::<Vec<_>>(), Oddity::ALL);
    }
}
