//! The Elastic Common Schema 8, with the places that Elastic's integration for Zeek gives to what ECS has no field for.
//!
//! The mapping follows the ingest pipelines of that integration (`packages/zeek` of `elastic/integrations`). It leaves to an
//! ingest pipeline what a pipeline adds from elsewhere: places and owners of addresses, and copies in `related`.

mod derived;

use netsniff_analysis::record::{LogType, Origin};

use self::derived::{
    class, connection_type, direction, flags, http_outcome, outcome, resolved, sum, tls_protocol,
    tls_version, transport,
};
use super::document::{Dialect, Document, Documents, Form, Plans, Told, derived, told, told_as};

/// Documents of the Elastic Common Schema, one on each line.
pub(super) struct Ecs;

static PLANS: Plans = Plans::new(&ECS, || Plans::made(&ECS));

impl Documents for Ecs {
    const EXTENSION: &'static str = "ecs.ndjson";
    const PLANS: fn() -> &'static Plans = || &PLANS;
}

static ECS: Dialect = Dialect {
    zone: "Z",
    written: None,
    leading: "@timestamp",
    head,
    beside: |log, document| document.name_of(log),
    common: &[
        told("ts", "@timestamp"),
        told("uid", "zeek.session_id"),
        told("id.orig_h", "source.ip"),
        told("id.orig_p", "source.port"),
        told("id.resp_h", "destination.ip"),
        told("id.resp_p", "destination.port"),
        told("proto", "network.transport"),
        told("community_id", "network.community_id"),
    ],
    icmp: &[
        told("id.orig_p", "zeek.connection.icmp.type"),
        told("id.resp_p", "zeek.connection.icmp.code"),
    ],
    derived: &[derived("network.transport", &[], transport)],
    documents: DOCUMENTS,
    other: Document { log: "", name: "", constants: NETWORK, columns: &[], derived: &[] },
};

/// What each document says of itself.
fn head(log: &'static LogType, document: &Document) -> Vec<(&'static str, String)> {
    let is_ours = log.fields.iter().all(|field| field.origin == Origin::Netsniff);
    let module = if is_ours { "netsniff" } else { "zeek" };
    let dataset = format!("\"{module}.{}\"", document.name_of(log));
    vec![
        ("ecs.version", "\"8.17.0\"".to_owned()),
        ("event.module", format!("\"{module}\"")),
        ("event.dataset", dataset),
    ]
}

const EVENT: (&str, &str) = ("event.kind", "\"event\"");
const OF_NETWORK: (&str, &str) = ("event.category", "[\"network\"]");
const INFO: (&str, &str) = ("event.type", "[\"info\"]");
const OF_PROTOCOL: (&str, &str) = ("event.type", "[\"connection\",\"protocol\",\"info\"]");
const NETWORK: &[(&str, &str)] = &[EVENT, OF_NETWORK, INFO];

const fn protocol(name: &'static str) -> (&'static str, &'static str) {
    ("network.protocol", name)
}

const fn plain(log: &'static str, constants: &'static [(&'static str, &'static str)]) -> Document {
    Document { log, name: "", constants, columns: &[], derived: &[] }
}

