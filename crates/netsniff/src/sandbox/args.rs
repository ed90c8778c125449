//! The arguments that say what a process that captures gives up.

use super::{Identity, Mode, Outputs, Sandbox};

/// What to give up once everything is open. What is opened is the argument of the group `opened`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SafetyArgs {
    /// Go on as this user once everything is open: a name, UID or UID:GID. Started by root that is, unless
    /// told, whoever called sudo where the outputs are theirs, and else nobody
    #[arg(long, value_name = "USER", requires = "opened")]
    user: Option<String>,
    /// Go on as the user who started this, also as root; capabilities are given up all the same
    #[arg(long, requires = "opened", conflicts_with = "user")]
    no_drop: bool,
    /// What else to give up, by Landlock and seccomp
    #[arg(long, value_enum, value_name = "HOW", requires = "opened", default_value_t)]
    sandbox: Mode,
}

impl SafetyArgs {
    /// What is to be given up by a process that still writes `outputs`.
    ///
    /// # Errors
    ///
    /// [`netsniff_console::UsageError`] where there is no such user, or only root could become it.
    pub fn sandbox(&self, outputs: Outputs, keeps_net_raw: bool) -> anyhow::Result<Sandbox> {
        let identity = match &self.user {
            Some(user) => Identity::named(user)?,
            None if self.no_drop => Identity::current(),
            None => Identity::usual(&outputs),
        };
        Ok(Sandbox { identity, outputs, mode: self.sandbox, keeps_net_raw })
    }
}
