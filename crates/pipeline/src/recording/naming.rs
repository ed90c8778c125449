//! Formats of the captures that are written, and the names of their files.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use netsniff_console::calendar::Date;
use netsniff_packet::Timestamp;
use netsniff_pcapfile::{Compression, Packing};

/// The format of a capture that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CaptureFormat {
    /// Classic pcap with nanoseconds: one link type, and nothing is told of losses
    Pcap,
    /// pcapng: interfaces, comments, and what was lost where
    #[default]
    Pcapng,
}

impl CaptureFormat {
    /// What the name of a file tells by its suffix, below that of a compression. A number may follow, as in the names
    /// of tcpdump -C.
    #[must_use]
    pub fn of_name(path: &Path) -> Option<Self> {
        let stem = match compression_of_name(path) {
            Some(_) => Path::new(path.file_stem()?),
            None => path,
        };
        let suffix = stem.extension()?.to_str()?.to_ascii_lowercase();
        match suffix.trim_end_matches(|digit: char| digit.is_ascii_digit()) {
            "pcap" | "cap" | "dmp" => Some(Self::Pcap),
            "pcapng" | "ntar" => Some(Self::Pcapng),
            _ => None,
        }
    }
}

/// What the name of a file tells of its packing.
#[must_use]
pub fn packing_of_name(path: &Path) -> Option<Packing> {
    compression_of_name(path).map(Packing::fast)
}

fn compression_of_name(path: &Path) -> Option<Compression> {
    Compression::of_suffix(&path.extension()?.to_str()?.to_ascii_lowercase())
}

/// How the files of a recording are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileName {
    folder: PathBuf,
    stem: OsString,
    /// What follows the number and the time, with its dots.
    suffix: OsString,
    is_numbered: bool,
}

impl FileName {
    /// The name that the user gave, whose suffix becomes that of the packing. The names of several
    /// files differ by number and time.
    pub(super) fn new(path: &Path, packing: Option<Packing>, is_numbered: bool) -> Self {
        let name = Path::new(path.file_name().unwrap_or_default());
        let name = match compression_of_name(name) {
            Some(compression) if packing.is_none_or(|it| it.compression() == compression) => {
                Path::new(name.file_stem().unwrap_or_default())
            }
            _ => name,
        };
        let mut suffix = OsString::new();
        let packed = packing.map(|packing| packing.compression().suffix());
        let extension = name.extension().and_then(|extension| extension.to_str());
        for part in extension.into_iter().chain(packed) {
            suffix.push(".");
            suffix.push(part);
        }
        let stem = if extension.is_some() { name.file_stem() } else { Some(name.as_os_str()) };
        Self {
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            stem: stem.unwrap_or_default().to_owned(),
            suffix,
            is_numbered,
        }
    }

    /// The file of this number, from 1, that begins at `time`: `name_00001_20261122130000.pcapng`,
    /// in UTC.
    pub(super) fn of(&self, number: u64, time: Timestamp) -> PathBuf {
        let mut name = self.stem.clone();
        if self.is_numbered {
            let Date { year, month, day, hour, minute, second } = Date::of(time);
            let time = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}");
            name.push(format!("_{number:05}_{time}"));
        }
        name.push(&self.suffix);
        self.folder.join(name)
    }
}

