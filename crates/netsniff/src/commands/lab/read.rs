//! `netsniff lab read`: takes packets of files as an analysis does, and does nothing with them.

use std::io::stdout;
use std::path::PathBuf;

use anyhow::Context as _;
use netsniff_console::{DAMAGED, DONE, FAILED, print, say};
use netsniff_packet::{Batch, Progress, Source as _};

use crate::commands::inputs::Inputs;

/// Read capture files as an analysis does, and do nothing with the packets: what no analysis can be faster than
#[derive(Debug, clap::Args)]
pub(super) struct ReadArgs {
    /// Capture files; several are merged by time
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Runs the command and returns its exit code.
///
/// # Errors
///
/// Where standard output cannot be written.
pub(super) fn run(args: &ReadArgs) -> anyhow::Result<u8> {
    let (mut inputs, refused) = Inputs::open(&args.files, netsniff_pipeline::read_size(1));
    for input in &refused {
        say(&format!("{}: {}", input.path.display(), input.said));
    }
    if inputs.files.is_empty() {
        return Ok(FAILED);
    }
    let mut batch = Batch::default();
    loop {
        let Ok(progress) = inputs.read_batch(&mut batch);
        // Nobody may leave out what nobody uses.
        core::hint::black_box(&batch);
        if progress == Progress::End {
            break;
        }
    }
    let is_damaged = inputs.report_damage();
    let report = serde_json::json!({"books": {"read": inputs.packets()}});
    print(stdout(), &format!("{report}\n")).context("cannot print the number of packets")?;
    Ok(if is_damaged || !refused.is_empty() { DAMAGED } else { DONE })
}
