//! EVE, the JSON events of Suricata 8.

use netsniff_analysis::record::Proto;

use super::digits;
use super::document::{Dialect, Document, Documents, Form, Inputs, Plans, derived, told, told_as};

/// Events as Suricata names them, one on each line.
pub(super) struct Eve;

static PLANS: Plans = Plans::new(&EVE, || Plans::made(&EVE));

impl Documents for Eve {
    const EXTENSION: &'static str = "eve.ndjson";
    const PLANS: fn() -> &'static Plans = || &PLANS;
}

static EVE: Dialect = Dialect {
    zone: "+0000",
    written: Some("timestamp"),
    leading: "timestamp",
    head: |log, document| vec![("event_type", format!("\"{}\"", document.name_of(log)))],
    beside: |log, _| log.path,
    common: &[
        told("uid", "zeek.uid"),
        told("id.orig_h", "src_ip"),
        told("id.orig_p", "src_port"),
        told("id.resp_h", "dest_ip"),
        told("id.resp_p", "dest_port"),
        told("community_id", "community_id"),
    ],
    // What the responder's port is for ICMP depends on the type: the answer's, or the code.
    icmp: &[told("id.orig_p", "icmp_type"), told("id.resp_p", "zeek.icmp_answer_or_code")],
    derived: &[
        derived("flow_id", &["uid"], flow_id),
        derived("proto", &["proto", "id.orig_h"], transport).instead_of("proto"),
        derived("ip_v", &["id.orig_h"], |inputs, out| {
            if let Some(address) = inputs.json(0) {
                out.push(if address.contains(&b':') { b'6' } else { b'4' });
            }
        }),
    ],
    documents: DOCUMENTS,
    other: Document { log: "", name: "", constants: &[], columns: &[], derived: &[] },
};

static DOCUMENTS: &[Document] = &[
    Document {
        log: "conn",
        name: "flow",
        constants: &[],
        columns: &[
            told("ts", "flow.start"),
            told_as("duration", "flow.end", Form::End),
            told_as("service", "app_proto", Form::Word(SERVICES)),
            told("orig_pkts", "flow.pkts_toserver"),
            told("resp_pkts", "flow.pkts_toclient"),
            told("orig_ip_bytes", "flow.bytes_toserver"),
            told("resp_ip_bytes", "flow.bytes_toclient"),
            told_as("vlan", "vlan", Form::Listed),
        ],
        derived: &[derived("flow.state", &["conn_state", "proto"], state)],
    },
    Document {
        log: "dns",
        name: "",
        constants: &[("dns.version", "3")],
        columns: &[
            told("trans_id", "dns.id"),
            told("rcode_name", "dns.rcode"),
            told("opcode", "dns.opcode"),
            told("AA", "dns.aa"),
            told("TC", "dns.tc"),
            told("RD", "dns.rd"),
            told("RA", "dns.ra"),
            told("query", "dns.queries[].rrname"),
            told("qtype_name", "dns.queries[].rrtype"),
            told("answers", "dns.answers[].rdata"),
            told_as("TTLs", "dns.answers[].ttl", Form::Seconds),
        ],
        derived: &[derived("dns.type", &["rcode"], |inputs, out| {
            let is_answered = inputs.json(0).is_some();
            out.extend_from_slice(if is_answered { b"\"response\"" } else { b"\"request\"" });
        })],
    },
    Document {
        log: "http",
        name: "",
        constants: &[],
        columns: &[
            told("host", "http.hostname"),
            told("uri", "http.url"),
            told("user_agent", "http.http_user_agent"),
            told("referrer", "http.http_refer"),
            told("method", "http.http_method"),
            told("status_code", "http.status"),
            told("response_body_len", "http.length"),
        ],
        derived: &[derived("http.protocol", &["version"], |inputs, out| {
            if let Some(version) = inputs.text(0) {
                out.extend_from_slice(b"\"HTTP/");
                out.extend_from_slice(version);
                out.push(b'"');
            }
        })
        .instead_of("version")],
    },
    Document {
        log: "ssl",
        name: "tls",
        constants: &[],
        columns: &[
            told("server_name", "tls.sni"),
            told_as("version", "tls.version", Form::Word(TLS_VERSIONS)),
            told("resumed", "tls.session_resumed"),
            told_as("next_protocol", "tls.server_alpns", Form::Listed),
            told("ja3", "tls.ja3.hash"),
            told("ja3s", "tls.ja3s.hash"),
            told("ja4", "tls.ja4"),
        ],
        derived: &[],
    },
    Document {
        log: "files",
        name: "fileinfo",
        constants: &[],
        columns: &[
            told_as("source", "app_proto", Form::Word(SOURCES)),
            told("filename", "fileinfo.filename"),
            told("md5", "fileinfo.md5"),
            told("sha1", "fileinfo.sha1"),
            told("sha256", "fileinfo.sha256"),
            told("seen_bytes", "fileinfo.size"),
        ],
        derived: &[],
    },
    Document {
        log: "ssh",
        name: "",
        constants: &[],
        columns: &[
            told("hassh", "ssh.client.hassh.hash"),
            told("hassh_server", "ssh.server.hassh.hash"),
        ],
        derived: &[
            derived("ssh.client.proto_version", &["client"], ssh_version),
            derived("ssh.client.software_version", &["client"], ssh_software),
            derived("ssh.server.proto_version", &["server"], ssh_version),
            derived("ssh.server.software_version", &["server"], ssh_software),
        ],
    },
    Document {
        log: "smtp",
        name: "",
        constants: &[],
        columns: &[
            told("helo", "smtp.helo"),
            told("mailfrom", "smtp.mail_from"),
            told("rcptto", "smtp.rcpt_to"),
            told("from", "email.from"),
            told("to", "email.to"),
            told("cc", "email.cc"),
            told("subject", "email.subject"),
            told("date", "email.date"),
            told("msg_id", "email.message_id"),
            told("reply_to", "email.reply_to"),
            told("in_reply_to", "email.in_reply_to"),
            told("user_agent", "email.x_mailer"),
        ],
        derived: &[],
    },
    Document {
        log: "ftp",
        name: "",
        constants: &[],
        columns: &[
            told("command", "ftp.command"),
            told("arg", "ftp.command_data"),
            told_as("reply_code", "ftp.completion_code", Form::ListedText),
            told_as("reply_msg", "ftp.reply", Form::Listed),
        ],
        derived: &[],
    },
    Document {
        log: "dhcp",
        name: "",
        constants: &[],
        columns: &[
            told("mac", "dhcp.client_mac"),
            told("assigned_addr", "dhcp.assigned_ip"),
            told("requested_addr", "dhcp.requested_ip"),
            told("host_name", "dhcp.hostname"),
            told_as("lease_time", "dhcp.lease_time", Form::Seconds),
        ],
        derived: &[],
    },
    Document {
        log: "quic",
        name: "",
        constants: &[],
        columns: &[
            told("version", "quic.version"),
            told("server_name", "quic.sni"),
            told("ja4", "quic.ja4"),
        ],
        derived: &[],
    },
    Document {
        log: "weird",
        name: "anomaly",
        constants: &[],
        columns: &[told("name", "anomaly.event")],
        derived: &[],
    },
];

