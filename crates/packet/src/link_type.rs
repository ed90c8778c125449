//! What the first header of a packet is: LINKTYPE values as files store them.

use core::fmt;

/// A LINKTYPE value, <https://www.tcpdump.org/linktypes.html>. Unknown values survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a 4-byte address family in the byte order of the writing host.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without the HDLC-like framing of RFC 1662.
    pub const PPP: Self = Self(9);
    /// PPP in HDLC-like framing, RFC 1662.
    pub const PPP_HDLC: Self = Self(50);
    /// PPPoE, RFC 2516, without an Ethernet header before it.
    pub const PPP_ETHER: Self = Self(51);
    /// Raw IP, version 4 or 6 told by its first nibble.
    pub const RAW: Self = Self(101);
    /// IEEE 802.11.
    pub const IEEE802_11: Self = Self(105);
    /// OpenBSD loopback: a 4-byte address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux cooked capture, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 behind a radiotap header.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// Linux USB with a 48-byte header.
    pub const USB_LINUX: Self = Self(189);
    /// Linux USB with a 64-byte header.
    pub const USB_LINUX_MMAPPED: Self = Self(220);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// Linux netfilter log.
    pub const NFLOG: Self = Self(239);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// The name in the registry without its `LINKTYPE_` prefix, or `None` for a value that the
    /// registry does not have.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let at = NAMES.binary_search_by_key(&self.0, |(number, _)| *number).ok()?;
        NAMES.get(at).map(|(_, name)| *name)
    }
}

