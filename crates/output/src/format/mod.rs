//! Formats of logs: what a worker renders, and what the writer makes of it.
//!
//! A format has two halves. In the worker, [`RowFormat::columns`] renders a row, through a static call, since it is on
//! the hot path. In the writer, a [`LogEncoder`] makes a file of such rows: it may keep rows and write many at once, as
//! columnar formats do, and knows what the file has when it ends.

#[cfg(all(test, any(feature = "arrow", feature = "parquet")))]
mod all_types;
#[cfg(feature = "arrow")]
mod arrow;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod cells;
pub(crate) mod digits;
mod document;
mod ecs;
mod eve;
mod json;
mod letters;
mod line;
mod msgpack;
#[cfg(feature = "parquet")]
mod parquet;
mod style;
mod text;
mod tsv;

#[cfg(feature = "arrow")]
pub use self::arrow::{BatchBuilder, schema};

use core::fmt::Debug;
use std::io;

use netsniff_analysis::Record;
use netsniff_analysis::record::LogType;
use netsniff_analysis::rows::Encode;
use netsniff_packet::Timestamp;

pub use style::{Extension, RowStyle, TimeForm};

/// How rows of all logs stand in one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamLayout {
    /// Appends what stands before the first row of a log in the stream.
    pub(super) begin: fn(log: &'static LogType, out: &mut Vec<u8>),
    /// Appends a row with the name of its log in the column `_path`.
    pub(super) row: fn(log: &LogType, row: &[u8], out: &mut Vec<u8>),
}

/// A format of logs.
pub(super) trait RowFormat {
    /// What the names of its files end with, behind a dot.
    const EXTENSION: &'static str;

    /// Whether a file can be read only once it has ended: until then it has another name.
    const IS_READ_WHOLE: bool = false;

    /// Appends what stands before the columns of a row, which belongs at `time` where that is known; the worker calls it.
    fn begin_row<R: Record>(
        _style: RowStyle,
        _record: &R,
        _time: Option<Timestamp>,
        _out: &mut Vec<u8>,
    ) {
    }

    /// Appends columns of one row, behind others of it or not; the worker calls it.
    fn columns<R: Record>(style: RowStyle, record: &R, out: &mut Vec<u8>);

    /// Ends a row of `log`, which was begun where `out` had `start` bytes; the worker calls it.
    fn end_row(_log: &'static LogType, _start: usize, _out: &mut Vec<u8>) {}

    /// Begins a log; the writer calls it.
    fn encoder(log: &'static LogType) -> Box<dyn LogEncoder>;

    /// The path of each column in a row of a log, where rows are documents with members in members; none for a column
    /// that something tells which follows from it.
    fn paths(_log: &'static LogType) -> Option<Vec<Option<String>>> {
        None
    }

    /// How rows stand in a stream of all logs; `None` where rows of several logs cannot.
    const STREAM: Option<StreamLayout> = None;
}

/// Makes a file of one log from the rows that workers rendered.
///
/// What one call of [`Self::row`] or [`Self::settle`] appends is written whole or not at all. A format whose footer tells of
/// the rows appends them in [`Self::settle`] alone, behind which they are written at once, and hears of those that could
/// not be written ([`Self::refused`]).
pub(super) trait LogEncoder: Debug + Send {
    /// Appends what a file begins with; `opened` is the time of its first row. It may be called again: another file
    /// begins, and rows that are kept go into that one.
    fn header(&mut self, _opened: Timestamp, _out: &mut Vec<u8>) {}

    /// Takes a row: appends it, alone or with those that were kept before it, or keeps it.
    fn row(&mut self, row: &[u8], out: &mut Vec<u8>);

    /// Appends the rows that are kept, after which there are none.
    ///
    /// # Errors
    ///
    /// When they cannot be encoded: nothing is appended, and they are gone.
    fn settle(&mut self, _out: &mut Vec<u8>) -> io::Result<()> {
        Ok(())
    }

    /// Whether rows that are kept had better wait for others than be written for somebody to read them: nobody can before the
    /// file has its footer.
    fn waits_for_more(&self) -> bool {
        false
    }

    /// Bytes that the file will have besides: of rows that are kept, and of a footer beyond that of an empty file.
    fn unsettled(&self) -> usize {
        0
    }

    /// Bytes of memory that rows take which are kept.
    fn kept_bytes(&self) -> usize {
        self.unsettled()
    }

    /// The last rows that were appended, so many, are not in the file.
    fn refused(&mut self, _rows: u64) {}

    /// Appends what a file ends with; `closed` is the time at which the input ended. More rows may follow, where the file
    /// goes on and its end is cut off again.
    ///
    /// # Errors
    ///
    /// When it cannot be encoded.
    fn footer(&mut self, _closed: Timestamp, _out: &mut Vec<u8>) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the list of formats, and calls each through a `match` so that rendering stays static.
macro_rules! formats {
    ($( $(#[cfg($cfg:meta)])? $(#[doc = $doc:literal])+ $variant:ident => $format:ty, $name:literal; )+) => {
        /// The formats in which logs can be written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $( $(#[cfg($cfg)])? $(#[doc = $doc])+ $variant, )+
        }

        impl Format {
            /// Every format, in the order of the list.
            pub const ALL: &'static [Self] = &[$($(#[cfg($cfg)])? Self::$variant),+];

            /// The name for the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => $name,)+
                }
            }

            /// What the format is, for the command line.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }

            /// What the names of its files end with, behind a dot.
            #[must_use]
            pub const fn extension(self) -> &'static str {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => <$format>::EXTENSION,)+
                }
            }

            /// Whether a file can be read only once it has ended ([`RowFormat::IS_READ_WHOLE`]).
            pub(super) const fn is_read_whole(self) -> bool {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => <$format>::IS_READ_WHOLE,)+
                }
            }

