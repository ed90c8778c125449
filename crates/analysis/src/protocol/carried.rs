//! Connections that carry a file and nothing else: the data connections of FTP (RFC 959, section
//! 3.2), and the direct connections between clients of IRC (DCC).

use std::sync::Arc;

use super::{
    Bytes, Context, Errand, Findings, Gap, Onward, Progress, Protocol, Role, Session, SideEnd,
};
use crate::file::FileTransfer;

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

    fn logs(&self) -> &'static [&'static str] {
        &["files", "pe"]
    }

    fn session(&self, context: &Context<'_>) -> Box<dyn Session> {
        self.errand(context, Arc::default())
    }

    fn errand(&self, context: &Context<'_>, errand: Arc<Errand>) -> Box<dyn Session> {
        Box::new(Carrier::new(context, "FTP_DATA", errand, [true; 2]))
    }
}

impl Protocol for IrcDccData {
    fn name(&self) -> &'static str {
        "irc-dcc-data"
    }

    fn analyzer(&self) -> &'static str {
        "IRC_DATA"
    }

    fn logs(&self) -> &'static [&'static str] {
        &["files", "pe"]
    }

    fn session(&self, context: &Context<'_>) -> Box<dyn Session> {
        self.errand(context, Arc::default())
    }

    /// The one who receives the file connects, and answers each piece by how many bytes it has.
    fn errand(&self, context: &Context<'_>, errand: Arc<Errand>) -> Box<dyn Session> {
        Box::new(Carrier::new(context, "IRC_DATA", errand, [false, true]))
    }
}

/// Files on their way, one in each direction at most.
#[derive(Debug)]
struct Carrier {
    errand: Arc<Errand>,
    /// By [`Role`]; `None` where no file goes, or where it has ended.
    files: [Option<Box<FileTransfer>>; 2],
}

impl Carrier {
    fn new(
        context: &Context<'_>,
        source: &'static str,
        errand: Arc<Errand>,
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
        Self { errand, files }
    }

    /// Tells who announced this connection what a file is, as far as that is known.
    fn tell(&self, from: Role) {
        let Some(file) = &self.files[from.index()] else { return };
        if file.has_begun() {
            self.errand.fuid.get_or_init(|| file.fuid());
            if let Some(mime_type) = file.mime_type() {
                self.errand.mime_type.get_or_init(|| mime_type);
            }
        }
    }

    fn end_file(&mut self, from: Role, found: &mut Findings) {
        if let Some(file) = &mut self.files[from.index()] {
            file.tell();
        }
        self.tell(from);
        if let Some(file) = self.files[from.index()].take() {
            file.end(found);
        }
    }
}

impl Session for Carrier {
    fn bytes(&mut self, input: &Bytes<'_>, found: &mut Findings) -> Progress {
        if let Some(file) = &mut self.files[input.from.index()] {
            file.bytes(input.time, input.data, found);
            self.tell(input.from);
        }
        Progress::Consumed(input.data.len())
    }

    fn gap(&mut self, gap: &Gap<'_>, _: &mut Findings) -> Onward {
        if let Some(file) = &mut self.files[gap.from.index()] {
            file.gap(gap.time, gap.len);
            self.tell(gap.from);
        }
        Onward::Continue
    }

    fn side_end(&mut self, end: &SideEnd<'_>, found: &mut Findings) {
        self.end_file(end.from, found);
    }

    fn end(&mut self, found: &mut Findings) {
        self.end_file(Role::Originator, found);
        self.end_file(Role::Responder, found);
    }

    /// It was announced.
    fn is_confirmed(&self) -> bool {
        true
    }

    fn heap_bytes(&self) -> usize {
        let files = self.files.iter().flatten();
        size_of::<Self>()
            + files.map(|file| size_of::<FileTransfer>() + file.heap_bytes()).sum::<usize>()
    }
}
