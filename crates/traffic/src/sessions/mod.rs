//! Hosts that hold sessions with servers, one after the other: whole conversations of well-known protocols, seeded, in
//! order of time, and never more in memory than each host's session of the moment.
//!
//! A protocol is one file, and one entry of [`Kind`].

mod dns;
mod ftp;
mod hosts;
mod http;
mod https;
mod profile;
mod scene;
mod smtp;
mod ssh;

pub use self::hosts::{Frame, Hosts, Settings};
pub use self::profile::Profile;
use self::scene::ActiveSession;
use crate::dialogue::Seen;

/// What sessions there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Pages and files over HTTP/1.1, on one connection.
    Http,
    /// A mail over SMTP.
    Smtp,
    /// A file over FTP in passive mode, on a connection of its own.
    Ftp,
    /// A shell over SSH.
    Ssh,
    /// HTTP over TLS 1.3; what is encrypted is noise of the right length.
    Https,
    /// A name looked up over UDP.
    Dns,
}

impl Kind {
    /// The list of all sessions.
    pub const ALL: [Self; 6] =
        [Self::Http, Self::Smtp, Self::Ftp, Self::Ssh, Self::Https, Self::Dns];

    /// The word that the command line takes for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Smtp => "smtp",
            Self::Ftp => "ftp",
            Self::Ssh => "ssh",
            Self::Https => "https",
            Self::Dns => "dns",
        }
    }

    /// The kind with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Plays a session and returns its frames in order of time. Names are looked up before, as hosts do.
    fn play(self, scene: &mut ActiveSession<'_>) -> Vec<Seen> {
        match self {
            Self::Http => http::play(scene),
            Self::Smtp => smtp::play(scene),
            Self::Ftp => ftp::play(scene),
            Self::Ssh => ssh::play(scene),
            Self::Https => https::play(scene),
            Self::Dns => dns::play(scene),
        }
        scene.take_frames()
    }

    /// The port of its servers.
    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Smtp => 25,
            Self::Ftp => 21,
            Self::Ssh => 22,
            Self::Https => 443,
            Self::Dns => 53,
        }
    }
}

#[cfg(test)]
mod tests;
