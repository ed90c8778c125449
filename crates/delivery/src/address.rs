//! The URL of a target. Whoever lists processes sees it, so that no secret stands in it.

use std::fs;
use std::net::{SocketAddr, ToSocketAddrs as _};

use anyhow::{Context as _, anyhow, bail, ensure};
use percent_encoding::percent_decode_str;

/// A URL in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// As it was given.
    pub text: String,
    /// What stands before `://`.
    pub scheme: String,
    /// Host and port, as they were given.
    pub authority: String,
    /// From the first slash on; of a local socket, its path.
    pub path: String,
    /// What stands behind the question mark, decoded, in its order.
    pub parameters: Vec<(String, String)>,
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// Where it is none, or has a secret.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let (scheme, rest) = text
            .split_once("://")
            .with_context(|| format!("{:?} is no URL: scheme://… is missing", bare(text)))?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = match place.find('/') {
            _ if scheme == "unix" => ("", place),
            Some(slash) => place.split_at(slash),
            None => (place, ""),
        };
        ensure!(
            !authority.contains('@'),
            "a URL with a password shows it to all who list processes; say user=NAME&password=env:NAME, or file:PATH"
        );
        let parameters = query.split('&').filter(|part| !part.is_empty()).map(parameter);
        let parameters = parameters.collect::<anyhow::Result<Vec<_>>>()?;
        Ok(Self {
            text: text.to_owned(),
            scheme: scheme.to_ascii_lowercase(),
            authority: authority.to_owned(),
            path: path.to_owned(),
            parameters,
        })
    }

    /// Takes a parameter out.
    pub fn take(&mut self, name: &str) -> Option<String> {
        let at = self.parameters.iter().position(|(of, _)| of == name)?;
        Some(self.parameters.remove(at).1)
    }

    /// Takes a secret out, which a variable of the environment or a file has.
    ///
    /// # Errors
    ///
    /// Where it stands there itself, and where it cannot be read.
    pub fn take_secret(&mut self, name: &str) -> anyhow::Result<Option<String>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let secret = if let Some(variable) = value.strip_prefix("env:") {
            std::env::var(variable).with_context(|| format!("{name}=env:{variable}"))?
        } else if let Some(path) = value.strip_prefix("file:") {
            fs::read_to_string(path).with_context(|| format!("{name}=file:{path}"))?
        } else {
            bail!(
                "{name} is a secret, which all who list processes would see: say {name}=env:NAME or {name}=file:PATH"
            );
        };
        Ok(Some(secret.trim_end_matches(['\r', '\n']).to_owned()))
    }

    /// Makes sure that nobody expects anything of parameters that are not known.
    ///
    /// # Errors
    ///
    /// Where there is such a one.
    pub fn no_more_parameters(&self) -> anyhow::Result<()> {
        let unknown = self.parameters.first();
        unknown.map_or(Ok(()), |(name, _)| {
            Err(anyhow!("{}:// has no parameter {name:?}", self.scheme))
        })
    }

    /// The host, without brackets, and the port.
    ///
    /// # Errors
    ///
    /// Where there is no host, or no port and `usual` is none.
    pub fn host_and_port(&self, usual: Option<u16>) -> anyhow::Result<(&str, u16)> {
        let wrong = || anyhow!("{:?} names no host and port", bare(&self.text));
        let (host, port) = match self.authority.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
                (host, rest.strip_prefix(':'))
            }
            None => match self.authority.rsplit_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (self.authority.as_str(), None),
            },
        };
        let port = port.map(|port| port.parse().map_err(|_| wrong())).transpose()?;
        let port = port.or(usual).filter(|_| !host.is_empty());
        port.map(|port| (host, port)).ok_or_else(wrong)
    }

    /// The addresses of the host.
    ///
    /// # Errors
    ///
    /// Where it has none.
    pub fn resolve(&self, usual: Option<u16>) -> anyhow::Result<Vec<SocketAddr>> {
        let (host, port) = self.host_and_port(usual)?;
        let found =
            (host, port).to_socket_addrs().with_context(|| format!("cannot find {host}"))?;
        let found: Vec<_> = found.collect();
        ensure!(!found.is_empty(), "{host} has no address");
        Ok(found)
    }
}

/// A URL as it may be said where it makes no sense: without what may be a secret in the wrong place.
#[must_use]
pub fn bare(text: &str) -> String {
    let text = text.split_once('?').map_or(text, |(place, _)| place);
    let (scheme, place) = text.split_once("://").unwrap_or(("", text));
    let place = match place.rsplit_once('@') {
        Some((_, place)) if scheme != "unix" => place,
        _ => place,
    };
    if scheme.is_empty() { place.to_owned() } else { format!("{scheme}://{place}") }
}

fn parameter(part: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = part.split_once('=').unwrap_or((part, ""));
    let decoded = |text: &str| -> anyhow::Result<String> {
        let text = text.replace('+', " ");
        let decoded = percent_decode_str(&text).decode_utf8();
        Ok(decoded.with_context(|| format!("the parameter {name:?} is no text"))?.into_owned())
    };
    Ok((decoded(name)?, decoded(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_parts() {
        let address =
            Address::parse("HTTP://[::1]:8123/a/b?query=INSERT+INTO%20t&log=conn").unwrap();
        assert_eq!((address.scheme.as_str(), address.path.as_str()), ("http", "/a/b"));
        assert_eq!(address.host_and_port(None).unwrap(), ("::1", 8123));
        let pairs = [("query", "INSERT INTO t"), ("log", "conn")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(address.parameters, pairs);
        let local = Address::parse("unix:///run/a@b.sock?log=dns").unwrap();
        assert_eq!((local.authority.as_str(), local.path.as_str()), ("", "/run/a@b.sock"));
        let plain = Address::parse("http://host").unwrap();
        assert_eq!(plain.host_and_port(Some(80)).unwrap(), ("host", 80));
        for wrong in ["http://", "http://:80", "http://host:port", "http://[::1"] {
            assert!(Address::parse(wrong).unwrap().host_and_port(Some(80)).is_err(), "{wrong}");
        }
        assert!(Address::parse("/run/socket").is_err());
        assert!(Address::parse("http://host/?a=%ff").is_err());
    }

    #[test]
    fn no_secret_stands_in_an_address() {
        let said = Address::parse("http://me:secret@host/").unwrap_err().to_string();
        assert!(said.contains("env:NAME") && !said.contains("secret"), "{said}");
        let mut address = Address::parse("http://host/?password=secret").unwrap();
        let said = address.take_secret("password").unwrap_err().to_string();
        assert!(said.contains("env:NAME") && !said.contains("=secret"), "{said}");
        for (url, shown) in [
            ("http://me:secret@host/a?b=secret", "http://host/a"),
            ("me:secret@host", "host"),
            ("unix:///a@b?log=dns", "unix:///a@b"),
        ] {
            assert_eq!(bare(url), shown);
        }
        for wrong in ["me:secret@host", "http://host/?a=secret%ff"] {
            let said = format!("{:#}", Address::parse(wrong).unwrap_err());
            assert!(!said.contains("secret"), "{said}");
        }
        let path = std::env::temp_dir().join(format!("netsniff-secret-{}", std::process::id()));
        fs::write(&path, "hidden\n").unwrap();
        let text = format!("http://host/?password=file:{}", path.display());
        let mut address = Address::parse(&text).unwrap();
        assert_eq!(address.take_secret("password").unwrap().unwrap(), "hidden");
        assert_eq!(address.take_secret("password").unwrap(), None);
        fs::remove_file(path).unwrap();
    }
}
