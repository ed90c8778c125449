//! What the first header of a packet is: LINKTYPE values as files store them.

use core::fmt;

/// A LINKTYPE value, <https://www.tcpdump.org/linktypes.html>. Unknown values survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

macro_rules! link_types {
    ($($(#[$doc:meta])* $konst:ident = $value:literal, $name:literal;)*) => {
        impl LinkType {
            $($(#[$doc])* pub const $konst: Self = Self($value);)*

            /// The name without its `LINKTYPE_` prefix, or `None` for a value not known here.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

link_types! {
    /// BSD loopback: a 4-byte address family in the byte order of the writing host.
    NULL = 0, "NULL";
    /// Ethernet.
    ETHERNET = 1, "ETHERNET";
    /// PPP, with or without the HDLC-like framing of RFC 1662.
    PPP = 9, "PPP";
    /// PPP in HDLC-like framing, RFC 1662.
    PPP_HDLC = 50, "PPP_HDLC";
    /// PPPoE, RFC 2516, without an Ethernet header before it.
    PPP_ETHER = 51, "PPP_ETHER";
    /// Raw IP, version 4 or 6 told by its first nibble.
    RAW = 101, "RAW";
    /// IEEE 802.11.
    IEEE802_11 = 105, "IEEE802_11";
    /// OpenBSD loopback: a 4-byte address family in network byte order.
    LOOP = 108, "LOOP";
    /// Linux cooked capture, version 1.
    LINUX_SLL = 113, "LINUX_SLL";
    /// IEEE 802.11 behind a radiotap header.
    IEEE802_11_RADIOTAP = 127, "IEEE802_11_RADIOTAP";
    /// Linux USB with a 48-byte header.
    USB_LINUX = 189, "USB_LINUX";
    /// Linux USB with a 64-byte header.
    USB_LINUX_MMAPPED = 220, "USB_LINUX_MMAPPED";
    /// Raw IPv4.
    IPV4 = 228, "IPV4";
    /// Raw IPv6.
    IPV6 = 229, "IPV6";
    /// Linux netfilter log.
    NFLOG = 239, "NFLOG";
    /// Linux cooked capture, version 2.
    LINUX_SLL2 = 276, "LINUX_SLL2";
}

/// `ETHERNET`, or `LINKTYPE 147` for a value not known here.
impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "LINKTYPE {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_and_unknown_values_have_a_name() {
        assert_eq!(LinkType::LINUX_SLL2.to_string(), "LINUX_SLL2");
        assert_eq!(LinkType(147).to_string(), "LINKTYPE 147");
    }
}
