//! The logs of mail, FTP, IRC, WebSocket and SSH against what the recorded servers and clients told of
//! themselves.

use std::collections::BTreeMap;
use std::fs;

use crate::recorded::{Logs, counted, expected, recorded, sha256, table};
use crate::zeek::log::Row;

const CAPTURE: &str = "protocols.pcapng";

/// The value behind a word, up to a comma or blank.
fn behind<'l>(line: &'l str, word: &str) -> Option<&'l str> {
    let (_, rest) = line.split_once(word)?;
    Some(rest.split([',', ' ', ';']).next().unwrap())
}

fn in_angles(text: &str) -> &str {
    text.trim_start_matches('<').trim_end_matches('>')
}

/// What Postfix told of a mail in its queue.
#[derive(Debug, Default, PartialEq, Eq)]
struct Queued {
    client: String,
    message_id: String,
    from: String,
    recipients: usize,
    mechanism: Option<String>,
    user: Option<String>,
}

/// The mails by their names in the queue.
fn queued() -> BTreeMap<String, Queued> {
    let mut mails = BTreeMap::<String, Queued>::new();
    for line in expected("postfix.txt").lines() {
        let (_, rest) = line.split_once(' ').unwrap();
        let (name, rest) = rest.split_once(": ").unwrap();
        if !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            continue;
        }
        let mail = mails.entry(name.to_owned()).or_default();
        if let Some(client) = behind(rest, "client=") {
            mail.client = client.split(['[', ']']).nth(1).unwrap().to_owned();
            mail.mechanism = behind(rest, "sasl_method=").map(str::to_owned);
            mail.user = behind(rest, "sasl_username=").map(str::to_owned);
        } else if let Some(id) = rest.strip_prefix("message-id=") {
            id.clone_into(&mut mail.message_id);
        } else if let Some(from) = behind(rest, "from=") {
            in_angles(from).clone_into(&mut mail.from);
            mail.recipients = behind(rest, "nrcpt=").unwrap().parse().unwrap();
        }
    }
    mails
}

fn cell_text(cell: &str) -> Option<String> {
    (cell != "-").then(|| cell.to_owned())
}

#[test]
fn each_mail_that_postfix_queued_is_a_row() {
    let logs = Logs::of(CAPTURE, &[]);
    let (mut mails, rows) = (queued(), logs.rows("smtp"));
    assert_eq!(mails.len(), 8);
    for row in rows.iter().filter(|row| row["last_reply"].contains("queued as ")) {
        let name = behind(&row["last_reply"], "queued as ").unwrap();
        let mail = mails.remove(name).unwrap_or_else(|| panic!("{name} was not queued"));
        let ours = Queued {
            client: row["id.orig_h"].clone(),
            message_id: row["msg_id"].clone(),
            from: row["mailfrom"].clone(),
            recipients: row["rcptto"].split(',').count(),
            mechanism: cell_text(&row["auth_mechanism"]),
            user: cell_text(&row["auth_user"]),
        };
        assert_eq!(ours, mail, "{row:?}");
        assert_eq!(row["auth_success"] == "T", mail.mechanism.is_some(), "{row:?}");
    }
    // The one that is left was sent behind STARTTLS.
    let left: Vec<_> = mails.values().map(|mail| mail.message_id.as_str()).collect();
    assert_eq!(left, ["<starttls@desk.example.org>"]);
    let encrypted = rows.iter().filter(|row| row["tls"] == "T");
    assert_eq!(encrypted.map(|row| row["msg_id"].as_str()).collect::<Vec<_>>(), ["-"]);
    // Whom Postfix refused, and why.
    let text = expected("postfix.txt");
    let refusal = text.lines().find(|line| line.contains("reject: RCPT")).unwrap();
    let recipient = in_angles(behind(refusal, "to=").unwrap());
    let refused = rows.iter().filter(|row| row["rcptto"] == recipient && row["msg_id"] == "-");
    let refused: Vec<_> = refused.collect();
    assert_eq!(refused.len(), 1, "{rows:#?}");
    assert_eq!(refused[0]["mailfrom"], in_angles(behind(refusal, "from=").unwrap()));
    assert_eq!(refused[0]["helo"], in_angles(behind(refusal, "helo=").unwrap()));
}

