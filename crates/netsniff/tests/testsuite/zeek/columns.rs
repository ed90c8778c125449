//! Which columns of each log are compared.

use netsniff_analysis::record::{LogType, Origin};

/// What of a log is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns {
    /// The columns that name a row. Several rows may have the same name.
    pub(crate) key: &'static [&'static str],
    /// The columns that are compared of rows with the same name.
    pub(crate) compared: &'static [&'static str],
}

/// Columns that name a row, of those that a log has.
const KEY: [&str; 5] = ["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"];

impl Columns {
    /// Of a log whose declaration tells it all: every column that Zeek's default scripts fill, but the
    /// name of the connection, which is drawn at random.
    pub(crate) fn of(log: &LogType) -> Self {
        let columns = log.fields.iter().filter(|it| it.origin == Origin::Zeek && it.name != "uid");
        let (key, compared): (Vec<_>, Vec<_>) =
            columns.map(|it| it.name).partition(|name| KEY.contains(name));
        Self { key: key.leak(), compared: compared.leak() }
    }
}

/// The log of connections.
pub(crate) const CONN: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto"],
    compared: &[
        "service",
        "duration",
        "orig_bytes",
        "resp_bytes",
        "conn_state",
        "local_orig",
        "local_resp",
        "missed_bytes",
        "history",
        "orig_pkts",
        "orig_ip_bytes",
        "resp_pkts",
        "resp_ip_bytes",
        "ip_proto",
    ],
};

/// The log of DNS.
pub(crate) const DNS: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "proto", "trans_id"],
    compared: &[
        "rtt",
        "query",
        "qclass",
        "qclass_name",
        "qtype",
        "qtype_name",
        "rcode",
        "rcode_name",
        "AA",
        "TC",
        "RD",
        "RA",
        "Z",
        "answers",
        "TTLs",
        "rejected",
        "opcode",
        "opcode_name",
    ],
};

/// The log of NTP.
pub(crate) const NTP: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &[
        "version",
        "mode",
        "stratum",
        "poll",
        "precision",
        "root_delay",
        "root_disp",
        "ref_id",
        "ref_time",
        "org_time",
        "rec_time",
        "xmt_time",
        "num_exts",
    ],
};

/// The log of DHCP.
pub(crate) const DHCP: Columns = Columns {
    key: &["ts", "mac"],
    compared: &[
        "client_addr",
        "server_addr",
        "host_name",
        "client_fqdn",
        "domain",
        "requested_addr",
        "assigned_addr",
        "lease_time",
        "client_message",
        "server_message",
        "msg_types",
        "duration",
    ],
};

/// The log of HTTP. Names of files are random: how many there are is compared.
pub(crate) const HTTP: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "trans_depth"],
    compared: &[
        "method",
        "host",
        "uri",
        "referrer",
        "version",
        "user_agent",
        "origin",
        "request_body_len",
        "response_body_len",
        "status_code",
        "status_msg",
        "info_code",
        "info_msg",
        "tags",
        "username",
        "password",
        "proxied",
        "orig_fuids",
        "orig_filenames",
        "orig_mime_types",
        "resp_fuids",
        "resp_filenames",
        "resp_mime_types",
    ],
};

/// The log of WebSocket.
pub(crate) const WEBSOCKET: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &[
        "host",
        "uri",
        "user_agent",
        "subprotocol",
        "client_protocols",
        "server_extensions",
        "client_extensions",
    ],
};

/// The log of SOCKS.
pub(crate) const SOCKS: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &[
        "version",
        "user",
        "password",
        "status",
        "request.host",
        "request.name",
        "request_p",
        "bound.host",
        "bound.name",
        "bound_p",
    ],
};

/// The log of mails. Names of files are drawn at random, so only their number is compared.
pub(crate) const SMTP: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "trans_depth"],
    compared: &[
        "helo",
        "mailfrom",
        "rcptto",
        "date",
        "from",
        "to",
        "cc",
        "reply_to",
        "msg_id",
        "in_reply_to",
        "subject",
        "x_originating_ip",
        "first_received",
        "second_received",
        "last_reply",
        "path",
        "user_agent",
        "tls",
        "fuids",
    ],
};

/// The log of TLS.
pub(crate) const SSL: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &[
        "version",
        "cipher",
        "curve",
        "server_name",
        "resumed",
        "last_alert",
        "next_protocol",
        "established",
        "ssl_history",
        "cert_chain_fps",
        "client_cert_chain_fps",
        "sni_matches_cert",
    ],
};

/// The log of certificates.
pub(crate) const X509: Columns = Columns {
    key: &["ts", "fingerprint"],
    compared: &[
        "certificate.version",
        "certificate.serial",
        "certificate.subject",
        "certificate.issuer",
        "certificate.not_valid_before",
        "certificate.not_valid_after",
        "certificate.key_alg",
        "certificate.sig_alg",
        "certificate.key_type",
        "certificate.key_length",
        "certificate.exponent",
        "certificate.curve",
        "san.dns",
        "san.uri",
        "san.email",
        "san.ip",
        "basic_constraints.ca",
        "basic_constraints.path_len",
        "host_cert",
        "client_cert",
    ],
};

/// The log of QUIC.
pub(crate) const QUIC: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &[
        "version",
        "client_initial_dcid",
        "client_scid",
        "server_scid",
        "server_name",
        "client_protocol",
        "history",
    ],
};

/// The log of FTP.
pub(crate) const FTP: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &[
        "user",
        "password",
        "command",
        "arg",
        "mime_type",
        "file_size",
        "reply_code",
        "reply_msg",
        "data_channel.passive",
        "data_channel.orig_h",
        "data_channel.resp_h",
        "data_channel.resp_p",
    ],
};

/// The log of IRC.
pub(crate) const IRC: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "command"],
    compared: &["nick", "user", "value", "addl", "dcc_file_name", "dcc_file_size", "dcc_mime_type"],
};

/// The log of SSH.
pub(crate) const SSH: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &[
        "version",
        "auth_success",
        "auth_attempts",
        "direction",
        "client",
        "server",
        "cipher_alg",
        "mac_alg",
        "compression_alg",
        "kex_alg",
        "host_key_alg",
        "host_key_fingerprint",
    ],
};

/// The log of files. Names of files are drawn at random.
pub(crate) const FILES: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p", "source", "is_orig"],
    compared: &[
        "depth",
        "analyzers",
        "mime_type",
        "filename",
        "duration",
        "local_orig",
        "seen_bytes",
        "total_bytes",
        "missing_bytes",
        "overflow_bytes",
        "timedout",
        "extracted",
        "extracted_cutoff",
        "extracted_size",
    ],
};

/// The log of tunnels.
pub(crate) const TUNNEL: Columns = Columns {
    key: &["ts", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"],
    compared: &["tunnel_type", "action"],
};

/// The log of OCSP.
pub(crate) const OCSP: Columns = Columns {
    key: &["ts", "serialNumber"],
    compared: &[
        "hashAlgorithm",
        "issuerNameHash",
        "issuerKeyHash",
        "certStatus",
        "revoketime",
        "revokereason",
        "thisUpdate",
        "nextUpdate",
    ],
};

/// The log of portable executables.
pub(crate) const PE: Columns = Columns {
    key: &["ts", "machine"],
    compared: &[
        "compile_ts",
        "os",
        "subsystem",
        "is_exe",
        "is_64bit",
        "uses_aslr",
        "uses_dep",
        "uses_code_integrity",
        "uses_seh",
        "has_import_table",
        "has_export_table",
        "has_cert_table",
        "has_debug_data",
        "section_names",
    ],
};
