//! Findings of the user's own, by the program as a user runs it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::traffic::{SERVER, Traffic, host};
use super::{netsniff, recorded, rows, stream};
use crate::zeek::corpus::Scratch;

pub(super) fn file(scratch: &Scratch, rules: &str) -> PathBuf {
    fs::create_dir_all(scratch.path()).unwrap();
    let path = scratch.path().join("rules.toml");
    fs::write(&path, rules).unwrap();
    path
}

const RULES: &str = r#"
[[rule]]
name = "Site::Web"
log = "conn"
where = "id.resp_p IN (80, 443) AND proto = 'tcp'"
confidence = "low"
msg = "somebody used the web"
advice = "None is needed."
by = ["uid"]

[[rule]]
name = "Site::Failing_Names"
log = "dns"
where = "rcode_name = 'NXDOMAIN'"
confidence = "medium"
msg = "a client asked for names that there are not"
count = 5
within = 60
by = ["id.orig_h"]
"#;

/// Rows of a rule that counts nothing are those that a reader of the log chooses.
#[test]
fn a_rule_finds_the_rows_that_its_condition_chooses() {
    let scratch = Scratch::new("rules");
    let file = file(&scratch, RULES);
    let run = |workers| {
        let arguments = ["--notice-rules", file.to_str().unwrap(), "--workers", workers];
        stream(&recorded("office.pcapng"), &arguments)
    };
    let one = run("1");
    let conns = rows(&one, "conn");
    let is_web = |row: &&Value| {
        row["proto"] == "tcp" && [80, 443].iter().any(|port| row["id.resp_p"] == *port)
    };
    let mut expected: Vec<_> = conns.iter().filter(is_web).map(|row| &row["uid"]).collect();
    let notices = rows(&one, "notice");
    let of_web = notices.iter().filter(|row| row["note"] == "Site::Web");
    let mut told: Vec<_> = of_web.clone().map(|row| &row["uid"]).collect();
    expected.sort_by_key(ToString::to_string);
    told.sort_by_key(ToString::to_string);
    assert!(told.len() > 10, "{}", told.len());
    assert_eq!(told, expected);
    for row in of_web {
        assert_eq!(
            (&row["confidence"], &row["msg"]),
            (&"low".into(), &"somebody used the web".into())
        );
        assert_eq!(row["advice"], "None is needed.");
    }
    for workers in ["2", "3"] {
        assert!(run(workers) == one, "{workers} workers write something else");
    }
}

/// Nothing is looked for but the rules, unless `--notices` asks for it.
#[test]
fn a_rule_counts_within_its_time_and_by_its_columns() {
    let queries = |seconds: u64| {
        let mut traffic = Traffic::default();
        for at in 0..6 {
            traffic.query(&format!("n{at}.example.com"), at * seconds * 1000);
            traffic.attempt(host(SERVER, 80), at * 1000, true);
        }
        let scratch = Scratch::new("rules-counted");
        let file = file(&scratch, RULES.replace("Site::Web", "Site::Other").as_str());
        let capture = traffic.write(&scratch);
        let all = stream(&capture, &["--notice-rules", file.to_str().unwrap()]);
        let found = rows(&all, "notice");
        found.into_iter().filter(|row| row["note"] == "Site::Failing_Names").collect::<Vec<_>>()
    };
    let fast = queries(10);
    assert_eq!(fast.len(), 1, "{fast:?}");
    assert_eq!((&fast[0]["n"], &fast[0]["src"]), (&5.into(), &super::traffic::CLIENT.into()));
    assert!(fast[0]["dst"].is_null() && fast[0]["p"].is_null(), "several hosts may have them");
    assert_eq!(fast[0]["uids"].as_array().unwrap().len(), 5);
    assert!(queries(20).is_empty(), "five queries take 80 seconds");
}

#[test]
fn wrong_rules_are_refused_with_their_place() {
    let scratch = Scratch::new("rules-wrong");
    let file = file(&scratch, &RULES.replace("rcode_name", "rcode_nam"));
    let run = netsniff(&recorded("office.pcapng"), &["--notice-rules", file.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("rules.toml:14:9: "), "{said}");
    assert!(said.contains("did you mean rcode_name?"), "{said}");
}

#[test]
fn rules_on_logs_that_are_not_made_are_refused() {
    let scratch = Scratch::new("rules-unmade");
    let said = |log: &str, options: &[&str]| {
        let rule = format!(
            "[[rule]]\nname = \"Site::Any\"\nlog = \"{log}\"\nwhere = \"ts > 0\"\nconfidence = \"low\"\nmsg = \"any\"\n"
        );
        let file = file(&scratch, &rule);
        let options = [&["--notice-rules", file.to_str().unwrap()], options].concat();
        let run = netsniff(&recorded("office.pcapng"), &options);
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    for (log, options, lacks) in [
        ("rtt", &[][..], "--rtt-interval"),
        ("series", &[], "--series"),
        ("tcp", &["--depth", "flows"], "--depth tcp"),
        ("http", &["--depth", "tcp"], "--depth protocols"),
        ("http", &["--protocols", "dns"], "its protocol in --protocols"),
    ] {
        let (code, said) = said(log, options);
        assert_eq!(code, Some(2), "{said}");
        assert!(
            said.contains(&format!("the log {log}, which is not made without {lacks}")),
            "{said}"
        );
    }
    for (log, options) in
        [("rtt", &["-s", "1"][..]), ("http", &[]), ("conn", &["--depth", "flows"])]
    {
        let (code, said) = said(log, options);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// The same finding again is told only after an hour, with how often it was found meanwhile.
#[test]
fn what_was_not_told_is_counted() {
    let mut traffic = Traffic::default();
    for minutes in [0, 10, 20, 30, 70, 80, 140] {
        traffic.exchange(host(SERVER, 80), minutes * 60_000, 100);
    }
    let scratch = Scratch::new("rules-suppressed");
    let file = file(&scratch, &RULES.replace("by = [\"uid\"]", "by = [\"id.orig_h\"]"));
    let capture = traffic.write(&scratch);
    let all = stream(&capture, &["--notice-rules", file.to_str().unwrap()]);
    let told: Vec<_> = rows(&all, "notice").iter().map(|row| row["suppressed"].clone()).collect();
    assert_eq!(told, [Value::Null, 3.into(), 1.into()]);
}

/// What made a finding makes no other one: of seven records, three and three.
#[test]
fn records_of_a_finding_are_counted_once() {
    let mut traffic = Traffic::default();
    for minutes in (0..7).chain(100..103) {
        traffic.exchange(host(SERVER, 80), minutes * 60_000, 100);
    }
    let scratch = Scratch::new("rules-anew");
    let counting = "by = [\"id.orig_h\"]\ncount = 3\nwithin = 600";
    let file = file(&scratch, &RULES.replace("by = [\"uid\"]", counting));
    let capture = traffic.write(&scratch);
    let all = stream(&capture, &["--notice-rules", file.to_str().unwrap()]);
    let told: Vec<_> = rows(&all, "notice").iter().map(|row| row["suppressed"].clone()).collect();
    assert_eq!(told, [Value::Null, 1.into()]);
}