#[test]
fn what_is_attached_is_what_was_sent() {
    let logs = Logs::of(CAPTURE, &["--hashes", "sha256"]);
    let sums = table("files.tsv");
    let files = logs.rows("files");
    let rows = logs.rows("smtp");
    let row = rows.iter().find(|row| row["msg_id"] == "<attached@desk.example.org>").unwrap();
    let fuids: Vec<&str> = row["fuids"].split(',').collect();
    assert_eq!((fuids.len(), row["part_names"].as_str()), (3, "minutes.txt,dot.gif"));
    for (fuid, name) in fuids[1..].iter().zip(["minutes.txt", "dot.gif"]) {
        let file = files.iter().find(|file| file["fuid"] == *fuid).unwrap();
        let sum = sums.iter().find(|sum| sum["file"] == format!("sent/{name}")).unwrap();
        assert_eq!((&file["sha256"], &file["seen_bytes"]), (&sum["sha256"], &sum["bytes"]));
        assert_eq!(sha256(&logs.content(file)), sum["sha256"]);
        assert_eq!(file["filename"], name);
    }
}

/// What Dovecot told of log-ins to a service: client, server, mechanism and whether by TLS.
fn log_ins(service: &str) -> Vec<(String, String, String, String, bool, bool)> {
    let text = expected("dovecot.txt");
    let lines = text.lines().filter(|line| line.starts_with(&format!("{service}-login:")));
    let log_in = |line: &str| {
        let of = |word: &str| behind(line, word).unwrap_or_else(|| panic!("{line}")).to_owned();
        let user = in_angles(&of("user=")).to_owned();
        let is_good = line.contains("Info: Login:");
        (of("rip="), of("lip="), user, of("method="), line.ends_with(", TLS"), is_good)
    };
    lines.map(log_in).collect()
}

/// The same by our rows, as far as those can know it.
fn ours(rows: &[Row]) -> Vec<(String, String, String, String, bool, bool)> {
    let of = |row: &Row| {
        // Dovecot calls a password in the clear by the name of the mechanism.
        let mechanism = row["auth_mechanism"].replace("USER", "PLAIN");
        let [client, server, user] = ["id.orig_h", "id.resp_h", "user"].map(|c| row[c].clone());
        (client, server, user, mechanism, row["tls"] == "T", row["auth_success"] == "T")
    };
    rows.iter().map(of).collect()
}

#[test]
fn each_session_of_dovecot_is_a_row() {
    let logs = Logs::of(CAPTURE, &[]);
    let mut rows = logs.rows("pop3");
    rows.sort_by(|a, b| a["ts"].cmp(&b["ts"]));
    let mut theirs = log_ins("pop3");
    assert_eq!(theirs.len(), 4);
    // Who logs in behind STLS is not seen.
    for log_in in theirs.iter_mut().filter(|log_in| log_in.4) {
        (log_in.2, log_in.3, log_in.5) = ("-".to_owned(), "-".to_owned(), false);
    }
    assert_eq!(ours(&rows), theirs);
    // Octets as sent, with the first line of each reply.
    let text = expected("dovecot.txt");
    let session = text.lines().find(|line| line.contains("retr=1/671")).unwrap();
    let octets = |word: &str| -> u64 {
        behind(session, word).unwrap().split('/').nth(1).unwrap().parse().unwrap()
    };
    let row = rows.iter().find(|row| row["deleted"] == "1").unwrap();
    let conversation = expected("conversations.tsv");
    let of = |word: &str| {
        let line =
            conversation.lines().find_map(|line| line.strip_prefix(&format!("pop3\t{word} ")));
        line.unwrap().split(' ').map(|number| number.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let status = format!("+OK {} octets\r\n", of("retr")[1]).len() as u64;
    let retrieved = octets("retr=") - status + octets("top=") - "+OK\r\n".len() as u64;
    let number = |column: &str| row[column].parse::<u64>().unwrap();
    assert_eq!(number("retrieved_bytes"), retrieved);
    assert_eq!([number("mailbox_messages"), number("mailbox_bytes")], of("stat")[..]);
    assert_eq!(number("mailbox_bytes").to_string(), behind(session, " size=").unwrap());
    assert_eq!(behind(session, "del="), Some(&*format!("1/{}", number("mailbox_messages"))));
}

#[test]
fn each_session_of_imap_is_in_rows() {
    let logs = Logs::of(CAPTURE, &[]);
    let rows = logs.rows("imap");
    let theirs = log_ins("imap");
    assert_eq!(theirs.len(), 1);
    assert!(!rows.is_empty() && ours(&rows).iter().all(|log_in| *log_in == theirs[0]), "{rows:#?}");
    let text = expected("dovecot.txt");
    let session = text.lines().find(|line| line.starts_with("imap(")).unwrap();
    let row = rows.iter().find(|row| row["mailbox"] == "INBOX").unwrap();
    assert_eq!(row["fetches"], behind(session, "body_count=").unwrap());
    assert_eq!(row["fetched_bytes"], behind(session, "body_bytes=").unwrap());
}

#[test]
fn each_transfer_of_vsftpd_is_a_row() {
    let logs = Logs::of(CAPTURE, &["--hashes", "sha256"]);
    let (files, sums, rows) = (logs.rows("files"), table("files.tsv"), logs.rows("ftp"));
    let text = expected("vsftpd.tsv");
    let theirs = text.lines().map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [client, path, bytes, direction, password, "c"] = cells[..] else { panic!("{line}") };
        let command = if direction == "o" { "RETR" } else { "STOR" };
        let client = client.strip_prefix("::ffff:").unwrap();
        [client, command, path, bytes, password].map(str::to_owned)
    });
    let mut theirs = counted(theirs);
    let mut ours = 0;
    for row in rows.iter().filter(|row| ["RETR", "STOR"].contains(&row["command"].as_str())) {
        let path = row["arg"].strip_prefix("ftp://192.0.2.53").unwrap();
        let file = files.iter().find(|file| file["fuid"] == row["fuid"]).unwrap();
        let transfer =
            [&row["id.orig_h"], &row["command"], path, &file["seen_bytes"], &row["password"]];
        let transfer = transfer.map(str::to_owned);
        let count = theirs.get_mut(&transfer).filter(|count| **count > 0);
        *count.unwrap_or_else(|| panic!("{transfer:?} was not transferred")) -= 1;
        let sum = sums.iter().find(|sum| sum["file"] == format!("ftp{path}")).unwrap();
        assert_eq!(file["sha256"], sum["sha256"], "{file:?}");
        assert_eq!(sha256(&logs.content(file)), sum["sha256"], "{file:?}");
        ours += 1;
    }
    // The other two were told on control connections that are encrypted.
    assert_eq!((ours, theirs.values().sum::<usize>()), (2, 2));
    let encrypted = logs.rows("conn").into_iter().filter(|row| row["service"] == "ftp,ssl");
    assert_eq!(encrypted.count(), 2);
}

