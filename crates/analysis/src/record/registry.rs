//! Words that somebody registered: as values they tell what a program speaks, and of no people. What is in none
//! of these lists is a text that somebody chose.

/// A closed list of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    /// Methods of HTTP: the registry of IANA (RFC 9110, 16.1.1), WebDAV included, and the extensions of Microsoft.
    HttpMethod,
    /// Commands of FTP: the registry of IANA (RFC 5797).
    FtpCommand,
    /// Algorithms of SSH: the registries of IANA (RFC 4250), and those of common programs.
    SshAlgorithm,
    /// Protocols that ALPN names: the registry of IANA (RFC 7301, 6), and drafts that were in use.
    Alpn,
    /// Content types of MIME: common ones of the registry of IANA (RFC 6838).
    MediaType,
    /// Sections of Windows programs: those that common linkers and packers make.
    Section,
    /// Names of algorithms in certificates. An object identifier that has no name here is told by its numbers, and
    /// those are of whoever registered them.
    ObjectName,
}

impl Registry {
    /// Whether it has a word.
    #[must_use]
    pub fn has(self, word: &[u8]) -> bool {
        let is = |known: &&str| known.as_bytes() == word;
        match self {
            Self::HttpMethod => HTTP_METHODS.iter().any(is),
            Self::FtpCommand => FTP_COMMANDS.iter().any(is),
            Self::SshAlgorithm => SSH_ALGORITHMS.iter().any(is) || is_both_ways(word),
            Self::Alpn => ALPN.iter().any(is),
            Self::MediaType => MEDIA_TYPES.iter().any(is),
            Self::Section => SECTIONS.iter().any(is) || is_place_of_name(word),
            Self::ObjectName => !word.first().is_some_and(u8::is_ascii_digit),
        }
    }
}

/// Whether it is two algorithms, one for each direction.
fn is_both_ways(word: &[u8]) -> bool {
    const BETWEEN: &[u8] = b", to client: ";
    let Some(both) = word.strip_prefix(b"To server: ") else { return false };
    let Some(at) = both.windows(BETWEEN.len()).position(|window| window == BETWEEN) else {
        return false;
    };
    let ways = [&both[..at], &both[at + BETWEEN.len()..]];
    ways.iter().all(|way| SSH_ALGORITHMS.iter().any(|known| known.as_bytes() == *way))
}

/// Whether it is the place of a longer name in a table of strings, as MinGW has it: `/14`.
fn is_place_of_name(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"/").filter(|digits| !digits.is_empty());
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_digit))
}

#[rustfmt::skip]
const HTTP_METHODS: &[&str] = &[
    "ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "CONNECT", "COPY", "DELETE", "GET", "HEAD", "LABEL",
    "LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE", "OPTIONS",
    "ORDERPATCH", "PATCH", "POST", "PRI", "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT", "SEARCH",
    "TRACE", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF", "VERSION-CONTROL",
    // Exchange, RPC over HTTP, SSTP, UPnP.
    "BCOPY", "BDELETE", "BMOVE", "BPROPFIND", "BPROPPATCH", "NOTIFY", "POLL", "SUBSCRIBE", "UNSUBSCRIBE",
    "X-MS-ENUMATTS", "RPC_IN_DATA", "RPC_OUT_DATA", "CCM_POST", "BITS_POST", "SSTP_DUPLEX_POST", "M-SEARCH",
];

#[rustfmt::skip]
const FTP_COMMANDS: &[&str] = &[
    "ABOR", "ACCT", "ADAT", "ALGS", "ALLO", "APPE", "AUTH", "CCC", "CDUP", "CONF", "CWD", "DELE", "ENC", "EPRT",
    "EPSV", "FEAT", "HELP", "HOST", "LANG", "LIST", "LPRT", "LPSV", "MDTM", "MIC", "MKD", "MLSD", "MLST", "MODE",
    "NLST", "NOOP", "OPTS", "PASS", "PASV", "PBSZ", "PORT", "PROT", "PWD", "QUIT", "REIN", "REST", "RETR", "RMD",
    "RNFR", "RNTO", "SITE", "SIZE", "SMNT", "STAT", "STOR", "STOU", "STRU", "SYST", "TYPE", "USER", "XCUP", "XCWD",
    "XMKD", "XPWD", "XRMD",
];