            /// The path of each column in a row of a log, with dots between names, where rows are documents with members in
            /// members; none for a column that something tells which follows from it.
            #[must_use]
            pub fn paths(self, log: &'static LogType) -> Option<Vec<Option<String>>> {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => <$format>::paths(log),)+
                }
            }

            pub(super) fn encoder(self, log: &'static LogType) -> Box<dyn LogEncoder> {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => <$format>::encoder(log),)+
                }
            }

            /// How rows stand in a stream of all logs ([`RowFormat::STREAM`]).
            pub(super) const fn stream(self) -> Option<StreamLayout> {
                match self {
                    $($(#[cfg($cfg)])? Self::$variant => <$format>::STREAM,)+
                }
            }
        }

        impl Encode for RowStyle {
            #[inline]
            fn begin<R: Record>(&self, record: &R, time: Option<Timestamp>, out: &mut Vec<u8>) {
                match self.format {
                    $($(#[cfg($cfg)])? Format::$variant => {
                        <$format>::begin_row(*self, record, time, out);
                    })+
                }
            }

            #[inline]
            fn columns<R: Record>(&self, record: &R, out: &mut Vec<u8>) {
                match self.format {
                    $($(#[cfg($cfg)])? Format::$variant => <$format>::columns(*self, record, out),)+
                }
            }

            #[inline]
            fn end(&self, log: &'static LogType, start: usize, out: &mut Vec<u8>) {
                match self.format {
                    $($(#[cfg($cfg)])? Format::$variant => <$format>::end_row(log, start, out),)+
                }
            }
        }
    };
}

// THE list: a format is a file here and an entry below.
formats! {
    /// Columns with tabs between and header lines, as Zeek writes by default.
    Tsv => tsv::Tsv, "tsv";
    /// One JSON object on each line, as Zeek writes with `LogAscii::use_json`.
    Json => json::Json, "json";
    /// One JSON document of the Elastic Common Schema 8 on each line, with places for the rest as Elastic's integration for Zeek has them.
    Ecs => ecs::Ecs, "ecs";
    /// One JSON event on each line in the words of Suricata 8's EVE.
    Eve => eve::Eve, "eve";
    /// One MessagePack map for each row, with times to the nanosecond.
    MsgPack => msgpack::MsgPack, "msgpack";
    /// Words with blanks between, layer by layer: time, addresses, ports, and what the log tells; nothing is rounded.
    Text => text::Text, "text";
    #[cfg(feature = "parquet")]
    /// One Apache Parquet file for each log, compressed by zstd, with types, units and meanings of columns.
    Parquet => parquet::Parquet, "parquet";
    #[cfg(feature = "arrow")]
    /// One stream of Apache Arrow for each log, batch by batch, with types, units and meanings of columns.
    Arrow => arrow::Arrow, "arrow";
}

impl Format {
    /// Whether rows of all logs can stand in one stream.
    #[must_use]
    pub const fn streams(self) -> bool {
        self.stream().is_some()
    }
}

impl clap::ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        Self::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()).help(self.doc()))
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn formats_are_found_by_name() {
        for &format in Format::ALL {
            assert_eq!(Format::from_str(format.name(), false), Ok(format));
            assert!(format.doc().ends_with('.'), "{} lacks a sentence", format.name());
        }
        assert!(Format::from_str("xml", false).is_err());
    }

    netsniff_analysis::record! {
        /// A row that begins with text.
        pub struct Note<'a> => "note" {
            /// The text.
            text: &'a str => "text", string, None, FreeText, Netsniff;
        }
    }

    fn row_of<F: RowFormat>() -> Vec<u8> {
        let mut out = b"before\n".to_vec();
        let note = Note { text: "#close" };
        F::columns(Format::Tsv.into(), &note, &mut out);
        F::end_row(note.log(), 7, &mut out);
        out
    }

    #[test]
    fn a_row_never_looks_like_a_header() {
        assert_eq!(row_of::<tsv::Tsv>(), b"before\n\\x23close\n");
        assert_eq!(row_of::<text::Text>(), b"before\n\\x23close note\n");
    }
}
