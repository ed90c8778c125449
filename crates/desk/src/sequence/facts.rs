//! What is known of the connection in the end.

use super::following::Track;
use super::marks::{Class, Strokes};
use super::rows::{Row, Rows};

/// What it is a picture of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sequence numbers of TCP.
    Tcp,
    /// Datagrams of UDP, ICMP or another protocol, which have no such numbers: bytes.
    Datagrams,
}

/// What was drawn of its packets.
#[derive(Debug)]
pub(super) struct Drawn {
    /// Marks of the originator, and of the responder.
    pub(super) tracks: [Track; 2],
    pub(super) datagrams: u64,
    pub(super) others: u64,
    /// Stamp of the first packet, the earliest, and the latest.
    pub(super) stamps: [i64; 3],
}

/// A connection: its picture, and the numbers behind it.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its name.
    pub uid: String,
    /// Whether that is not the name that was asked for.
    pub is_named_otherwise: bool,
    /// What the picture is of.
    pub kind: Kind,
    /// When its first packet came, in nanoseconds since 1970.
    pub begin: i64,
    /// Nanoseconds from there to the earliest stamp: negative where stamps go back behind the first.
    pub earliest: i64,
    /// Nanoseconds from the first packet to the latest stamp.
    pub span: i64,
    /// Datagrams of it.
    pub datagrams: u64,
    /// Datagrams that were read and are of other connections.
    pub others: u64,
    /// Whether there were more packets than may be read.
    pub is_cut: bool,
    /// Places at which the capture was damaged.
    pub damage: u64,
    /// What the originator sent, and the responder.
    pub directions: [Direction; 2],
    /// `quality`, `history`, `service` and `conn_state` of `conn`, where they are set.
    pub words: Vec<(&'static str, String)>,
    /// Numbers of the connection as a whole.
    pub whole: Vec<(&'static str, Option<u64>)>,
}

/// What one side sent.
#[derive(Clone, Debug)]
pub struct Direction {
    /// Its address and port.
    pub from: String,
    /// Those of the other side.
    pub to: String,
    /// Its marks.
    pub track: Track,
    /// What is missing of it: rows of `gaps`.
    pub gaps: Vec<Gap>,
    /// Losses for which that log had no room.
    pub more_gaps: u64,
    /// Its numbers: columns of `tcp` or `conn`.
    pub figures: Vec<Figure>,
}

/// A number that a log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// Its log and column, without `orig_` or `resp_`.
    pub column: &'static str,
    /// The number, where it is set.
    pub value: Option<u64>,
}

/// Something that is missing: a row of `gaps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// `what`: data, a SYN, a FIN or a second copy.
    pub what: String,
    /// `cause`: who lost it.
    pub cause: String,
    /// `ended`: how it ended.
    pub ended: String,
    /// Where it begins in the stream, from the first byte of data.
    pub start: i64,
    /// One past where it ends.
    pub end: i64,
    /// Payload bytes that are missing.
    pub bytes: Option<u64>,
    /// Nanoseconds from the first packet to when it was noticed.
    pub at: i64,
    /// The same to when it ended.
    pub until: i64,
}

/// What a side's numbers are, with the column of `tcp`.
const OF_TCP: [(&str, &str); 15] = [
    ("segments with data", "data_segments"),
    ("segments with an acknowledgement alone", "pure_acks"),
    ("payload bytes, each copy", "payload_bytes"),
    ("payload bytes, each position once", "unique_bytes"),
    ("sent again by the timer", "retx_rto"),
    ("sent again as was asked for", "retx_fast"),
    ("sent again though the other side had it", "retx_spurious"),
    ("out of order", "out_of_order"),
    ("the same packet twice", "duplicates"),
    ("keep-alives", "keep_alives"),
    ("probes of a closed window", "window_probes"),
    ("windows of 0 that it told", "zero_windows"),
    ("most bytes in flight", "in_flight_max"),
    ("largest window that it offered", "window_max"),
    ("RSTs", "resets"),
];

