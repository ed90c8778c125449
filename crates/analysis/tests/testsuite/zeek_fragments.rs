//! Connections in fragments, against Zeek's.

use crate::support::{CONN, analyse_file, columns, corpus, zeek_log};

#[test]
fn fragmented_connections_are_zeeks() {
    let Some(root) = corpus() else { return };
    for name in [
        "ip/zeek-fragmented-1.pcap",
        "ip/pcpp-ip4_fragments.pcap",
        "ip/zeek-ipv6-http-atomic-frag.pcap",
    ] {
        let path = root.join(name);
        let rows = analyse_file(&path);
        let expected = zeek_log(&path, "conn");
        assert!(!expected.is_empty());
        let expected = columns(&expected.iter().collect::<Vec<_>>(), &CONN);
        assert_eq!(columns(&rows.log("conn"), &CONN), expected, "{name}");
    }
}

#[test]
fn weirds_of_fragments_are_zeeks() {
    let Some(root) = corpus() else { return };
    for name in ["ip/zeek-fragmented-1.pcap", "ip/pcpp-ip4_fragments.pcap"] {
        let path = root.join(name);
        let names = ["id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "name"];
        let expected = zeek_log(&path, "weird");
        let mut expected = columns(&expected.iter().collect::<Vec<_>>(), &names);
        expected.retain(|line| line.contains("fragment"));
        let mut found = columns(&analyse_file(&path).log("weird"), &names);
        found.retain(|line| line.contains("fragment"));
        // Zeek writes most of them once for each pair of hosts.
        found.dedup();
        assert_eq!(found, expected, "{name}");
    }
}
