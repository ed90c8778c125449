//! Findings by rules of Sigma, by the program as a user runs it.

use std::fs;

use serde_json::Value;

use super::rules::file;
use super::traffic::{CLIENT, SERVER, Traffic, host};
use super::{netsniff, recorded, rows, stream};
use crate::zeek::corpus::Scratch;

/// Rules of Sigma for two logs, one of a product that has none of these, and one with a column that is not there.
const SIGMA: &str = "\
title: 'Use of the web'
id: 6a3f3c5e-0000-4000-8000-000000000001
level: high
falsepositives: [people]
logsource: {product: zeek, service: conn}
detection:
  web:
    id.resp_p: [80, 443]
    proto: TCP
  condition: web
---
title: Names that there are not
level: low
logsource: {category: dns}
detection:
  asked:
    query|re: '^.+$'
  fine:
    rcode_name: 'NOERROR'
  mute:
    rcode_name: null
  condition: asked and not fine and not mute
---
title: Processes
logsource: {product: windows, category: process_creation}
detection:
  started: {Image: '*'}
  condition: started
---
title: Headers
logsource: {product: zeek, service: http}
detection:
  named: {client_header_names|contains: AUTHORIZATION}
  condition: not named
";

/// What rules of Sigma find is what a reader of the logs finds by the same conditions.
#[test]
fn rules_of_sigma_find_the_rows_that_they_are_true_of() {
    let scratch = Scratch::new("sigma");
    let folder = scratch.path().join("rules/network");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.yml"), SIGMA).unwrap();
    fs::write(folder.join("b.yaml"), "title: [broken\n").unwrap();
    fs::write(folder.join("README.md"), "not a rule").unwrap();
    let path = scratch.path().join("rules");
    let run = |workers| {
        let arguments = ["--sigma", path.to_str().unwrap(), "--workers", workers];
        netsniff(&recorded("office.pcapng"), &arguments)
    };
    let first = run("1");
    let one = String::from_utf8(first.stdout).unwrap();
    let said = String::from_utf8(first.stderr).unwrap();
    assert!(
        said.contains("a.yml:33:11: Headers: the log http has no column client_header_names"),
        "{said}"
    );
    assert!(said.contains("b.yaml: YAML parse error: "), "{said}");
    assert!(said.contains("--sigma: applied 2, not applied 2, for other logs 1\n"), "{said}");
    let of = |note: &str| {
        let notices = rows(&one, "notice").into_iter().filter(|row| row["note"] == note);
        notices.collect::<Vec<_>>()
    };
    let web = of("Sigma::Use_of_the_web");
    let conns = rows(&one, "conn");
    let is_web = |row: &&Value| {
        row["proto"] == "tcp" && [80, 443].iter().any(|port| row["id.resp_p"] == *port)
    };
    let mut servers: Vec<_> = conns.iter().filter(is_web).map(served).collect();
    let mut told: Vec<_> = web.iter().map(served).collect();
    servers.sort();
    servers.dedup();
    told.sort();
    assert!(!told.is_empty());
    assert_eq!(told, servers, "one finding for each client and server in an hour");
    assert_eq!((&web[0]["confidence"], &web[0]["msg"]), (&"high".into(), &"Use of the web".into()));
    let expected = "May also be: people. Rule 6a3f3c5e-0000-4000-8000-000000000001 of Sigma.";
    assert_eq!(web[0]["advice"], expected);
    let failing = |row: &&Value| row["rcode_name"].is_string() && row["rcode_name"] != "NOERROR";
    let dns = rows(&one, "dns");
    let mut failed: Vec<_> = dns.iter().filter(failing).map(served).collect();
    let mut told: Vec<_> = of("Sigma::Names_that_there_are_not").iter().map(served).collect();
    failed.sort();
    failed.dedup();
    told.sort();
    assert_eq!(told, failed);
    assert!(!told.is_empty());
    for workers in ["2", "3"] {
        let other = String::from_utf8(run(workers).stdout).unwrap();
        assert!(other == one, "{workers} workers write something else");
    }
}

/// Who asked whom, and at which port.
fn served(row: &Value) -> String {
    ["id.orig_h", "id.resp_h", "id.resp_p"].map(|column| row[column].to_string()).join(" ")
}

#[test]
fn files_that_are_none_of_sigma_are_refused() {
    let scratch = Scratch::new("sigma-wrong");
    let refused = |text: &str, arguments: &[&str]| {
        let file = file(&scratch, text);
        let arguments = [&["--sigma", file.to_str().unwrap()], arguments].concat();
        let run = netsniff(&recorded("office.pcapng"), &arguments);
        assert_eq!(run.status.code(), Some(2));
        String::from_utf8(run.stderr).unwrap()
    };
    let said = refused("title: [broken\n", &[]);
    assert!(said.contains("rules.toml: YAML parse error: ") && said.contains("line 2"), "{said}");
    let said = refused(
        "title: x\nlogsource: {product: windows}\ndetection: {a: {b: c}, condition: a}\n",
        &[],
    );
    assert!(said.contains("no rule can be applied"), "{said}");
    let of_dns = SIGMA.split("---\n").nth(1).unwrap();
    let said = refused(of_dns, &["--protocols", "http"]);
    assert!(said.contains("the log dns is not made without its protocol in --protocols"), "{said}");
}

/// Rules that count what another one finds: attempts that failed, and the hosts of them.
const COUNTING: &str = "\
title: Failed attempt
name: failed
logsource: {product: zeek, service: conn}
detection:
  failed: {conn_state: [S0, REJ]}
  condition: failed
