//! The logs of HTTP, TLS, QUIC and DNS against what the recorded servers told of themselves, and the
//! files that they served.

use std::collections::BTreeMap;
use std::fs;

use crate::recorded::{Logs, counted, expected, recorded, sha256, table};
use crate::zeek::log::Row;

const CAPTURE: &str = "protocols.pcapng";

/// A connection by what the server knows of it.
fn client(row: &Row, address: &str, port: &str, server_port: &str) -> [String; 3] {
    [address, port, server_port].map(|column| row[column].clone())
}

/// The lines of nginx's log by connection, in order, and the rows of ours for the same ports.
fn by_connection(rows: Vec<Row>, columns: [&str; 3]) -> BTreeMap<[String; 3], Vec<Row>> {
    let mut connections = BTreeMap::<_, Vec<Row>>::new();
    for row in rows {
        let [address, port, server_port] = columns;
        connections.entry(client(&row, address, port, server_port)).or_default().push(row);
    }
    connections
}

const NGINX: [&str; 3] = ["client", "client port", "port"];
const OURS: [&str; 3] = ["id.orig_h", "id.orig_p", "id.resp_p"];

/// Each request in the clear that nginx answered with the row of it.
fn requests(logs: &Logs) -> Vec<(Row, Row)> {
    let mut lines = table("nginx.tsv");
    lines.retain(|line| line["tls"] == "-");
    let mut rows = logs.rows("http");
    rows.retain(|row| row["id.resp_p"] == "80");
    let (theirs, ours) = (by_connection(lines, NGINX), by_connection(rows, OURS));
    assert!(theirs.keys().eq(ours.keys()), "{:?} and {:?}", theirs.keys(), ours.keys());
    let mut pairs = Vec::new();
    for (lines, rows) in theirs.into_values().zip(ours.into_values()) {
        assert_eq!(lines.len(), rows.len(), "{lines:#?} and {rows:#?}");
        pairs.extend(lines.into_iter().zip(rows));
    }
    pairs
}

/// Bytes of a body that goes as one chunk (RFC 9112, 7.1), which nginx counts with its frame.
fn in_one_chunk(len: u64) -> u64 {
    len + format!("{len:x}\r\n").len() as u64 + "\r\n0\r\n\r\n".len() as u64
}

#[test]
fn each_request_that_nginx_answered_is_a_row() {
    let logs = Logs::of(CAPTURE, &[]);
    let pairs = requests(&logs);
    assert!(pairs.len() >= 25, "{} requests", pairs.len());
    for (line, row) in &pairs {
        for (theirs, ours) in
            [("method", "method"), ("status", "status_code"), ("user agent", "user_agent")]
        {
            assert_eq!(line[theirs], row[ours], "{line:?}");
        }
        // One request names the whole URI, of which nginx logs the path.
        let path = row["uri"].strip_prefix("http://www.example.org").unwrap_or(&row["uri"]);
        assert_eq!(line["uri"], path);
        // That of the reply, which nginx gives in its own version.
        assert_eq!(row["version"], "1.1", "{line:?}");
        // nginx takes its own name where HTTP/1.0 tells none.
        let is_nameless = row["host"] == "-" && line["protocol"] == "HTTP/1.0";
        assert!(is_nameless || line["host"] == row["host"], "{line:?}");
        let asked = &line["request content length"];
        assert_eq!(if asked == "-" { "0" } else { asked }, row["request_body_len"], "{line:?}");
        let sent: u64 = line["body bytes sent"].parse().unwrap();
        let len: u64 = row["response_body_len"].parse().unwrap();
        match line["encoding"].as_str() {
            // What is decoded is longer; its content is another test's concern.
            "gzip" | "br" => assert!(len > sent, "{line:?}"),
            _ if line["uri"] == "/echo" => assert_eq!(sent, in_one_chunk(len), "{line:?}"),
            // curl waits for a word before it puts, which nginx counts as a part of the body.
            _ if line["method"] == "PUT" => {
                assert_eq!((len, row["info_code"].as_str()), (0, "100"), "{line:?}");
                assert_eq!(sent, "HTTP/1.1 100 Continue\r\n\r\n".len() as u64);
            }
            _ => assert_eq!(sent, len, "{line:?}"),
        }
        let [begin, end] = [&row["ts"], &line["time"]].map(|time| time.parse::<f64>().unwrap());
        assert!(begin <= end + 0.001 && end - begin < 1.0, "{begin} to {end}");
    }
    let methods = counted(pairs.iter().map(|(line, _)| line["method"].as_str()));
    let expected = ["BREW", "DELETE", "GET", "POST", "PUT"];
    assert!(methods.keys().eq(expected.iter()), "{methods:?}");
}

