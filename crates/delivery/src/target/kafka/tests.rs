//! Records at a broker in this process.

use std::sync::mpsc;
use std::time::Instant;

use krafka::consumer::ConsumerRecord;
use krafka::testing::{ApiKey, Control, FakeBroker};

use super::super::open;
use super::*;
use crate::Identity;

/// A broker with a thread of its own, which ends with it.
struct Broker {
    broker: FakeBroker,
    _end: tokio::sync::oneshot::Sender<()>,
}

fn broker() -> Broker {
    let (tell, told) = mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tell.send(FakeBroker::start().await.unwrap()).unwrap();
            let _ = ended.await;
        });
    });
    Broker { broker: told.recv().unwrap(), _end: end }
}

impl Broker {
    fn url(&self, rest: &str) -> String {
        format!("kafka://{}/{rest}", self.broker.bootstrap_servers())
    }

    fn records(&self, topic: &str) -> Vec<ConsumerRecord> {
        self.broker.all_records(topic).unwrap()
    }
}

fn receiver(url: &str) -> Box<dyn Receiver> {
    open(Address::parse(url).unwrap()).unwrap().receiver
}

fn row<'a>(identity: &'a Identity, log: &'a str, seq: u64, json: &'a str) -> Row<'a> {
    Row { identity, log, seq, time: 5_000_000, json: json.as_bytes() }
}

fn identity() -> Identity {
    Identity::new("s", "r").unwrap()
}

const FLOW: &str = r#"{"ts":1700000000.5,"uid":"C1","community_id":"1:a="}"#;

