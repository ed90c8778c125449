//! Words for types, classes and codes, as Zeek's logs have them.

/// The QTYPEs that have a name, in order.
const QUERY_TYPES: &[(u16, &str)] = &[
    (1, "A"),
    (2, "NS"),
    (3, "MD"),
    (4, "MF"),
    (5, "CNAME"),
    (6, "SOA"),
    (7, "MB"),
    (8, "MG"),
    (9, "MR"),
    (10, "NULL"),
    (11, "WKS"),
    (12, "PTR"),
    (13, "HINFO"),
    (14, "MINFO"),
    (15, "MX"),
    (16, "TXT"),
    (17, "RP"),
    (18, "AFSDB"),
    (19, "X25"),
    (20, "ISDN"),
    (21, "RT"),
    (22, "NSAP"),
    (23, "NSAP-PTR"),
    (24, "SIG"),
    (25, "KEY"),
    (26, "PX"),
    (27, "GPOS"),
    (28, "AAAA"),
    (29, "LOC"),
    (30, "NXT"),
    (31, "EID"),
    (32, "NIMLOC"),
    (33, "SRV"),
    (34, "ATMA"),
    (35, "NAPTR"),
    (36, "KX"),
    (37, "CERT"),
    (38, "A6"),
    (39, "DNAME"),
    (40, "SINK"),
    (41, "OPT"),
    (42, "APL"),
    (43, "DS"),
    (44, "SSHFP"),
    (45, "IPSECKEY"),
    (46, "RRSIG"),
    (47, "NSEC"),
    (48, "DNSKEY"),
    (49, "DHCID"),
    (50, "NSEC3"),
    (51, "NSEC3PARAM"),
    (52, "TLSA"),
    (53, "SMIMEA"),
    (55, "HIP"),
    (56, "NINFO"),
    (57, "RKEY"),
    (58, "TALINK"),
    (59, "CDS"),
    (60, "CDNSKEY"),
    (61, "OPENPGPKEY"),
    (62, "CSYNC"),
    (63, "ZONEMD"),
    (64, "SVCB"),
    (65, "HTTPS"),
    (99, "SPF"),
    (100, "UINFO"),
    (101, "UID"),
    (102, "GID"),
    (103, "UNSPEC"),
    (104, "NID"),
    (105, "L32"),
    (106, "L64"),
    (107, "LP"),
    (108, "EUI48"),
    (109, "EUI64"),
    (249, "TKEY"),
    (250, "TSIG"),
    (251, "IXFR"),
    (252, "AXFR"),
    (253, "MAILB"),
    (254, "MAILA"),
    (255, "*"),
    (256, "URI"),
    (257, "CAA"),
    (32768, "TA"),
    (32769, "DLV"),
    (65281, "WINS"),
    (65282, "WINS-R"),
    (65422, "XPF"),
    (65521, "INTEGRITY"),
];

/// The name of a QTYPE; `None` for one without.
pub(super) fn query_type(kind: u16) -> Option<&'static str> {
    let at = QUERY_TYPES.binary_search_by_key(&kind, |&(number, _)| number).ok()?;
    Some(QUERY_TYPES[at].1)
}

/// The name of a QCLASS; `None` for one without.
pub(super) const fn class(class: u16) -> Option<&'static str> {
    Some(match class {
        1 => "C_INTERNET",
        2 => "C_CSNET",
        3 => "C_CHAOS",
        4 => "C_HESIOD",
        254 => "C_NONE",
        255 => "C_ANY",
        _ => return None,
    })
}

/// The name of a response code of four bits.
pub(super) const fn response_code(rcode: u8) -> &'static str {
    match rcode {
        0 => "NOERROR",
        1 => "FORMERR",
        2 => "SERVFAIL",
        3 => "NXDOMAIN",
        4 => "NOTIMP",
        5 => "REFUSED",
        6 => "YXDOMAIN",
        7 => "YXRRSET",
        8 => "NXRRSet",
        9 => "NOTAUTH",
        10 => "NOTZONE",
        11 => "unassigned-11",
        12 => "unassigned-12",
        13 => "unassigned-13",
        14 => "unassigned-14",
        _ => "unassigned-15",
    }
}

/// The name of one of the kinds of query that are followed; NetBIOS calls 5 by another name.
pub(super) const fn opcode(opcode: u8, is_netbios: bool) -> &'static str {
    match (opcode, is_netbios) {
        (4, false) => "notify",
        (4, true) => "netbios-opcode-4",
        (5, false) => "dynamic-update",
        (5, true) => "netbios-registration",
        (_, false) => "query",
        (_, true) => "netbios-query",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_table_is_found() {
        assert!(QUERY_TYPES.is_sorted_by_key(|&(number, _)| number));
        for &(number, name) in QUERY_TYPES {
            assert_eq!(query_type(number), Some(name));
        }
        assert_eq!((query_type(54), query_type(0)), (None, None));
    }
}
