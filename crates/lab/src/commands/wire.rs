//! Arguments about a wire to another machine that sends.

use netsniff_console::UsageError;

use crate::testbed::{Destination, Layout, Wire};

/// The wire to another machine that sends, where there is one.
#[derive(Debug, clap::Args)]
pub(super) struct WireArgs {
    /// Another machine sends, which ssh reaches: ssh://[USER@]HOST[:PORT]; nothing is changed there, nor here
    #[arg(long, value_name = "URL", value_parser = Destination::parse,
          requires_all = ["sender_interface", "interface"])]
    sender: Option<Destination>,
    /// Its interface, at which the wire begins
    #[arg(long, value_name = "IFACE", requires = "sender", value_parser = interface)]
    sender_interface: Option<String>,
    /// The interface of this machine, at which the wire ends
    #[arg(short, long, value_name = "IFACE", requires = "sender", value_parser = interface)]
    interface: Option<String>,
    /// The netsniff of the other machine [default: netsniff]
    #[arg(long, value_name = "PATH", requires = "sender")]
    sender_program: Option<String>,
    /// What reaches it, with arguments, as "ssh -J gate -i key" [default: ssh]
    #[arg(long, value_name = "COMMAND", requires = "sender", value_parser = words)]
    ssh: Option<Words>,
}

#[derive(Clone, Debug)]
struct Words(Vec<String>);

fn words(text: &str) -> Result<Words, String> {
    let words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { Err("it has no words".to_owned()) } else { Ok(Words(words)) }
}

/// The name of an interface, as the kernel takes it.
fn interface(text: &str) -> Result<String, String> {
    let is_fine = |letter: char| !letter.is_whitespace() && letter != '/' && letter != ':';
    if (1..=15).contains(&text.len()) && text.chars().all(is_fine) && !text.starts_with(['-', '.'])
    {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is no name of an interface"))
    }
}

impl WireArgs {
    /// The testbed that is there; `None` where one is to be made.
    ///
    /// # Errors
    ///
    /// [`UsageError`] where `is_placed` says that something is to be changed of it.
    pub(super) fn layout(&self, is_placed: bool) -> Result<Option<Layout>, UsageError> {
        let Self { sender, sender_interface, interface, .. } = self;
        let (Some(sender), Some(sender_interface), Some(interface)) =
            (sender, sender_interface, interface)
        else {
            return Ok(None);
        };
        if is_placed {
            return Err(UsageError(
                "--placement is of a testbed that the lab makes; between two machines, interrupts go where they go"
                    .to_owned(),
            ));
        }
        let ssh =
            self.ssh.as_ref().map_or_else(|| vec!["ssh".to_owned()], |Words(ssh)| ssh.clone());
        let program = self.sender_program.as_deref().unwrap_or("netsniff");
        Ok(Some(Layout::of_wire(Wire {
            sender: sender.clone(),
            sender_interface: sender_interface.clone(),
            sender_program: program.to_owned(),
            interface: interface.clone(),
            ssh,
        })))
    }
}

/// For commands that know only testbeds that they make.
#[derive(Debug, clap::Args)]
pub(super) struct NoWireArgs {
    // Says more than that there is no such argument.
    #[arg(long, hide = true, value_name = "URL", value_parser = refuse)]
    sender: Option<String>,
}

fn refuse(_: &str) -> Result<String, String> {
    Err("only lab lossless, lab sweep and lab certify measure between two machines; this command needs a testbed of its own, whose \
         kernel and interfaces it sets"
        .to_owned())
}
