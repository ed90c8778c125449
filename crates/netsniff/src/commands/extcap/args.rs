//! The words of the extcap protocol, and those that people type.

use std::path::PathBuf;

/// Let Wireshark capture with netsniff, and open the packets of connections
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
#[command(after_help = "Examples:\n  \
    netsniff extcap --install                 Wireshark and TShark list the interfaces from their next start on\n  \
    tshark -D                                 lists netsniff-extract, and netsniff-live-eth0 and the like\n  \
    tshark -i netsniff-extract -o extcap.netsniff_extract.file:day.pcapng -o 'extcap.netsniff_extract.where:id.resp_p = 443'\n  \
    netsniff extcap --extcap-interfaces       what Wireshark is told\n\n\
    The options of captures are set in Wireshark by the gear beside an interface; docs/wireshark.md has them.\n\n\
    Exit code: 0 fine; 1 failed; 2 wrong usage; else as of netsniff record and netsniff extract")]
pub struct ExtcapArgs {
    /// Put a link to this program into the folder where Wireshark looks for such programs, as `tshark -G folders` names it
    #[arg(long, group = "link")]
    pub install: bool,
    /// Remove that link
    #[arg(long, group = "link")]
    pub uninstall: bool,
    /// The folder, where there is no tshark to ask, or another one is meant
    #[arg(long, value_name = "DIR", requires = "link")]
    pub dir: Option<PathBuf>,
    /// What Wireshark asks.
    #[command(flatten)]
    pub asked: Asked,
    /// What people set for a live capture.
    #[command(flatten)]
    pub live: LiveSettings,
    /// What people set for an extraction.
    #[command(flatten)]
    pub extraction: ExtractionSettings,
}

/// What Wireshark asks. People have no use for it, so that help and configuration files do not show it.
#[derive(Debug, clap::Args)]
pub struct Asked {
    /// Which interfaces there are
    #[arg(long = "extcap-interfaces", hide = true)]
    pub interfaces: bool,
    /// The version of Wireshark that asks
    #[arg(long = "extcap-version", hide = true, value_name = "VERSION", num_args = 0..=1, require_equals = true)]
    pub version: Option<Option<String>>,
    /// The interface that is meant
    #[arg(long = "extcap-interface", hide = true, value_name = "NAME")]
    pub interface: Option<String>,
    /// Its link type
    #[arg(long = "extcap-dlts", hide = true)]
    pub dlts: bool,
    /// Its options
    #[arg(id = "extcap_config", long = "extcap-config", hide = true)]
    pub config: bool,
    /// Capture on it
    #[arg(long, hide = true, requires = "fifo")]
    pub capture: bool,
    /// The pipe that packets are written to
    #[arg(long, hide = true, value_name = "FILE")]
    pub fifo: Option<PathBuf>,
    /// The filter of a capture; without --capture it is asked whether it is one
    #[arg(
        long = "extcap-capture-filter",
        hide = true,
        value_name = "EXPR",
        allow_hyphen_values = true
    )]
    pub filter: Option<String>,
}

/// What people set for a live capture.
#[derive(Debug, clap::Args)]
pub struct LiveSettings {
    /// Bytes of each packet that are kept
    #[arg(long, hide = true, value_name = "BYTES", allow_hyphen_values = true)]
    pub snaplen: Option<String>,
    /// Capture only what is for this machine
    #[arg(long, hide = true)]
    pub no_promiscuous: bool,
}

/// What people set for an extraction, as text: empty if it is not set.
#[derive(Debug, clap::Args)]
pub struct ExtractionSettings {
    /// A capture file, or a directory of them
    #[arg(long, hide = true, value_name = "FILE", allow_hyphen_values = true)]
    pub file: Option<PathBuf>,
    /// Further ones, with colons between
    #[arg(long, hide = true, value_name = "FILES", allow_hyphen_values = true)]
    pub more_files: Option<std::ffi::OsString>,
    /// Connections by the column `uid`
    #[arg(long, hide = true, value_name = "LIST", allow_hyphen_values = true)]
    pub uid: Option<String>,
    /// Connections by the column `community_id`
    #[arg(long, hide = true, value_name = "LIST", allow_hyphen_values = true)]
    pub community_id: Option<String>,
    /// Connections that carried a file of `files`
    #[arg(long, hide = true, value_name = "LIST", allow_hyphen_values = true)]
    pub fuid: Option<String>,
    /// Connections whose row of `conn` meets a condition
    #[arg(long = "where", hide = true, value_name = "CONDITION", allow_hyphen_values = true)]
    pub condition: Option<String>,
    /// Packets stamped at this time or later
    #[arg(long, hide = true, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// Packets stamped before this time
    #[arg(long, hide = true, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
}
