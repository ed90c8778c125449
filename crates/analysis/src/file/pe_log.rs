//! The `pe` log: one row for each program of Windows that was carried, as Zeek writes it.

use std::borrow::Cow;

use netsniff_packet::Timestamp;

use crate::key::uid::Uid;
use crate::record::{Seconds, UnsetIfEmpty};

crate::record! {
    /// One row for each file in the format of Windows for programs and libraries (PE) whose header was
    /// seen. The file itself is in the log `files`.
    pub(crate) struct Pe => "pe" {
        /// Time of the file's first bytes.
        ts: Timestamp => "ts", time, Seconds, Plain, Zeek;
        /// Identifier of the file, the same in every log.
        id: Uid => "id", string, None, Plain, Zeek;
        /// The processor that it is for.
        machine: Option<Cow<'static, str>> => "machine", string, None, Plain, Zeek;
        /// Time at which it was made, as it says.
        compile_ts: Option<Seconds> => "compile_ts", time, Seconds, Plain, Zeek;
        /// The oldest system that it runs on.
        os: Option<Cow<'static, str>> => "os", string, None, Plain, Zeek;
        /// The part of the system that it needs.
        subsystem: Option<Cow<'static, str>> => "subsystem", string, None, Plain, Zeek;
        /// Whether it is linked, and no mere object file.
        is_exe: bool => "is_exe", bool, None, Plain, Zeek;
        /// Whether it is for processors of 64 bits.
        is_64bit: bool => "is_64bit", bool, None, Plain, Zeek;
        /// Whether it may be loaded at any address.
        uses_aslr: bool => "uses_aslr", bool, None, Plain, Zeek;
        /// Whether its data cannot be executed.
        uses_dep: bool => "uses_dep", bool, None, Plain, Zeek;
        /// Whether its signature is checked as it is loaded.
        uses_code_integrity: bool => "uses_code_integrity", bool, None, Plain, Zeek;
        /// Whether it handles exceptions.
        uses_seh: bool => "uses_seh", bool, None, Plain, Zeek;
        /// Whether it uses libraries.
        has_import_table: Option<bool> => "has_import_table", bool, None, Plain, Zeek;
        /// Whether others may use it.
        has_export_table: Option<bool> => "has_export_table", bool, None, Plain, Zeek;
        /// Whether it is signed.
        has_cert_table: Option<bool> => "has_cert_table", bool, None, Plain, Zeek;
        /// Whether it has data for debuggers.
        has_debug_data: Option<bool> => "has_debug_data", bool, None, Plain, Zeek;
        /// Names of its sections, in order.
        section_names: UnsetIfEmpty<Box<[u8]>> => "section_names", vector[string], None, Word(Section), Zeek;
    }
}