static DOCUMENTS: &[Document] = &[
    Document {
        log: "conn",
        name: "connection",
        constants: &[EVENT, OF_NETWORK],
        columns: &[
            told_as("duration", "event.duration", Form::Nanos),
            told("service", "network.protocol"),
            told("conn_state", "zeek.connection.state"),
            told("orig_ip_bytes", "source.bytes"),
            told("resp_ip_bytes", "destination.bytes"),
            told("orig_pkts", "source.packets"),
            told("resp_pkts", "destination.packets"),
            told_as("ip_proto", "network.iana_number", Form::Text),
            told_as("vlan", "network.vlan.id", Form::Text),
            told_as("inner_vlan", "network.inner.vlan.id", Form::Text),
        ],
        derived: &[
            derived("event.type", &["conn_state"], connection_type),
            derived("network.direction", &["local_orig", "local_resp"], direction),
            derived("network.bytes", &["orig_ip_bytes", "resp_ip_bytes"], sum),
            derived("network.packets", &["orig_pkts", "resp_pkts"], sum),
        ],
    },
    Document {
        log: "dns",
        name: "",
        constants: &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"dns\"")],
        columns: &[
            told_as("rtt", "event.duration", Form::Nanos),
            told_as("trans_id", "dns.id", Form::Text),
            told("query", "dns.question.name"),
            told("qtype_name", "dns.question.type"),
            told("rcode_name", "dns.response_code"),
            told("answers", "dns.answers[].data"),
            told_as("TTLs", "dns.answers[].ttl", Form::Seconds),
        ],
        derived: &[
            derived("dns.type", &["rcode"], |inputs, out| {
                out.extend_from_slice(if inputs.json(0).is_some() {
                    b"\"answer\""
                } else {
                    b"\"query\""
                });
            }),
            derived("dns.question.class", &["qclass"], class),
            derived("dns.header_flags", &["AA", "TC", "RD", "RA"], flags),
            derived("dns.resolved_ip", &["answers"], resolved),
        ],
    },
    Document {
        log: "http",
        name: "",
        constants: &[
            EVENT,
            ("event.category", "[\"network\",\"web\"]"),
            OF_PROTOCOL,
            protocol("\"http\""),
        ],
        columns: &[
            told("method", "http.request.method"),
            told("referrer", "http.request.referrer"),
            told("request_body_len", "http.request.body.bytes"),
            told("status_code", "http.response.status_code"),
            told("response_body_len", "http.response.body.bytes"),
            told("version", "http.version"),
            told("host", "url.domain"),
            told("uri", "url.original"),
            told("username", "url.username"),
            told("password", "url.password"),
            told("user_agent", "user_agent.original"),
        ],
        derived: &[derived("event.outcome", &["status_code"], http_outcome)],
    },
    Document {
        log: "ssl",
        name: "",
        constants: &[
            EVENT,
            OF_NETWORK,
            ("event.type", "[\"connection\",\"protocol\"]"),
            protocol("\"tls\""),
        ],
        columns: &[
            told("cipher", "tls.cipher"),
            told("curve", "tls.curve"),
            told("established", "tls.established"),
            told("resumed", "tls.resumed"),
            told("next_protocol", "tls.next_protocol"),
            told("server_name", "tls.client.server_name"),
            told("ja3", "tls.client.ja3"),
            told("ja3s", "tls.server.ja3s"),
        ],
        derived: &[
            derived("tls.version", &["version"], tls_version),
            derived("tls.version_protocol", &["version"], tls_protocol),
        ],
    },
    Document {
        log: "files",
        name: "",
        constants: &[EVENT, ("event.category", "[\"file\"]"), INFO],
        columns: &[
            told_as("duration", "event.duration", Form::Nanos),
            told("mime_type", "file.mime_type"),
            told("filename", "file.name"),
            told("total_bytes", "file.size"),
            told("md5", "file.hash.md5"),
            told("sha1", "file.hash.sha1"),
            told("sha256", "file.hash.sha256"),
        ],
        derived: &[],
    },
    Document {
        log: "x509",
        name: "",
        constants: &[EVENT, ("event.category", "[\"network\",\"file\"]"), INFO],
        columns: X509,
        derived: &[],
    },
    Document {
        log: "dhcp",
        name: "",
        constants: &[
            EVENT,
            OF_NETWORK,
            OF_PROTOCOL,
            protocol("\"dhcp\""),
            ("network.transport", "\"udp\""),
        ],
        columns: &[
            told_as("duration", "event.duration", Form::Nanos),
            told("client_addr", "source.ip"),
            told("server_addr", "destination.ip"),
            told("domain", "network.name"),
        ],
        derived: &[],
    },
    Document {
        log: "smtp",
        name: "",
        constants: &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"smtp\"")],
        columns: &[told("subject", "email.subject"), told("msg_id", "email.message_id")],
        derived: &[],
    },
    Document {
        log: "ssh",
        name: "",
        constants: &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"ssh\"")],
        columns: &[],
        derived: &[derived("event.outcome", &["auth_success"], outcome)],
    },
    Document {
        log: "ftp",
        name: "",
        constants: &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"ftp\"")],
        columns: &[
            told("user", "user.name"),
            told("command", "event.action"),
            told("mime_type", "file.mime_type"),
            told("file_size", "file.size"),
        ],
        derived: &[],
    },
    Document {
        log: "notice",
        name: "",
        constants: &[
            ("event.kind", "\"alert\""),
            ("event.category", "[\"intrusion_detection\"]"),
            INFO,
        ],
        columns: &[told("note", "rule.name"), told("msg", "rule.description")],
        derived: &[],
    },
    Document {
        log: "intel",
        name: "",
        constants: &[
            ("event.kind", "\"alert\""),
            ("event.category", "[\"threat\"]"),
            ("event.type", "[\"indicator\"]"),
        ],
        columns: &[],
        derived: &[],
    },
    Document {
        log: "snmp",
        name: "",
        constants: &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"snmp\"")],
        columns: &[told_as("duration", "event.duration", Form::Nanos)],
        derived: &[],
    },
    Document {
        log: "syslog",
        name: "",
        constants: &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"syslog\"")],
        columns: &[told("message", "message")],
        derived: &[],
    },
    plain("quic", &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"quic\"")]),
    plain("ntp", &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"ntp\"")]),
    plain("irc", &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"irc\"")]),
    plain("socks", &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"socks\"")]),
    plain("pop3", &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"pop3\"")]),
    plain("imap", &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"imap\"")]),
    plain("websocket", &[EVENT, OF_NETWORK, OF_PROTOCOL, protocol("\"websocket\"")]),
];

