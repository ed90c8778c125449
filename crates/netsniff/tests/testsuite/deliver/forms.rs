//! `as=hec` and `as=loki`, at receivers that ask of each request what the manuals of Splunk and Loki say, and answer as those do.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::receiver::{Act, Receiver, Request, parts};
use super::{all_of, deliver, is_all, number, office, with_end};
use crate::generated::Folder;

/// What was wrong with requests, said once the test has ended: a receiver that panics is one that goes.
type Faults = Arc<Mutex<Vec<String>>>;

/// A value, or the fault that there is none.
fn or_fault<T>(value: Option<T>, what: &str, of: &str) -> Result<T, String> {
    value.ok_or_else(|| format!("{what}: {of}"))
}

fn same(what: &str, found: &Value, expected: &Value) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found} is not {expected}")) }
}

/// Nanoseconds of a row's `ts`, by its text.
fn nanos(row: &str) -> Option<String> {
    let (_, rest) = row.split_once("\"ts\":")?;
    let text = rest.split([',', '}']).next()?;
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    Some(format!("{seconds}{decimals:0<9}"))
}

/// The events of a request to Splunk's HTTP Event Collector: objects one behind the other, each with `event`.
fn events(request: &Request) -> Result<Vec<String>, String> {
    let is_for = request.line.starts_with("POST /services/collector/event HTTP/1.1");
    or_fault(is_for.then_some(()), "the path", &request.line)?;
    let has_token = request.header.contains("authorization: splunk 0000-secret\r\n");
    or_fault(has_token.then_some(()), "the token", &request.header)?;
    let mut rows = Vec::new();
    for line in request.body.lines() {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let members = or_fault(value.as_object(), "an object", line)?;
        let names: Vec<_> = members.keys().map(String::as_str).collect();
        let expected = json!(["event", "host", "source", "sourcetype", "time"]);
        let mut sorted = names.clone();
        sorted.sort_unstable();
        same("members", &json!(sorted), &expected)?;
        let row = line.split_once("\"event\":").and_then(|(_, row)| row.strip_suffix('}'));
        let row = or_fault(row, "an event", line)?.to_owned();
        let log = parts(&row).0;
        same("sourcetype", &value["sourcetype"], &json!(format!("netsniff:{log}")))?;
        same("host", &value["host"], &json!("s"))?;
        if let Some(nanos) = nanos(&row) {
            let at = nanos.len() - 9;
            let time = format!("\"time\":{}.{},", &nanos[..at], &nanos[at..]);
            or_fault(line.contains(&time).then_some(()), &time, line)?;
        }
        rows.push(row);
    }
    or_fault((!rows.is_empty()).then_some(()), "No data", &request.body)?;
    Ok(rows)
}

#[test]
fn splunk_gets_events_and_faults_of_its_set_up_refuse_no_row() {
    let folder = Folder::new("deliver-hec");
    let logs = office(&folder);
    let token = folder.path("token");
    std::fs::write(&token, "Splunk 0000-secret\n").unwrap();
    let faults = Faults::default();
    let noted = Arc::clone(&faults);
    let receiver = Receiver::start(move |request| match (request.number, events(request)) {
        (_, Err(fault)) => {
            noted.lock().unwrap().push(fault);
            Act::Refuse(400, "", r#"{"text":"Invalid data format","code":6}"#)
        }
        (0, _) => Act::Refuse(503, "", r#"{"text":"Server is busy","code":9}"#),
        (1, _) => Act::Refuse(400, "", r#"{"text":"Data channel is missing","code":10}"#),
        (2, _) => {
            Act::Refuse(400, "", r#"{"text":"Incorrect index","code":7,"invalid-event-number":1}"#)
        }
        (3, _) => Act::Refuse(403, "", r#"{"text":"Invalid token","code":4}"#),
        (_, Ok(rows)) => {
            let is_bad = |row: &String| matches!(parts(row), (log, 5, _) if log == "dns");
            if rows.iter().any(is_bad) {
                Act::Refuse(
                    400,
                    "",
                    r#"{"text":"Invalid data format","code":6,"invalid-event-number":0}"#,
                )
            } else {
                Act::TakeOnly(rows, r#"{"text":"Success","code":0}"#.to_owned())
            }
        }
    });
    let port = receiver.port;
    let url = format!("http://127.0.0.1:{port}?as=hec&authorization=file:{}", token.display());
    let (code, books) = deliver(&folder, &[url], &[]);
    assert_eq!(*faults.lock().unwrap(), [""; 0]);
    assert_eq!((code, number(&books[0], "refused_by_receiver")), (5, 1), "{books:?}");
    assert_eq!(number(&books[0], "delivered"), all_of(&with_end(&logs)) - 1);
    let mut expected = logs;
    expected.get_mut("dns").unwrap().remove(&5).unwrap();
    let mut found = receiver.logs();
    found.remove("run_end").unwrap();
    assert_eq!(found, expected);
}

/// The lines of a request to Loki: streams by their labels, with pairs of nanoseconds, as text, and a line.
fn lines(request: &Request) -> Result<Vec<String>, String> {
    let is_for = request.line.starts_with("POST /loki/api/v1/push HTTP/1.1");
    or_fault(is_for.then_some(()), "the path", &request.line)?;
    let is_json = request.header.contains("content-type: application/json\r\n");
    or_fault(is_json.then_some(()), "the type", &request.header)?;
    let body: Value = serde_json::from_str(&request.body).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for stream in or_fault(body["streams"].as_array(), "streams", &request.body)? {
        let mut last = None;
        for value in or_fault(stream["values"].as_array(), "values", &request.body)? {
            let (Some(stamp), Some(row)) = (value[0].as_str(), value[1].as_str()) else {
                return Err(format!("a pair of text: {value}"));
            };
            let (log, seq, _) = parts(row);
            let labels = json!({ "job": "netsniff", "sensor": "s", "log": log });
            same("labels", &stream["stream"], &labels)?;
            or_fault(stamp.parse::<u64>().ok(), "nanoseconds", stamp)?;
            if let Some(nanos) = nanos(row) {
                same("stamp", &json!(stamp), &json!(nanos))?;
            }
            or_fault((last < Some(seq)).then_some(()), "the order of lines", row)?;
            last = Some(seq);
            rows.push(row.to_owned());
        }
    }
    Ok(rows)
}

#[test]
fn loki_gets_lines_by_log_in_their_order() {
    let folder = Folder::new("deliver-loki");
    let logs = office(&folder);
    let faults = Faults::default();
    let noted = Arc::clone(&faults);
    let receiver = Receiver::start(move |request| match (request.number, lines(request)) {
        (_, Err(fault)) => {
            noted.lock().unwrap().push(fault);
            Act::Refuse(400, "", "error at least one label pair is required per stream")
        }
        (0, _) => Act::Refuse(429, "retry-after: 1\r\n", "Ingestion rate limit exceeded"),
        (1, _) => Act::Refuse(500, "", "empty ring"),
        (_, Ok(rows)) => Act::TakeOnly(rows, String::new()),
    });
    let url = format!("http://127.0.0.1:{}?as=loki&batch=100", receiver.port);
    let (code, books) = deliver(&folder, &[url], &[]);
    assert_eq!(*faults.lock().unwrap(), [""; 0]);
    assert_eq!((code, number(&books[0], "retried")), (0, 2), "{books:?}");
    assert!(is_all(&receiver, &logs));
}
