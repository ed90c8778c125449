//! Connections that carry a file and nothing else: the data connections of FTP (RFC 959, section
//! 3.2), and the direct connections between clients of IRC (DCC).

use core::time::Duration;
use std::sync::Arc;

use netsniff_packet::Timestamp;

use super::{
    Bytes, ExpectedTransfer, Findings, GapAction, MissingBytes, Progress, Protocol, Role, Session,
    SessionContext, SideEnd,
};
use crate::file::{self, mime};
use crate::protocol::file_transfer::FileTransfer;
use crate::record::LogType;

/// Bytes of a data connection of FTP by which its announcer learns what is carried (the buffer of Zeek's
/// analyser `FTP_DATA`).
const SNIFFED: usize = 1_024;
/// What the announcer learns where they tell nothing, in Zeek's words.
const UNKNOWN: &str = "<unknown>";

/// A data connection of FTP.
#[derive(Debug)]
pub(super) struct FtpData;

/// A file between clients of IRC.
#[derive(Debug)]
pub(super) struct IrcDccData;

impl Protocol for FtpData {
    fn name(&self) -> &'static str {
        "ftp-data"
    }

    fn analyzer(&self) -> &'static str {
        "FTP_DATA"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[file::FILES, file::PE]
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        self.errand(context, Arc::default())
    }

    fn errand(
        &self,
        context: &SessionContext<'_>,
        errand: Arc<ExpectedTransfer>,
    ) -> Box<dyn Session> {
        Box::new(
            Carrier::new(context, "FTP_DATA", errand, [true; 2]).sniffing(context.limits.tcp_close),
        )
    }
}

impl Protocol for IrcDccData {
    fn name(&self) -> &'static str {
        "irc-dcc-data"
    }

    fn analyzer(&self) -> &'static str {
        "IRC_DATA"
    }

    fn logs(&self) -> &'static [&'static LogType] {
        &[file::FILES, file::PE]
    }

    fn session(&self, context: &SessionContext<'_>) -> Box<dyn Session> {
        self.errand(context, Arc::default())
    }

    /// The one who receives the file connects, and answers each piece by how many bytes it has.
    fn errand(
        &self,
        context: &SessionContext<'_>,
        errand: Arc<ExpectedTransfer>,
    ) -> Box<dyn Session> {
        Box::new(Carrier::new(context, "IRC_DATA", errand, [false, true]))
    }
}

/// Files on their way, one in each direction at most.
#[derive(Debug)]
struct Carrier {
    errand: Arc<ExpectedTransfer>,
    /// By [`Role`]; `None` where no file goes, or where it has ended.
    files: [Option<Box<FileTransfer>>; 2],
    /// Whether the kinds of these were told.
    is_told: [bool; 2],
    sniffed: Option<Sniffed>,
}

/// What becomes of a connection whose announcer learns what it carried as Zeek does: by the first bytes of
/// both sides, or when nobody awaits late packets any more.
#[derive(Debug)]
struct Sniffed {
    /// Bytes of both sides, until they are enough.
    head: Vec<u8>,
    is_told: bool,
    /// Sides that have not ended, and how long late packets are awaited then.
    open: u8,
    delay: Duration,
}

impl Sniffed {
    /// Takes bytes of either side. Returns the kind as soon as they are enough.
    fn take(&mut self, data: &[u8]) -> Option<&'static str> {
        let wanted = SNIFFED.saturating_sub(self.head.len()).min(data.len());
        if !self.is_told {
            self.head.extend_from_slice(&data[..wanted]);
        }
        if self.head.len() < SNIFFED { None } else { self.publish() }
    }

    /// The kind by the bytes that are there, once.
    fn publish(&mut self) -> Option<&'static str> {
        let head = core::mem::take(&mut self.head);
        let is_first = !core::mem::replace(&mut self.is_told, true);
        (is_first && !head.is_empty()).then(|| mime::of(&head).unwrap_or(UNKNOWN))
    }
}

impl Carrier {
    fn new(
        context: &SessionContext<'_>,
        source: &'static str,
        errand: Arc<ExpectedTransfer>,
        carries: [bool; 2],
    ) -> Self {
        let files = [Role::Originator, Role::Responder].map(|from| {
            if !carries[from.index()] {
                return None;
            }
            let mut file = FileTransfer::begin(context, from.index() as u64, from, source);
            if let Some(name) = &errand.filename {
                file.set_filename(name);
            }
            Some(Box::new(file))
        });
        Self { errand, files, is_told: [false; 2], sniffed: None }
    }

    fn sniffing(self, delay: Duration) -> Self {
        let sniffed = Sniffed { head: Vec::new(), is_told: false, open: 2, delay };
        Self { sniffed: Some(sniffed), ..self }
    }

    /// Tells who announced this connection that a file has begun, and once what it is.
    fn publish(&mut self, from: Role, time: Timestamp) {
        let Some(file) = &self.files[from.index()] else { return };
        if !file.has_begun() {
            return;
        }
        self.errand.fuid.get_or_init(|| file.fuid());
        if let Some(mime_type) = file.mime_type()
            && !core::mem::replace(&mut self.is_told[from.index()], true)
        {
            self.errand.mime_type.publish(time, mime_type);
        }
    }

    fn end_file(&mut self, from: Role, found: &mut Findings) {
        let Some(mut file) = self.files[from.index()].take() else { return };
        file.report();
        if file.has_begun() {
            self.errand.fuid.get_or_init(|| file.fuid());
        }
        if let Some(kind) = file.mime_type() {
            self.errand.mime_type.learn(kind);
        }
        self.errand.head.clear();
        file.end(found);
    }
}

impl Session for Carrier {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if let Some(kind) = self.sniffed.as_mut().and_then(|sniffed| sniffed.take(input.data)) {
            self.errand.mime_type.publish(input.time, kind);
        }
        if let Some(file) = &mut self.files[input.from.index()] {
            file.bytes(input.time, input.data, found);
            if file.is_reported() {
                self.errand.head.clear();
            } else if self.sniffed.is_none() {
                self.errand.head.push(input.data);
            }
            self.publish(input.from, input.time);
        }
        Progress::Consumed(input.data.len())
    }

    fn gap(&mut self, gap: &MissingBytes<'_>, _: &mut Findings) -> GapAction {
        if let Some(file) = &mut self.files[gap.from.index()] {
            file.gap(gap.time, gap.len);
            self.errand.head.clear();
            self.publish(gap.from, gap.time);
        }
        GapAction::Continue
    }

    fn side_end(&mut self, end: &SideEnd<'_>, found: &mut Findings) {
        self.end_file(end.from, found);
        let Some(sniffed) = &mut self.sniffed else { return };
        sniffed.open = sniffed.open.saturating_sub(1);
        if sniffed.open == 0 {
            let sniffed_kind = sniffed.publish();
            if let Some(kind) = self.errand.mime_type.get().or(sniffed_kind) {
                self.errand.mime_type.publish(end.time + sniffed.delay, kind);
            }
        }
    }

    fn end(&mut self, found: &mut Findings) {
        self.end_file(Role::Originator, found);
        self.end_file(Role::Responder, found);
    }

    fn is_confirmed(&self) -> bool {
        true
    }

    fn heap_bytes(&self) -> usize {
        let files = self.files.iter().flatten();
        size_of::<Self>()
            + self.errand.head.heap_bytes()
            + self.sniffed.as_ref().map_or(0, |sniffed| sniffed.head.capacity())
            + files.map(|file| size_of::<FileTransfer>() + file.heap_bytes()).sum::<usize>()
    }
}