---
title: Many attempts
level: medium
correlation:
  type: event_count
  rules: failed
  group-by: [src_ip, dst_ip]
  timespan: 1m
  condition: {gte: 5}
---
title: Many hosts
level: high
correlation:
  type: value_count
  rules: [failed]
  group-by: [src_ip]
  timespan: 60s
  condition: {field: dst_ip, gt: 3}
";

/// Findings of the rules of Sigma in a capture, without the columns of logs.
fn counted(name: &str, rules: &str, traffic: Traffic) -> Vec<Value> {
    let scratch = Scratch::new(name);
    let file = file(&scratch, rules);
    let capture = traffic.write(&scratch);
    let run =
        |workers| stream(&capture, &["--sigma", file.to_str().unwrap(), "--workers", workers]);
    let one = run("1");
    assert!(run("2") == one && run("3") == one, "workers write something else");
    rows(&one, "notice")
}

/// Attempts without an answer are told long after their stamps, and in the order of their ports.
#[test]
fn correlations_count_records_and_values_within_their_time() {
    let attempts = |hosts: u8, each: u64, seconds: u64| {
        let mut traffic = Traffic::default();
        for number in 0..u64::from(hosts) * each {
            let server = format!("198.51.100.{}", 1 + number % u64::from(hosts));
            traffic.attempt(host(&server, 22), number * seconds * 1000, number % 2 == 0);
        }
        let found = counted("sigma-counted", COUNTING, traffic);
        let told =
            found.iter().map(|row| format!("{} {}", row["note"].as_str().unwrap(), row["n"]));
        (told.collect::<Vec<_>>(), found)
    };
    let (told, found) = attempts(1, 5, 15);
    assert_eq!(told, ["Sigma::Many_attempts 5"], "60 seconds are enough");
    let row = &found[0];
    assert_eq!((&row["src"], &row["dst"]), (&CLIENT.into(), &SERVER.into()));
    assert!(row["p"].is_null() && row["uid"].is_null(), "these are not what they have in common");
    assert_eq!(row["uids"].as_array().unwrap().len(), 5);
    assert_eq!((&row["confidence"], &row["msg"]), (&"medium".into(), &"Many attempts".into()));
    assert!(attempts(1, 5, 16).0.is_empty(), "64 seconds are too long");
    let (told, found) = attempts(4, 1, 20);
    assert_eq!(told, ["Sigma::Many_hosts 4"]);
    assert!(found[0]["dst"].is_null() && found[0]["src"] == CLIENT);
    assert!(attempts(3, 3, 1).0.is_empty(), "3 hosts, each thrice");
    assert!(attempts(4, 1, 21).0.is_empty(), "63 seconds");
}

/// A rule that only serves a correlation finds nothing by itself, unless that asks for it.
#[test]
fn rules_of_correlations_find_nothing_unless_told() {
    let traffic = || {
        let mut traffic = Traffic::default();
        for number in 0..5 {
            traffic.attempt(host(SERVER, 22), number * 1000, true);
        }
        traffic
    };
    let notes = |rules: &str| {
        let rows = counted("sigma-generate", rules, traffic());
        rows.iter().map(|row| row["note"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(notes(COUNTING), ["Sigma::Many_attempts"]);
    let generating = COUNTING.replace("level:", "generate: true\nlevel:");
    assert_eq!(notes(&generating), ["Sigma::Failed_attempt", "Sigma::Many_attempts"]);
}

/// Rules of two logs, whose columns have different names, are found together by what they have in common.
#[test]
fn correlations_join_records_of_two_logs() {
    const BOTH: &str = "\
title: Name
name: name
logsource: {category: dns}
detection: {a: {query|contains: '*'}, condition: a}
---
title: Attempt
name: attempt
logsource: {category: firewall}
detection: {a: {conn_state: REJ}, condition: a}
---
title: Asked and tried
correlation:
  type: temporal
  rules: [name, attempt]
  group-by: [who]
  aliases: {who: {name: src_ip, attempt: id.orig_h}}
  timespan: 10s
";
    let found = |apart: u64| {
        let mut traffic = Traffic::default();
        traffic.query("a.example", 0);
        traffic.query("b.example", 1000);
        traffic.attempt(host("203.0.113.9", 80), apart * 1000, true);
        counted("sigma-temporal", BOTH, traffic)
    };
    let near = found(11);
    assert_eq!(near.len(), 1, "{near:?}");
    assert_eq!((&near[0]["n"], &near[0]["src"]), (&2.into(), &CLIENT.into()));
    assert_eq!(near[0]["uids"].as_array().unwrap().len(), 2);
    assert!(found(12).is_empty());
}

#[test]
fn correlations_that_are_not_applied_are_named_with_their_rules() {
    let scratch = Scratch::new("sigma-refused");
    let refused = COUNTING.replace("gte: 5", "lt: 5").replace("field: dst_ip", "field: dst_ipp");
    let file = file(&scratch, &refused);
    let run = netsniff(&recorded("office.pcapng"), &["--sigma", file.to_str().unwrap()]);
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{said}");
    for (place, why) in [
        (":15:3: Many attempts", "what does not happen is not counted"),
        (":24:22: Many hosts", "the log conn has no column dst_ipp"),
        (": Failed attempt", "only Many attempts counts it, which is not applied"),
    ] {
        assert!(said.contains(&format!("rules.toml{place}: {why}")), "{said}");
    }
    assert!(said.contains("applied 0, not applied 3, for other logs 0"), "{said}");
}