#[rustfmt::skip]
const SSH_ALGORITHMS: &[&str] = &[
    // Ciphers.
    "3des-cbc", "3des-ctr", "AEAD_AES_128_GCM", "AEAD_AES_256_GCM", "aes128-cbc", "aes128-ctr", "aes128-gcm",
    "aes128-gcm@openssh.com", "aes192-cbc", "aes192-ctr", "aes256-cbc", "aes256-ctr", "aes256-gcm",
    "aes256-gcm@openssh.com", "arcfour", "arcfour128", "arcfour256", "blowfish-cbc", "blowfish-ctr", "cast128-cbc",
    "cast128-ctr", "chacha20-poly1305", "chacha20-poly1305@openssh.com", "des-cbc", "des-cbc-ssh1",
    "des-cbc@ssh.com", "idea-cbc", "idea-ctr", "none", "rijndael-cbc@lysator.liu.se", "serpent128-cbc",
    "serpent128-ctr", "serpent192-cbc", "serpent192-ctr", "serpent256-cbc", "serpent256-ctr", "twofish-cbc",
    "twofish128-cbc", "twofish128-ctr", "twofish192-cbc", "twofish192-ctr", "twofish256-cbc", "twofish256-ctr",
    // Authentication of messages.
    "hmac-md5", "hmac-md5-96", "hmac-md5-96-etm@openssh.com", "hmac-md5-etm@openssh.com", "hmac-ripemd160",
    "hmac-ripemd160-etm@openssh.com", "hmac-ripemd160@openssh.com", "hmac-sha1", "hmac-sha1-96",
    "hmac-sha1-96-etm@openssh.com", "hmac-sha1-etm@openssh.com", "hmac-sha2-256", "hmac-sha2-256-96",
    "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512", "hmac-sha2-512-96", "hmac-sha2-512-etm@openssh.com",
    "hmac-sha224@ssh.com", "hmac-sha256", "hmac-sha256-2@ssh.com", "hmac-sha256@ssh.com", "hmac-sha384@ssh.com",
    "hmac-sha512", "hmac-sha512@ssh.com", "umac-128-etm@openssh.com", "umac-128@openssh.com",
    "umac-64-etm@openssh.com", "umac-64@openssh.com",
    // Compression.
    "zlib", "zlib@openssh.com",
    // Key exchange.
    "curve25519-sha256", "curve25519-sha256@libssh.org", "curve448-sha512", "diffie-hellman-group-exchange-sha1",
    "diffie-hellman-group-exchange-sha224@ssh.com", "diffie-hellman-group-exchange-sha256",
    "diffie-hellman-group-exchange-sha384@ssh.com", "diffie-hellman-group-exchange-sha512@ssh.com",
    "diffie-hellman-group1-sha1", "diffie-hellman-group14-sha1", "diffie-hellman-group14-sha224@ssh.com",
    "diffie-hellman-group14-sha256", "diffie-hellman-group14-sha256@ssh.com", "diffie-hellman-group15-sha256",
    "diffie-hellman-group15-sha256@ssh.com", "diffie-hellman-group15-sha384@ssh.com",
    "diffie-hellman-group15-sha512", "diffie-hellman-group16-sha256", "diffie-hellman-group16-sha384@ssh.com",
    "diffie-hellman-group16-sha512", "diffie-hellman-group16-sha512@ssh.com", "diffie-hellman-group17-sha512",
    "diffie-hellman-group18-sha512", "diffie-hellman-group18-sha512@ssh.com", "ecdh-sha2-nistp256",
    "ecdh-sha2-nistp384", "ecdh-sha2-nistp521", "ecmqv-sha2", "ext-info-c", "ext-info-s",
    "kex-strict-c-v00@openssh.com", "kex-strict-s-v00@openssh.com", "kexguess2@matt.ucc.asn.au",
    "mlkem1024nistp384-sha384", "mlkem768nistp256-sha256", "mlkem768x25519-sha256", "rsa1024-sha1",
    "rsa2048-sha256", "sm2kep-sha2-nistp256", "sntrup4591761x25519-sha512@tinyssh.org",
    "sntrup761x25519-sha512", "sntrup761x25519-sha512@openssh.com",
    // Keys of hosts.
    "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256-cert-v01@openssh.com", "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp384-cert-v01@openssh.com", "ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521-cert-v01@openssh.com",
    "null", "pgp-sign-dss", "pgp-sign-rsa", "rsa-sha2-256", "rsa-sha2-256-cert-v01@openssh.com", "rsa-sha2-512",
    "rsa-sha2-512-cert-v01@openssh.com", "sk-ecdsa-sha2-nistp256-cert-v01@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com", "sk-ssh-ed25519-cert-v01@openssh.com", "sk-ssh-ed25519@openssh.com",
    "spki-sign-dss", "spki-sign-rsa", "ssh-dss", "ssh-dss-cert-v00@openssh.com", "ssh-dss-cert-v01@openssh.com",
    "ssh-dss-sha256@ssh.com", "ssh-ed25519", "ssh-ed25519-cert-v01@openssh.com", "ssh-ed448", "ssh-rsa",
    "ssh-rsa-cert-v00@openssh.com", "ssh-rsa-cert-v01@openssh.com", "ssh-rsa-sha224@ssh.com",
    "ssh-rsa-sha256@ssh.com", "ssh-rsa-sha384@ssh.com", "ssh-rsa-sha512@ssh.com", "ssh-xmss-cert-v01@openssh.com",
    "ssh-xmss@openssh.com", "x509v3-ecdsa-sha2-nistp256", "x509v3-ecdsa-sha2-nistp384",
    "x509v3-ecdsa-sha2-nistp521", "x509v3-rsa2048-sha256", "x509v3-sign-dss", "x509v3-sign-rsa", "x509v3-ssh-dss",
    "x509v3-ssh-rsa",
];

