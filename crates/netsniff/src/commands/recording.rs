//! The arguments of a recording, as every command that records has them.

use std::path::PathBuf;

use netsniff_console::UsageError;
use netsniff_console::paths::is_stdin;
use netsniff_console::quantity::size;
use netsniff_packet::decode::TunnelPorts;
use netsniff_pcapfile::{Interface, Packing, Section};
use netsniff_pipeline::recording::machine;
use netsniff_pipeline::recording::naming::{CaptureFormat, packing_of_name};
use netsniff_pipeline::recording::options::{BUFFER_BYTES, BUFFERS, Options, WriteIo};
use netsniff_pipeline::recording::rotation::{Rotation, Rule};

/// Where packets are recorded, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct RecordOutputArgs {
    /// Record to this file, or with `-b` to files with number and time in their names; `-` for
    /// standard output
    #[arg(short, long, value_name = "FILE")]
    pub write: PathBuf,
    /// Format of the files; as the name's suffix tells, or else pcapng
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<CaptureFormat>,
    /// Begin another file by these rules, as dumpcap does: duration:SECONDS since the first packet,
    /// interval:SECONDS at multiples, filesize:KB, packets:N; keep files:N, or quota:SIZE of all
    /// files. May be repeated
    #[arg(short = 'b', long = "rotate", value_name = "RULE")]
    rotate: Vec<Rule>,
    /// Pack with gzip, zstd or lz4, as `zstd:9` with a level; as the name's suffix tells, or else
    /// not
    #[arg(long, value_name = "HOW")]
    compress: Option<Packing>,
    /// Keep only headers of a flow behind its first bytes, as 100k
    #[arg(long, value_name = "SIZE", value_parser = size)]
    flow_cutoff: Option<usize>,
    /// UDP ports on which tunnels are looked for, whose flows are cut off one by one, beside the known
    /// ones, as for netsniff analyze
    #[arg(long, value_name = "LIST", requires = "flow_cutoff")]
    tunnel_ports: Option<TunnelPorts>,
    /// Write a comment into the begin of each file (pcapng). May be repeated
    #[arg(long, value_name = "TEXT")]
    comment: Vec<String>,
    /// Memory for what waits to be written; what comes when it is full is refused and counted
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "32M")]
    write_buffer: usize,
    /// How files get to the disk
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    io: WriteIo,
}

impl RecordOutputArgs {
    /// One file of this name, with what is usual.
    #[must_use]
    pub const fn to(write: PathBuf) -> Self {
        Self {
            write,
            format: None,
            rotate: Vec::new(),
            compress: None,
            flow_cutoff: None,
            tunnel_ports: None,
            comment: Vec::new(),
            write_buffer: BUFFER_BYTES * BUFFERS,
            io: WriteIo::Auto,
        }
    }

    /// What is to be recorded from these interfaces.
    ///
    /// # Errors
    ///
    /// Where arguments contradict each other, or there is no chance to be had for a secret.
    pub fn options(&self, interfaces: Vec<Interface>) -> anyhow::Result<Options> {
        let rotation = Rotation::of_rules(&self.rotate);
        let to_stdout = is_stdin(&self.write);
        let usage = |said: &str| Err(UsageError(said.to_owned()).into());
        if to_stdout && rotation.is_on() {
            return usage("standard output is one file: -b needs the name of a file behind -w");
        }
        if !to_stdout && self.write.file_name().is_none() {
            return usage("-w takes the name of a file");
        }
        if rotation.never_ends_a_file() {
            return usage("-b files:N needs another -b that ends files, as -b filesize:100000");
        }
        let named = if to_stdout { None } else { CaptureFormat::of_name(&self.write) };
        let format = self.format.or(named).unwrap_or_default();
        if format == CaptureFormat::Pcap && !self.comment.is_empty() {
            return usage("pcap has no room for a comment: write pcapng");
        }
        Ok(Options {
            format,
            io: self.io,
            packing: self.compress.or_else(|| packing_of_name(&self.write)),
            rotation,
            flow_cutoff: self.flow_cutoff.map(|bytes| bytes as u64),
            tunnel_ports: self.tunnel_ports.clone().unwrap_or_default(),
            seed: getrandom::u64().map_err(|error| anyhow::anyhow!("no random seed: {error}"))?,
            section: Section { comments: self.comment.clone(), ..machine::section() },
            buffers: (self.write_buffer / BUFFER_BYTES).max(2),
            ..Options::new(self.write.clone(), interfaces)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_packet::LinkType;
    use netsniff_pcapfile::Compression;
    use netsniff_pipeline::recording::options::MOST_CAPTURED;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        output: RecordOutputArgs,
    }

    fn options(words: &str) -> anyhow::Result<Options> {
        let words = ["record"].into_iter().chain(words.split(' '));
        let command = <Command as clap::Parser>::try_parse_from(words)?;
        command.output.options(vec![Interface::new(LinkType::ETHERNET, 0)])
    }

    #[test]
    fn the_name_tells_what_is_not_told_otherwise() {
        let options = |words| options(words).unwrap();
        let packed = |options: &Options| options.packing.map(|it| it.compression());
        let plain = options("-w a.pcapng");
        assert_eq!((plain.format, packed(&plain)), (CaptureFormat::Pcapng, None));
        assert_eq!((plain.buffers, plain.snaplen), (BUFFERS, MOST_CAPTURED));
        let named = options("-w a.pcap.zst --write-buffer 8M --flow-cutoff 10k");
        assert_eq!((named.format, packed(&named)), (CaptureFormat::Pcap, Some(Compression::Zstd)));
        assert_eq!((named.buffers, named.flow_cutoff), (32, Some(10_240)));
        let told = options(
            "-w a.pcap --format pcapng --compress gzip:6 --comment x -b files:2 -b packets:5",
        );
        assert_eq!((told.format, packed(&told)), (CaptureFormat::Pcapng, Some(Compression::Gzip)));
        assert_eq!((told.rotation.files, told.section.comments), (Some(2), vec!["x".to_owned()]));
        assert_eq!(options("-w -").format, CaptureFormat::Pcapng);
    }

    #[test]
    fn contradictions_are_told() {
        for (words, expected) in [
            ("-w - -b packets:3", "standard output is one file"),
            ("-w a.pcap --comment x", "no room for a comment"),
            ("-w a -b files:3", "needs another -b"),
            ("-w a/..", "name of a file"),
            ("-w a -b size:3", "is none of duration"),
            ("-w a --compress gzip:11", "from 0 to 9"),
        ] {
            let error = options(words).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(expected), "{words}: {error}");
        }
    }
}