/// Application protocols whose names differ.
const SERVICES: &[(&str, &str)] = &[("ssl", "tls"), ("krb", "krb5"), ("krb_tcp", "krb5")];
/// What carried a file.
const SOURCES: &[(&str, &str)] =
    &[("HTTP", "http"), ("SMTP", "smtp"), ("FTP_DATA", "ftp-data"), ("SSL", "tls")];
/// Versions of TLS.
const TLS_VERSIONS: &[(&str, &str)] =
    &[("TLSv10", "TLSv1"), ("TLSv11", "TLS 1.1"), ("TLSv12", "TLS 1.2"), ("TLSv13", "TLS 1.3")];

/// A number for the connection, the same in each of its events. As Suricata's it has 51 bits: beyond 53, `jq` and
/// JavaScript take two numbers for one.
fn flow_id(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    let Some(uid) = inputs.text(0) else { return };
    // FNV-1a: a name is spread over all bits already.
    let hash = uid.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    digits::integer(out, (hash ^ hash >> 51) & ((1 << 51) - 1));
}

fn transport(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    let is_v6 = inputs.json(1).is_some_and(|address| address.contains(&b':'));
    let named = match (inputs.text(0), inputs.transport()) {
        (Some(b"tcp"), _) | (None, Some(Proto::Tcp)) => &b"\"TCP\""[..],
        (Some(b"udp"), _) | (None, Some(Proto::Udp)) => b"\"UDP\"",
        (Some(b"icmp"), _) | (None, Some(Proto::Icmp)) if is_v6 => b"\"IPv6-ICMP\"",
        (Some(b"icmp"), _) | (None, Some(Proto::Icmp)) => b"\"ICMP\"",
        (None, Some(Proto::Unknown) | None) => b"",
        (Some(_), _) => inputs.json(0).unwrap_or_default(),
    };
    out.extend_from_slice(named);
}

/// What Suricata makes of the states of TCP; without one, whether both sides sent.
fn state(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    let is_tcp = inputs.text(1) == Some(b"tcp");
    out.extend_from_slice(match inputs.text(0) {
        Some(b"S0") => b"\"new\"",
        Some(b"SF") if !is_tcp => b"\"established\"",
        Some(b"S1" | b"S2" | b"S3") => b"\"established\"",
        Some(b"SF" | b"REJ" | b"RSTO" | b"RSTR") => b"\"closed\"",
        _ => b"",
    });
}

/// The version of the protocol in a banner, `SSH-2.0-OpenSSH_9.6`.
fn ssh_version(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    quoted(parts(inputs).map(|(version, _)| version), out);
}

/// The software in a banner.
fn ssh_software(inputs: &Inputs<'_>, out: &mut Vec<u8>) {
    quoted(parts(inputs).map(|(_, software)| software), out);
}

fn parts<'a>(inputs: &'a Inputs<'_>) -> Option<(&'a [u8], &'a [u8])> {
    let rest = inputs.text(0)?.strip_prefix(b"SSH-")?;
    let at = rest.iter().position(|&byte| byte == b'-')?;
    Some((rest.get(..at)?, rest.get(at + 1..)?))
}

fn quoted(text: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(text) = text {
        out.push(b'"');
        out.extend_from_slice(text);
        out.push(b'"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_a_place_of_its_own() {
        crate::format::document::check(&EVE);
    }
}