#[test]
fn a_file_that_goes_to_a_third_host_is_told_as_such() {
    let logs = Logs::of(CAPTURE, &[]);
    let text = expected("conversations.tsv");
    assert!(text.lines().any(|line| line.starts_with("irc-receiver\t")), "one was sent");
    // As in Zeek, an offer has a row once its file came, and data of third hosts is not followed.
    assert!(logs.rows("irc").iter().all(|row| row["command"] != "DCC"));
    let weirds = logs.rows("weird");
    assert!(weirds.iter().any(|row| row["name"] == "expected_connection_to_third_host"));
}

#[test]
fn each_web_socket_has_its_frames() {
    let logs = Logs::of(CAPTURE, &[]);
    let text = expected("conversations.tsv");
    let theirs: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("websocket\t")).collect();
    assert_eq!(theirs, ["compression None messages 4", "compression deflate messages 4"]);
    let mut rows = logs.rows("websocket");
    rows.sort_by(|a, b| a["ts"].cmp(&b["ts"]));
    assert_eq!(rows.len(), theirs.len());
    for (row, line) in rows.iter().zip(theirs) {
        let is_deflated = row["server_extensions"].starts_with("permessage-deflate");
        assert_eq!(is_deflated, line.contains("deflate"), "{row:?}");
        // The messages come back, and each side closes; a message may take several frames.
        for column in ["orig_frames", "resp_frames"] {
            assert!(row[column].parse::<u32>().unwrap() > 4, "{row:?}");
        }
    }
}

#[test]
fn each_log_in_to_sshd_is_a_row() {
    let logs = Logs::of("office.pcapng", &[]);
    // What each desk did, in order: one key is not authorised.
    let script = fs::read_to_string(recorded("record.sh")).unwrap();
    let commands = script.lines().filter(|line| line.contains("\"${options[@]}\" -i "));
    let theirs: Vec<bool> = commands.map(|line| line.contains("id_alice")).collect();
    assert_eq!(theirs, [true, true, true, true, false]);
    let mut desks = BTreeMap::<String, Vec<Row>>::new();
    let mut rows = logs.rows("ssh");
    rows.sort_by(|a, b| a["ts"].cmp(&b["ts"]));
    for row in rows {
        desks.entry(row["id.orig_h"].clone()).or_default().push(row);
    }
    assert_eq!(desks.len(), 2);
    for (desk, rows) in desks {
        let ours: Vec<_> = rows.iter().map(|row| row["auth_success"] == "T").collect();
        assert_eq!(ours, theirs, "{desk}");
        let is_openssh = |row: &Row| {
            let [client, server] = ["client", "server"].map(|column| row[column].as_str());
            row["version"] == "2"
                && [client, server].iter().all(|name| name.starts_with("SSH-2.0-OpenSSH_9.2p1"))
        };
        assert!(rows.iter().all(is_openssh), "{rows:#?}");
    }
}