/// The SHA-256 and size of each file that was served or sent.
fn sums() -> BTreeMap<String, (String, String)> {
    let entry = |row: Row| (row["file"].clone(), (row["sha256"].clone(), row["bytes"].clone()));
    table("files.tsv").into_iter().map(entry).collect()
}

/// The file that a page comes from, by nginx's configuration.
fn served(uri: &str) -> String {
    let path = uri.strip_prefix("http://www.example.org").unwrap_or(uri);
    format!("www{}", path.replace("/private/", "/docs/"))
}

/// Asserts that files are some that were served or sent: by the hash that the log has, and by what was
/// extracted.
fn assert_is(logs: &Logs, files: &[Row], fuids: &str, expected: &[&(String, String)]) {
    let fuids: Vec<&str> = fuids.split(',').collect();
    assert_eq!(fuids.len(), expected.len(), "{fuids:?}");
    for (fuid, (sum, bytes)) in fuids.iter().zip(expected) {
        let file = files.iter().find(|file| file["fuid"] == *fuid).unwrap();
        assert_eq!((&file["sha256"], &file["seen_bytes"]), (sum, bytes), "{file:?}");
        assert_eq!(sha256(&logs.content(file)), *sum, "what was extracted: {file:?}");
    }
}

#[test]
fn each_body_is_the_file_that_was_served_or_sent() {
    let logs = Logs::of(CAPTURE, &["--hashes", "sha256"]);
    let (files, sums) = (logs.rows("files"), sums());
    let (mut got, mut put) = (0, 0);
    for (line, row) in requests(&logs) {
        let is_whole = line["status"] == "200" && line["method"] == "GET";
        if is_whole {
            assert_is(&logs, &files, &row["resp_fuids"], &[&sums[&served(&line["uri"])]]);
            got += 1;
        }
        if let Some(name) = line["uri"].strip_prefix("/up/").filter(|_| line["method"] == "PUT") {
            assert_is(&logs, &files, &row["orig_fuids"], &[&sums[&format!("sent/{name}")]]);
            put += 1;
        }
        // The one that is sent as it is, and comes back.
        if line["uri"] == "/echo" && line["request content length"] == "2892" {
            for fuids in [&row["orig_fuids"], &row["resp_fuids"]] {
                assert_is(&logs, &files, fuids, &[&sums["sent/minutes.txt"]]);
            }
        }
        // The form, whose other part is a name.
        if line["uri"] == "/echo" && line["request content length"] == "3182" {
            let first = row["orig_fuids"].split(',').next().unwrap();
            assert_is(&logs, &files, first, &[&sums["sent/minutes.txt"]]);
            put += 1;
        }
    }
    // lighttpd, which compresses, and the proxy have the same pages.
    for row in logs.rows("http") {
        let is_other = ["8081", "3128"].contains(&row["id.resp_p"].as_str());
        if is_other && row["method"] == "GET" {
            assert_is(&logs, &files, &row["resp_fuids"], &[&sums[&served(&row["uri"])]]);
            got += 1;
        }
    }
    assert_eq!((got, put), (17, 3));
}

/// Versions as nginx and openssl name them.
fn version(name: &str) -> String {
    match name {
        "TLSv1" => "TLSv10".to_owned(),
        "DTLSv1" => "DTLSv10".to_owned(),
        name => name.replace('.', ""),
    }
}

/// Ciphers as openssl names them, and the registry of IANA.
fn cipher(name: &str) -> &str {
    match name {
        "ECDHE-RSA-AES256-GCM-SHA384" => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "ECDHE-RSA-AES256-SHA" => "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
        "AES256-GCM-SHA384" => "TLS_RSA_WITH_AES_256_GCM_SHA384",
        name => name,
    }
}

/// The rows of `ssl` that are not of QUIC.
fn handshakes(logs: &Logs) -> Vec<Row> {
    let quic = logs.rows("quic");
    let mut rows = logs.rows("ssl");
    rows.retain(|row| !quic.iter().any(|other| other["uid"] == row["uid"]));
    rows.sort_by(|a, b| a["ts"].cmp(&b["ts"]));
    rows
}

