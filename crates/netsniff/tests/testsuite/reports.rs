//! Faults that users of this field reported, each with a small capture: none may go wrong here.
//!
//! `NETSNIFF_REPORTS` names the folder, whose page REPORTS.md says of each file what is right and why.

use std::fs;

use crate::expected::{Expected, Outcome, check};
use crate::zeek::corpus::{Scratch, run};
use netsniff_testing::{Need, folder, print_uncaptured};

/// What is right today and must stay so. Nothing leaves this table.
const RIGHT: &[Expected] = &[
    (
        "01-smtp-no-brackets.pcap",
        &["exit = 0", "smtp.mailfrom = random@example.com", "smtp.rcptto = reciever@example.com"],
    ),
    (
        "02-mdns-not-associated.pcap",
        &[
            "exit = 0",
            "dns.# = 6",
            "dns[query=initial-query-a.local].answers = -",
            "dns[query=initial-query-aaaa.local].answers = -",
            "dns[query=unrelated-reply-a.local].answers = 192.168.0.2",
            "dns[query=unrelated-reply-aaaa.local].answers = fe80::200:deff:fead:beef",
            "dns[query=v6-initial.local].answers = -",
            "dns[query=v6-unrelated.local].answers = fe80::1",
            "dns.rtt = -",
        ],
    ),
    (
        "03-dns-reply-only-nxdomain.pcap",
        &[
            "exit = 0",
            "dns.rcode_name = NXDOMAIN",
            "dns.query = gone.example",
            "dns.qtype_name = A",
        ],
    ),
    (
        "04-dns-three-questions.pcap",
        &[
            "exit = 0",
            "dns[query=foo.example,answers=1.2.3.4].# = 0",
            "dns[query=bar.example].answers = 1.2.3.4",
            "dns[query=baz.example,answers=1.2.3.4].# = 0",
        ],
    ),
    (
        "05-dns-junk-first.pcap",
        &[
            "exit = 0",
            "dns[query=reported.example].answers = 192.0.2.53",
            "dns[query=reported.example].rtt = 0.006488",
            "conn.service = dns",
        ],
    ),
    (
        "06-dhcp-overload.pcap",
        &["exit = 0", "dhcp.client_message = Paddingfile name field overloadsname field overload"],
    ),
    (
        "07-http-gap-at-body-begin.pcap",
        &[
            "exit = 0",
            "http[uri=/1].status_code = 200",
            "http[uri=/2].status_code = 200",
            "http[uri=/3].status_code = 200",
            "http[uri=/1].response_body_len = 1000",
            "http[uri=/2].response_body_len = 5",
            "files[missing_bytes=600].seen_bytes = 400",
        ],
    ),
    (
        "08-http-begins-with-response.pcap",
        &[
            "exit = 0",
            "http.# = 3",
            "http[uri=-].status_code = 200",
            "http[uri=-].response_body_len = 10918",
            "http[uri=/icons/ubuntu-logo.png].status_code = 200",
            "http[uri=/icons/ubuntu-logo.png].response_body_len = 3338",
            "http[uri=/favicon.ico].status_code = 404",
            "http[uri=/favicon.ico].response_body_len = 297",
            "conn.service = http",
        ],
    ),
    (
        "09-synack-first.pcap",
        &[
            "exit = 0",
            "conn[resp_bytes=45].id.orig_h = 192.168.100.1",
            "conn[resp_bytes=45].id.orig_p = 25820",
            "conn[resp_bytes=45].id.resp_h = 192.168.100.2",
            "conn[resp_bytes=45].id.resp_p = 179",
        ],
    ),
    (
        "10-rst-fin-before-synack.pcap",
        &[
            "exit = 0",
            "conn.orig_bytes = 338",
            "http[uri=/].status_code = 200",
            "http[uri=/].response_body_len = 14",
            "files.seen_bytes = 14",
            "files.mime_type = text/plain",
            "conn.service = http",
            "conn.resp_bytes = 79",
        ],
    ),
    (
        "11-quic-version-negotiation.pcap",
        &[
            "exit = 0",
            "quic[version=1].client_protocol = h3",
            "quic[version=1].ja4 = q13i0307h3_55b375c5d22e_f0736a66fa6b",
            "ssl.version = TLSv13",
            "conn.service ~ quic",
        ],
    ),
    (
        "12-two-synacks.pcap",
        &[
            "exit = 0",
            "conn.orig_bytes = 35",
            "conn.resp_bytes = 1041",
            "http.status_code = 200",
            "http.response_body_len = 1000",
        ],
    ),
    (
        "13-snaplen-54.pcap",
        &[
            "exit = 0",
            "conn[proto=tcp].# = 1",
            "conn[proto=tcp].orig_pkts = 8",
            "conn[proto=tcp].orig_ip_bytes = 494",
            "conn[proto=tcp].resp_pkts = 6",
            "conn[proto=tcp].resp_ip_bytes = 2402",
            "conn[proto=tcp].orig_bytes = 70",
            "conn[proto=tcp].resp_bytes = 2082",
            "conn[proto=tcp].conn_state = SF",
        ],
    ),
    (
        "14-http-two-codings.pcap",
        &[
            "exit = 0",
            "http.response_body_len = 68",
            "files.seen_bytes = 68",
            "files.mime_type = text/plain",
        ],
    ),
    (
        "15-tls-hello-1-byte-record.pcap",
        &[
            "exit = 0",
            "conn.service = ssl",
            "ssl.server_name = www.example.org",
            "ssl.ja4 = t13d0306h2_55b375c5d22e_5d4d534e3685",
        ],
    ),
    (
        "16-bigtcp-vxlan.pcap.gz",
        &[
            "exit = 0",
            "conn[proto=tcp].orig_bytes = 160000",
            "conn[id.resp_p=4789].orig_bytes = 160124",
            "conn[id.resp_p=4789].conn_state = S0",
            "weird[name=UDP_datagram_length_mismatch].# = 0",
        ],
    ),
    (
        "17-vxlan-8472.pcap",
        &[
            "exit = 0",
            "conn[proto=icmp].id.orig_h = 192.168.203.3",
            "conn[proto=icmp].id.resp_h = 192.168.203.5",
            "conn[proto=icmp].orig_pkts = 4",
            "conn[proto=icmp].resp_pkts = 4",
            "conn[proto=icmp].orig_bytes = 224",
            "conn[proto=icmp].resp_bytes = 224",
            "tunnel.tunnel_type = Tunnel::VXLAN",
        ],
    ),
    (
        "18-vntag.pcap",
        &[
            "exit = 0",
            "conn.id.orig_h = 1.1.1.1",
            "conn.id.resp_h = 1.1.2.1",
            "conn.proto = unknown_transport",
            "conn.ip_proto = 253",
            "conn.orig_pkts = 3",
            "conn.orig_ip_bytes = 300",
        ],
    ),
    (
        "19-dns-port-8053.pcap",
        &[
            "exit = 0",
            "dns[query=www.reported.example].answers = 192.0.2.66",
            "dns[query=www.reported.example].rtt = 0.148718",
            "conn.service = dns",
        ],
    ),
    (
        "20-split-handshake.pcap",
        &[
            "exit = 0",
            "conn.# = 1",
            "conn.id.orig_h = 1.1.1.1",
            "conn.id.resp_p = 80",
            "conn.orig_bytes = 4",
            "conn.orig_pkts = 4",
            "conn.resp_pkts = 3",
        ],
    ),
    (
        "21-urgent-byte.pcap",
        &["exit = 0", "weird[name=urgent_data].# = 1", "http.uri = /malicious"],
    ),
    ("22-idle-11-minutes.pcap", &["exit = 0", "http.# = 2", "conn[service=http].# = 2"]),
    (
        "23-time-runs-back.pcap",
        &[
            "exit = 0",
            "conn.duration !~ -0",
            "http.# = 1",
            "conn.# = 1",
            "conn.orig_pkts = 6",
            "conn.resp_pkts = 4",
            "conn.conn_state = SF",
        ],
    ),
];

/// THE list of what is not right yet: what becomes right moves into the table above.
const OPEN: &[Expected] = &[];

/// How many lines of `OPEN` there may be. It only falls.
const MOST_OPEN: usize = 0;

#[test]
fn reported_faults_are_not_ours() {
    let Some(folder) = folder(Need::Reports, "no reported fault was tried") else { return };
    let figures = check(RIGHT, OPEN, MOST_OPEN, |file| {
        let scratch = Scratch::new("reports");
        let output = run(&folder.join(file), scratch.path(), &["--workers", "1"], None);
        Outcome::read(output.status.code(), scratch.path())
    });
    print_uncaptured(&format!("reports: {figures}"));
}

/// A file that nobody expects anything of is read as well.
#[test]
fn every_reported_file_is_named() {
    let Some(folder) = folder(Need::Reports, "no reported fault was looked for") else { return };
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_capture = [".pcap", ".pcapng", ".gz"].iter().any(|end| name.ends_with(end));
        let is_named =
            RIGHT.iter().any(|(file, lines)| *file == name && lines.contains(&"exit = 0"));
        assert!(!is_capture || is_named, "{name} has no line");
    }
}
