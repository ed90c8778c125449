//! A row of a log that is kept: what stands in it, typed by the log's declaration.

use std::borrow::Cow;
use std::ops::Range;

use netsniff_analysis::Record;
use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape, Value, Visitor};
use netsniff_analysis::rows::LOGS;

use crate::logs::{List, Row, UNSET, nanos, value};

/// The column that names the log of each row of a stream of logs.
const PATH: &str = "_path";

/// A row of a log. A column that is not set has no cell.
#[derive(Clone, Debug)]
pub(crate) struct LogRow {
    log: &'static LogType,
    /// The values one behind the other, in the order of the columns.
    text: String,
    cells: Vec<Cell>,
}

/// A value, or one of several of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    column: u16,
    kind: CellKind,
    /// Where its text ends. It begins where that of the cell before ends.
    end: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellKind {
    One,
    /// An element of a set or vector.
    Element,
    /// An element that is not set.
    UnsetElement,
    /// A set or vector without elements.
    NoElements,
}

/// The log with this name.
pub(crate) fn log_named(name: &str) -> Option<&'static LogType> {
    LOGS.iter().find(|log| log.path == name).copied()
}

/// The log that a row of a stream belongs to; `None` for one that is not known.
pub(crate) fn log_of(row: &Row<'_>) -> Option<&'static LogType> {
    log_named(&row.whole(PATH)?)
}

impl PartialEq for LogRow {
    fn eq(&self, other: &Self) -> bool {
        self.log.path == other.log.path && self.text == other.text && self.cells == other.cells
    }
}

impl Eq for LogRow {}

impl LogRow {
    const fn new(log: &'static LogType) -> Self {
        Self { log, text: String::new(), cells: Vec::new() }
    }

    /// Keeps a row that was read of a log.
    pub(crate) fn of(log: &'static LogType, row: &Row<'_>) -> Self {
        let mut kept = Self::new(log);
        for (column, field) in (0..).zip(log.fields) {
            if field.zeek_type.shape == Shape::One {
                if let Some(text) = row.whole(field.name) {
                    check(row, field, &text);
                    kept.push(column, CellKind::One, plain(&text, field.zeek_type.scalar));
                }
            } else if let Some(elements) = row.elements(field.name) {
                if elements.is_empty() {
                    kept.push(column, CellKind::NoElements, "");
                }
                for element in elements {
                    let Some(text) = element else {
                        kept.push(column, CellKind::UnsetElement, "");
                        continue;
                    };
                    check(row, field, &text);
                    let text = plain(&text, field.zeek_type.scalar);
                    kept.push(column, CellKind::Element, text);
                }
            }
        }
        kept.text.shrink_to_fit();
        kept.cells.shrink_to_fit();
        kept
    }

    /// A row that nobody wrote, of the values that `text` has for columns.
    pub(crate) fn with<'t>(
        log: &'static LogType,
        text: impl Fn(&'static str) -> Option<Cow<'t, str>>,
    ) -> Self {
        let mut made = Self::new(log);
        for (column, field) in (0..).zip(log.fields) {
            if let Some(text) = text(field.name) {
                made.push(column, CellKind::One, &text);
            }
        }
        made
    }

    /// Appends a cell behind those of the columns before.
    fn push(&mut self, column: u16, kind: CellKind, text: &str) {
        // No line is long enough for others.
        if let Ok(end) = u32::try_from(self.text.len() + text.len()) {
            self.text.push_str(text);
            self.cells.push(Cell { column, kind, end });
        }
    }

    /// The log.
    pub(crate) const fn log(&self) -> &'static LogType {
        self.log
    }

    /// The places of the cells of a column.
    fn places(&self, column: usize) -> Range<usize> {
        let before = |cell: &Cell| usize::from(cell.column) < column;
        let begin = self.cells.partition_point(before);
        let cells = self.cells.get(begin..).unwrap_or_default();
        let others = cells.iter().take_while(|cell| usize::from(cell.column) == column);
        begin..begin + others.count()
    }

    /// The kind and text of the cell at a place.
    fn cell(&self, place: usize) -> Option<(CellKind, &str)> {
        let cell = self.cells.get(place)?;
        let before = place.checked_sub(1).and_then(|before| self.cells.get(before));
        let begin = before.map_or(0, |before| before.end);
        let text = self.text.get(usize::try_from(begin).ok()?..usize::try_from(cell.end).ok()?)?;
        Some((cell.kind, text))
    }

    fn cells(&self, column: &str) -> impl Iterator<Item = (CellKind, &str)> {
        let column = self.log.fields.iter().position(|field| field.name == column);
        let places = column.map_or(0..0, |column| self.places(column));
        places.filter_map(|place| self.cell(place))
    }

    /// Text of a column, and what any other value reads as; `None` where it is unset, or a list.
    pub(crate) fn text(&self, column: &str) -> Option<&str> {
        let (kind, text) = self.cells(column).next()?;
        (kind == CellKind::One).then_some(text)
    }

    /// The elements of a set or vector that are set.
    pub(crate) fn elements(&self, column: &str) -> impl Iterator<Item = &str> {
        self.cells(column).filter(|(kind, _)| *kind == CellKind::Element).map(|(_, text)| text)
    }

    /// A count; `None` where it is unset.
    pub(crate) fn count(&self, column: &str) -> Option<u64> {
        self.text(column)?.parse().ok()
    }

    /// A number with a sign.
    pub(crate) fn int(&self, column: &str) -> Option<i64> {
        self.text(column)?.parse().ok()
    }

    /// A number with a fraction.
    pub(crate) fn double(&self, column: &str) -> Option<f64> {
        self.text(column)?.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// A time since 1970 or a span of time, in nanoseconds.
    pub(crate) fn nanos(&self, column: &str) -> Option<i64> {
        nanos(self.text(column)?)
    }

    /// Whether a flag is set.
    pub(crate) fn is(&self, column: &str) -> bool {
        self.text(column) == Some("T")
    }

    /// About how many bytes of memory it takes.
    pub(crate) const fn size(&self) -> usize {
        size_of::<Self>() + self.text.capacity() + self.cells.capacity() * size_of::<Cell>()
    }

    /// The columns that are set, in their order, as people read them.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.log.fields.iter().enumerate().filter_map(|(column, field)| {
            let places = self.places(column);
            if places.is_empty() {
                return None;
            }
            let word = |(kind, text)| if kind == CellKind::UnsetElement { UNSET } else { text };
            let texts: Vec<_> = places.filter_map(|place| self.cell(place).map(word)).collect();
            Some((field.name, texts.join(",")))
        })
    }
}