const X509: &[Told] = &[
    told_as("certificate.version", "file.x509.version_number", Form::Text),
    told("certificate.serial", "file.x509.serial_number"),
    told("certificate.subject", "file.x509.subject.distinguished_name"),
    told("certificate.issuer", "file.x509.issuer.distinguished_name"),
    told("certificate.not_valid_before", "file.x509.not_before"),
    told("certificate.not_valid_after", "file.x509.not_after"),
    told("certificate.key_alg", "file.x509.public_key_algorithm"),
    told("certificate.sig_alg", "file.x509.signature_algorithm"),
    told("certificate.key_length", "file.x509.public_key_size"),
    told("certificate.curve", "file.x509.public_key_curve"),
    told("san.dns", "file.x509.alternative_names"),
    told("sha1", "file.hash.sha1"),
];

#[cfg(test)]
mod tests {
    use netsniff_analysis::record::Scalar;
    use netsniff_analysis::rows::LOGS;

    use super::*;

    #[test]
    fn each_value_has_a_place_of_its_own() {
        crate::format::document::check(&ECS);
    }

    /// The fields of ECS 8 that are used, with their types, as `generated/csv/fields.csv` and `schemas/` of github.com/elastic/ecs have them.
    const FIELDS: &str = include_str!("fields.tsv");

    #[test]
    fn fields_of_ecs_are_of_its_types() {
        let fields: Vec<_> = FIELDS.lines().filter_map(|line| line.split_once('\t')).collect();
        let typed = |path: &str| fields.iter().find(|(name, _)| *name == path).map(|it| it.1);
        let mut used = 0;
        for log in LOGS.iter() {
            for (field, path) in log.fields.iter().zip(PLANS.paths(log)) {
                let path = path.unwrap().replace("[]", "");
                if path.starts_with("zeek.") || path.starts_with("netsniff.") {
                    continue;
                }
                let found = typed(&path).unwrap_or_else(|| panic!("ECS has no field {path}"));
                let form = [ECS.document_columns(log), ECS.common].concat();
                let form = form.iter().find(|told| told.column == field.name).map(|it| it.form);
                let written = match (form.unwrap(), field.zeek_type.scalar) {
                    (Form::Text, _) => "text",
                    (Form::Nanos | Form::Seconds, _) => "number",
                    (_, Scalar::Count | Scalar::Int | Scalar::Port) => "number",
                    (_, Scalar::Time) => "date",
                    (_, Scalar::Addr) => "ip",
                    (_, Scalar::Bool) => "boolean",
                    (_, Scalar::Enum | Scalar::String) => "text",
                    (_, Scalar::Double | Scalar::Interval) => "fraction",
                };
                let wanted = match found {
                    "long" => "number",
                    "keyword" | "wildcard" | "match_only_text" => "text",
                    other => other,
                };
                assert_eq!(written, wanted, "{}.{} at {path}", log.path, field.name);
                used += 1;
            }
        }
        assert!(used > 200, "{used}");
        let constants = ECS.documents.iter().flat_map(|it| it.constants.iter().map(|it| it.0));
        let derived = ECS.documents.iter().flat_map(|it| it.derived.iter().map(|it| it.path));
        for path in constants.chain(derived).chain(ECS.derived.iter().map(|it| it.path)) {
            assert!(typed(path).is_some(), "ECS has no field {path}");
        }
    }
}
