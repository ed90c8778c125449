//! The content of files on its way out: the analysis tells it piece by piece, and writes nothing.

use core::fmt::Debug;

/// Whoever wants the content of files.
pub trait Extract: Debug + Send + Sync {
    /// Begins to take a file. Its name is made of a time, a protocol and an identifier: nothing in it
    /// comes from the wire. `None` where no more files are taken.
    fn begin(&self, name: &str) -> Option<Box<dyn Extraction>>;
}

/// Takes the content of one file. What is dropped without [`Self::keep`] is not kept.
pub trait Extraction: Debug + Send + Sync {
    /// Takes bytes that begin at `offset`, none of which came before. Between them may be holes, which
    /// are filled with zeros.
    fn write(&mut self, offset: u64, data: &[u8]);

    /// Ends the file, which has `size` bytes with its holes.
    fn end(&mut self, size: u64);

    /// Keeps the file, which has ended, if all of it is there, and tells what became of it.
    fn keep(&self) -> Stored;

    /// Learns that this file is not kept since a bound was reached, nor is any that ends later.
    fn refuse(&self);

    /// Bytes that it takes.
    fn heap_bytes(&self) -> usize;
}

/// What became of a file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// All that was handed over is there.
    Whole,
    /// It was not taken, since a bound was reached.
    Refused,
    /// It was not taken, since it came faster than it could be written.
    Overrun,
    /// It could not be written.
    Failed,
}

/// The content of a file that is still being carried.
#[derive(Debug)]
pub(crate) struct Outlet {
    name: Box<str>,
    /// Bytes that the file may have.
    limit: u64,
    extraction: Option<Box<dyn Extraction>>,
}

/// The content of a file that has ended.
#[derive(Debug)]
pub struct Extracted {
    name: Box<str>,
    size: u64,
    is_cut: bool,
    extraction: Option<Box<dyn Extraction>>,
}

impl Outlet {
    pub(crate) fn open(extract: &dyn Extract, name: String, limit: u64) -> Self {
        let extraction = extract.begin(&name);
        Self { name: name.into(), limit, extraction }
    }

    /// Hands over the bytes at `offset`, as far as the limit allows.
    pub(crate) fn bytes(&mut self, offset: u64, data: &[u8]) {
        let Some(extraction) = &mut self.extraction else { return };
        let room = usize::try_from(self.limit.saturating_sub(offset)).unwrap_or(usize::MAX);
        let data = data.get(..room).unwrap_or(data);
        if !data.is_empty() {
            extraction.write(offset, data);
        }
    }

    /// Ends a file of `size` bytes, holes among them.
    pub(crate) fn end(mut self, size: u64) -> Extracted {
        let is_cut = size > self.limit;
        let size = size.min(self.limit);
        if let Some(extraction) = &mut self.extraction {
            extraction.end(size);
        }
        let Self { name, extraction, .. } = self;
        Extracted { name, size, is_cut, extraction }
    }

    /// Bytes that it takes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let extraction = self.extraction.as_ref().map_or(0, |it| it.heap_bytes());
        size_of::<Self>() + self.name.len() + extraction
    }
}

impl Extracted {
    /// Bytes that it holds outside itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.name.len() + self.extraction.as_ref().map_or(0, |it| it.heap_bytes())
    }

    /// The name under which it is kept.
    #[must_use]
    pub const fn name(&self) -> &str {
        &self.name
    }

    /// Bytes that are kept, holes among them.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Whether the file was longer than a file may be.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Keeps it, if all of it is there, and tells what became of it.
    pub(crate) fn keep(&self) -> Stored {
        self.extraction.as_ref().map_or(Stored::Refused, |it| it.keep())
    }

    /// Does not keep it, nor any that ends later.
    pub(crate) fn refuse(&self) {
        if let Some(extraction) = &self.extraction {
            extraction.refuse();
        }
    }
}