/// Counts a value that is none of its type: it is kept, but reads as unset.
fn check(row: &Row<'_>, field: &FieldInfo, text: &str) {
    if matches!(value(text.as_bytes(), field.zeek_type.scalar), Value::Unset) {
        row.misread(field.name);
    }
}

/// A value as it is kept: of flags, JSON and Zeek's own format have different words.
fn plain(text: &str, scalar: Scalar) -> &str {
    match (scalar, text) {
        (Scalar::Bool, "true") => "T",
        (Scalar::Bool, "false") => "F",
        _ => text,
    }
}

impl Record for LogRow {
    fn log(&self) -> &'static LogType {
        self.log
    }

    fn visit<V: Visitor>(&self, visitor: &mut V) {
        for (index, field) in self.log.fields.iter().enumerate() {
            let scalar = field.zeek_type.scalar;
            let places = self.places(index);
            let mut cells = places.filter_map(|place| self.cell(place)).peekable();
            match cells.peek() {
                None => visitor.field(index, field, Value::Unset),
                Some((CellKind::One, text)) => {
                    visitor.field(index, field, value(text.as_bytes(), scalar));
                }
                Some(_) => {
                    let elements = cells.filter_map(|(kind, text)| match kind {
                        CellKind::Element => Some(value(text.as_bytes(), scalar)),
                        CellKind::UnsetElement => Some(Value::Unset),
                        CellKind::One | CellKind::NoElements => None,
                    });
                    let list = List::of(elements);
                    visitor.field(index, field, Value::List(&list));
                }
            }
        }
    }
}

#[cfg(test)]
impl LogRow {
    /// Reads a row of a stream, as an analysis writes it. `None` for what is none.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut reader = crate::logs::Reader::of(std::io::Cursor::new(format!("{line}\n")));
        let row = reader.next_row()?;
        Some(Self::of(log_of(&row)?, &row))
    }
}

#[cfg(test)]
mod tests {
    use netsniff_output::condition::Condition;

    use super::*;

