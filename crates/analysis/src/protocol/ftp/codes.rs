//! Which commands there are, and which replies each may have: RFC 959 section 5.4 and the extensions.

/// Letters of the longest command.
pub(super) const MAX_NAME: usize = 4;

/// Codes that most commands may be refused with.
const REFUSED: &[u16] = &[421, 500, 501, 502, 530];

/// What a transfer may come to.
const TRANSFER: &[u16] = &[110, 125, 150, 226, 250, 425, 426, 450, 451, 550];

/// A command: its name, the replies that it may have besides [`REFUSED`], and whether it may be
/// answered as a transfer. `<init>` is what the server's greeting answers.
type Entry = (&'static str, &'static [u16], bool);

const COMMANDS: &[Entry] = &[
    ("<init>", &[120, 220], false),
    ("USER", &[230, 331, 332], false),
    ("PASS", &[230, 202, 332, 503], false),
    ("ACCT", &[230, 202, 503], false),
    ("CWD", &[250, 550], false),
    ("XCWD", &[250, 550], false),
    ("CDUP", &[200, 250, 550], false),
    ("XCUP", &[200, 250, 550], false),
    ("SMNT", &[202, 250, 550], false),
    ("REIN", &[120, 220], false),
    ("QUIT", &[221], false),
    ("PORT", &[200], false),
    ("PASV", &[227], false),
    ("MODE", &[200, 504], false),
    ("TYPE", &[200, 504], false),
    ("STRU", &[200, 504], false),
    ("ALLO", &[200, 202, 504], false),
    ("REST", &[200, 350], false),
    ("STOR", &[452, 532, 551, 552, 553], true),
    ("STOU", &[452, 532, 551, 552, 553], true),
    ("APPE", &[452, 532, 551, 552, 553], true),
    ("RETR", &[], true),
    ("LIST", &[], true),
    ("NLST", &[], true),
    ("RNFR", &[350, 450, 550], false),
    ("RNTO", &[250, 503, 532, 553], false),
    ("DELE", &[250, 450, 550], false),
    ("RMD", &[250, 550], false),
    ("XRMD", &[250, 550], false),
    ("MKD", &[257, 550], false),
    ("XMKD", &[257, 550], false),
    ("PWD", &[257, 550], false),
    ("XPWD", &[257, 550], false),
    ("ABOR", &[225, 226], false),
    ("SYST", &[215], false),
    ("STAT", &[211, 212, 213, 450], false),
    ("HELP", &[200, 211, 214], false),
    ("SITE", &[200, 202, 214], false),
    ("NOOP", &[200], false),
    // RFC 1639.
    ("LPRT", &[521], false),
    ("LPSV", &[228, 521], false),
    // RFC 2228 and RFC 4217.
    ("AUTH", &[232, 234, 334, 336, 431, 503, 504, 534], false),
    ("ADAT", &[232, 235, 334, 335, 336, 503, 535], false),
    ("PBSZ", &[200, 503], false),
    ("PROT", &[200, 503, 504, 536], false),
    ("CCC", &[200, 503, 533, 534], false),
    // RFC 2389.
    ("FEAT", &[211], false),
    ("OPTS", &[200, 451], false),
    // RFC 2428.
    ("EPRT", &[200, 522], false),
    ("EPSV", &[229, 522], false),
    // RFC 2640.
    ("LANG", &[200, 504], false),
    // RFC 3659.
    ("SIZE", &[213, 550], false),
    ("MDTM", &[213, 550], false),
    ("MLST", &[250, 550], true),
    ("MLSD", &[250, 550], true),
    // RFC 7151.
    ("HOST", &[220, 503, 504], false),
    // Without an RFC: what the client is, and whether files may have two parts.
    ("CLNT", &[200], false),
    ("MACB", &[200, 550], false),
    ("MFMT", &[213, 550], false),
];

/// Commands that other protocols whose servers greet alike have, too.
const SHARED: [&str; 5] = ["QUIT", "STAT", "HELP", "NOOP", "<init>"];

/// Commands whose rows are logged, as in Zeek (`FTP::logged_commands`).
const LOGGED: [&str; 10] =
    ["APPE", "DELE", "RETR", "STOR", "STOU", "ACCT", "PORT", "PASV", "EPRT", "EPSV"];

/// Commands whose argument is a file or a directory.
const OF_FILES: [&str; 13] = [
    "APPE", "CWD", "DELE", "MKD", "RETR", "RMD", "RNFR", "RNTO", "STOR", "STOU", "REST", "SIZE",
    "MDTM",
];

fn is_one_of(name: &[u8], list: &[&str]) -> bool {
    list.iter().any(|known| known.as_bytes() == name)
}

/// Whether the rows of a command are logged.
pub(super) fn is_logged(name: &[u8]) -> bool {
    is_one_of(name, &LOGGED)
}

/// Whether the argument of a command is a file or a directory.
pub(super) fn is_of_files(name: &[u8]) -> bool {
    is_one_of(name, &OF_FILES)
}

/// Whether a word, in letters of any case, is a command that no other protocol has.
pub(super) fn is_of_ftp_alone(word: &[u8]) -> bool {
    COMMANDS
        .iter()
        .any(|(name, ..)| name.as_bytes().eq_ignore_ascii_case(word) && !SHARED.contains(name))
}

/// Whether a reply with this code may answer a command. 500 answers any.
pub(super) fn answers(code: u16, name: &[u8]) -> bool {
    let entry = COMMANDS.iter().find(|(known, ..)| known.as_bytes() == name);
    code == 500
        || entry.is_some_and(|(_, own, transfers)| {
            own.contains(&code)
                || REFUSED.contains(&code)
                || (*transfers && TRANSFER.contains(&code))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_fit_commands() {
        assert!(answers(226, b"RETR") && answers(150, b"STOR") && answers(220, b"<init>"));
        assert!(!answers(226, b"TYPE") && !answers(227, b"EPSV"));
        assert!(answers(500, b"XYZZY") && !answers(502, b"XYZZY") && answers(502, b"FEAT"));
        assert!(is_of_ftp_alone(b"pasv") && !is_of_ftp_alone(b"QUIT"));
        assert!(!is_of_ftp_alone(b"<init>"));
    }
}
