//! Requests of HTTP: one for each batch, whose answer tells what became of it.

mod bulk;
mod clickhouse;
mod client;
mod hec;
mod loki;
mod ndjson;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;

use self::client::{Client, Reply};
use super::{Answer, Opened, Receiver, said};
use crate::Address;
use crate::identity::Row;
use crate::spool::BatchBounds;

const BOUNDS: BatchBounds =
    BatchBounds { rows: 5000, bytes: 2 << 20, linger: Duration::from_secs(1) };

/// What a receiver wants as the body of a request, and what it answers.
trait Form: Send {
    /// The type of the body.
    fn content_type(&self) -> &'static str;

    /// The path of requests, where the address has none.
    fn path(&self) -> &'static str {
        "/"
    }

    /// Appends the body of a request with these rows.
    fn body(&self, rows: &[Row<'_>], out: &mut Vec<u8>);

    /// Whether a request has rows of one log alone.
    fn is_of_one_log(&self) -> bool {
        false
    }

    /// Parameters of the request that go by its rows.
    fn parameters(&self, _rows: &[Row<'_>]) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether an answer with a status that refuses rows speaks of the rows, and not of how the receiver is set up.
    fn speaks_of_rows(&self, _body: &[u8]) -> bool {
        true
    }

    /// What an answer of success says of the rows.
    fn success(&self, _body: &[u8], _rows: usize) -> Answer {
        Answer::Accepted
    }
}

pub(super) fn open(mut address: Address) -> anyhow::Result<Opened> {
    let name = address.take("as").unwrap_or_else(|| "ndjson".to_owned());
    let form: Box<dyn Form> = match name.as_str() {
        "ndjson" => Box::new(ndjson::Ndjson),
        "clickhouse" => Box::new(clickhouse::ClickHouse::new(&address)),
        "bulk" => Box::new(bulk::Bulk::new(&mut address)?),
        "hec" => Box::new(hec::Hec),
        "loki" => Box::new(loki::Loki),
        _ => bail!(
            "as={name} is no form of requests; there are ndjson, clickhouse, bulk, hec and loki"
        ),
    };
    if address.path.is_empty() || address.path == "/" {
        form.path().clone_into(&mut address.path);
    }
    let client = Client::new(&mut address)?;
    let ports = vec![client.port()];
    let receiver = Box::new(Requests { client, form, body: Vec::new() });
    Ok(Opened { receiver, ports, bounds: BOUNDS })
}

struct Requests {
    client: Client,
    form: Box<dyn Form>,
    body: Vec<u8>,
}

impl Requests {
    fn request(&mut self, rows: &[Row<'_>]) -> Answer {
        self.body.clear();
        self.form.body(rows, &mut self.body);
        let parameters = self.form.parameters(rows);
        match self.client.post(self.form.content_type(), &parameters, &self.body) {
            Err(why) => Answer::later(why),
            Ok(reply) => judge(&*self.form, &reply, rows.len()),
        }
    }
}

impl Receiver for Requests {
    fn send(&mut self, rows: &[Row<'_>]) -> Answer {
        if !self.form.is_of_one_log() {
            return self.request(rows);
        }
        let mut logs = BTreeMap::<_, Vec<_>>::new();
        rows.iter().for_each(|row| logs.entry(row.log).or_default().push(*row));
        // Where one log is not taken, all are sent again: rows that came are known by their names.
        let answers = logs.values().map(|rows| self.request(rows));
        answers.into_iter().find(|answer| *answer != Answer::Accepted).unwrap_or(Answer::Accepted)
    }
}

/// What an answer means. One that may be due to how receiver or address are set up leaves the rows where they are: only what
/// speaks of the rows themselves refuses them.
fn judge(form: &dyn Form, reply: &Reply, rows: usize) -> Answer {
    let why = || {
        let body = String::from_utf8_lossy(&reply.body);
        said(&format!("HTTP {} {body}", reply.status))
    };
    match reply.status {
        200..300 => form.success(&reply.body, rows),
        // Bad Request, Content Too Large, Unprocessable Content (RFC 9110, 15.5).
        400 | 413 | 422 if form.speaks_of_rows(&reply.body) => Answer::Unfit { why: why() },
        _ => Answer::Later { why: why(), asked: reply.retry_after },
    }
}

#[cfg(test)]
mod hostile;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splunk_tells_its_set_up_from_events() {
        let reply = |code: u8| {
            let body = format!("{{\"text\":\"x\",\"code\":{code}}}").into_bytes();
            judge(&hec::Hec, &Reply { status: 400, retry_after: None, body }, 1)
        };
        for code in [5, 6, 12, 13, 15] {
            assert!(matches!(reply(code), Answer::Unfit { .. }), "{code}");
        }
        for code in [7, 10, 11, 14] {
            assert!(matches!(reply(code), Answer::Later { .. }), "{code}");
        }
        let plain = Reply { status: 413, retry_after: None, body: b"<html>".to_vec() };
        assert!(matches!(judge(&hec::Hec, &plain, 1), Answer::Unfit { .. }));
    }

    #[test]
    fn clickhouse_tells_a_wrong_query_from_wrong_rows() {
        let form = clickhouse::ClickHouse::new(&Address::parse("http://h").unwrap());
        let reply = |code: u8| {
            let body = format!("Code: {code}. DB::Exception: why. (NAME)").into_bytes();
            judge(&form, &Reply { status: 400, retry_after: None, body }, 1)
        };
        assert!(matches!(reply(62), Answer::Later { .. }), "syntax");
        assert!(matches!(reply(27), Answer::Unfit { .. }), "a value that cannot be parsed");
    }

    #[test]
    fn only_what_speaks_of_rows_refuses_them() {
        let form = ndjson::Ndjson;
        let reply = |status| Reply { status, retry_after: None, body: b"why\x1b[2J\n".to_vec() };
        for status in [200, 201, 204] {
            assert_eq!(judge(&form, &reply(status), 1), Answer::Accepted);
        }
        for status in [400, 413, 422] {
            assert!(matches!(judge(&form, &reply(status), 1), Answer::Unfit { .. }), "{status}");
        }
        for status in [100, 301, 302, 401, 403, 404, 405, 408, 409, 425, 429, 500, 502, 503, 504] {
            let Answer::Later { why, .. } = judge(&form, &reply(status), 1) else {
                panic!("{status}")
            };
            assert!(
                why.starts_with(&format!("HTTP {status} why")) && !why.contains('\x1b'),
                "{why}"
            );
        }
    }
}
