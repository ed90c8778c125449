//! One exporter and domain: templates, sequence, and sets that wait.

use std::collections::VecDeque;
use std::sync::Arc;

use netsniff_packet::Timestamp;

use super::Transport;
use super::books::StreamBooks;
use crate::bytes::Bytes;
use crate::flow::Flow;
use crate::limits::Limits;
use crate::message::{Clock, Header, Protocol, RECORD_5, Set, Sets};
use crate::record::{self, Values};
use crate::sampling::{Samplers, Sampling};
use crate::sequence::{Arrival, Behind, Count, Numbers};
use crate::template::{self, FIRST_ID, Kind, Template, Templates, Told};

/// So many messages are remembered, by which one that comes twice is known.
const RECENT: usize = 64;
/// By how much less an exporter may have been up in a message behind another one: they may change places.
const UPTIME_BACK: u32 = 60_000;
/// By how much times of flows and of messages may be apart that are meant to be the same: headers have whole seconds.
const SLACK: i64 = 1_000_000_000;

/// Memory that all exporters share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Fields of all templates.
    fields: usize,
    /// Bytes of all sets that wait.
    waiting: usize,
}

impl Shared {
    /// Takes back what an exporter had.
    pub(super) fn give_back(&mut self, stream: &Stream) {
        self.fields -= stream.templates.fields();
        self.waiting -= stream.waiting_bytes;
    }
}

/// A set whose template did not come yet.
#[derive(Debug)]
struct Waiting {
    id: u16,
    content: Box<[u8]>,
    clock: Clock,
    since: Timestamp,
    /// The numbers behind the records of its message that could be read.
    behind: Behind,
}

impl Waiting {
    /// Bytes that a set with content of this length takes, as it waits: an empty one takes some, too.
    const fn size(len: usize) -> usize {
        size_of::<Self>() + len
    }
}

/// What is known of an exporter and domain.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) books: StreamBooks,
    protocol: Option<Protocol>,
    templates: Templates,
    samplers: Samplers,
    numbers: Numbers,
    /// Hashes of the last messages, by which one that comes twice is known.
    recent: VecDeque<u64>,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    system_init: Option<Timestamp>,
    /// Sending time and uptime of the last message.
    last: Option<Clock>,
    /// The sending time of the last message before which something was lost.
    last_loss: Option<Timestamp>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            books: StreamBooks::new(),
            protocol: None,
            templates: Templates::default(),
            samplers: Samplers::default(),
            numbers: Numbers::default(),
            recent: VecDeque::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            system_init: None,
            last: None,
            last_loss: None,
        }
    }
}

/// One message, or one set that waited, while it is read.
struct Reading<'a> {
    clock: Clock,
    now: Timestamp,
    limits: &'a Limits,
    shared: &'a mut Shared,
    /// Flows that were read.
    flows: Vec<Flow>,
    /// Records that were read.
    records: Count,
    /// Sets of this message whose template did not come yet, at the end of those that wait.
    put_aside: usize,
    /// Templates that came, in their order.
    told: Vec<u16>,
}

impl Stream {
    /// The books as they are now.
    pub(super) fn books(&self) -> StreamBooks {
        // NetFlow 9 numbers messages, whatever is in them.
        let is_counted = self.protocol == Some(Protocol::Netflow9)
            || self.waiting.is_empty() && self.books.is_all_read();
        let counted = self.numbers.counted();
        StreamBooks {
            waiting_sets: self.waiting.len() as u64,
            templates: self.templates.len() as u64,
            late: counted.late,
            restarts: counted.restarts,
            lost: counted.missing.filter(|_| is_counted),
            ..self.books
        }
    }

    /// Reads a message, and what waited for its templates.
    #[expect(clippy::too_many_arguments, reason = "what a message is, and what all share")]
    pub(super) fn message(
        &mut self,
        header: &Header,
        body: &[u8],
        hash: u64,
        now: Timestamp,
        limits: &Limits,
        shared: &mut Shared,
        take: &mut dyn FnMut(Flow),
    ) {
        self.protocol = Some(header.protocol);
        self.books.first = self.books.first.min(now);
        self.books.last = self.books.last.max(now);
        if self.recent.contains(&hash) {
            self.books.duplicates += 1;
            return;
        }
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(hash);
        self.books.messages += 1;
        let was_counted = self.books().lost.is_some();
        let clock = header.clock;
        let (put_aside, records, told, flows) = (0, Count::default(), Vec::new(), Vec::new());
        let mut reading = Reading { clock, now, limits, shared, flows, records, put_aside, told };
        if header.protocol == Protocol::Netflow5 {
            self.netflow5(body, header.sampling, &mut reading);
        } else {
            for set in Sets(Bytes(body)) {
                match set {
                    Some(set) => self.set(header.protocol, set, &mut reading),
                    None => self.books.damaged += 1,
                }
            }
        }
        let behind = self.arrive(header, reading.records, was_counted, limits);
        let put_aside = self.waiting.iter_mut().rev().take(reading.put_aside);
        put_aside.for_each(|set| set.behind = behind);
        for id in core::mem::take(&mut reading.told) {
            self.read_waiting(id, header.protocol, &mut reading);
        }
        for mut flow in reading.flows {
            let begun = flow.start().zip(self.last_loss);
            flow.is_touched = begun.is_some_and(|(start, loss)| start <= loss.offset(SLACK));
            take(flow);
        }
    }