#[test]
fn each_connection_that_nginx_encrypted_is_a_row() {
    let logs = Logs::of(CAPTURE, &[]);
    let mut lines = table("nginx.tsv");
    lines.retain(|line| line["tls"] != "-");
    let (theirs, ours) = (by_connection(lines, NGINX), by_connection(handshakes(&logs), OURS));
    let certificates = table("certificates.tsv");
    let fingerprint =
        |name: &str| &certificates.iter().find(|row| row["certificate"] == name).unwrap()["sha256"];
    assert!(theirs.len() >= 15, "{}", theirs.len());
    for (connection, lines) in &theirs {
        let (line, row) = (&lines[0], &ours[connection][0]);
        assert_eq!((lines.len(), ours[connection].len()), (1, 1), "{connection:?}");
        assert_eq!(row["version"], version(&line["tls"]), "{line:?}");
        assert_eq!(row["cipher"], cipher(&line["cipher"]), "{line:?}");
        assert_eq!(row["server_name"], line["server name"], "{line:?}");
        assert_eq!(row["resumed"] == "T", line["reused"] == "r", "{line:?}");
        assert_eq!(row["established"], "T", "{line:?}");
        // Certificates are encrypted in TLS 1.3, and left out where a session goes on.
        let is_shown = line["tls"] != "TLSv1.3" && line["reused"] != "r";
        let chain = |column: &str| row[column].replace("(empty)", "-");
        assert_eq!(chain("cert_chain_fps"), if is_shown { fingerprint("web") } else { "-" });
        let is_known = is_shown && line["client subject"] != "-";
        let of_client = if is_known { fingerprint("client") } else { "-" };
        assert_eq!(chain("client_cert_chain_fps"), of_client, "{line:?}");
    }
    // What nginx did not get to answer: a certificate and a version that were refused.
    let web = |row: &&&Row| ["443", "7443", "8443", "9443"].contains(&row["id.resp_p"].as_str());
    let others = ours.values().flatten().collect::<Vec<_>>();
    let others = others
        .iter()
        .filter(web)
        .filter(|row| !theirs.contains_key(&client(row, "id.orig_h", "id.orig_p", "id.resp_p")));
    let mut alerts: Vec<_> =
        others.map(|row| (row["last_alert"].as_str(), row["established"].as_str())).collect();
    alerts.sort_unstable();
    assert_eq!(alerts, [("protocol_version", "F"), ("unknown_ca", "F")]);
}

#[test]
fn each_handshake_of_openssl_is_a_row() {
    let logs = Logs::of(CAPTURE, &[]);
    let of_curl = |row: &Row| {
        table("nginx.tsv").iter().any(|line| {
            line["user agent"] != "-"
                && client(line, NGINX[0], NGINX[1], NGINX[2])
                    == client(row, OURS[0], OURS[1], OURS[2])
        }) || row["last_alert"] == "unknown_ca"
    };
    let mut theirs = BTreeMap::<String, Vec<[String; 3]>>::new();
    let mut ours = BTreeMap::<String, Vec<[String; 3]>>::new();
    for line in table("tls.tsv") {
        let resumed = if line["session"] == "Reused" { "T" } else { "F" };
        theirs.entry(line["port"].clone()).or_default().push([
            version(&line["protocol"]),
            cipher(&line["cipher"]).to_owned(),
            resumed.to_owned(),
        ]);
    }
    for row in handshakes(&logs) {
        if theirs.contains_key(&row["id.resp_p"]) && !of_curl(&row) {
            let handshake = ["version", "cipher", "resumed"].map(|column| row[column].clone());
            ours.entry(row["id.resp_p"].clone()).or_default().push(handshake);
        }
    }
    assert_eq!(ours, theirs);
    assert_eq!(theirs.values().map(Vec::len).sum::<usize>(), 16);
}

#[test]
fn certificates_are_those_of_the_servers() {
    let logs = Logs::of(CAPTURE, &[]);
    let theirs = table("certificates.tsv");
    let known = |sum: &str| theirs.iter().find(|row| row["sha256"] == sum);
    let rows = logs.rows("x509");
    let mut names = Vec::new();
    for row in &rows {
        let name = &known(&row["fingerprint"]).unwrap_or_else(|| panic!("{row:?}"))["certificate"];
        let subject = if name == "client" { "CN=alice" } else { "CN=www.example.org" };
        assert!(row["certificate.subject"].starts_with(subject), "{name}: {row:?}");
        names.push(name.as_str());
    }
    names.sort_unstable();
    names.dedup();
    // That of the mail server is only shown in TLS 1.3.
    assert_eq!(names, ["client", "web"]);
}

