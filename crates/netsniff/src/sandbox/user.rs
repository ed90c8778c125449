//! Whom a process goes on as once it needs root no more.

use std::fmt;

use anyhow::{Context as _, bail};
use netsniff_console::UsageError;
use nix::unistd::{Gid, Uid, User, getegid, geteuid, getgid, getuid};
use nix::unistd::{getresgid, getresuid, setgroups, setresgid, setresuid};
use rustix::thread::set_keep_capabilities;

use super::Outputs;

/// Where no user is called nobody: what the kernel calls the overflow user.
const NOBODY: u32 = 65_534;

/// A user with a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    uid: Uid,
    gid: Gid,
    name: Option<String>,
}

impl Identity {
    /// The user who runs this process.
    #[must_use]
    pub fn current() -> Self {
        Self::of(geteuid(), getegid())
    }

    fn of(uid: Uid, gid: Gid) -> Self {
        let name = User::from_uid(uid).ok().flatten().map(|user| user.name);
        Self { uid, gid, name }
    }

    /// A user by what an argument says: a name, a number, or numbers of user and group.
    ///
    /// # Errors
    ///
    /// [`UsageError`] where there is none, or only root could become it.
    pub fn named(text: &str) -> anyhow::Result<Self> {
        let unknown = |why: &str| UsageError(format!("--user {text}: {why}"));
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number != u32::MAX);
        let identity = if let Some((uid, gid)) = text.split_once(':') {
            let (Some(uid), Some(gid)) = (number(uid), number(gid)) else {
                return Err(unknown("expected the numbers UID:GID").into());
            };
            Self::of(Uid::from_raw(uid), Gid::from_raw(gid))
        } else {
            let user = match number(text) {
                Some(uid) => User::from_uid(Uid::from_raw(uid)),
                None => User::from_name(text),
            };
            let user = user.with_context(|| format!("cannot look up the user {text}"))?;
            let user = user.ok_or_else(|| unknown("there is no such user; UID:GID needs none"))?;
            Self { uid: user.uid, gid: user.gid, name: Some(user.name) }
        };
        if identity.uid != geteuid() && !geteuid().is_root() {
            return Err(unknown("only root can go on as another user").into());
        }
        Ok(identity)
    }

    /// Whom to go on as where nothing is told: whoever is not root stays. Root becomes the user who
    /// called a set-user-ID program, or sudo where all outputs are theirs, and else nobody.
    #[must_use]
    pub fn usual(outputs: &Outputs) -> Self {
        if !geteuid().is_root() {
            return Self::current();
        }
        if !getuid().is_root() {
            return Self::of(getuid(), getgid());
        }
        let variable = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        match (variable("SUDO_UID"), variable("SUDO_GID")) {
            (Some(uid), Some(gid)) if uid != 0 && outputs.belong_to(uid) => {
                Self::of(Uid::from_raw(uid), Gid::from_raw(gid))
            }
            _ => {
                let nobody = User::from_name("nobody").ok().flatten();
                let (uid, gid) = nobody
                    .map_or((Uid::from_raw(NOBODY), Gid::from_raw(NOBODY)), |user| {
                        (user.uid, user.gid)
                    });
                Self::of(uid, gid)
            }
        }
    }

    /// The number of the user.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.uid.as_raw()
    }

    /// The number of the group.
    #[must_use]
    pub const fn gid(&self) -> u32 {
        self.gid.as_raw()
    }

    /// What to call the user in a command.
    #[must_use]
    pub fn called(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.uid.to_string())
    }

    fn is_current(&self) -> bool {
        let uids = getresuid().map(|ids| [ids.real, ids.effective, ids.saved]);
        let gids = getresgid().map(|ids| [ids.real, ids.effective, ids.saved]);
        uids == Ok([self.uid; 3]) && gids == Ok([self.gid; 3])
    }

    /// Makes this the user of the whole process, with no other group. Permitted capabilities stay, for
    /// [`super::capabilities::keep_only`] to choose among them.
    pub(super) fn assume(&self) -> anyhow::Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let assume = || -> anyhow::Result<()> {
            set_keep_capabilities(true)?;
            setgroups(&[self.gid])?;
            setresgid(self.gid, self.gid, self.gid)?;
            setresuid(self.uid, self.uid, self.uid)?;
            set_keep_capabilities(false)?;
            Ok(())
        };
        assume().with_context(|| {
            format!("cannot go on as {self} (--user USER names another one, --no-drop keeps root)")
        })
    }

    /// Finds out whether the process is this user, and cannot be root again.
    pub(super) fn verify(&self) -> anyhow::Result<()> {
        if !self.is_current() {
            bail!("the process is not {self} after it became that user");
        }
        let root = Uid::from_raw(0);
        if !self.uid.is_root() && setresuid(root, root, root).is_ok() {
            bail!("the process could become root again");
        }
        Ok(())
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({}:{})", self.uid, self.gid),
            None => write!(f, "{}:{}", self.uid, self.gid),
        }
    }
}