/// Why all rows are sent again.
fn later(answer: Answer) -> String {
    match answer {
        Answer::Later { why, .. } => why,
        Answer::Each(answers) => match answers.into_iter().next() {
            Some(RowAnswer::Later(why)) => why,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_row_is_a_record_with_its_flow_as_key_and_all_replicas_have_it() {
    let broker = broker();
    for topic in ["net.conn", "net.dns"] {
        assert!(broker.broker.create_topic(topic, 3));
    }
    let identity = identity();
    for compression in ["none", "gzip", "snappy", "lz4"] {
        let mut receiver = receiver(&broker.url(&format!("net.{{log}}?compression={compression}")));
        let rows = [
            row(&identity, "conn", 0, FLOW),
            row(&identity, "dns", 0, r#"{"ts":-1.0005,"uid":"C2"}"#),
            row(&identity, "conn", 1, "{}"),
        ];
        assert_eq!(receiver.send(&rows), Answer::Each(vec![RowAnswer::Accepted; 3]));
        let mut conn = broker.records("net.conn").split_off(0);
        let told = |record: &ConsumerRecord| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let value = text(record.value.as_deref().unwrap());
            (record.key.as_deref().map(text), value, record.timestamp)
        };
        conn.sort_by_key(|record| core::cmp::Reverse(told(record).0));
        let found: Vec<_> = conn.iter().map(told).collect();
        let value = format!(r#"{{"sensor":"s","run":"r","log":"conn","seq":0,{}"#, &FLOW[1..]);
        assert!(found.contains(&(Some("1:a=".to_owned()), value, 1_700_000_000_500)), "{found:?}");
        let value = r#"{"sensor":"s","run":"r","log":"conn","seq":1}"#.to_owned();
        assert!(found.contains(&(None, value, 5)), "{found:?}");
        let dns = broker.records("net.dns");
        assert_eq!(told(&dns[0]).0.as_deref(), Some("C2"));
        assert_eq!(told(&dns[0]).2, -1001, "a stamp is rounded down");
    }
    assert_eq!(broker.records("net.conn").len(), 8);
}

#[test]
fn rows_of_a_topic_that_is_not_there_wait_and_others_go() {
    let broker = broker();
    broker.broker.with_state(|state| state.auto_create_topics = false);
    broker.broker.create_topic("net.conn", 1);
    let identity = identity();
    let mut receiver = receiver(&broker.url("net.{log}?timeout=2s"));
    let begun = Instant::now();
    let rows: Vec<_> = (0..50).map(|seq| row(&identity, "dns", seq, "{}")).collect();
    let rows: Vec<_> = rows.into_iter().chain([row(&identity, "conn", 0, "{}")]).collect();
    let Answer::Each(answers) = receiver.send(&rows) else { panic!() };
    assert!(begun.elapsed() < Duration::from_secs(4), "each row waited for the topic");
    assert_eq!(answers[50], RowAnswer::Accepted);
    for answer in &answers[..50] {
        let RowAnswer::Later(why) = answer else { panic!("{answer:?}") };
        assert!(why.contains("net.dns"), "{why}");
    }
    broker.broker.create_topic("net.dns", 1);
    assert_eq!(receiver.send(&rows[..50]), Answer::Each(vec![RowAnswer::Accepted; 50]));
    assert_eq!(broker.records("net.dns").len(), 50);
}

#[test]
fn a_wrong_password_refuses_no_row_and_is_not_told() {
    let broker = broker();
    broker.broker.create_topic("rows", 1);
    broker.broker.require_sasl_plain("me", "right");
    let (identity, folder) = (identity(), std::env::temp_dir());
    let rows = [row(&identity, "conn", 0, FLOW)];
    for (password, is_taken) in [("wrongest", false), ("right", true)] {
        let path = folder.join(format!("netsniff-kafka-{}-{password}", std::process::id()));
        std::fs::write(&path, password).unwrap();
        let url = broker.url(&format!("rows?user=me&password=file:{}", path.display()));
        let answer = receiver(&url).send(&rows);
        std::fs::remove_file(path).unwrap();
        if is_taken {
            assert_eq!(answer, Answer::Each(vec![RowAnswer::Accepted]));
        } else {
            let why = later(answer);
            assert!(why.contains("authentication") && !why.contains(password), "{why}");
        }
    }
    let why = later(receiver(&broker.url("rows?timeout=2s")).send(&rows));
    assert!(!why.is_empty());
    assert_eq!(broker.records("rows").len(), 1);
}

#[test]
fn only_what_speaks_of_rows_refuses_them() {
    let broker = broker();
    broker.broker.create_topic("rows", 1);
    let identity = identity();
    let rows = [row(&identity, "conn", 0, FLOW), row(&identity, "conn", 1, FLOW)];
    let answer = |code: ErrorCode| {
        broker.broker.clear_hooks();
        broker.broker.on(ApiKey::Produce, move |_| Control::Error(code));
        receiver(&broker.url("rows?timeout=1s")).send(&rows)
    };
    for code in
        [ErrorCode::MessageTooLarge, ErrorCode::RecordListTooLarge, ErrorCode::InvalidRecord]
    {
        let Answer::Each(answers) = answer(code) else { panic!("{code:?}") };
        assert!(answers.iter().all(|of| matches!(of, RowAnswer::Refused(_))), "{answers:?}");
    }
    for code in [
        ErrorCode::NotEnoughReplicas,
        ErrorCode::TopicAuthorizationFailed,
        ErrorCode::KafkaStorageException,
        ErrorCode::UnsupportedCompressionType,
    ] {
        assert!(!later(answer(code)).is_empty(), "{code:?}");
    }
    broker.broker.clear_hooks();
    assert_eq!(broker.records("rows").len(), 0);
}

/// A broker that takes no records of an hour ahead gets them without their time.
#[test]
fn rows_of_times_that_no_broker_takes_have_that_of_their_arrival() {
    let broker = broker();
    broker.broker.create_topic("rows", 1);
    let identity = identity();
    let rows = [row(&identity, "conn", 0, FLOW), row(&identity, "conn", 1, FLOW)];
    // Both together, and the first one alone.
    broker.broker.on_times(ApiKey::Produce, 2, |_| Control::Error(ErrorCode::InvalidTimestamp));
    let answer = receiver(&broker.url("rows?timeout=5s")).send(&rows);
    assert_eq!(answer, Answer::Each(vec![RowAnswer::Accepted; 2]));
    let found = broker.records("rows");
    let own = found.iter().filter(|it| it.timestamp == 1_700_000_000_500).count();
    assert_eq!((found.len(), own), (2, 1));

    broker.broker.on(ApiKey::Produce, |_| Control::Error(ErrorCode::InvalidTimestamp));
    let answer = receiver(&broker.url("rows?timeout=5s")).send(&rows[..1]);
    let Answer::Each(answers) = answer else { panic!("{answer:?}") };
    assert!(matches!(answers[..], [RowAnswer::Refused(_)]), "{answers:?}");
}

/// A broker that takes no more than so many records at once refuses none.
#[test]
fn rows_that_are_unfit_together_are_sent_in_parts() {
    let broker = broker();
    broker.broker.create_topic("rows", 1);
    let identity = identity();
    let rows: Vec<_> = (0..8).map(|seq| row(&identity, "conn", seq, FLOW)).collect();
    // All, and the first half: the client sends records that are invalid no second time.
    broker.broker.on_times(ApiKey::Produce, 2, |_| Control::Error(ErrorCode::InvalidRecord));
    let answer = receiver(&broker.url("rows?timeout=5s")).send(&rows);
    assert_eq!(answer, Answer::Each(vec![RowAnswer::Accepted; 8]));
    let mut found: Vec<_> = broker.records("rows").iter().map(|it| it.value.clone()).collect();
    assert_eq!(found.len(), 8);
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 8, "rows came twice");
}

#[test]
fn rows_wait_while_the_broker_is_away_and_go_once_it_is_back() {
    let broker = broker();
    broker.broker.create_topic("rows", 1);
    let identity = identity();
    let row = |seq| [row(&identity, "conn", seq, FLOW)];
    let accepted = Answer::Each(vec![RowAnswer::Accepted]);
    let mut receiver = receiver(&broker.url("rows?timeout=1s"));
    assert_eq!(receiver.send(&row(0)), accepted);
    // The next one meets a connection that is cut, the third finds nobody.
    let node = *broker.broker.request_nodes(ApiKey::Produce).last().unwrap();
    broker.broker.crash(node);
    for _ in 0..2 {
        assert!(!later(receiver.send(&row(1))).is_empty());
    }
    broker.broker.restart(node);
    assert_eq!(receiver.send(&row(1)), accepted);
    assert_eq!(broker.records("rows").len(), 2);
    // An answer that is lost makes no record twice.
    broker.broker.on_once(ApiKey::Produce, |_| Control::ApplyThen(Box::new(Control::Disconnect)));
    assert_eq!(receiver.send(&row(2)), accepted);
    assert_eq!(broker.records("rows").len(), 3);
}

/// Behind some errors the client takes nothing any more.
#[test]
fn a_client_that_has_given_up_is_replaced() {
    let broker = broker();
    broker.broker.create_topic("rows", 1);
    let identity = identity();
    let rows = [row(&identity, "conn", 0, FLOW)];
    let mut receiver = receiver(&broker.url("rows?timeout=2s"));
    broker.broker.on_once(ApiKey::Produce, |_| Control::Error(ErrorCode::ProducerFenced));
    assert!(!later(receiver.send(&rows)).is_empty());
    assert_eq!(receiver.send(&rows), Answer::Each(vec![RowAnswer::Accepted]));
}

#[test]
fn what_makes_no_sense_is_said_before_anything_is_sent() {
    for (url, expected) in [
        ("kafka://127.0.0.1/", "topic"),
        ("kafka://127.0.0.1:port/t", "host and port"),
        ("kafka://127.0.0.1,/t", "host and port"),
        ("kafka://127.0.0.1/t?format=xml", "format=xml"),
        ("kafka://127.0.0.1/t?compression=zstd", "compression=zstd"),
        ("kafka://127.0.0.1/t?timeout=10ms", "timeout"),
        ("kafka://127.0.0.1/t?sasl=plain", "needs user"),
        ("kafka://127.0.0.1/t?user=me", "belong together"),
        ("kafka://127.0.0.1/t?user=me&password=secret", "env:NAME"),
        ("kafka://127.0.0.1/t?ca=file", "kafka+tls"),
        ("kafka://127.0.0.1/t?acks=0", "acks"),
        ("kafka+tls://127.0.0.1/t?ca=/nowhere", "/nowhere"),
    ] {
        let why = match open(Address::parse(url).unwrap()) {
            Err(error) => format!("{error:#}"),
            Ok(_) => panic!("{url}"),
        };
        assert!(why.contains(expected), "{url}: {why}");
    }
    let opened = open(Address::parse("kafka://127.0.0.1,[::1]:9093/t?batch=7").unwrap()).unwrap();
    assert_eq!((opened.ports, opened.bounds.rows), (vec![9092, 9093], 7));
}
