//! From when to when captures have packets, which an analysis must be told before it begins.

use std::fs::File;
use std::path::{Path, PathBuf};

use netsniff_console::terminal::progress::ProgressLine;
use netsniff_packet::{Batch, Progress, Source as _, Timestamp};
use netsniff_pcapfile::{Error, Reader};

/// The earliest and the latest stamp.
pub(super) type Ends = (Timestamp, Timestamp);

/// The ends of the packets of all captures, as far as these can be read: what cannot, the analysis tells.
pub(super) fn ends(captures: &[PathBuf]) -> Option<Ends> {
    let sizes = captures.iter().map(|capture| Some(capture.metadata().ok()?.len()));
    let line = ProgressLine::new(sizes.sum(), false);
    let mut stamps = Stamps { line, done: (0, 0), ends: None };
    for capture in captures {
        // The first thing that is wrong with a file ends it alone.
        let _ = stamps.read(capture);
    }
    stamps.ends
}

#[derive(Debug)]
struct Stamps {
    line: ProgressLine,
    /// Bytes and packets of the files that were read.
    done: (u64, u64),
    ends: Option<Ends>,
}

impl Stamps {
    fn read(&mut self, capture: &Path) -> Result<(), Error> {
        let file = File::open(capture).map_err(Error::Io)?;
        let mut reader = Reader::new(file)?;
        let (bytes, packets) = self.done;
        let mut batch = Batch::default();
        loop {
            let progress = reader.read_batch(&mut batch)?;
            for packet in &batch.packets {
                let stamp = packet.timestamp;
                let (first, last) = self.ends.unwrap_or((stamp, stamp));
                self.ends = Some((first.min(stamp), last.max(stamp)));
            }
            self.done = (bytes + reader.bytes_read(), packets + reader.packets());
            self.line.update(|| self.done);
            if progress == Progress::End {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use netsniff_packet::{LinkType, Packet};
    use netsniff_pcapfile::PcapWriter;

    use super::*;

    fn capture(nanos: &[i64]) -> Vec<u8> {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::RAW, 0).unwrap();
        for &nanos in nanos {
            let (timestamp, link_type) = (Timestamp::from_nanos(nanos), LinkType::RAW);
            let packet =
                Packet { timestamp, data: &[0; 40], wire_len: 40, link_type, interface: 0 };
            writer.write_packet(&packet).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn the_ends_are_those_of_all_packets_that_can_be_read() {
        let folder = std::env::temp_dir().join(format!("netsniff-stamps-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let cut = capture(&[9000, 7000, 99_000]);
        let files = [capture(&[5000, 3000]), b"no capture".to_vec(), cut[..cut.len() - 1].to_vec()];
        let paths: Vec<_> = (0..files.len()).map(|at| folder.join(at.to_string())).collect();
        for (path, bytes) in paths.iter().zip(files) {
            fs::write(path, bytes).unwrap();
        }
        let nanos =
            |paths: &[PathBuf]| ends(paths).map(|(first, last)| (first.nanos(), last.nanos()));
        let (all, none) = (nanos(&paths), nanos(&paths[1..2]));
        fs::remove_dir_all(folder).unwrap();
        assert_eq!((all, none), (Some((3000, 9000)), None));
    }
}