/// The same with the column of `conn`.
const OF_CONN: [(&str, &str); 3] =
    [("packets", "pkts"), ("bytes of IP datagrams", "ip_bytes"), ("payload bytes", "bytes")];

/// Numbers of `conn` that are of both sides.
const OF_BOTH: [&str; 3] = ["missed_bytes", "capture_missed_bytes", "network_missed_bytes"];

impl Sequence {
    /// What was drawn, with the rows of the logs; `None` where there is no row.
    pub(super) fn new(drawn: Drawn, rows: &Rows) -> Option<Self> {
        let conn = &rows.conn;
        let kind = if conn.text("proto")? == "tcp" { Kind::Tcp } else { Kind::Datagrams };
        let ends = ["orig", "resp"].map(|side| endpoint(conn, side));
        let [first, second] = drawn.tracks;
        let [begin, earliest, latest] = drawn.stamps;
        let [from, to] = ends;
        let directions = [
            Direction::new(0, [from.clone(), to.clone()], first, rows, begin),
            Direction::new(1, [to, from], second, rows, begin),
        ];
        let words = ["service", "conn_state", "history", "quality"];
        let word = |name: &'static str| Some((name, conn.text(name)?.to_owned()));
        Some(Self {
            uid: String::new(),
            is_named_otherwise: false,
            kind,
            begin,
            earliest: earliest.saturating_sub(begin),
            span: latest.saturating_sub(begin),
            datagrams: drawn.datagrams,
            others: drawn.others,
            is_cut: false,
            damage: 0,
            directions,
            words: words.into_iter().filter_map(word).collect(),
            whole: OF_BOTH.map(|name| (name, conn.count(name))).to_vec(),
        })
    }
}

fn endpoint(conn: &Row, side: &str) -> String {
    let address = conn.text(&format!("id.{side}_h")).unwrap_or("?");
    let port = conn.count(&format!("id.{side}_p")).map(|port| port.to_string());
    format!("{address} port {}", port.unwrap_or_else(|| "?".to_owned()))
}

impl Direction {
    fn new(
        role: usize,
        [from, to]: [String; 2],
        mut track: Track,
        rows: &Rows,
        begin: i64,
    ) -> Self {
        track.finish();
        let is_own = |row: &&Row| row.flag("is_orig") == Some(role == 0);
        let own = || rows.gaps.iter().filter(is_own);
        let side = if role == 0 { "orig" } else { "resp" };
        let value = |row: &Row, column: &str| row.count(&format!("{side}_{column}"));
        let of_tcp = rows.tcp.iter().flat_map(|row| {
            OF_TCP.map(|(name, column)| Figure { name, column, value: value(row, column) })
        });
        let of_conn = OF_CONN.map(|(name, column)| {
            let value = value(&rows.conn, column);
            Figure { name, column, value }
        });
        Self {
            from,
            to,
            track,
            gaps: own().filter_map(|row| Gap::of(row, begin)).collect(),
            more_gaps: own().filter_map(|row| row.count("more")).sum(),
            figures: of_conn.into_iter().chain(of_tcp).collect(),
        }
    }

    /// A number by its column.
    #[must_use]
    pub fn figure(&self, column: &str) -> Option<u64> {
        self.figures.iter().find(|figure| figure.column == column)?.value
    }

    /// The strokes of a class.
    #[must_use]
    pub const fn strokes(&self, class: Class) -> &Strokes {
        self.track.strokes(class)
    }
}

impl Gap {
    fn of(row: &Row, begin: i64) -> Option<Self> {
        let word = |column| row.text(column).map(str::to_owned);
        let place = |column| i64::try_from(row.count(column)?).ok();
        let since = |column| Some(row.nanos(column)?.saturating_sub(begin));
        let at = since("ts")?;
        Some(Self {
            what: word("what")?,
            cause: word("cause")?,
            ended: word("ended")?,
            start: place("start")?,
            end: place("end")?,
            bytes: row.count("bytes"),
            at,
            until: since("until").unwrap_or(at),
        })
    }
}