/// The registry, <https://www.tcpdump.org/linktypes.html>, in the order of its numbers.
#[rustfmt::skip]
const NAMES: &[(u16, &str)] = &[
    (0, "NULL"), (1, "ETHERNET"), (2, "EXP_ETHERNET"), (3, "AX25"), (4, "PRONET"), (5, "CHAOS"),
    (6, "IEEE802_5"), (7, "ARCNET_BSD"), (8, "SLIP"), (9, "PPP"), (10, "FDDI"),
    (32, "REDBACK_SMARTEDGE"), (50, "PPP_HDLC"), (51, "PPP_ETHER"), (99, "SYMANTEC_FIREWALL"),
    (100, "ATM_RFC1483"), (101, "RAW"),
    (102, "SLIP_BSDOS"), (103, "PPP_BSDOS"), (104, "C_HDLC"), (105, "IEEE802_11"),
    (106, "ATM_CLIP"), (107, "FRELAY"), (108, "LOOP"), (109, "ENC"), (112, "NETBSD_HDLC"),
    (113, "LINUX_SLL"), (114, "LTALK"), (115, "ECONET"), (116, "IPFILTER"), (117, "PFLOG"),
    (118, "CISCO_IOS"), (119, "IEEE802_11_PRISM"), (120, "AIRONET_HEADER"), (122, "IP_OVER_FC"),
    (123, "SUNATM"), (124, "RIO"), (125, "PCI_EXP"), (126, "AURORA"),
    (127, "IEEE802_11_RADIOTAP"), (128, "TZSP"), (129, "ARCNET_LINUX"), (130, "JUNIPER_MLPPP"),
    (131, "JUNIPER_MLFR"), (132, "JUNIPER_ES"), (133, "JUNIPER_GGSN"), (134, "JUNIPER_MFR"),
    (135, "JUNIPER_ATM2"), (136, "JUNIPER_SERVICES"), (137, "JUNIPER_ATM1"),
    (138, "APPLE_IP_OVER_IEEE1394"), (139, "MTP2_WITH_PHDR"), (140, "MTP2"), (141, "MTP3"),
    (142, "SCCP"), (143, "DOCSIS"), (144, "LINUX_IRDA"), (145, "IBM_SP"), (146, "IBM_SN"),
    (147, "USER0"), (148, "USER1"), (149, "USER2"), (150, "USER3"), (151, "USER4"),
    (152, "USER5"), (153, "USER6"), (154, "USER7"), (155, "USER8"), (156, "USER9"),
    (157, "USER10"), (158, "USER11"), (159, "USER12"), (160, "USER13"), (161, "USER14"),
    (162, "USER15"), (163, "IEEE802_11_AVS"), (164, "JUNIPER_MONITOR"), (165, "BACNET_MS_TP"),
    (166, "PPP_PPPD"), (167, "JUNIPER_PPPOE"), (168, "JUNIPER_PPPOE_ATM"), (169, "GPRS_LLC"),
    (170, "GPF_T"), (171, "GPF_F"), (172, "GCOM_T1E1"), (173, "GCOM_SERIAL"),
    (174, "JUNIPER_PIC_PEER"), (175, "ERF_ETH"), (176, "ERF_POS"), (177, "LINUX_LAPD"),
    (178, "JUNIPER_ETHER"), (179, "JUNIPER_PPP"), (180, "JUNIPER_FRELAY"), (181, "JUNIPER_CHDLC"),
    (182, "MFR"), (183, "JUNIPER_VP"), (184, "A429"), (185, "A653_ICM"), (186, "USB_FREEBSD"),
    (187, "BLUETOOTH_HCI_H4"), (188, "IEEE802_16_MAC_CPS"), (189, "USB_LINUX"), (190, "CAN20B"),
    (191, "IEEE802_15_4_LINUX"), (192, "PPI"), (193, "IEEE802_16_MAC_CPS_RADIO"),
    (194, "JUNIPER_ISM"), (195, "IEEE802_15_4_WITHFCS"), (196, "SITA"), (197, "ERF"),
    (198, "RAIF1"), (199, "IPMB_KONTRON"), (200, "JUNIPER_ST"),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR"), (202, "AX25_KISS"), (203, "LAPD"), (204, "PPP_WITH_DIR"),
    (205, "C_HDLC_WITH_DIR"), (206, "FRELAY_WITH_DIR"), (207, "LAPB_WITH_DIR"),
    (209, "IPMB_LINUX"), (210, "FLEXRAY"), (211, "MOST"), (212, "LIN"), (213, "X2E_SERIAL"),
    (214, "X2E_XORAYA"), (215, "IEEE802_15_4_NONASK_PHY"), (216, "LINUX_EVDEV"),
    (217, "GSMTAP_UM"), (218, "GSMTAP_ABIS"), (219, "MPLS"), (220, "USB_LINUX_MMAPPED"),
    (221, "DECT"), (222, "AOS"), (223, "WIHART"), (224, "FC_2"), (225, "FC_2_WITH_FRAME_DELIMS"),
    (226, "IPNET"), (227, "CAN_SOCKETCAN"), (228, "IPV4"), (229, "IPV6"),
    (230, "IEEE802_15_4_NOFCS"), (231, "DBUS"), (232, "JUNIPER_VS"), (233, "JUNIPER_SRX_E2E"),
    (234, "JUNIPER_FIBRECHANNEL"), (235, "DVB_CI"), (236, "MUX27010"), (237, "STANAG_5066_D_PDU"),
    (238, "JUNIPER_ATM_CEMIC"), (239, "NFLOG"), (240, "NETANALYZER"),
    (241, "NETANALYZER_TRANSPARENT"), (242, "IPOIB"), (243, "MPEG_2_TS"), (244, "NG40"),
    (245, "NFC_LLCP"), (246, "PFSYNC"), (247, "INFINIBAND"), (248, "SCTP"), (249, "USBPCAP"),
    (250, "RTAC_SERIAL"), (251, "BLUETOOTH_LE_LL"), (252, "WIRESHARK_UPPER_PDU"),
    (253, "NETLINK"), (254, "BLUETOOTH_LINUX_MONITOR"), (255, "BLUETOOTH_BREDR_BB"),
    (256, "BLUETOOTH_LE_LL_WITH_PHDR"), (257, "PROFIBUS_DL"), (258, "PKTAP"), (259, "EPON"),
    (260, "IPMI_HPM_2"), (261, "ZWAVE_R1_R2"), (262, "ZWAVE_R3"), (263, "WATTSTOPPER_DLM"),
    (264, "ISO_14443"), (265, "RDS"), (266, "USB_DARWIN"), (267, "OPENFLOW"), (268, "SDLC"),
    (269, "TI_LLN_SNIFFER"), (270, "LORATAP"), (271, "VSOCK"), (272, "NORDIC_BLE"),
    (273, "DOCSIS31_XRA31"), (274, "ETHERNET_MPACKET"), (275, "DISPLAYPORT_AUX"),
    (276, "LINUX_SLL2"), (277, "SERCOS_MONITOR"), (278, "OPENVIZSLA"), (279, "EBHSCR"),
    (280, "VPP_DISPATCH"), (281, "DSA_TAG_BRCM"), (282, "DSA_TAG_BRCM_PREPEND"),
    (283, "IEEE802_15_4_TAP"), (284, "DSA_TAG_DSA"), (285, "DSA_TAG_EDSA"), (286, "ELEE"),
    (287, "Z_WAVE_SERIAL"), (288, "USB_2_0"), (289, "ATSC_ALP"), (290, "ETW"),
    (291, "NETANALYZER_NG"), (292, "ZBOSS_NCP"), (293, "USB_2_0_LOW_SPEED"),
    (294, "USB_2_0_FULL_SPEED"), (295, "USB_2_0_HIGH_SPEED"), (296, "AUERSWALD_LOG"),
    (297, "ZWAVE_TAP"), (298, "SILABS_DEBUG_CHANNEL"), (299, "FIRA_UCI"), (300, "MDB"),
    (301, "DECT_NR"), (302, "EDK2_MM"),
];

