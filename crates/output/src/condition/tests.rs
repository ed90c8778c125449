//! Conditions on a row with a column of each type.

use netsniff_analysis::Record;
use netsniff_analysis::record::{
    FieldInfo, Interval, LogType, Origin, Privacy, Scalar, Shape, Unit, Value, Visitor, Word,
    ZeekType,
};
use netsniff_packet::{Address, Timestamp};

use super::Condition;

const fn column(name: &'static str, shape: Shape, scalar: Scalar) -> FieldInfo {
    FieldInfo {
        name,
        zeek_type: ZeekType { shape, scalar },
        unit: Unit::None,
        privacy: Privacy::Plain,
        origin: Origin::Netsniff,
        words: &[],
        doc: "",
    }
}

static WORDS: [Word; 2] = [Word { name: "SF", doc: "" }, Word { name: "S0", doc: "" }];

static FIELDS: [FieldInfo; 9] = [
    column("ts", Shape::One, Scalar::Time),
    column("id.orig_h", Shape::One, Scalar::Addr),
    column("id.resp_p", Shape::One, Scalar::Port),
    column("orig_bytes", Shape::One, Scalar::Count),
    column("service", Shape::One, Scalar::String),
    FieldInfo { words: &WORDS, ..column("state", Shape::One, Scalar::Enum) },
    column("local", Shape::One, Scalar::Bool),
    column("duration", Shape::One, Scalar::Interval),
    column("tunnels", Shape::Set, Scalar::String),
];

static LOG: LogType = LogType { path: "conn", doc: "", fields: &FIELDS };

/// A row with an address, so many bytes and a service, where these are set.
#[derive(Default)]
struct Row {
    address: Address,
    bytes: Option<u64>,
    service: Option<&'static str>,
    tunnels: Vec<&'static str>,
}

impl Record for Row {
    fn log(&self) -> &'static LogType {
        &LOG
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        let values = [
            Value::Time(Timestamp::from_nanos(1_700_000_000_500_000_000)),
            Value::Addr(self.address),
            Value::Port(443),
            self.bytes.map_or(Value::Unset, Value::Count),
            self.service.map_or(Value::Unset, Value::Str),
            Value::Str("SF"),
            Value::Bool(true),
            Value::Interval(Interval::from_nanos(1_500_000_000)),
            Value::List(&self.tunnels),
        ];
        for (index, value) in values.into_iter().enumerate() {
            visitor.field(index, &FIELDS[index], value);
        }
    }
}

fn row() -> Row {
    let address = Address::from_v4([10, 1, 2, 3]);
    let service = Some("ssl,http");
    Row { address, bytes: Some(1_000_001), service, tunnels: vec!["C1", "C2"] }
}

fn holds(text: &str, row: &Row) -> bool {
    Condition::parse(text, &LOG).unwrap_or_else(|error| panic!("{error}")).matches(row)
}

#[test]
fn tests_of_every_type_hold_or_not() {
    for (text, expected) in [
        ("id.resp_p = 443", true),
        ("id.resp_p == 80", false),
        ("id.resp_p != 443", false),
        ("id.resp_p <> 80", true),
        ("orig_bytes > 1e6", true),
        ("orig_bytes >= 1000001 AND orig_bytes <= 1000001", true),
        ("orig_bytes < 1000001", false),
        ("orig_bytes BETWEEN 1 AND 2e6", true),
        ("orig_bytes NOT BETWEEN 1 AND 2e6", false),
        ("duration = 1.5", true),
        ("duration > 1.500000001", false),
        ("ts = 1700000000.5", true),
        ("ts >= '2023-11-14T22:13:20Z' and ts < '2023-11-14T22:13:21Z'", true),
        ("id.orig_h = '10.1.2.3'", true),
        ("id.orig_h IN '10.0.0.0/8'", true),
        ("id.orig_h IN ('192.0.2.0/24', '10.1.2.0/30')", true),
        ("id.orig_h NOT IN ('192.0.2.0/24', '10.1.2.4/30')", true),
        ("id.orig_h IN '::/0'", true),
        ("id.orig_h IN '2001:db8::/32'", false),
        ("service = 'ssl'", false),
        ("service LIKE '%ssl%'", true),
        ("service LIKE 's_l,%'", true),
        ("service LIKE 'ssl'", false),
        ("service NOT LIKE '%dns'", true),
        ("service IN ('x', 'ssl,http')", true),
        ("service > 'ssl'", true),
        ("state = 'SF'", true),
        ("local", true),
        ("NOT local", false),
        ("local = false", false),
        ("tunnels = 'C2'", true),
        ("tunnels = 'C3'", false),
        ("tunnels != 'C2'", false),
        ("tunnels != 'C3'", true),
        ("tunnels IN ('C9', 'C1')", true),
        ("id.resp_p = 80 OR local AND orig_bytes > 1", true),
        ("(id.resp_p = 80 OR local) AND orig_bytes < 1", false),
        ("not (not (not local))", false),
    ] {
        assert_eq!(holds(text, &row()), expected, "{text}");
    }
}

