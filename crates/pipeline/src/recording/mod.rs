//! Recording: packets go to files while they are captured, and what cannot be written is counted.
//!
//! A recorder has two halves. The [`Recorder`] lives in the capture thread and copies each packet, as
//! a block of its file, into a large buffer; for a packet there is no system call, no allocation and
//! no lock. Full buffers go through a bounded queue to a thread that packs and writes them. Where it
//! falls behind and no buffer is free, packets are *refused*: counted, never waited for, and told in
//! the file before the next packet that is in it.
//!
//! Buffers hold whole blocks, so a recorder that is killed leaves files that can be read up to the
//! last one that was written.
//!
//! | module | concern |
//! |---|---|
//! | [`options`] | what is asked for |
//! | [`naming`], [`rotation`] | names and ends of files |
//! | [`books`] | what became of the packets |
//! | [`machine`] | what a file says of the machine |
//! | [`encoding`], `ledger` | blocks; losses, told once each |
//! | [`indexing`] | indexes beside the files |
//! | `writer`, `files`, `direct` | the writing thread, its files, and how they get to the disk |

pub mod books;
mod direct;
pub mod encoding;
mod files;
pub mod indexing;
mod ledger;
pub mod machine;
pub mod naming;
pub mod options;
pub mod rotation;
mod writer;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context as _;
use netsniff_analysis::flow::cutoff::{FLOWS, FlowCutoff};
use netsniff_packet::{Batch, Packet, Timestamp};
use netsniff_pcapfile::{Counters, Interface, PacketNotes, Section};

use self::books::{Books, State, Statistics, Tally};
use self::encoding::Encoding;
use self::files::Files;
use self::indexing::Indexing;
use self::ledger::Ledger;
use self::options::Options;
use self::rotation::Progress;
use self::writer::{Chunk, Pool, Segment};

/// The half of a recorder that the capture thread has.
///
/// The caller calls [`Recorder::flush`] each second, or when it has nothing else to do.
#[derive(Debug)]
pub struct Recorder {
    encoding: Encoding,
    snaplen: usize,
    cutoff: Option<FlowCutoff>,
    ledgers: Vec<Ledger>,
    progress: Progress,
    /// Whether a file is begun and not ended.
    is_open: bool,
    /// When the file began, and the latest time in it.
    times: (Timestamp, Timestamp),
    /// The latest time of all packets.
    latest: Timestamp,
    /// The buffer that is filled, and the part of it that belongs to the current file.
    chunk: Chunk,
    segment: Segment,
    /// Where that part begins in the buffer.
    segment_start: usize,
    capacity: usize,
    /// Whether something was handed over since the last flush.
    unflushed: bool,
    filled: SyncSender<Chunk>,
    free: Arc<Pool>,
    accepted: Tally,
    counted: Statistics,
    books: Arc<Books>,
    thread: JoinHandle<()>,
    ended: Receiver<()>,
    indexing: Option<Indexing>,
}

/// Said where the writing thread is gone though there is more to write, which is our bug.
const THREAD_ENDED: &str = "the writing thread has ended";

/// How a recording ended.
#[derive(Debug)]
pub struct Finished {
    /// What became of the packets.
    pub statistics: Statistics,
    /// Whether all was written.
    pub state: State,
    /// Why recording failed, if it did.
    pub failure: Option<String>,
    /// The indexes of the files, if any are written, which may go on.
    pub indexing: Option<Indexing>,
}

