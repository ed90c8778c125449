//! Programs and libraries of Windows: the headers of the format PE, as Microsoft's specification has them
//! and as Zeek reads them.

use std::borrow::Cow;

use netsniff_packet::Timestamp;

use super::pe_log::Pe;
use crate::key::uid::Uid;
use crate::record::{Seconds, UnsetIfEmpty};

/// The kind of files that have such headers.
pub(crate) const MIME_TYPE: &str = "application/x-dosexec";

/// Bytes of headers that are kept. Linkers begin them behind some hundred bytes, and real ones have some ten
/// sections of 40 bytes.
const MOST: usize = 16 << 10;

/// Bytes of the header of DOS, which ends with where the other begins.
const DOS_HEADER: usize = 64;

/// Bytes of the signature and the header of the file.
const FILE_HEADER: usize = 24;

/// Bytes that tell of one section.
const SECTION_HEADER: usize = 40;

/// Headers on their way.
#[derive(Debug, Default)]
pub(crate) struct Headers {
    head: Vec<u8>,
    is_over: bool,
}

/// What the header tells that only programs have.
#[derive(Debug, Default)]
struct Optional {
    os: Cow<'static, str>,
    subsystem: Cow<'static, str>,
    characteristics: u16,
    /// Of the first seven tables, whether they have content.
    tables: [bool; 7],
}

impl Headers {
    /// Takes the next bytes of the file, as far as they may be of its headers.
    pub(crate) fn bytes(&mut self, data: &[u8]) {
        if self.is_over {
            return;
        }
        let room = MOST.saturating_sub(self.head.len());
        self.head.extend_from_slice(data.get(..room).unwrap_or(data));
        self.is_over = self.head.len() >= MOST
            || Layout::of(&self.head).is_some_and(|it| it.sections_end() <= self.head.len());
    }

    /// Learns that what follows is not the next bytes.
    pub(crate) const fn gap(&mut self) {
        self.is_over = true;
    }

    /// Bytes that it holds outside itself.
    pub(crate) const fn heap_bytes(&self) -> usize {
        self.head.capacity()
    }

    /// What they tell of the file `id`, if they came.
    pub(crate) fn read(&self, ts: Timestamp, id: Uid) -> Option<Pe> {
        let layout = Layout::of(&self.head)?;
        let optional = Optional::read(self.head.get(layout.optional..layout.sections)?);
        let compiled = u32_at(&self.head, layout.file + 8)?;
        let characteristics = u16_at(&self.head, layout.file + 22)?;
        let is_exe = layout.optional < layout.sections;
        let named = |at: usize| {
            let name = self.head.get(at..at + 8)?;
            Some(name.split(|&byte| byte == 0).next().unwrap_or_default().into())
        };
        let places = (0..layout.count).map(|n| layout.sections + n * SECTION_HEADER);
        let is_whole = is_exe && layout.sections_end() <= self.head.len();
        let has = |bit: u16| optional.as_ref().is_some_and(|it| it.characteristics & bit != 0);
        let table = |n: usize| optional.as_ref().and_then(|it| it.tables.get(n).copied());
        Some(Pe {
            ts,
            id,
            machine: Some(machine(layout.machine)),
            compile_ts: Some(Seconds(compiled.into())),
            is_exe,
            is_64bit: characteristics & 0x100 == 0,
            uses_aslr: has(0x40),
            uses_dep: has(0x100),
            uses_code_integrity: has(0x80),
            uses_seh: !has(0x400),
            has_import_table: table(1),
            has_export_table: table(0),
            has_cert_table: table(4),
            has_debug_data: table(6),
            section_names: UnsetIfEmpty(places.filter(|_| is_whole).filter_map(named).collect()),
            os: optional.as_ref().map(|it| it.os.clone()),
            subsystem: optional.as_ref().map(|it| it.subsystem.clone()),
        })
    }
}

/// Offsets of the headers of a PE file.
#[derive(Clone, Copy, Debug)]
struct Layout {
    machine: u16,
    file: usize,
    optional: usize,
    sections: usize,
    /// How many sections there are.
    count: usize,
}

impl Layout {
    /// Reads it, as soon as the header of the file came; `None` also where there is none.
    fn of(head: &[u8]) -> Option<Self> {
        // A header that would begin within that of DOS begins behind it.
        let file = (u32_at(head, DOS_HEADER - 4)? as usize).max(DOS_HEADER);
        let is_there = head.get(file..file.checked_add(4)?)? == b"PE\0\0";
        let optional = file + FILE_HEADER;
        let sections = optional + usize::from(u16_at(head, file + 20)?);
        let (machine, count) = (u16_at(head, file + 4)?, u16_at(head, file + 6)?.into());
        is_there.then_some(Self { machine, file, optional, sections, count })
    }

