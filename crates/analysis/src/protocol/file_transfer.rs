//! One file on its way: from the first byte of a body to its last.

use netsniff_packet::Timestamp;

use super::x509::ocsp;
use super::{Findings, Role, SessionContext};
use crate::file::digest::{Digests, HashKinds, Hashing};
use crate::file::extraction::Outlet;
use crate::file::log::Files;
use crate::file::mime::{self, HEAD};
use crate::file::pe;
use crate::key::uid::Uid;
use crate::record::Interval;

/// The kind of files that are replies of OCSP.
pub(crate) const OCSP_REPLY: &str = "application/ocsp-response";
/// Holes of a file that comes in ranges, which later ranges may fill.
const MAX_HOLES: usize = 256;

/// Bytes of a file for which there is room from its begin on.
const FIRST_PIECE: usize = 512;

/// The flow that carries files, as sessions keep it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    name: u128,
    hashes: HashKinds,
    /// Bytes of a file that may be extracted.
    extracted_bytes: u64,
    /// Files that have rows: in all, however small, and bytes carried for each of the others.
    files: u64,
    small_files: u64,
    bytes_per_file: u64,
}

impl From<&SessionContext<'_>> for Carrier {
    fn from(context: &SessionContext<'_>) -> Self {
        Self {
            name: context.name,
            hashes: context.hashes,
            extracted_bytes: context.limits.extracted_file_bytes,
            files: context.limits.connection_files,
            small_files: context.limits.connection_small_files,
            bytes_per_file: context.limits.connection_bytes_per_file,
        }
    }
}

impl Carrier {
    /// Files that may have rows in a flow that carried so many bytes: a small body may hold any number of
    /// parts behind its compression.
    #[must_use]
    pub(crate) fn rows(&self, carried: u64) -> u64 {
        let paid = carried.checked_div(self.bytes_per_file).unwrap_or(u64::MAX);
        self.small_files.saturating_add(paid).min(self.files)
    }
}

/// A file that is being carried.
///
/// Give it the bytes in order, tell the gaps, and end it: then it becomes a row of the log `files`.
/// A file of which nothing came, not even a gap, has no row, as in Zeek.
#[derive(Debug)]
pub(crate) struct FileTransfer {
    fuid: Uid,
    source: &'static str,
    from: Role,
    depth: u32,
    filename: Option<Box<[u8]>>,
    /// Bytes that it will have, as far as the protocol tells.
    total: Option<u64>,
    /// Time of the first bytes.
    begun: Option<Timestamp>,
    last: Timestamp,
    seen: u64,
    missing: u64,
    /// Where bytes are missing that may yet come, of a file that comes in ranges.
    holes: Vec<(u64, u64)>,
    overflow: u64,
    has_timed_out: bool,
    is_partly_decoded: bool,
    /// The first bytes, until the kind is told.
    head: Vec<u8>,
    is_told: bool,
    mime_type: Option<&'static str>,
    /// All of a reply of OCSP, while it is short enough to be read.
    reply: Option<Vec<u8>>,
    /// The headers of a program.
    headers: Option<Box<pe::Headers>>,
    hashing: Option<Box<Hashing>>,
    extracted_bytes: u64,
    /// Where its content goes, from the first bytes on.
    outlet: Option<Box<Outlet>>,
}

impl FileTransfer {
    /// The `number`th file of a flow that `source` carries (the protocol in Zeek's words, as
    /// `HTTP`), sent by one side. No two files of a flow may have the same source and number.
    #[must_use]
    pub(crate) fn begin(
        carrier: impl Into<Carrier>,
        number: u64,
        from: Role,
        source: &'static str,
    ) -> Self {
        let carrier = carrier.into();
        Self {
            fuid: name(Uid::new(carrier.name), source, number),
            source,
            from,
            depth: 0,
            filename: None,
            total: None,
            begun: None,
            last: Timestamp::EPOCH,
            seen: 0,
            missing: 0,
            holes: Vec::new(),
            overflow: 0,
            has_timed_out: false,
            is_partly_decoded: false,
            head: Vec::new(),
            is_told: false,
            mime_type: None,
            reply: None,
            headers: None,
            hashing: Hashing::new(carrier.hashes),
            extracted_bytes: carrier.extracted_bytes,
            outlet: None,
        }
    }

    /// The file's name in the logs.
    #[must_use]
    pub(crate) const fn fuid(&self) -> Uid {
        self.fuid
    }