    /// Enters the message among the others by its number. Returns the numbers behind it.
    fn arrive(
        &mut self,
        header: &Header,
        records: Count,
        was_counted: bool,
        limits: &Limits,
    ) -> Behind {
        let uptimes = self.last.and_then(|last| last.uptime).zip(header.clock.uptime);
        let is_restarted = uptimes.is_some_and(|(last, now)| {
            // Forward by less than half of the numbers there are, or back by so little that messages changed places.
            now.wrapping_sub(last) > u32::MAX / 2 && last.wrapping_sub(now) > UPTIME_BACK
        });
        let count = match header.protocol {
            Protocol::Netflow9 => Count { all: 1, flows: 1 },
            Protocol::Netflow5 | Protocol::Ipfix => records,
        };
        let (arrival, behind) =
            self.numbers.arrive(header.sequence, count, is_restarted, limits.gaps);
        match arrival {
            // Where sets were not read, the numbers may be theirs.
            Arrival::Gap(_) if was_counted => self.last_loss = Some(header.clock.sent),
            Arrival::Restart => self.last_loss = Some(header.clock.sent),
            Arrival::Gap(_) | Arrival::Next | Arrival::Late => {}
        }
        if arrival != Arrival::Late {
            self.last = Some(header.clock);
        }
        behind
    }

    fn netflow5(&mut self, body: &[u8], sampling: Sampling, reading: &mut Reading<'_>) {
        self.books.sets += 1;
        self.books.decoded_sets += 1;
        self.books.sampling = sampling;
        for record in body.chunks_exact(RECORD_5) {
            reading.records.all += 1;
            reading.records.flows += 1;
            self.books.records += 1;
            let flow = record::netflow5(record, &reading.clock);
            self.hand_over(flow.map(|flow| Flow { sampling, ..flow }), reading);
        }
    }

    fn set(&mut self, protocol: Protocol, set: Set<'_>, reading: &mut Reading<'_>) {
        if let Some(kind) = Kind::of(protocol, set.id) {
            return self.take_templates(protocol, kind, set.content, reading);
        }
        if set.id < FIRST_ID {
            self.books.damaged += 1;
            return;
        }
        self.books.sets += 1;
        match self.templates.of(set.id) {
            Some(template) => {
                let clock = reading.clock;
                let count = self.records(set.id, &template, set.content, &clock, reading);
                reading.records.all += count.all;
                reading.records.flows += count.flows;
            }
            None => self.put_aside(set, reading),
        }
    }

    fn take_templates(
        &mut self,
        protocol: Protocol,
        kind: Kind,
        content: &[u8],
        reading: &mut Reading<'_>,
    ) {
        let mut content = Bytes(content);
        while let Some(told) = template::next(&mut content, protocol, kind, reading.limits) {
            let before = self.templates.fields();
            match told {
                Ok(Told::Template(id, template)) => {
                    self.books.templates_told += 1;
                    let others = reading.shared.fields - before;
                    if self.templates.insert(id, template, reading.now, others, reading.limits) {
                        reading.told.push(id);
                    } else {
                        self.books.templates_refused += 1;
                    }
                }
                Ok(Told::Withdrawn(id)) => {
                    self.books.templates_ended += u64::from(self.templates.remove(id));
                }
                Ok(Told::AllWithdrawn) => {
                    self.books.templates_ended += self.templates.remove_all(kind);
                }
                Err(()) => {
                    // Where the next one would begin is not known.
                    self.books.templates_refused += 1;
                    return;
                }
            }
            reading.shared.fields = reading.shared.fields - before + self.templates.fields();
        }
    }