impl Recorder {
    /// Creates the first file, which is named by `now`, and starts the writing thread.
    ///
    /// # Errors
    ///
    /// [`netsniff_console::UsageError`] where the format cannot hold the interfaces; when the file
    /// cannot be created, or no thread.
    pub fn start(options: &Options, now: Timestamp) -> anyhow::Result<Self> {
        let snaplen = options.snaplen.clamp(1, options::MOST_CAPTURED);
        let interfaces: Vec<_> =
            options.interfaces.iter().map(|it| described(it, snaplen, &options.section)).collect();
        let encoding = Encoding::new(options.format, &options.section, &interfaces)?;
        let around = encoding.header().len() + encoding.most_end() + encoding.overhead();
        let capacity = options.buffer_bytes.max(around + snaplen as usize);
        let books = Arc::new(Books::default());
        let indexing = options.index.clone().map(|it| indexing::start(it, options.seed));
        let (index, indexing) = indexing.transpose()?.unzip();
        let files = Files::begin(options, now, Arc::clone(&books), index)?;
        let buffers = options.buffers.max(2);
        let (filled, receive_filled) = sync_channel(buffers);
        let free = Arc::new(Pool::new(buffers - 1, capacity));
        let pool = Arc::clone(&free);
        let (send_ended, ended) = sync_channel(1);
        let counted_by_thread = Arc::clone(&books);
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(move || {
            writer::write(files, &receive_filled, &pool, &counted_by_thread);
            drop(send_ended);
        });
        let mut recorder = Self {
            encoding,
            snaplen: snaplen as usize,
            cutoff: options.flow_cutoff.map(|bytes| {
                FlowCutoff::new(bytes, FLOWS, options.seed)
                    .with_tunnel_ports(options.tunnel_ports.clone())
            }),
            ledgers: vec![Ledger::default(); options.interfaces.len()],
            progress: Progress::new(&options.rotation),
            is_open: true,
            times: (now, now),
            latest: Timestamp::MIN,
            chunk: Chunk::with_capacity(capacity),
            segment: Segment::default(),
            segment_start: 0,
            capacity,
            unflushed: true,
            filled,
            free,
            accepted: Tally::default(),
            counted: Statistics { buffers, ..Statistics::default() },
            books,
            thread: thread.context("cannot start the writing thread")?,
            ended,
            indexing,
        };
        recorder.add_header();
        recorder.flush();
        Ok(recorder)
    }

    /// Records the packets of a batch, and notes what was lost between them.
    pub fn batch(&mut self, batch: &Batch) {
        let mut losses = batch.losses.iter().peekable();
        let mut interface = batch.packets.last().map_or(0, |packet| packet.interface);
        for (at, packet) in batch.iter().enumerate() {
            while let Some((_, loss)) = losses.next_if(|(before, _)| *before as usize <= at) {
                self.lose(packet.interface, loss.packets);
            }
            interface = packet.interface;
            self.packet(&packet);
        }
        losses.for_each(|(_, loss)| self.lose(interface, loss.packets));
    }

