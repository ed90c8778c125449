//! The arguments that say how pseudonyms are made, for all commands that make some.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use netsniff_console::UsageError;
use netsniff_console::keyfile::{self, MAKE_ONE};
use netsniff_packet::Anonymizer;
use netsniff_packet::anonymize::{Keep, Key, Method};

/// How pseudonyms are made; of no use without what makes a command write some, which is its group `pseudonymized`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PseudonymArgs {
    /// What becomes of IP addresses
    #[arg(short, long, value_enum, value_name = "METHOD", requires = "pseudonymized")]
    method: Option<MethodName>,
    /// File of the key: 64 hexadecimal digits, or 32 bytes. The same key gives the same pseudonyms in
    /// logs and captures
    #[arg(short, long, value_name = "KEYFILE", requires = "pseudonymized")]
    key: Option<PathBuf>,
    /// Addresses that stay, besides loopback, multicast and other special ones: ranges with commas
    /// between, as 10.0.0.0/8,2001:db8::/32. The word none first lets the special ones go, too, which
    /// is Crypto-PAn as published
    #[arg(long, value_name = "RANGES", value_parser = keep, requires = "pseudonymized")]
    keep: Option<Keep>,
}

/// What becomes of IP addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum MethodName {
    /// Crypto-PAn, prefix-preserving, by the key that -k gives: the same in every run
    Cryptopan,
    /// All of them become 0.0.0.0 or ::
    Nullip,
    /// As cryptopan, by a key that is drawn for this run unless -k gives one [default]
    #[default]
    Tcpdriv,
}

/// Pseudonyms, and a sentence that says of which kind.
#[derive(Clone, Debug)]
pub struct Pseudonyms {
    /// Makes the pseudonyms.
    pub anonymizer: Anonymizer,
    /// Method and key, for people. Not the key itself, but what tells it from others.
    pub said: String,
}

impl PseudonymArgs {
    /// Whether another run makes the same pseudonyms: by a key that is given, or by none.
    pub(super) const fn are_known_again(&self) -> bool {
        self.key.is_some() || matches!(self.method, Some(MethodName::Nullip))
    }

    /// Reads or draws the key.
    ///
    /// # Errors
    ///
    /// [`UsageError`] where a key is needed and none is given. Failures to read it, with what to do.
    pub fn pseudonyms(&self) -> anyhow::Result<Pseudonyms> {
        let name = self.method.unwrap_or_default();
        let key = match &self.key {
            Some(path) => read_key(path)?,
            None if name == MethodName::Cryptopan => {
                return Err(UsageError(format!(
                    "-m cryptopan gives the same pseudonyms in every run, by a key: add -k KEYFILE.\n\
                     {MAKE_ONE}. For pseudonyms of this run alone say -m tcpdriv"
                ))
                .into());
            }
            None => draw_key()?,
        };
        let (method, word) = match name {
            MethodName::Cryptopan => (Method::CryptoPan, "cryptopan"),
            MethodName::Nullip => (Method::NullIp, "nullip"),
            MethodName::Tcpdriv => (Method::TcpDriv, "tcpdriv"),
        };
        let anonymizer = Anonymizer::new(method, &key, &self.keep.clone().unwrap_or_default());
        let by = match &self.key {
            Some(_) => format!("the key with the name {:08x}", anonymizer.key_id()),
            None => "a key of this run, which nobody keeps".to_owned(),
        };
        Ok(Pseudonyms { anonymizer, said: format!("anonymised: {word} by {by}") })
    }
}

fn read_key(path: &Path) -> anyhow::Result<Key> {
    let content = keyfile::read(path)?;
    let name = path.display();
    Key::parse(&content).map_err(|error| anyhow!("the key file {name}: {error}. {MAKE_ONE}"))
}

fn draw_key() -> anyhow::Result<Key> {
    let mut bytes = [0; Key::LEN];
    getrandom::fill(&mut bytes).context("the system gives no random bytes for a key")?;
    Ok(Key::new(bytes))
}

fn keep(text: &str) -> Result<Keep, String> {
    let mut keep = Keep::default();
    for (at, word) in text.split(',').map(str::trim).enumerate() {
        if at == 0 && word == "none" {
            keep.special = false;
        } else {
            keep.ranges.push(word.parse().map_err(|error| format!("{error}"))?);
        }
    }
    Ok(keep)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_to_keep_are_read() {
        assert_eq!(keep("10.0.0.0/8, 2001:db8::/32").unwrap().ranges.len(), 2);
        assert!(keep("10.0.0.0/8").unwrap().special);
        let all = keep("none,10.0.0.0/8").unwrap();
        assert_eq!((all.special, all.ranges.len()), (false, 1));
        assert_eq!(keep("none"), Ok(Keep { special: false, ranges: Vec::new() }));
        for wrong in ["", "10.0.0.0/8,none", "10.0.0.0/8,", "office"] {
            assert!(keep(wrong).unwrap_err().contains("is no range"), "{wrong:?}");
        }
    }

    #[test]
    fn cryptopan_needs_a_key_and_the_others_draw_one() {
        let args = |method| PseudonymArgs { method, ..PseudonymArgs::default() };
        let error = args(Some(MethodName::Cryptopan)).pseudonyms().unwrap_err();
        assert!(error.is::<UsageError>() && error.to_string().contains("-k KEYFILE"), "{error}");
        let drawn = || args(None).pseudonyms().unwrap();
        assert_ne!(drawn().anonymizer.key_id(), drawn().anonymizer.key_id());
        assert!(drawn().said.starts_with("anonymised: tcpdriv by a key of this run"));
    }
}