#[rustfmt::skip]
const ALPN: &[&str] = &[
    "http/0.9", "http/1.0", "http/1.1", "spdy/1", "spdy/2", "spdy/3", "stun.turn", "stun.nat-discovery", "h2",
    "h2c", "webrtc", "c-webrtc", "ftp", "imap", "pop3", "managesieve", "coap", "co", "xmpp-client", "xmpp-server",
    "acme-tls/1", "mqtt", "dot", "ntske/1", "sunrpc", "h3", "smb", "irc", "nntp", "nnsp", "doq", "sip/2",
    "tds/8.0", "dicom", "postgresql", "radius/1.0", "radius/1.1",
    // Drafts and habits.
    "spdy/3.1", "spdy/4a4", "h2-14", "h2-15", "h2-16", "h2-17", "h2-fb", "h3-22", "h3-23", "h3-24", "h3-25",
    "h3-27", "h3-28", "h3-29", "h3-30", "h3-31", "h3-32", "h3-33", "h3-34", "h3-fb-05", "h3-Q043", "h3-Q046",
    "h3-Q050", "h3-T050", "h3-T051", "h1q-fb", "hq", "hq-22", "hq-23", "hq-24", "hq-25", "hq-27", "hq-28",
    "hq-29", "hq-30", "hq-31", "hq-32", "hq-interop", "doq-i00", "doq-i01", "doq-i02", "doq-i03", "siduck",
    "siduck-00", "perf", "grpc-exp", "apns-pack-v1", "apns-pack-v1:4096:4096", "apns-security-v3",
];

