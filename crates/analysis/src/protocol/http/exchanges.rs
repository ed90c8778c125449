//! Which response belongs to which request, as Zeek's `base/protocols/http/main.zeek` finds out. Other
//! than there an exchange waits for the end of its request, which servers do not.

use std::collections::VecDeque;

use netsniff_packet::Timestamp;

use super::exchange::HttpExchange;
use super::start_line::{RequestLine, StatusLine};
use crate::limits::Limits;
use crate::protocol::{Findings, Role};
use crate::weird::Detail;

/// The methods that are none of [`Exchanges::request`]'s oddities (`HTTP::http_methods`).
const METHODS: [&[u8]; 20] = [
    b"GET",
    b"POST",
    b"HEAD",
    b"OPTIONS",
    b"PUT",
    b"DELETE",
    b"TRACE",
    b"CONNECT",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
    b"POLL",
    b"REPORT",
    b"SUBSCRIBE",
    b"BMOVE",
    b"SEARCH",
];

/// The exchanges of one connection that are not complete.
#[derive(Debug)]
pub(super) struct Exchanges {
    /// By their numbers, which rise.
    pending: VecDeque<(u64, HttpExchange)>,
    /// Number of the exchange that each side is at.
    current: [u64; 2],
    /// How many exchanges there were.
    depth: u64,
    max_pending: usize,
    max_bytes: usize,
}

impl Exchanges {
    pub(super) const fn new(limits: &Limits) -> Self {
        Self {
            pending: VecDeque::new(),
            current: [0; 2],
            depth: 0,
            max_pending: limits.http_pending_requests,
            max_bytes: limits.http_pending_bytes,
        }
    }

    /// How many there were.
    pub(super) const fn depth(&self) -> u64 {
        self.depth
    }

    /// Goes on counting behind so many.
    pub(super) const fn count_on(&mut self, depth: u64) {
        self.depth = depth;
    }

    /// The exchange that a side is at; a new one, if that was told already.
    pub(super) fn at(&mut self, from: Role, time: Timestamp) -> &mut HttpExchange {
        let number = self.current[from.index()];
        let place = match self.pending.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(place) => place,
            Err(place) => {
                self.depth += 1;
                let begun = HttpExchange::begun(time, self.depth);
                self.pending.insert(place, (number, begun));
                place
            }
        };
        &mut self.pending[place].1
    }

    /// The exchange that a side is at, if it is still open.
    pub(super) fn current(&mut self, from: Role) -> Option<&mut HttpExchange> {
        let number = self.current[from.index()];
        let place = self.pending.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.pending.get_mut(place).map(|(_, exchange)| exchange)
    }

    fn remove(&mut self, number: u64) -> Option<HttpExchange> {
        let place = self.pending.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.pending.remove(place).map(|(_, exchange)| exchange)
    }

    /// Begins a request with its line.
    pub(super) fn request(&mut self, line: RequestLine<'_>, time: Timestamp, found: &mut Findings) {
        let [request, response] = self.current;
        if request < response {
            found.weirds.add("HTTP_response_before_request");
            self.current[0] = response;
        }
        if self.pending.len() > self.max_pending || self.bytes() > self.max_bytes {
            found.weirds.add("HTTP_excessive_pipelining");
            self.report_all_but_the_last(found);
        }
        self.current[0] += 1;
        if !METHODS.contains(&line.method) {
            found.weirds.add_with("unknown_HTTP_method", Detail::word(line.method));
        }
        self.at(Role::Originator, time).request(line.method, line.uri);
    }

    /// Number of the last request.
    pub(super) const fn asked(&self) -> u64 {
        self.current[0]
    }

    /// A request will come behind lost ones, of which there were at least as many as responses.
    pub(super) const fn ask_behind_loss(&mut self) {
        if self.current[0] < self.current[1] {
            self.current[0] = self.current[1];
        }
    }

    /// A response will come behind lost ones: to the request of this number, since those before it will get
    /// none any more. Returns how many requests wait.
    pub(super) fn answer_behind_loss(&mut self, number: u64, found: &mut Findings) -> usize {
        while let Some((_, exchange)) =
            self.pending.pop_front_if(|(pending, _)| (1..number).contains(pending))
        {
            exchange.report(found);
        }
        self.current[1] = self.current[1].max(number.saturating_sub(1));
        let open = (self.current[0] + 1).saturating_sub(self.current[1] + 1);
        usize::try_from(open).unwrap_or(usize::MAX)
    }

    /// Tells what waits for responses, which will hardly come any more.
    fn report_all_but_the_last(&mut self, found: &mut Findings) {
        let [request, response] = &mut self.current;
        *response = (*response).max(1);
        let first = *response;
        *response = first.max(*request);
        let last = *request;
        for number in first..last {
            if let Some(exchange) = self.remove(number) {
                exchange.report(found);
            }
        }
    }

    /// Begins a response, which answers the oldest request without one.
    pub(super) fn response(&mut self, line: &StatusLine<'_>, time: Timestamp) {
        // Behind a preliminary response the same exchange goes on.
        if self.current(Role::Responder).is_none_or(|exchange| exchange.is_answered()) {
            self.current[1] += 1;
        }
        self.at(Role::Responder, time).response(line);
    }

    /// A message is complete, or will stay incomplete. With both messages an exchange is told.
    pub(super) fn message_ends(
        &mut self,
        from: Role,
        time: Timestamp,
        len: Option<u64>,
        found: &mut Findings,
    ) {
        let exchange = self.at(from, time);
        exchange.message_ends(from, len);
        if exchange.is_complete()
            && let Some(exchange) = self.remove(self.current[from.index()])
        {
            exchange.report(found);
        }
    }

    /// Tells what is left.
    pub(super) fn end(&mut self, found: &mut Findings) {
        // What came before any request or response has the number 0, and Zeek never tells it.
        let left = self.pending.drain(..).filter(|(number, _)| *number > 0);
        left.for_each(|(_, exchange)| exchange.report(found));
    }

    /// Bytes that it takes outside itself.
    pub(super) fn bytes(&self) -> usize {
        let held = self.pending.iter().map(|(_, exchange)| exchange.heap_bytes()).sum::<usize>();
        held + self.pending.capacity() * size_of::<(u64, HttpExchange)>()
    }
}