    #[test]
    fn conditions_hold_for_rows_that_were_read_back() {
        let row = LogRow::read(
            "{\"_path\":\"conn\",\"ts\":1.5,\"uid\":\"C1\",\"id.orig_h\":\"10.1.2.3\",\"id.resp_p\":443,\
             \"proto\":\"tcp\",\"duration\":0.25,\"local_orig\":true,\"orig_bytes\":7}",
        )
        .unwrap();
        let holds = |text: &str| Condition::parse(text, row.log()).unwrap().matches(&row);
        for condition in [
            "id.orig_h IN '10.0.0.0/8'",
            "id.resp_p = 443 AND proto = 'tcp'",
            "duration > 0.2 AND duration < 0.3",
            "local_orig",
            "service IS NULL",
            "orig_bytes = 7",
            "ts = 1.5",
        ] {
            assert!(holds(condition), "{condition}");
        }
        for condition in ["id.resp_p = 80", "resp_bytes < 5", "NOT resp_bytes < 5"] {
            assert!(!holds(condition), "{condition}");
        }
    }

    #[test]
    fn stamps_have_all_of_their_nine_digits() {
        let row = |ts: &str| {
            LogRow::read(&format!("{{\"_path\":\"conn\",\"ts\":{ts},\"duration\":{ts}}}")).unwrap()
        };
        let [one, next] = ["1767225600.123456788", "1767225600.123456789"].map(row);
        assert_eq!(one.nanos("ts"), Some(1_767_225_600_123_456_788));
        assert_eq!(next.nanos("duration"), Some(1_767_225_600_123_456_789));
        assert_eq!(next.shown().next(), Some(("ts", "1767225600.123456789".to_owned())));
        let is_later = Condition::parse("ts > 1767225600.123456788", one.log()).unwrap();
        assert!(is_later.matches(&next) && !is_later.matches(&one));
    }

    #[test]
    fn lists_and_rows_made_of_others_have_what_is_set() {
        let row = LogRow::read(
            "{\"_path\":\"dns\",\"uid\":\"C1\",\"AA\":true,\"TC\":false,\"answers\":[\"a,b\",\"\"],\"TTLs\":[]}",
        )
        .unwrap();
        assert_eq!(row.elements("answers").collect::<Vec<_>>(), ["a,b", ""]);
        assert_eq!((row.elements("TTLs").count(), row.text("answers")), (0, None));
        assert!(row.is("AA") && !row.is("TC") && !row.is("RA"));
        let shown: Vec<_> = row.shown().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(shown, ["uid=C1", "AA=T", "TC=F", "answers=a,b,", "TTLs="]);
        let conn = log_named("conn").unwrap();
        let made = LogRow::with(conn, |name| row.text(name).map(Cow::Borrowed));
        assert_eq!(made.shown().collect::<Vec<_>>(), [("uid", "C1".to_owned())]);
        assert!(row.size() < 400, "{}", row.size());
    }

    #[test]
    fn elements_that_are_not_set_stay_in_their_place() {
        let line = "{\"_path\":\"dns\",\"answers\":[null,\"null\",\"-\"],\"TTLs\":[2.0,null]}\n";
        let mut reader = crate::logs::Reader::of(line.as_bytes());
        let read = reader.next_row().unwrap();
        let log = log_named("dns").unwrap();
        let (kept, typed) = (LogRow::of(log, &read), crate::logs::TypedRow { log, row: &read });
        assert_eq!(read.list("answers").unwrap(), ["-", "null", "-"]);
        let shown: Vec<_> = kept.shown().collect();
        assert_eq!(shown, [("answers", "-,null,-".to_owned()), ("TTLs", "2.0,-".to_owned())]);
        let (mut of_kept, mut of_typed) = (Lists(Vec::new()), Lists(Vec::new()));
        kept.visit(&mut of_kept);
        typed.visit(&mut of_typed);
        assert_eq!(of_kept.0, [vec![false, true, true], vec![true, false]]);
        assert_eq!(of_kept.0, of_typed.0);
        assert_eq!(reader.faults().values, 0);
    }

    /// Which elements of each list are set.
    struct Lists(Vec<Vec<bool>>);

    impl Visitor for Lists {
        fn field(&mut self, _: usize, _: &'static FieldInfo, value: Value<'_>) {
            if let Value::List(list) = value {
                let is_set = |at| !matches!(list.element(at), Value::Unset);
                self.0.push((0..list.count()).map(is_set).collect());
            }
        }
    }

    #[test]
    fn what_is_no_row_is_none() {
        for line in ["", "{", "{\"_path\":\"conn\"", "{\"_path\":\"nothing\",\"ts\":1}", "[1]"] {
            assert!(LogRow::read(line).is_none(), "{line}");
        }
    }
}
