//! Writes the conversations of captures as inputs of the target `conversations`: seeds FOLDER CAPTURE...
//!
//! Each goes to `FOLDER/conversations`, and to `FOLDER/conversations-PROTOCOL` for each protocol that
//! it is found to be in.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use netsniff_analysis::protocol::{ProtocolId, ProtocolSet};
use netsniff_fuzz::conversations::{Cuts, What, check, input, play};
use netsniff_fuzz::dialogues::{Dialogue, datagrams, dialogues};

/// Bytes of the longest input. The engine of the target takes no longer ones by itself.
const MOST: usize = 16 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().ok_or("usage: seeds FOLDER CAPTURE...")?;
    let mut written = 0;
    for path in arguments {
        let Some(batches) = netsniff_fuzz::batches(File::open(&path)?) else {
            eprintln!("{} is no capture, left out", path.display());
            continue;
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        for (at, dialogue) in dialogues(&batches).iter().enumerate() {
            let found = play(&dialogue.turns, dialogue.flow, Cuts::None).services;
            let found: Vec<&str> = found.iter().flat_map(|found| found.split(',')).collect();
            written += write(&folder, &format!("{name}-tcp-{at}"), dialogue, &found)?;
        }
        for (at, dialogue) in datagrams(&batches).iter().enumerate() {
            let found: Vec<&str> = ProtocolSet::ALL
                .iter()
                .filter(|id| is_of(*id, dialogue))
                .map(|id| id.protocol().name())
                .collect();
            written += write(&folder, &format!("{name}-udp-{at}"), dialogue, &found)?;
        }
    }
    println!("{written} inputs");
    Ok(())
}

/// Whether a protocol makes something of a conversation of datagrams.
fn is_of(id: ProtocolId, dialogue: &Dialogue) -> bool {
    let protocol = id.protocol();
    let is_known = protocol.udp_ports().contains(&dialogue.flow.port)
        || dialogue.turns.iter().any(|turn| match &turn.what {
            What::Bytes(payload) => protocol.detect_datagram(payload),
            What::Gap(_) | What::End => false,
        });
    is_known && check(ProtocolSet::NONE.with(id), &input(dialogue.flow.port, &dialogue.turns)) > 0
}

/// Writes an input for all protocols and for those that were found. Returns how many were written.
fn write(
    folder: &Path,
    name: &str,
    dialogue: &Dialogue,
    found: &[&str],
) -> Result<usize, Box<dyn Error>> {
    let mut input = input(dialogue.flow.port, &dialogue.turns);
    input.truncate(MOST);
    let folders = found.iter().map(|protocol| format!("conversations-{protocol}"));
    let folders: Vec<_> = folders.chain(["conversations".to_owned()]).collect();
    for part in &folders {
        let folder = folder.join(part);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), &input)?;
    }
    Ok(folders.len())
}
