//! Packets in packets, against Zeek's connections and tunnels.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{CONN, Row, analyse_file, captures, columns, corpus, zeek_log};

const TUNNELS: [&str; 4] = [
    "tunnel/arkime-gre-sample.pcap",
    "tunnel/zeek-Teredo.pcap",
    "tunnel/zeek-gtp1_gn_normal_incl_fragmentation.pcap",
    "tunnel/zeek-vxlan.pcap",
];

/// Addresses and ports, which tell a connection or tunnel without its identifier.
const ID: [&str; 4] = ["id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"];

/// The rows with their tunnels' identifiers replaced by addresses and ports.
fn with_named_parents(conns: &[&Row], tunnels: &[&Row]) -> Vec<Row> {
    let named = conns.iter().chain(tunnels).map(|row| (&row["uid"], columns(&[row], &ID)));
    let names: BTreeMap<_, _> = named.collect();
    let replaced = |row: &&Row| {
        let mut row = (*row).clone();
        let parents = row["tunnel_parents"].clone();
        if parents != "-" {
            let mut parents: Vec<_> =
                parents.split(',').map(|uid| names[&uid.to_owned()].join(" ")).collect();
            parents.sort();
            row.insert("tunnel_parents".to_owned(), parents.join(","));
        }
        row
    };
    conns.iter().map(replaced).collect()
}

#[test]
fn connections_in_tunnels_are_zeeks() {
    let Some(root) = corpus() else { return };
    let mut names = CONN.to_vec();
    names.push("tunnel_parents");
    for name in TUNNELS {
        let path = root.join(name);
        let rows = analyse_file(&path);
        let found = with_named_parents(&rows.log("conn"), &rows.log("tunnel"));
        let (conns, tunnels) = (zeek_log(&path, "conn"), zeek_log(&path, "tunnel"));
        let expected = with_named_parents(
            &conns.iter().collect::<Vec<_>>(),
            &tunnels.iter().collect::<Vec<_>>(),
        );
        assert!(expected.iter().any(|row| row["tunnel_parents"] != "-"), "{name}");
        assert_eq!(
            columns(&found.iter().collect::<Vec<_>>(), &names),
            columns(&expected.iter().collect::<Vec<_>>(), &names),
            "{name}"
        );
    }
}

#[test]
fn tunnels_are_discovered_and_closed_as_zeek_does() {
    let Some(root) = corpus() else { return };
    for name in TUNNELS {
        let path = root.join(name);
        let names = [&["ts"], &ID[..], &["tunnel_type", "action"]].concat();
        let expected = zeek_log(&path, "tunnel");
        let expected = columns(&expected.iter().collect::<Vec<_>>(), &names);
        let rows = analyse_file(&path);
        assert_eq!(columns(&rows.log("tunnel"), &names), expected, "{name}");
    }
}

#[test]
fn weirds_of_tunnels_are_zeeks() {
    let Some(root) = corpus() else { return };
    for name in TUNNELS {
        let path = root.join(name);
        let names = [&["ts"], &ID[..], &["name"]].concat();
        let expected = zeek_log(&path, "weird");
        let expected = columns(&expected.iter().collect::<Vec<_>>(), &names);
        let mut found = columns(&analyse_file(&path).log("weird"), &names);
        // Zeek's scripts keep these two out of the log, which is not about tunnels.
        found.retain(|line| !line.contains("spontaneous_"));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_parent_is_a_connection_or_a_tunnel() {
    let Some(root) = corpus() else { return };
    let mut parents = 0;
    for path in captures(&root) {
        let rows = analyse_file(&path);
        let (conns, tunnels) = (rows.log("conn"), rows.log("tunnel"));
        let without_flow = tunnels.iter().filter(|row| row["id.orig_p"] == "0");
        let uids: BTreeSet<_> = conns.iter().chain(without_flow).map(|row| &row["uid"]).collect();
        for row in conns.iter().filter(|row| row["tunnel_parents"] != "-") {
            for parent in row["tunnel_parents"].split(',') {
                parents += 1;
                assert!(uids.contains(&parent.to_owned()), "{}: {parent}", path.display());
            }
        }
    }
    assert!(parents > 10);
}