#[test]
fn each_connection_of_a_quic_client_is_a_row() {
    let logs = Logs::of(CAPTURE, &[]);
    let name = |number: &str| match number {
        "0x00000001" => "1",
        "0x6b3343cf" => "quicv2",
        "0x709a50c4" => "quicv2-draft",
        other => panic!("{other}"),
    };
    let mut rows = logs.rows("quic");
    rows.sort_by(|a, b| a["ts"].cmp(&b["ts"]));
    // The first packet is a row of its own where the server wants another version, or a token.
    let refused = |letter: char| {
        let with = |row: &&Row| row["history"].contains(letter);
        rows.iter().filter(with).map(|row| row["version"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(refused('U'), ["unknown-1a2a3a4a"]);
    assert_eq!(refused('r'), ["1"]);
    let of_port = |is_wanted: &dyn Fn(&str) -> bool| {
        let is_whole = |row: &&Row| !row["history"].contains(['U', 'r']);
        let rows = rows.iter().filter(|row| is_wanted(&row["id.resp_p"])).filter(is_whole);
        rows.collect::<Vec<_>>()
    };
    let ours = of_port(&|port| port != "8444");
    let ours: Vec<_> = ours
        .iter()
        .map(|row| {
            let early = if row["history"].contains('Z') { "0-RTT" } else { "-" };
            let cells =
                ["id.resp_h", "id.resp_p", "version", "client_protocol"].map(|c| row[c].as_str());
            (cells, early)
        })
        .collect();
    let lines = table("quic.tsv");
    let theirs: Vec<_> = lines
        .iter()
        .map(|line| {
            let [host, port, alpn] = ["host", "port", "alpn"].map(|c| line[c].as_str());
            ([host, port, name(&line["version"]), alpn], line["early data"].as_str())
        })
        .collect();
    assert_eq!(ours, theirs);
    // aioquic tells in which version it began.
    let conversations = expected("conversations.tsv");
    let began = conversations.lines().filter_map(|line| line.strip_prefix("quic\tfirst "));
    let began = counted(began.map(|line| name(line.split(' ').next().unwrap())));
    let ours = of_port(&|port| port == "8444");
    assert_eq!(counted(ours.iter().map(|row| row["version"].as_str())), began);
    assert!(ours.iter().all(|row| row["server_name"] == "www.example.org"));
}

#[test]
fn names_are_answered_as_dnsmasq_was_told() {
    let logs = Logs::of(CAPTURE, &[]);
    let script = fs::read_to_string(recorded("record-protocols.sh")).unwrap();
    let mut records = BTreeMap::new();
    for line in script.lines().filter_map(|line| line.strip_prefix("host-record=")) {
        let cells: Vec<&str> = line.split(',').collect();
        records.insert((cells[0].to_owned(), "A".to_owned()), cells[1].to_owned());
        records.insert((cells[0].to_owned(), "AAAA".to_owned()), cells[2].to_owned());
    }
    assert_eq!(records.len(), 6);
    let rows = logs.rows("dns");
    let (mut answered, mut refused) = (0, 0);
    for row in rows.iter().filter(|row| row["id.resp_p"] == "53") {
        assert_eq!(
            (&row["id.resp_h"], &row["proto"]),
            (&"192.0.2.53".to_owned(), &"udp".to_owned())
        );
        if let Some(address) = records.get(&(row["query"].clone(), row["qtype_name"].clone())) {
            let told = ["answers", "rcode_name", "AA"].map(|column| row[column].as_str());
            assert_eq!(told, [address, "NOERROR", "T"], "{row:?}");
            answered += 1;
        } else {
            // Nobody told it where to ask.
            let told = ["answers", "rcode_name"].map(|column| row[column].as_str());
            assert_eq!(told, ["-", "REFUSED"], "{row:?}");
            refused += 1;
        }
    }
    assert!(answered >= 40 && refused >= 15, "{answered} and {refused}");
    // What the multicast responders said, as who asked got it: name or service, and the address.
    let text = expected("conversations.tsv");
    let asked = text.lines().filter_map(|line| line.strip_prefix("ask-multicast\tmulticast "));
    let mut got = Vec::new();
    for line in asked {
        let [name, from, _] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        got.push((name.to_owned(), from.to_owned()));
    }
    assert_eq!(got.len(), 4);
    for (name, from) in got {
        let is_answer = |row: &&Row| row["query"] == name && row["rcode_name"] == "NOERROR";
        let by = |row: &Row| {
            row["id.resp_h"] == from && ["5353", "5355"].contains(&row["id.resp_p"].as_str())
        };
        let row = rows.iter().filter(is_answer).find(|row| by(row));
        let row = row.unwrap_or_else(|| panic!("no answer for {name} from {from}"));
        let needle = if name.starts_with('_') { "printer._ipp._tcp.local" } else { "192.0.2.60" };
        let needle = if from.contains(':') { from.as_str() } else { needle };
        assert!(row["answers"].split(',').any(|answer| answer == needle), "{row:?}");
    }
}
