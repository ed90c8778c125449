//! Certificates with weak keys and weak signatures, from packets, beside strong ones that stay quiet.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{recorded, rows, stream};

/// What openssl says of the certificate of a port, and what that deserves: the findings, with how sure they are.
fn expected(line: &str) -> BTreeSet<(u64, String)> {
    let columns: Vec<_> = line.split('\t').collect();
    let [port, kind, bits, signature, own] = columns[..] else { panic!("{line}") };
    let bits: u64 = bits.parse().unwrap();
    let key = match kind {
        "rsaEncryption" if bits < 1024 => Some("SSL::Weak_Key high"),
        "rsaEncryption" if bits < 2048 => Some("SSL::Weak_Key medium"),
        "id-ecPublicKey" if bits < 224 => Some("SSL::Weak_Key high"),
        _ => None,
    };
    let signed = match signature {
        "md5WithRSAEncryption" if own == "no" => Some("Netsniff::Weak_Signature high"),
        "sha1WithRSAEncryption" if own == "no" => Some("Netsniff::Weak_Signature medium"),
        _ => None,
    };
    let of_port = |what: &str| (port.parse().unwrap(), what.to_owned());
    [key, signed].into_iter().flatten().map(of_port).collect()
}

fn found(notices: &[Value]) -> BTreeSet<(u64, String)> {
    let weak = notices.iter().filter(|row| row["note"].as_str().unwrap().contains("Weak_"));
    let told = weak.map(|row| {
        let words = ["note", "confidence"].map(|column| row[column].as_str().unwrap());
        (row["p"].as_u64().unwrap(), words.join(" "))
    });
    told.collect()
}

#[test]
fn weak_keys_and_signatures_are_found_and_strong_ones_are_not() {
    let table = fs::read_to_string(recorded("certificates.tsv")).unwrap();
    let lines: Vec<_> = table.lines().filter(|line| !line.starts_with('#')).collect();
    let all: BTreeSet<_> = lines.iter().flat_map(|line| expected(line)).collect();
    let run = |options: &[&str]| {
        stream(&recorded("certificates.pcapng"), &[&["--notices"], options].concat())
    };
    let one = run(&["--workers", "1"]);
    // Every handshake is there, of each server two.
    let ssl = rows(&one, "ssl");
    assert!(ssl.iter().all(|row| row["established"] == true), "{ssl:?}");
    assert_eq!(ssl.len(), 2 * lines.len());
    let notices = rows(&one, "notice");
    assert_eq!(found(&notices), all);
    assert!(all.len() >= 7 && all.len() < 2 * lines.len());
    // A finding names the first connection, and both have one row.
    let weak = notices.iter().filter(|row| row["note"] == "SSL::Weak_Key");
    for row in weak {
        let port = &row["p"];
        let first = ssl.iter().find(|ssl| ssl["id.resp_p"] == *port).unwrap();
        assert_eq!((&row["uid"], &row["dst"]), (&first["uid"], &"192.0.2.80".into()));
    }
    let of_key = notices.iter().filter(|row| row["note"] == "SSL::Weak_Key").count();
    assert_eq!(of_key, all.iter().filter(|(_, what)| what.contains("Key")).count());
    for workers in ["2", "3"] {
        assert!(run(&["--workers", workers]) == one, "{workers} workers write something else");
    }
    // The threshold counts from packets, too.
    let few = found(&rows(&run(&["--notice-thresholds", "rsa_bits=600"]), "notice"));
    let ports: Vec<_> =
        few.iter().filter(|(_, what)| what.contains("Key")).map(|(port, _)| *port).collect();
    assert_eq!(ports, [4431, 4435], "512 bits of RSA, and the curve");
}