    const fn sections_end(&self) -> usize {
        self.sections + self.count * SECTION_HEADER
    }
}

impl Optional {
    fn read(header: &[u8]) -> Option<Self> {
        // Of 32 bits, of 64 bits, in a ROM: where the version of the system stands, and how much of
        // memory is told.
        let (version, memory) = match u16_at(header, 0)? {
            0x10b => (40, 16),
            0x20b => (40, 32),
            0x107 => (36, 0),
            _ => return None,
        };
        let subsystem = u16_at(header, version + 28)?;
        let characteristics = u16_at(header, version + 30)?;
        let count = version + 32 + memory + 4;
        let tables = u32_at(header, count).unwrap_or(0) as usize;
        let has_content = |n: usize| {
            n < tables && u32_at(header, count + 4 + 8 * n + 4).is_some_and(|size| size > 0)
        };
        Some(Self {
            os: os(u16_at(header, version)?, u16_at(header, version + 2)?),
            subsystem: subsystem_name(subsystem),
            characteristics,
            tables: core::array::from_fn(has_content),
        })
    }
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// The processors, by their numbers.
const MACHINES: &[(u16, &str)] = &[
    (0, "UNKNOWN"),
    (0x14c, "I386"),
    (0x166, "R4000"),
    (0x169, "WCEMIPSV2"),
    (0x1a2, "SH3"),
    (0x1a3, "SH3DSP"),
    (0x1a6, "SH4"),
    (0x1a8, "SH5"),
    (0x1c0, "ARM"),
    (0x1c2, "THUMB"),
    (0x1c4, "ARMNT"),
    (0x1d3, "AM33"),
    (0x1f0, "POWERPC"),
    (0x1f1, "POWERPCFP"),
    (0x200, "IA64"),
    (0x266, "MIPS16"),
    (0x366, "MIPSFPU"),
    (0x466, "MIPSFPU16"),
    (0xebc, "EBC"),
    (0x8664, "AMD64"),
    (0x9041, "M32R"),
    (0xaa64, "ARM64"),
];

fn machine(number: u16) -> Cow<'static, str> {
    match MACHINES.iter().find(|(known, _)| *known == number) {
        Some(&(_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("unknown-{number}")),
    }
}

fn subsystem_name(number: u16) -> Cow<'static, str> {
    Cow::Borrowed(match number {
        0 => "UNKNOWN",
        1 => "NATIVE",
        2 => "WINDOWS_GUI",
        3 => "WINDOWS_CUI",
        7 => "POSIX_CUI",
        9 => "WINDOWS_CE_GUI",
        10 => "EFI_APPLICATION",
        11 => "EFI_BOOT_SERVICE_DRIVER",
        12 => "EFI_RUNTIME_DRIVER",
        13 => "EFI_ROM",
        14 => "XBOX",
        _ => return Cow::Owned(format!("unknown-{number}")),
    })
}