/// What is not set is neither equal nor unequal to anything.
#[test]
fn what_is_unknown_chooses_no_row() {
    let unknown = Row { address: Address::from_v4([10, 1, 2, 3]), ..Row::default() };
    for (text, expected) in [
        ("orig_bytes = 0", false),
        ("orig_bytes != 0", false),
        ("NOT orig_bytes = 0", false),
        ("orig_bytes NOT IN (1, 2)", false),
        ("service NOT LIKE 'x'", false),
        ("orig_bytes IS NULL", true),
        ("orig_bytes IS NOT NULL", false),
        ("service IS NULL AND local", true),
        ("orig_bytes > 1 OR local", true),
        ("local OR orig_bytes > 1", true),
        ("NOT (orig_bytes > 1 AND NOT local)", true),
        ("NOT (orig_bytes > 1 AND local)", false),
    ] {
        assert_eq!(holds(text, &unknown), expected, "{text}");
    }
}

#[test]
fn what_cannot_be_understood_is_shown_with_its_place() {
    for (text, said, column) in [
        ("id.resp_port = 443", "did you mean id.resp_p?", 1),
        (
            "local AND orig_byte > 1",
            "conn has no column \"orig_byte\"; did you mean orig_bytes?",
            11,
        ),
        ("id.resp_p = '443'", "id.resp_p is compared with a number", 13),
        ("service = ssl", "service is compared with a text between quotes", 11),
        ("id.orig_h = 10.0.0.1", "an address or network between quotes", 13),
        ("id.orig_h = '10.0.0.0/33'", "an address or network between quotes", 13),
        ("id.orig_h < '10.0.0.1'", "which has no order", 11),
        ("tunnels > 'C1'", "has the type set[string], which has no order", 9),
        ("state = 'SX'", "state is never 'SX'; it is one of SF, S0", 9),
        ("orig_bytes LIKE '1%'", "orig_bytes is no text, which LIKE needs", 17),
        ("ts > 'yesterday'", "is no point in time", 6),
        ("orig_bytes > 1k", "a number, as 1.5 or 1e6", 14),
        (
            "orig_bytes",
            "=, !=, <, >, IN, LIKE, BETWEEN or IS is expected, and the condition ends",
            11,
        ),
        ("orig_bytes NOT = 1", "IN, LIKE or BETWEEN is expected, not \"=\"", 16),
        ("(local", "\")\" is expected, and the condition ends", 7),
        ("local local", "unexpected \"local\"; AND or OR may follow", 7),
        ("", "a column is expected, and the condition ends", 1),
        ("service = 'ssl", "a text that begins with ' and does not end", 11),
        ("orig_bytes ; 1", "unexpected ';'", 12),
        ("service = 'é' AND x", "conn has no column \"x\"", 19),
        ("orig_bytes IS 1", "NULL is expected", 15),
        ("orig_bytes IN (1 2)", "\",\" or \")\" is expected", 18),
    ] {
        let error = Condition::parse(text, &LOG).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
        assert!(error.contains(&format!(" at column {column}\n")), "{text}: {error}");
        assert!(error.ends_with(&format!("\n  {:>column$}", '^')), "{text}: {error}");
    }
}

/// Whatever somebody writes is refused, or decides quickly.
#[test]
fn hostile_conditions_end() {
    for text in ["(".repeat(100_000), "NOT ".repeat(100_000), "local AND ".repeat(100_000)] {
        assert!(Condition::parse(&text, &LOG).is_err());
    }
    let pattern = "%a".repeat(2000);
    let text: &'static str = Box::leak("a".repeat(1999).into_boxed_str());
    let row = Row { service: Some(text), ..row() };
    assert!(!holds(&format!("service LIKE '{pattern}'"), &row));
    assert!(holds(&format!("service LIKE '{}%'", &pattern[2..]), &row));
    assert!(holds("service LIKE 'a%' AND service LIKE '%%' AND service NOT LIKE ''", &row));
    let quoted = Row { service: Some("it's"), ..row };
    assert!(holds("service = 'it''s' AND service = \"it's\"", &quoted));
}