/// The files that a recording with this name has left, in the order in which they were begun: the number and time that
/// `FileName::of` puts into a name tell them. Packed ones may have the suffix of the packing behind.
///
/// # Errors
///
/// Where their folder cannot be read.
pub fn files_of(name: &Path) -> io::Result<Vec<PathBuf>> {
    let pattern = FileName::new(name, packing_of_name(name), true);
    let folder =
        if pattern.folder.as_os_str().is_empty() { Path::new(".") } else { &pattern.folder };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.file_name();
        if let Some(place) = pattern.place_of(file.as_encoded_bytes()) {
            found.push((place, pattern.folder.join(file)));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

impl FileName {
    /// Time and number in the name of a file, where it is one of these.
    fn place_of(&self, file: &[u8]) -> Option<(u64, u64)> {
        let rest = file.strip_prefix(self.stem.as_encoded_bytes())?.strip_prefix(b"_")?;
        let rest = rest.strip_suffix(self.suffix.as_encoded_bytes()).or_else(|| {
            let plain = Path::new(std::str::from_utf8(rest).ok()?);
            compression_of_name(plain)?;
            let plain = plain.file_stem()?.as_encoded_bytes();
            plain.strip_suffix(self.suffix.as_encoded_bytes())
        })?;
        let (number, time) = std::str::from_utf8(rest).ok()?.split_once('_')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_one = number.len() >= 5 && time.len() == 14 && is_number(number) && is_number(time);
        if is_one { Some((time.parse().ok()?, number.parse().ok()?)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(path: &str, packing: Option<&str>, is_numbered: bool) -> String {
        let packing = packing.map(|text| text.parse().unwrap());
        let name = FileName::new(Path::new(path), packing, is_numbered);
        let time = Timestamp::from_secs_nanos(1_795_352_400, 5);
        name.of(1, time).to_str().unwrap().to_owned()
    }

    #[test]
    fn names_have_number_time_and_suffix_of_the_packing() {
        assert_eq!(first("a/b.pcapng", None, false), "a/b.pcapng");
        assert_eq!(first("a/b.pcapng", None, true), "a/b_00001_20261122130000.pcapng");
        assert_eq!(first("b", None, true), "b_00001_20261122130000");
        assert_eq!(first("b", Some("gzip"), false), "b.gz");
        assert_eq!(first("b.pcap.zst", Some("zstd:3"), true), "b_00001_20261122130000.pcap.zst");
        assert_eq!(first("b.c.pcap", Some("lz4"), true), "b.c_00001_20261122130000.pcap.lz4");
        // What is said of the packing goes before what the name says.
        assert_eq!(first("b.pcap.gz", Some("lz4"), false), "b.pcap.gz.lz4");
    }

    #[test]
    fn files_of_a_recording_are_found_by_its_name() {
        let place = |name: &str, file: &str| {
            let name = Path::new(name);
            FileName::new(name, packing_of_name(name), true).place_of(file.as_bytes())
        };
        let time = 20_261_122_130_000;
        assert_eq!(place("b.pcapng", "b_00001_20261122130000.pcapng"), Some((time, 1)));
        assert_eq!(place("b.pcapng", "b_123456_20261122130000.pcapng.zst"), Some((time, 123_456)));
        assert_eq!(place("b.pcap.gz", "b_00007_20261122130000.pcap.gz"), Some((time, 7)));
        assert_eq!(place("b", "b_00001_20261122130000"), Some((time, 1)));
        for file in [
            "b.pcapng",
            "b_00001_20261122130000.pcap",
            "b_00001_20261122130000.pcapng.nsi",
            "bb_00001_20261122130000.pcapng",
            "b_1_20261122130000.pcapng",
            "b_00001_2026112213000.pcapng",
            "b_0000x_20261122130000.pcapng",
        ] {
            assert_eq!(place("b.pcapng", file), None, "{file}");
        }
    }

    #[test]
    fn names_tell_formats() {
        let of = |name: &str| CaptureFormat::of_name(Path::new(name));
        assert_eq!(of("x.pcap"), Some(CaptureFormat::Pcap));
        assert_eq!(of("x.CAP.gz"), Some(CaptureFormat::Pcap));
        assert_eq!(of("x.pcapng.zst"), Some(CaptureFormat::Pcapng));
        assert_eq!((of("x"), of("pcap"), of("x.gz")), (None, None, None));
        let packing = |name: &str| packing_of_name(Path::new(name)).map(|it| it.compression());
        assert_eq!(packing("x.pcap.lz4"), Some(Compression::Lz4));
        assert_eq!(packing("x.pcap"), None);
    }
}