/// The system that has a version.
fn os(major: u16, minor: u16) -> Cow<'static, str> {
    Cow::Borrowed(match (major, minor) {
        (10, 0) => "Windows 10",
        (6, 4) => "Windows 10 Technical Preview",
        (6, 3) => "Windows 8.1 or Server 2012 R2",
        (6, 2) => "Windows 8 or Server 2012",
        (6, 1) => "Windows 7 or Server 2008 R2",
        (6, 0) => "Windows Vista or Server 2008",
        (5, 2) => "Windows XP x64 or Server 2003",
        (5, 1) => "Windows XP",
        (5, 0) => "Windows 2000",
        (4, 90) => "Windows Me",
        (4, 10) => "Windows 98",
        (4, 0) => "Windows 95 or NT 4.0",
        (3, 51) => "Windows NT 3.51",
        (3, 50) => "Windows NT 3.5",
        (3, 2) => "Windows 3.2",
        (3, 11) => "Windows for Workgroups 3.11",
        (3, 10) => "Windows 3.1 or NT 3.1",
        (3, 0) => "Windows 3.0",
        (2, 11) => "Windows 2.11",
        (2, 10) => "Windows 2.10",
        (2, 0) => "Windows 2.0",
        (1, 4) => "Windows 1.04",
        (1, 3) => "Windows 1.03",
        (1, 1) => "Windows 1.01",
        (1, 0) => "Windows 1.0",
        _ => return Cow::Owned(format!("unknown-{major}.{minor}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with some sections.
    fn program(magic: u16, sections: &[&[u8; 8]]) -> Vec<u8> {
        let is_wide = magic == 0x20b;
        let len = if is_wide { 112 + 128 } else { 96 + 128_usize };
        let mut head = vec![0; 0x80];
        head[..2].copy_from_slice(b"MZ");
        head[60..64].copy_from_slice(&0x80_u32.to_le_bytes());
        head.extend(b"PE\0\0");
        head.extend((if is_wide { 0x8664_u16 } else { 0x14c }).to_le_bytes());
        head.extend((sections.len() as u16).to_le_bytes());
        head.extend(1_000_000_000_u32.to_le_bytes());
        head.extend([0; 8]);
        head.extend((len as u16).to_le_bytes());
        head.extend((if is_wide { 0x22_u16 } else { 0x102 }).to_le_bytes());
        let mut optional = vec![0; len];
        optional[..2].copy_from_slice(&magic.to_le_bytes());
        optional[40] = 6;
        optional[42] = 1;
        optional[68] = 3;
        optional[70..72].copy_from_slice(&0x540_u16.to_le_bytes());
        let tables = len - 128;
        optional[tables - 4] = 16;
        // The second and the seventh table have content.
        optional[tables + 8 + 4] = 1;
        optional[tables + 6 * 8 + 4] = 1;
        head.extend(optional);
        for name in sections {
            head.extend(*name);
            head.extend([0; 32]);
        }
        head
    }

    fn read(file: &[u8], cut: usize) -> Option<String> {
        let mut headers = Headers::default();
        file.chunks(cut).for_each(|piece| headers.bytes(piece));
        let row = headers.read(Timestamp::EPOCH, Uid::new(1))?;
        let names = row.section_names.0.iter();
        let names: Vec<_> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Some(format!(
            "{} {} {} {} {} {} {} {} {:?} {:?} {:?} {}",
            row.machine.as_deref().unwrap(),
            row.os.as_deref().unwrap_or("-"),
            row.subsystem.as_deref().unwrap_or("-"),
            row.is_exe,
            row.is_64bit,
            row.uses_aslr,
            row.uses_dep,
            row.uses_seh,
            row.has_import_table,
            row.has_export_table,
            row.has_debug_data,
            names.join(","),
        ))
    }

    #[test]
    fn headers_are_read_however_they_are_cut() {
        let sections = [b".text\0\0\0", b"eight_ch"];
        for (magic, machine, is_wide) in [(0x10b, "I386", false), (0x20b, "AMD64", true)] {
            let mut file = program(magic, &sections);
            file.extend([1; 20_000]);
            let expected = format!(
                "{machine} Windows 7 or Server 2008 R2 WINDOWS_CUI true {is_wide} true true false \
                 Some(true) Some(false) Some(true) .text,eight_ch"
            );
            for cut in [1, 7, 500, file.len()] {
                assert_eq!(read(&file, cut).as_deref(), Some(&*expected), "{cut}");
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_told() {
        let file = program(0x10b, &[b".text\0\0\0"]);
        for len in 0..file.len() {
            let told = read(&file[..len], 100);
            assert_eq!(told.is_some(), len >= file.len() - SECTION_HEADER, "{len}");
            assert!(!told.unwrap_or_default().contains(".text"), "{len}");
        }
        assert!(read(b"MZ", 1).is_none());
        assert!(read(&[0xff; 200], 100).is_none());
        // An object file.
        let mut object = file.clone();
        object[0x80 + 20..0x80 + 22].fill(0);
        let told = read(&object, 100).unwrap();
        assert!(
            told.starts_with("I386 - - false false false false true None None None "),
            "{told}"
        );
        // Headers of an unknown kind tell the machine and the sections.
        let told = read(&program(0x999, &[b".text\0\0\0"]), 100).unwrap();
        assert!(told.starts_with("I386 - - true"), "{told}");
    }

    #[test]
    fn nothing_is_kept_behind_the_headers() {
        let mut file = program(0x10b, &[b".text\0\0\0"]);
        file.extend(vec![0; 1 << 20]);
        let mut headers = Headers::default();
        file.chunks(1_000).for_each(|piece| headers.bytes(piece));
        assert!(headers.heap_bytes() <= 2 * MOST);
        let mut far = Headers::default();
        far.bytes(&[0xff; 1 << 20]);
        assert!(far.heap_bytes() <= 2 * MOST);
    }
}
