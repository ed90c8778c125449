//! Classic pcap files for tcpdump, and tcpdump's verdicts on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use netsniff_packet::LinkType;

/// A packet without time: its place in the file is its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub data: Vec<u8>,
    pub wire_len: u32,
}

impl Frame {
    pub fn whole(data: Vec<u8>) -> Self {
        let wire_len = data.len() as u32;
        Self { data, wire_len }
    }

    /// The same packet as a short snaplen would have captured it.
    pub fn cut(&self, length: usize) -> Self {
        Self { data: self.data[..length.min(self.data.len())].to_vec(), wire_len: self.wire_len }
    }
}

/// A directory that is removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("netsniff-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes frames of one link type; the time of each, in seconds, is its number.
pub fn write(path: &Path, link_type: LinkType, frames: &[Frame]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, u32::from(link_type.0)] {
        file.extend(u32::to_le_bytes(word));
    }
    for (number, frame) in frames.iter().enumerate() {
        for word in [number as u32, 0, frame.data.len() as u32, frame.wire_len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&frame.data);
    }
    fs::write(path, file).unwrap();
}

/// The link type, and for each packet the seconds of its time and the packet, of a little-endian
/// classic pcap file, which is what tcpdump writes on this machine.
pub fn read(file: &[u8]) -> Option<(LinkType, Vec<(u32, Frame)>)> {
    let word = |at: usize| Some(u32::from_le_bytes(*file.get(at..)?.first_chunk()?));
    (word(0)? == 0xa1b2_c3d4).then_some(())?;
    let link_type = LinkType(word(20)? as u16);
    let mut packets = Vec::new();
    let mut at = 24;
    while let (Some(seconds), Some(captured), Some(wire_len)) =
        (word(at), word(at + 8), word(at + 12))
    {
        let data = file.get(at + 16..at + 16 + captured as usize)?.to_vec();
        packets.push((seconds, Frame { data, wire_len }));
        at += 16 + captured as usize;
    }
    Some((link_type, packets))
}

/// Any capture as classic pcap. `Err` holds what tcpdump says of a file that it cannot read.
pub fn convert(path: &Path) -> Result<(LinkType, Vec<Frame>), String> {
    let output = tcpdump(path, "", true);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let (link_type, packets) = read(&output.stdout).ok_or_else(|| message.clone())?;
    if packets.is_empty() {
        return Err(message);
    }
    Ok((link_type, packets.into_iter().map(|packet| packet.1).collect()))
}

/// What tcpdump does with the packets of a file that [`write()`] wrote: for each whether it matches,
/// or `None` where tcpdump refuses the expression for this link type.
pub fn verdicts(path: &Path, count: usize, expression: &str, optimised: bool) -> Option<Vec<bool>> {
    let output = tcpdump(path, expression, optimised);
    let message = String::from_utf8_lossy(&output.stderr);
    let mut verdicts = vec![false; count];
    if message.contains("expression rejects all packets") {
        return Some(verdicts);
    }
    if !output.status.success() {
        return None;
    }
    for (number, _) in read(&output.stdout).expect("tcpdump writes pcap").1 {
        verdicts[number as usize] = true;
    }
    Some(verdicts)
}

fn tcpdump(path: &Path, expression: &str, optimised: bool) -> std::process::Output {
    let mut command = Command::new("tcpdump");
    command.args(["-n", "-w", "-", "-r"]).arg(path);
    if !optimised {
        command.arg("-O");
    }
    if std::env::var_os("USER").is_none_or(|user| user == "root") {
        // As root, tcpdump would become a user who may not write.
        command.args(["-Z", "root"]);
    }
    command.arg("--").arg(expression).output().unwrap()
}