    /// Whether something of it came.
    #[must_use]
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Its kind by its first bytes; `None` also as long as they are too few to tell. Call
    /// [`Self::report`] first where the file is complete.
    #[must_use]
    pub(crate) const fn mime_type(&self) -> Option<&'static str> {
        self.mime_type
    }

    /// Whether its first bytes were looked at, whatever they told.
    #[must_use]
    pub(crate) const fn is_reported(&self) -> bool {
        self.is_told
    }

    /// The name that it came with.
    #[must_use]
    pub(crate) fn filename(&self) -> Option<&[u8]> {
        self.filename.as_deref()
    }

    /// Sets the name that it came with.
    pub(crate) fn set_filename(&mut self, name: &[u8]) {
        self.filename = Some(name.into());
    }

    /// Sets how many bytes it will have.
    pub(crate) const fn set_total(&mut self, total: u64) {
        self.total = Some(total);
    }

    /// Learns how many bytes something said it has that does not count. It is told where it holds.
    pub(crate) fn confirm_total(&mut self, claimed: u64) {
        if self.missing == 0 && self.seen == claimed {
            self.total.get_or_insert(claimed);
        }
    }

    /// Learns that what follows is not known: hashes tell nothing then.
    pub(crate) fn cut(&mut self) {
        self.hashing = None;
    }

    /// Learns that no more of it is decoded than what came so far, and how long it is, where something told that.
    pub(crate) fn set_partly_decoded(&mut self, total: Option<u64>) {
        self.is_partly_decoded = true;
        self.total = total;
        self.hashing = None;
    }

    /// Notes that more of it came at some time, of which nothing is decoded.
    pub(crate) const fn goes_on(&mut self, time: Timestamp) {
        self.last = time;
    }

    /// Sets its depth, as the protocol counts it: the request's number, the level of MIME.
    pub(crate) const fn set_depth(&mut self, depth: u32) {
        self.depth = depth;
    }

    /// Takes its next bytes.
    pub(crate) fn bytes(&mut self, time: Timestamp, data: &[u8], found: &Findings) {
        if data.is_empty() {
            return;
        }
        self.begun.get_or_insert(time);
        self.last = time;
        self.extract(data, found);
        self.seen += data.len() as u64;
        let mut rest = data;
        if !self.is_told {
            let wanted = HEAD.saturating_sub(self.head.len()).min(data.len());
            let (head, behind) = data.split_at(wanted);
            rest = behind;
            if head.len() == HEAD {
                self.tell(head);
            } else {
                if self.head.is_empty() {
                    // Mails come line by line.
                    self.head.reserve_exact(head.len().max(FIRST_PIECE));
                }
                self.head.extend_from_slice(head);
                if self.head.len() >= HEAD {
                    self.report();
                }
            }
        }
        if let Some(reply) = &mut self.reply {
            if reply.len() + rest.len() <= ocsp::MAX_REPLY {
                reply.extend_from_slice(rest);
            } else {
                self.reply = None;
            }
        }
        if let Some(headers) = &mut self.headers {
            headers.bytes(rest);
        }
        if let Some(hashing) = &mut self.hashing {
            hashing.update(data);
        }
    }

    /// Takes bytes that stand at a place in it, in any order.
    pub(crate) fn bytes_at(&mut self, time: Timestamp, at: u64, data: &[u8], found: &Findings) {
        let size = self.size();
        let known = usize::try_from(size.saturating_sub(at)).unwrap_or(usize::MAX).min(data.len());
        if known > 0 {
            self.last = time;
            self.fill(at, known as u64);
        }
        let rest = data.get(known..).unwrap_or_default();
        if at > size && !rest.is_empty() {
            self.gap(time, at - size);
            if self.holes.len() < MAX_HOLES {
                self.holes.push((size, at));
            }
        }
        self.bytes(time, rest, found);
    }

    /// Notes that bytes came which were missing; those that were not count once.
    fn fill(&mut self, at: u64, len: u64) {
        let end = at.saturating_add(len);
        for (begin, behind) in core::mem::take(&mut self.holes) {
            let (from, to) = (begin.max(at), behind.min(end));
            if from >= to {
                self.holes.push((begin, behind));
                continue;
            }
            self.seen += to - from;
            self.missing -= to - from;
            let rest = [(begin, from), (to, behind)];
            self.holes.extend(rest.into_iter().filter(|(begin, end)| begin < end));
        }
        self.holes.truncate(MAX_HOLES);
    }

    /// Whether all came that the protocol told of.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.missing == 0 && self.total.is_some_and(|total| total <= self.seen)
    }

    /// Hands bytes on that come next, where somebody wants the content of files.
    fn extract(&mut self, data: &[u8], found: &Findings) {
        let offset = self.size();
        if self.outlet.is_none() {
            let (Some(extract), Some(begun)) = (&found.extract, self.begun) else { return };
            let name = extraction_name(begun, self.source, self.fuid);
            let outlet = Outlet::open(&**extract, name, self.extracted_bytes);
            self.outlet = Some(Box::new(outlet));
        }
        if let Some(outlet) = &mut self.outlet {
            outlet.bytes(offset, data);
        }
    }

    /// Bytes from its begin to the last that came or is missing.
    const fn size(&self) -> u64 {
        self.seen.saturating_add(self.missing)
    }

    /// Learns that so many of its bytes are missing here. Its hashes tell nothing then.
    pub(crate) fn gap(&mut self, time: Timestamp, len: u64) {
        self.begun.get_or_insert(time);
        self.last = time;
        self.missing = self.missing.saturating_add(len);
        self.hashing = None;
        self.report();
        self.reply = None;
        if let Some(headers) = &mut self.headers {
            headers.gap();
        }
    }

    /// Tells its kind by what came so far.
    pub(crate) fn report(&mut self) {
        if !self.is_told {
            let head = core::mem::take(&mut self.head);
            self.tell(&head);
        }
    }

    /// Tells its kind by its first bytes.
    fn tell(&mut self, head: &[u8]) {
        self.is_told = true;
        self.mime_type = mime::of(head);
        if self.mime_type == Some(pe::MIME_TYPE) {
            self.headers.get_or_insert_default().bytes(head);
        }
        self.reply = (self.mime_type == Some(OCSP_REPLY)).then(|| head.to_vec());
    }

    /// Takes it for a reply of OCSP, as the protocol tells.
    pub(crate) fn set_ocsp_reply(&mut self) {
        self.is_told = true;
        self.mime_type = Some(OCSP_REPLY);
        self.reply = Some(Vec::new());
    }

    /// Notes that its end was not seen.
    pub(crate) const fn set_timed_out(&mut self) {
        self.has_timed_out = true;
    }

    /// Bytes that it holds outside itself.
    #[must_use]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.head.capacity()
            + self.reply.as_ref().map_or(0, Vec::capacity)
            + self.filename.as_ref().map_or(0, |name| name.len())
            + self.holes.capacity() * size_of::<(u64, u64)>()
            + self.headers.as_ref().map_or(0, |it| size_of::<pe::Headers>() + it.heap_bytes())
            + self.hashing.as_ref().map_or(0, |_| size_of::<Hashing>())
            + self.outlet.as_ref().map_or(0, |outlet| outlet.heap_bytes())
    }

    /// What looked into it, by Zeek's names.
    fn analyzers(&self) -> &'static [&'static str] {
        match self.mime_type {
            Some(OCSP_REPLY) => &["OCSP_REPLY"],
            _ if self.headers.is_some() => &["PE"],
            _ => &[],
        }
    }

    /// Ends it, which makes its row.
    pub(crate) fn end(mut self, found: &mut Findings) {
        self.report();
        let Some(begun) = self.begun else { return };
        if let Some(reply) = self.reply.take() {
            report_ocsp_reply(begun, self.fuid, &reply, found);
        }
        let program = self.headers.as_ref().and_then(|headers| headers.read(begun, self.fuid));
        if let Some(program) = program {
            found.row(program);
        }
        // Hashes of a part are no hashes of the file.
        let is_whole = self.missing == 0 && self.total.is_none_or(|total| total <= self.seen);
        let hashing = self.hashing.take().filter(|_| is_whole);
        let digests = hashing.map_or_else(Digests::default, |hashing| hashing.finish());
        let size = self.size();
        let extracted = self.outlet.take().map(|outlet| outlet.end(size));
        let row = self.row(begun, digests);
        match extracted {
            // Whether it is kept depends on the files of other flows.
            Some(extracted) => found.row_with(Box::new(row), extracted),
            None => found.row(row),
        }
    }

    /// The row of the log.
    fn row(self, begun: Timestamp, digests: Digests) -> Files {
        // What waits behind a hole at its begin came before it was known that this is one.
        let last = if self.seen > 0 { self.last.max(begun) } else { begun };
        Files {
            ts: begun,
            fuid: self.fuid,
            source: Some(self.source),
            depth: self.depth,
            analyzers: self.analyzers(),
            mime_type: self.mime_type,
            filename: self.filename,
            duration: Interval::in_micros(begun, last),
            local_orig: None,
            is_orig: Some(self.from == Role::Originator),
            seen_bytes: self.seen,
            total_bytes: self.total,
            missing_bytes: self.missing,
            overflow_bytes: self.overflow,
            timedout: self.has_timed_out,
            parent_fuid: None,
            md5: digests.md5,
            sha1: digests.sha1,
            sha256: digests.sha256,
            partly_decoded: self.is_partly_decoded,
        }
    }
}