/// `ETHERNET`, or `LINKTYPE 65000` for a value that the registry does not have.
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
        assert_eq!(LinkType(147).to_string(), "USER0");
        assert_eq!(LinkType(195).to_string(), "IEEE802_15_4_WITHFCS");
        assert_eq!(LinkType(65_000).to_string(), "LINKTYPE 65000");
        assert_eq!(LinkType(32).to_string(), "REDBACK_SMARTEDGE");
        assert!(NAMES.is_sorted_by(|a, b| a.0 < b.0), "the order that the search relies on");
    }
    /// As libpcap's `pcap-common.c` and the registry have them.
    #[test]
    fn names_are_those_of_the_registry() {
        let mut words = REGISTRY.split_whitespace();
        let mut seen = 0;
        while let (Some(number), Some(name)) = (words.next(), words.next()) {
            assert_eq!(LinkType(number.parse().unwrap()).name(), Some(name), "{number}");
            seen += 1;
        }
        assert!(seen > 100, "{seen}");
        // Reserved, or numbers that a system uses for itself and that no file has.
        for number in [11, 12, 13, 14, 98, 110, 111, 121, 208, 303] {
            assert_eq!(LinkType(number).name(), None, "{number}");
        }
    }

    const REGISTRY: &str = "
        0 NULL 1 ETHERNET 3 AX25 6 IEEE802_5 7 ARCNET_BSD 8 SLIP 9 PPP 10 FDDI 32 REDBACK_SMARTEDGE 50 PPP_HDLC 51 PPP_ETHER
        99 SYMANTEC_FIREWALL 100 ATM_RFC1483 101 RAW 102 SLIP_BSDOS 103 PPP_BSDOS 104 C_HDLC 105 IEEE802_11 106 ATM_CLIP 107 FRELAY 108 LOOP 109 ENC
        112 NETBSD_HDLC 113 LINUX_SLL 114 LTALK 117 PFLOG 118 CISCO_IOS 119 IEEE802_11_PRISM 120 AIRONET_HEADER 122 IP_OVER_FC 123 SUNATM
        127 IEEE802_11_RADIOTAP 129 ARCNET_LINUX 138 APPLE_IP_OVER_IEEE1394 139 MTP2_WITH_PHDR 142 SCCP 143 DOCSIS 144 LINUX_IRDA
        147 USER0 162 USER15 163 IEEE802_11_AVS 164 JUNIPER_MONITOR 165 BACNET_MS_TP 166 PPP_PPPD 169 GPRS_LLC 177 LINUX_LAPD 182 MFR
        186 USB_FREEBSD 187 BLUETOOTH_HCI_H4 189 USB_LINUX 190 CAN20B 191 IEEE802_15_4_LINUX 192 PPI 195 IEEE802_15_4_WITHFCS 196 SITA 197 ERF
        199 IPMB_KONTRON 201 BLUETOOTH_HCI_H4_WITH_PHDR 202 AX25_KISS 203 LAPD 204 PPP_WITH_DIR 205 C_HDLC_WITH_DIR 209 IPMB_LINUX 212 LIN
        215 IEEE802_15_4_NONASK_PHY 219 MPLS 220 USB_LINUX_MMAPPED 224 FC_2 225 FC_2_WITH_FRAME_DELIMS 226 IPNET 227 CAN_SOCKETCAN 228 IPV4
        229 IPV6 230 IEEE802_15_4_NOFCS 231 DBUS 235 DVB_CI 236 MUX27010 237 STANAG_5066_D_PDU 239 NFLOG 240 NETANALYZER 242 IPOIB 243 MPEG_2_TS
        245 NFC_LLCP 247 INFINIBAND 248 SCTP 249 USBPCAP 250 RTAC_SERIAL 251 BLUETOOTH_LE_LL 252 WIRESHARK_UPPER_PDU 253 NETLINK
        254 BLUETOOTH_LINUX_MONITOR 256 BLUETOOTH_LE_LL_WITH_PHDR 258 PKTAP 259 EPON 264 ISO_14443 265 RDS 266 USB_DARWIN 268 SDLC 270 LORATAP
        271 VSOCK 272 NORDIC_BLE 273 DOCSIS31_XRA31 274 ETHERNET_MPACKET 275 DISPLAYPORT_AUX 276 LINUX_SLL2 279 EBHSCR 280 VPP_DISPATCH
        281 DSA_TAG_BRCM 282 DSA_TAG_BRCM_PREPEND 283 IEEE802_15_4_TAP 284 DSA_TAG_DSA 285 DSA_TAG_EDSA 286 ELEE 287 Z_WAVE_SERIAL 288 USB_2_0
        289 ATSC_ALP 290 ETW 291 NETANALYZER_NG 292 ZBOSS_NCP 295 USB_2_0_HIGH_SPEED 297 ZWAVE_TAP 299 FIRA_UCI 300 MDB 301 DECT_NR 302 EDK2_MM";
}
