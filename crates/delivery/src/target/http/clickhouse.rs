//! Requests of ClickHouse's HTTP interface: rows of one log each, for the table of its name, or those of a query of the user's.

use super::Form;
use super::ndjson::Ndjson;
use crate::Address;
use crate::identity::Row;

/// Lines of JSON for a query.
pub(super) struct ClickHouse {
    /// Whether the address says what to do with rows.
    has_query: bool,
}

/// Codes of errors that speak of the query or the table (`ErrorCodes.cpp` of ClickHouse): columns, tables and databases that are not
/// there, syntax, formats and settings.
const SET_UP: [u32; 7] = [16, 47, 60, 62, 73, 81, 115];

impl ClickHouse {
    pub(super) fn new(address: &Address) -> Self {
        Self { has_query: address.parameters.iter().any(|(name, _)| name == "query") }
    }
}

impl Form for ClickHouse {
    fn content_type(&self) -> &'static str {
        Ndjson.content_type()
    }

    fn body(&self, rows: &[Row<'_>], out: &mut Vec<u8>) {
        Ndjson.body(rows, out);
    }

    fn is_of_one_log(&self) -> bool {
        !self.has_query
    }

    /// An error begins as `Code: 62. DB::Exception`.
    fn speaks_of_rows(&self, body: &[u8]) -> bool {
        let text = String::from_utf8_lossy(body);
        let code = text.strip_prefix("Code: ").and_then(|rest| rest.split_once('.'));
        !code.is_some_and(|(code, _)| code.parse().is_ok_and(|code| SET_UP.contains(&code)))
    }

    /// A block of one name (`insert_deduplication_token`) is taken once.
    fn parameters(&self, rows: &[Row<'_>]) -> Vec<(&'static str, String)> {
        let Some((first, last)) = rows.first().zip(rows.last()) else { return Vec::new() };
        let mut name = Vec::new();
        first.name(&mut name);
        name.push(b'+');
        last.name(&mut name);
        let name = String::from_utf8_lossy(&name).into_owned();
        let token = ("insert_deduplication_token", format!("{name}+{}", rows.len()));
        let query = || ("query", format!("INSERT INTO `{}` FORMAT JSONEachRow", first.log));
        (!self.has_query).then(query).into_iter().chain([token]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    #[test]
    fn rows_go_into_the_table_of_their_log_unless_a_query_says_where() {
        let identity = Identity::new("s", "r").unwrap();
        let row = |seq| Row { identity: &identity, log: "conn", seq, time: 5, json: b"{\"a\":1}" };
        let of = |text| ClickHouse::new(&Address::parse(text).unwrap());
        let form = of("http://h:8123?as=clickhouse&database=net");
        let own = form.parameters(&[row(3), row(9)]);
        assert_eq!(own[0], ("query", "INSERT INTO `conn` FORMAT JSONEachRow".to_owned()));
        assert_eq!(own[1].0, "insert_deduplication_token");
        assert!(own[1].1.contains('3') && own[1].1.ends_with("+2"), "{own:?}");
        assert!(form.is_of_one_log() && own.len() == 2);
        let told = of("http://h:8123?as=clickhouse&query=INSERT+INTO+t+FORMAT+JSONEachRow");
        assert!(!told.is_of_one_log() && told.parameters(&[row(3)]).len() == 1);
    }
}
