//! Where another machine is: `ssh://[USER@]HOST[:PORT]`.

use core::fmt;

/// A machine as ssh(1) is told it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Destination {
    user: Option<String>,
    /// A name, also one of the user's configuration, or an address.
    host: String,
    port: Option<u16>,
}

impl Destination {
    /// Reads the URL.
    ///
    /// # Errors
    ///
    /// A sentence, where it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = || Err(format!("{text:?} is not ssh://[USER@]HOST[:PORT]"));
        let Some(rest) = text.strip_prefix("ssh://") else { return refuse() };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let bracketed = place.strip_prefix('[').and_then(|inner| inner.split_once(']'));
        let (host, port) = match (bracketed, place.rsplit_once(':')) {
            (Some((host, "")), _) => (host, None),
            (Some((host, port)), _) => (host, Some(port.strip_prefix(':').unwrap_or(""))),
            (None, Some((host, port))) => (host, Some(port)),
            (None, None) => (place, None),
        };
        let port = match port.map(str::parse::<u16>) {
            None => None,
            Some(Ok(port)) if port > 0 => Some(port),
            Some(_) => return refuse(),
        };
        // A word with a hyphen before it would be an option.
        let is_fine = |word: &str, more: &str| {
            let is_letter = |letter: char| letter.is_ascii_alphanumeric() || more.contains(letter);
            !word.is_empty() && !word.starts_with('-') && word.chars().all(is_letter)
        };
        let more = if bracketed.is_some() { ".-_:%" } else { ".-_" };
        if !is_fine(host, more) || user.is_some_and(|user| !is_fine(user, ".-_@+\\$")) {
            return refuse();
        }
        Ok(Self { user: user.map(str::to_owned), host: host.to_owned(), port })
    }

    /// The arguments of ssh(1).
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
        if let Some(port) = self.port {
            option("-p", port.to_string());
        }
        if let Some(user) = &self.user {
            option("-l", user.clone());
        }
        option("--", self.host.clone());
        words
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ssh://")?;
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        let host = &self.host;
        if host.contains(':') { write!(f, "[{host}]") } else { f.write_str(host) }?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl From<Destination> for String {
    fn from(destination: Destination) -> Self {
        destination.to_string()
    }
}

impl TryFrom<String> for Destination {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_arguments_of_ssh() {
        for (url, words) in [
            ("ssh://there", "-- there"),
            ("ssh://me@there.example/", "-l me -- there.example"),
            ("ssh://me@10.0.0.2:2222", "-p 2222 -l me -- 10.0.0.2"),
            ("ssh://[fe80::1%eth0]:22", "-p 22 -- fe80::1%eth0"),
            ("ssh://[::1]", "-- ::1"),
            ("ssh://me@corp@there", "-l me@corp -- there"),
        ] {
            let destination = Destination::parse(url).unwrap();
            assert_eq!(destination.words().join(" "), words);
            assert_eq!(destination.to_string(), url.trim_end_matches('/'));
        }
        for wrong in [
            "there",
            "ssh:there",
            "ssh://",
            "ssh://@there",
            "ssh://there:",
            "ssh://there:0",
            "ssh://there:65536",
            "ssh://-oProxyCommand=x",
            "ssh://-l@there",
            "ssh://a b",
            "ssh://there/path",
            "ssh://::1",
            "ssh://[::1",
            "ssh://[::1]22",
            "http://there",
        ] {
            assert!(Destination::parse(wrong).is_err(), "{wrong}");
        }
    }
}