#[rustfmt::skip]
const MEDIA_TYPES: &[&str] = &[
    "text/plain", "text/html", "text/calendar", "text/css", "text/csv", "text/enriched", "text/javascript",
    "text/markdown", "text/richtext", "text/rtf", "text/tab-separated-values", "text/vcard", "text/directory",
    "text/x-vcard", "text/xml", "text/x-amp-html", "text/watch-html", "text/rfc822-headers", "text/x-patch",
    "multipart/alternative", "multipart/appledouble", "multipart/byteranges", "multipart/digest",
    "multipart/encrypted", "multipart/form-data", "multipart/mixed", "multipart/parallel", "multipart/related",
    "multipart/report", "multipart/signed", "message/delivery-status", "message/disposition-notification",
    "message/external-body", "message/feedback-report", "message/global", "message/partial", "message/rfc822",
    "image/bmp", "image/gif", "image/heic", "image/jpeg", "image/jpg", "image/pjpeg", "image/png", "image/svg+xml",
    "image/tiff", "image/webp", "image/x-icon", "image/x-png", "audio/aac", "audio/amr", "audio/midi", "audio/mp4",
    "audio/mpeg", "audio/ogg", "audio/wav", "audio/x-midi", "audio/x-wav", "video/3gpp", "video/avi", "video/mp4",
    "video/mpeg", "video/quicktime", "video/webm", "video/x-ms-wmv", "video/x-msvideo", "application/applefile",
    "application/atom+xml", "application/cms", "application/dicom", "application/gzip", "application/ics",
    "application/java-archive", "application/javascript", "application/json", "application/mac-binhex40",
    "application/ms-tnef", "application/msexcel", "application/mspowerpoint", "application/msword",
    "application/octet-stream", "application/ogg", "application/pdf", "application/pgp-encrypted",
    "application/pgp-keys", "application/pgp-signature", "application/pkcs7-mime", "application/pkcs7-signature",
    "application/postscript", "application/rtf", "application/vnd.ms-excel", "application/vnd.ms-outlook",
    "application/vnd.ms-powerpoint", "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/x-compressed",
    "application/x-gzip", "application/x-msdownload", "application/x-pkcs7-mime", "application/x-pkcs7-signature",
    "application/x-rar-compressed", "application/x-shockwave-flash", "application/x-tar",
    "application/x-zip-compressed", "application/xhtml+xml", "application/xml", "application/zip",
];

#[rustfmt::skip]
const SECTIONS: &[&str] = &[
    ".00cfg", ".CRT", ".adata", ".arch", ".aspack", ".bss", ".buildid", ".code", ".cormeta", ".data", ".debug",
    ".debug$F", ".debug$P", ".debug$S", ".debug$T", ".didat", ".didata", ".drectve", ".edata", ".eh_fram", ".fptable",
    ".gehcont", ".gfids", ".giats", ".gljmp", ".idata", ".idlsym", ".imrsiv", ".init", ".itext", ".mrdata",
    ".msvcjmc", ".ndata", ".nsp0", ".nsp1", ".nsp2", ".orpc", ".packed", ".pdata", ".petite", ".rdata", ".reloc",
    ".retplne", ".rodata", ".rsrc", ".sbss", ".sdata", ".shared", ".srdata", ".sxdata", ".symtab", ".text",
    ".textbss", ".tls", ".tls$", ".tls$ZZZ", ".vmp0", ".vmp1", ".vmp2", ".voltbl", ".vsdata", ".xdata", "BSS",
    "CODE", "CONST", "CPADinfo", "DATA", "GFIDS", "INIT", "INITKDBG", "MPRESS1", "MPRESS2", "PAGE", "PAGEDATA",
    "PAGEKD", "PAGELK", "PAGE_COM", "POOLCODE", "RT_CODE", "UPX0", "UPX1", "UPX2", "_RDATA", "_TEXT", "_winzip_",
    "malloc_h", "minATL",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_there_once() {
        for words in [HTTP_METHODS, FTP_COMMANDS, SSH_ALGORITHMS, ALPN, MEDIA_TYPES, SECTIONS] {
            for (at, word) in words.iter().enumerate() {
                assert!(
                    !word.is_empty() && word.is_ascii() && !words[..at].contains(word),
                    "{word}"
                );
            }
        }
    }

    #[test]
    fn what_nobody_registered_is_in_no_list() {
        use Registry::*;
        for (registry, word, text) in [
            (HttpMethod, "MKCALENDAR", "get"),
            (FtpCommand, "RETR", "frieda"),
            (SshAlgorithm, "aes128-gcm@openssh.com", "aes128-gcm@mueller.test"),
            (
                SshAlgorithm,
                "To server: aes128-ctr, to client: none",
                "To server: aes128-ctr, to client: mueller",
            ),
            (Alpn, "http/1.1", "mueller"),
            (MediaType, "message/rfc822", "application/x-mueller"),
            (Section, "/14", "/home"),
            (Section, ".text", ".frieda"),
            (ObjectName, "sha256WithRSAEncryption", "1.3.6.1.4.1.99999.1"),
        ] {
            assert!(
                registry.has(word.as_bytes()) && !registry.has(text.as_bytes()),
                "{word} {text}"
            );
            assert_eq!(registry.has(b""), registry == ObjectName);
        }
    }
}