    /// Reads the records of a set, and returns how many there are.
    fn records(
        &mut self,
        id: u16,
        template: &Template,
        content: &[u8],
        clock: &Clock,
        reading: &mut Reading<'_>,
    ) -> Count {
        let mut content = Bytes(content);
        let mut count = Count::default();
        // What is shorter than a record fills the set up.
        while content.0.len() >= template.least.max(1) {
            let Some(values) = record::next(&mut content, template, clock) else {
                // Zeros may fill it up, too, where fields of any length make the least record short.
                let is_filled = content.0.len() < 4 && content.0.iter().all(|byte| *byte == 0);
                self.books.undecoded_sets += u64::from(!is_filled);
                self.books.decoded_sets += u64::from(is_filled);
                return count;
            };
            count.all += 1;
            count.flows += u32::from(!template.is_options);
            self.books.records += 1;
            if template.is_options {
                self.option(&values, reading.limits);
            } else {
                let sampling = self.samplers.of(&values.sampling);
                let flow = values.flow(clock, self.system_init);
                let flow = flow.map(|flow| Flow { sampling, template: Some(id), ..flow });
                self.books.sampling = sampling;
                self.hand_over(flow, reading);
            }
        }
        self.books.decoded_sets += 1;
        count
    }

    fn option(&mut self, values: &Values, limits: &Limits) {
        self.books.options += 1;
        if !self.samplers.note(&values.sampling, limits.samplers) {
            self.books.templates_refused += 1;
        }
        self.system_init = values.system_init.or(self.system_init);
        self.books.note_own(&values.own);
    }

    fn hand_over(&mut self, flow: Option<Flow>, reading: &mut Reading<'_>) {
        let Some(flow) = flow else {
            self.books.others += 1;
            return;
        };
        self.books.flows += 1;
        reading.flows.push(flow);
    }

    fn put_aside(&mut self, set: Set<'_>, reading: &mut Reading<'_>) {
        let len = Waiting::size(set.content.len());
        let Limits { waiting_bytes, all_waiting_bytes, .. } = *reading.limits;
        while self.waiting_bytes + len > waiting_bytes && self.give_up_first(reading.shared) {}
        let is_full = self.waiting_bytes + len > waiting_bytes;
        if is_full || reading.shared.waiting + len > all_waiting_bytes {
            self.books.undecoded_sets += 1;
            return;
        }
        self.waiting_bytes += len;
        reading.shared.waiting += len;
        reading.put_aside += 1;
        let (id, content) = (set.id, set.content.into());
        let (clock, since) = (reading.clock, reading.now);
        self.waiting.push_back(Waiting { id, content, clock, since, behind: Behind::default() });
    }

    /// Reads the sets that waited for a template.
    fn read_waiting(&mut self, id: u16, protocol: Protocol, reading: &mut Reading<'_>) {
        let Some(template) = self.templates.of(id) else { return };
        let template: Arc<Template> = template;
        while let Some(at) = self.waiting.iter().position(|set| set.id == id) {
            let Some(set) = self.take_waiting(at, reading.shared) else { return };
            let undecoded = self.books.undecoded_sets;
            let count = self.records(id, &template, &set.content, &set.clock, reading);
            if protocol == Protocol::Netflow9 || self.books.undecoded_sets > undecoded {
                continue;
            }
            self.numbers.settle(set.behind, count);
            let same = self.waiting.iter_mut().filter(|other| other.behind == set.behind);
            same.for_each(|other| other.behind = other.behind.moved(count));
        }
    }

    fn take_waiting(&mut self, at: usize, shared: &mut Shared) -> Option<Waiting> {
        let set = self.waiting.remove(at)?;
        let len = Waiting::size(set.content.len());
        self.waiting_bytes -= len;
        shared.waiting -= len;
        Some(set)
    }

    fn give_up_first(&mut self, shared: &mut Shared) -> bool {
        let given_up = self.take_waiting(0, shared).is_some();
        self.books.undecoded_sets += u64::from(given_up);
        given_up
    }

    /// Forgets templates that were not told again, and gives up what waited for too long.
    pub(super) fn expire(
        &mut self,
        transport: Transport,
        now: Timestamp,
        limits: &Limits,
        shared: &mut Shared,
    ) {
        while self.waiting.front().is_some_and(|set| set.since + limits.waiting_time < now) {
            self.give_up_first(shared);
        }
        if transport == Transport::Udp {
            let fields = self.templates.fields();
            self.books.templates_ended += self.templates.expire(now - limits.template_lifetime);
            shared.fields -= fields - self.templates.fields();
        }
    }

    /// Its connection ended.
    pub(super) fn end(&mut self, shared: &mut Shared) {
        while self.give_up_first(shared) {}
        shared.fields -= self.templates.fields();
        self.templates = Templates::default();
    }
}