/// Tells what a reply of OCSP says.
fn report_ocsp_reply(ts: Timestamp, fuid: Uid, reply: &[u8], found: &mut Findings) {
    let Some(reply) = ocsp::Reply::of(ts, fuid, reply) else {
        found.weirds.add("OCSP_invalid_reply");
        return;
    };
    if reply.has_more {
        found.weirds.add("OCSP_too_many_statuses");
    }
    reply.statuses.into_iter().for_each(|status| found.row(status));
}

/// The name under which the content of a file is kept, as Zeek's `extract-all-files` has it.
fn extraction_name(begun: Timestamp, source: &str, fuid: Uid) -> String {
    let micros = begun.nanos().div_euclid(1_000);
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    format!("extract-{seconds}.{micros:06}-{source}-{}", fuid.as_str())
}

/// The name of a file: `F` and 17 digits, a hash of its flow, the protocol and its number there.
fn name(uid: Uid, source: &str, number: u64) -> Uid {
    let mix = |seed: u64| {
        let mut hash = uid.word() ^ seed;
        for byte in source.bytes().chain(number.to_le_bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            hash ^= hash >> 29;
        }
        hash = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ (hash >> 29)
    };
    let (high, low) = (mix(0x243f_6a88_85a3_08d3), mix(0x1319_8a2e_0370_7344));
    Uid::of_file(u128::from(high) << 64 | u128::from(low))
}