    /// Records a packet: its first bytes where it is longer than the snaplen, its headers where its
    /// flow is past the cut-off.
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) {
        let bytes = packet.data.len() as u64;
        self.counted.delivered.add(1, bytes);
        let mut kept = Packet { data: packet.data, ..*packet };
        if let Some(data) = packet.data.get(..self.snaplen) {
            kept.data = data;
        }
        let snapped = packet.data.len() - kept.data.len();
        let mut cut = 0;
        if let Some(cutoff) = &mut self.cutoff {
            let whole = kept.data;
            kept.data = whole.get(..cutoff.keep(&kept)).unwrap_or(whole);
            cut = whole.len() - kept.data.len();
        }
        if !self.add(&kept) {
            return self.refuse(packet);
        }
        if snapped > 0 {
            self.counted.snapped.add(1, snapped as u64);
        }
        if cut > 0 {
            self.counted.cut.add(1, cut as u64);
        }
    }

    /// Notes that the capture lost packets of an interface before the one that comes next.
    pub fn lose(&mut self, interface: u32, packets: u64) {
        self.counted.lost_before = self.counted.lost_before.saturating_add(packets);
        if let Some(ledger) = self.ledgers.get_mut(interface as usize) {
            ledger.lose(packets);
        }
    }

    /// Takes what the capture counted on an interface since it began, until `time`. Among what the
    /// system dropped is what [`Recorder::lose`] was told. The latest counters are written at the end
    /// of each file.
    pub fn counters(&mut self, interface: u32, time: Timestamp, counters: &Counters) {
        self.times.1 = self.times.1.max(time);
        if let Some(ledger) = self.ledgers.get_mut(interface as usize) {
            ledger.update(counters);
        }
    }

    /// Takes how many packets of an interface got another stamp since the capture began, since theirs was
    /// wrong. The end of each file says it.
    pub fn restamped(&mut self, interface: u32, packets: u64) {
        if let Some(ledger) = self.ledgers.get_mut(interface as usize) {
            ledger.restamp(packets);
        }
    }

    /// Tells the time while no packets come: a file that is over by its time ends without waiting for
    /// the next packet.
    pub fn advance(&mut self, now: Timestamp) {
        if self.is_open && self.progress.is_over_by_time(now) && self.has_room(0) {
            self.times.1 = self.times.1.max(now);
            self.end_file();
        }
    }

    /// Hands over what is there, to be written and, where it is packed, to be readable. Where no
    /// buffer is free, the next call does.
    pub fn flush(&mut self) {
        if self.unflushed || !self.chunk.bytes.is_empty() {
            self.chunk.flush = true;
            self.hand_over();
        }
    }

    /// Whether a quarter of the buffers is free, and one at least, which is enough for what a ring lends at
    /// once. Where it is not, packets wait better in the ring than come here, where they are refused.
    #[must_use]
    pub fn has_buffers(&self) -> bool {
        let Statistics { buffers, .. } = self.counted;
        // One is being filled.
        let in_use = self.books.queued.load(Ordering::Relaxed) + 1;
        in_use + (buffers / 4).max(1) <= buffers || self.state() != State::Recording
    }

    /// Whether the recording goes on. Once it does not, every packet is refused.
    #[must_use]
    pub fn state(&self) -> State {
        self.books.state()
    }

    /// What became of the packets so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.books.close(self.accepted, self.counted)
    }

    /// Ends the file and waits until all is written, but no longer than `patience`: a disk that
    /// stands still leaves packets in flight.
    #[must_use]
    pub fn finish(mut self, patience: Duration) -> Finished {
        if self.is_open && !self.has_room(0) {
            // The last moment at which waiting costs no packet.
            if let Some(empty) = self.free.wait(patience) {
                self.send(empty);
            }
        }
        if self.is_open && self.room() >= self.encoding.most_end() {
            self.end_file();
        }
        self.chunk.flush = true;
        self.send(Chunk::default());
        let Self { filled, accepted, counted, books, thread, ended, indexing, .. } = self;
        drop(filled);
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Disconnected)
            && thread.join().is_err()
        {
            books.end(State::Failed, Some(THREAD_ENDED.to_owned()));
        }
        Finished {
            statistics: books.close(accepted, counted),
            state: books.state(),
            failure: books.failure(),
            indexing,
        }
    }

    /// Adds a packet to the buffer, in a new file if it is time for that. Returns whether it could.
    #[inline]
    fn add(&mut self, packet: &Packet<'_>) -> bool {
        let begins = !self.is_open || self.progress.is_over(packet.timestamp);
        let around = if begins { self.encoding.header().len() } else { 0 };
        if self.books.state() != State::Recording || !self.has_room(around + packet.data.len()) {
            return false;
        }
        if begins {
            self.begin_file(packet.timestamp);
        }
        let Some(ledger) = self.ledgers.get(packet.interface as usize) else { return false };
        let lost = ledger.pending();
        let notes = PacketNotes { lost, comments: &[] };
        let before = self.chunk.bytes.len();
        if self.encoding.packet(packet, notes, &mut self.chunk.bytes).is_err() {
            return false;
        }
        if lost.is_some()
            && let Some(ledger) = self.ledgers.get_mut(packet.interface as usize)
        {
            ledger.note_written();
        }
        self.progress.add(self.chunk.bytes.len() - before, packet.timestamp);
        self.times.1 = self.times.1.max(packet.timestamp);
        self.counted.out_of_order += u64::from(packet.timestamp < self.latest);
        self.latest = self.latest.max(packet.timestamp);
        self.accepted.add(1, packet.data.len() as u64);
        self.segment.tally.add(1, packet.data.len() as u64);
        true
    }

    #[cold]
    fn refuse(&mut self, packet: &Packet<'_>) {
        self.counted.refused.add(1, packet.data.len() as u64);
        if let Some(ledger) = self.ledgers.get_mut(packet.interface as usize) {
            ledger.refuse();
        }
    }

    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.chunk.bytes.len())
    }

    /// Makes sure that there is room for so many bytes, a packet's overhead and the end of a file.
    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        let needed = bytes + self.encoding.overhead() + self.encoding.most_end();
        self.room() >= needed || self.hand_over()
    }

    /// Hands the buffer over and takes another. Returns `false` where none is free.
    #[cold]
    fn hand_over(&mut self) -> bool {
        if let Some(empty) = self.free.take() {
            return self.send(empty);
        }
        if self.thread.is_finished() {
            self.books.end(State::Failed, Some(THREAD_ENDED.to_owned()));
        }
        false
    }

    fn send(&mut self, empty: Chunk) -> bool {
        self.end_segment();
        let chunk = core::mem::replace(&mut self.chunk, empty);
        self.segment_start = 0;
        self.unflushed = !chunk.flush;
        let queued = self.books.queued.fetch_add(1, Ordering::Relaxed) + 1;
        self.counted.queue_high_water = self.counted.queue_high_water.max(queued);
        // There are no more buffers than fit the queue, so only a thread that is gone refuses.
        match self.filled.try_send(chunk) {
            Ok(()) => true,
            Err(TrySendError::Full(chunk) | TrySendError::Disconnected(chunk)) => {
                chunk.segments.iter().for_each(|segment| self.books.refuse(segment.tally));
                self.books.end(State::Failed, Some(THREAD_ENDED.to_owned()));
                false
            }
        }
    }

    fn end_segment(&mut self) {
        let end = self.chunk.bytes.len();
        self.segment.len = end - self.segment_start;
        if self.segment.len > 0 {
            self.chunk.segments.push(core::mem::take(&mut self.segment));
        }
        self.segment_start = end;
    }

    #[cold]
    fn begin_file(&mut self, time: Timestamp) {
        if self.is_open {
            self.end_file();
        }
        self.end_segment();
        self.segment.begins = Some(time);
        self.times = (time, time);
        self.is_open = true;
        self.add_header();
    }

    fn add_header(&mut self) {
        let header = self.encoding.header();
        self.chunk.bytes.extend_from_slice(header);
        self.progress.begin(header.len());
    }

    /// Adds what the interfaces counted.
    fn end_file(&mut self) {
        for (number, ledger) in (0..).zip(&mut self.ledgers) {
            let comment = ledger.comment();
            let counters = ledger.end_file();
            // Times before 1970 are not told.
            let (started, ended) =
                (self.times.0.max(Timestamp::EPOCH), self.times.1.max(Timestamp::EPOCH));
            let comment = comment.as_deref();
            let statistics = netsniff_pcapfile::Statistics {
                counters,
                started: Some(started),
                ended: Some(ended),
                comment,
            };
            // The interface is known and so are the times: there is nothing that could fail.
            let _ = self.encoding.statistics(number, ended, &statistics, &mut self.chunk.bytes);
        }
        self.is_open = false;
    }
}

/// An interface as a recording describes it.
fn described(interface: &Interface, snaplen: u32, section: &Section) -> Interface {
    Interface {
        snaplen: Some(interface.snaplen.map_or(snaplen, |captured| captured.min(snaplen))),
        time_offset: 0,
        os: interface.os.clone().or_else(|| section.os.clone()),
        ..interface.clone()
    }
}
