//! What a process that captures gives up once everything is open: the user, capabilities, files, calls.
//!
//! All of it is done by the first thread before there is another one, since a thread inherits what the
//! one that starts it has given up.
//!
//! | module | concern |
//! |---|---|
//! | [`args`] | its arguments |
//! | [`outputs`] | what is still to be written, and whether it can be |
//! | [`user`] | whom the process goes on as |
//! | [`capabilities`] | rights of threads |
//! | `files` | Landlock: which files |
//! | `calls`, `filters` | seccomp: which system calls |

pub mod args;
mod calls;
pub mod capabilities;
mod files;
mod filters;
pub mod outputs;
pub mod user;

use anyhow::{Context as _, bail, ensure};

pub use self::args::SafetyArgs;
pub use self::files::Files;
pub use self::outputs::Outputs;
pub use self::user::Identity;
use netsniff_console::UsageError;
use rustix::process::{getppid, parent_process_death_signal, set_parent_process_death_signal};

/// How much is forbidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Files but for the outputs, and calls that no capture needs
    #[default]
    On,
    /// The same, and every call that is not known to be needed
    Strict,
    /// Nothing; user and capabilities are given up all the same
    Off,
}

/// What a process gives up.
#[derive(Debug)]
pub struct Sandbox {
    /// Whom it goes on as.
    pub identity: Identity,
    /// What it still writes.
    pub outputs: Outputs,
    /// How much is forbidden.
    pub mode: Mode,
    /// Whether `CAP_NET_RAW` stays, for the caller to hand on and then to give up.
    pub keeps_net_raw: bool,
}

/// What is at work, as it was found after it had been set.
#[derive(Debug)]
pub struct Active {
    identity: Identity,
    mode: Mode,
    /// Calls that the filters name.
    calls: usize,
    files: Option<Files>,
    outputs: String,
}

impl Sandbox {
    /// Gives up what is not needed any more, and finds out whether it is gone.
    ///
    /// # Errors
    ///
    /// [`UsageError`] where the outputs cannot be written by the user, with what mends it; and where the
    /// kernel refuses, or something is still there.
    pub fn enter(self) -> anyhow::Result<Active> {
        self.outputs.make(&self.identity)?;
        let (parent, at_its_end) = (getppid(), parent_process_death_signal()?);
        self.identity.assume()?;
        capabilities::keep_only(self.keeps_net_raw)?;
        if at_its_end.is_some() {
            // The kernel forgets it where the user changes (PR_SET_PDEATHSIG, prctl(2)).
            set_parent_process_death_signal(at_its_end)?;
            ensure!(getppid() == parent, "the process that started this has ended");
        }
        rustix::thread::set_no_new_privs(true).context("cannot forbid new rights")?;
        if let Some(why) = self.outputs.refused(&self.identity) {
            return Err(UsageError(why).into());
        }
        let off = self.mode == Mode::Off;
        let files = if off { None } else { Some(files::restrict(&self.outputs)?) };
        let calls = filters::apply(self.mode)?;
        let outputs = self.outputs.to_string();
        self.verify(files.as_ref())?;
        Ok(Active { identity: self.identity, mode: self.mode, calls, files, outputs })
    }

    fn verify(&self, files: Option<&Files>) -> anyhow::Result<()> {
        self.identity.verify()?;
        if !capabilities::are_only(self.keeps_net_raw)? {
            bail!("capabilities are still there after they were given up");
        }
        if !rustix::thread::no_new_privs().context("cannot read what was forbidden")? {
            bail!("new rights are still possible after they were forbidden");
        }
        if self.mode != Mode::Off && !filters::are_active()? {
            bail!("the filters of system calls are not at work");
        }
        if files.is_some_and(Files::is_active) && !self.outputs.are_all_there_is() {
            bail!("other files can still be read, though Landlock was to forbid it");
        }
        Ok(())
    }
}

impl Active {
    /// What is at work, in one line. `reopens` tells that another thread has `CAP_NET_RAW`.
    #[must_use]
    pub fn text(&self, reopens: bool) -> String {
        let mut parts = vec![format!("user {}", self.identity)];
        parts.push(if reopens {
            "no capabilities, but CAP_NET_RAW in the thread that opens interfaces again".to_owned()
        } else {
            "no capabilities".to_owned()
        });
        match &self.files {
            Some(files) if files.is_active() => {
                parts.push(format!("{files}: {}", self.outputs));
            }
            Some(files) => parts.push(files.to_string()),
            None => parts.push("files and calls as the user may (--sandbox off)".to_owned()),
        }
        match self.mode {
            Mode::On => parts.push(format!("seccomp refuses {} calls", self.calls)),
            Mode::Strict => parts.push(format!("seccomp allows {} calls only", self.calls)),
            Mode::Off => {}
        }
        format!("safety: {}", parts.join("; "))
    }

    /// Whether the kernel has what was asked of it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.files.as_ref().is_none_or(Files::is_active)
    }
}
