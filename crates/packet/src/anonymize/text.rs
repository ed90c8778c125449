//! Texts: what they look like decides which structure stays; all that could name somebody is mapped.
//!
//! Every rule is safe for any bytes: whatever is not known to be structure becomes a pseudonym.

use super::Anonymizer;
use super::prf::{BLOCK, Domain};

/// Endings of file names that stay, since they say of what kind a file is.
const ENDINGS: &[&str] = &[
    "avi", "bin", "bmp", "bz2", "css", "csv", "deb", "doc", "docx", "exe", "gif", "gz", "htm",
    "html", "ico", "iso", "jar", "jpeg", "jpg", "js", "json", "mp3", "mp4", "pdf", "php", "png",
    "rar", "rpm", "svg", "tar", "tgz", "txt", "wav", "webp", "woff", "woff2", "xls", "xlsx", "xml",
    "xz", "zip",
];

/// Types of attributes in distinguished names that stay (RFC 4514, section 3, and those of X.520 and
/// PKCS #9 that certificates have).
const ATTRIBUTES: &[&str] = &[
    "businesscategory",
    "c",
    "cn",
    "dc",
    "dnqualifier",
    "emailaddress",
    "gn",
    "jurisdictionc",
    "jurisdictioncountryname",
    "jurisdictionl",
    "jurisdictionlocalityname",
    "jurisdictionst",
    "jurisdictionstateorprovincename",
    "l",
    "o",
    "organizationidentifier",
    "ou",
    "postalcode",
    "serialnumber",
    "sn",
    "st",
    "street",
    "title",
    "uid",
    "unstructuredname",
];

/// Schemes of URLs that stay; any other word before `://` is mapped.
const SCHEMES: &[&str] = &[
    "file", "ftp", "ftps", "http", "https", "imap", "ldap", "ldaps", "rtsp", "sftp", "sip", "ws",
    "wss",
];

impl Anonymizer {
    /// Appends the pseudonym of the name of a host or a thing: a host name or an address, a
    /// distinguished name, a mail address or a URL, as it looks.
    pub fn name(&self, text: &[u8], out: &mut Vec<u8>) {
        if is_url(text) {
            self.url(text, out);
        } else if is_distinguished(text) {
            self.distinguished_name(text, out);
        } else if text.contains(&b'@') {
            self.mailboxes(text, out);
        } else {
            self.host(text, out);
        }
    }

    /// Appends the pseudonym of the name of a person or an account, or of a secret. Mail addresses keep
    /// their form: the part before the `@` is mapped as a user, the other as a host.
    pub fn user(&self, text: &[u8], out: &mut Vec<u8>) {
        if text.contains(&b'@') {
            self.mailboxes(text, out);
        } else if is_url(text) {
            self.url(text, out);
        } else if !self.literal(text, out) {
            self.word(text, out);
        }
    }

    /// Appends the pseudonym of any text. URLs and paths, mail addresses and IP addresses keep their
    /// form where they are all of the text.
    pub fn text(&self, text: &[u8], out: &mut Vec<u8>) {
        let is_separated = |byte: &u8| is_separator(*byte);
        if is_url(text) {
            self.url(text, out);
        } else if text.contains(&b'@') && !unwrapped(text).iter().any(is_separated) {
            self.mailboxes(text, out);
        } else if !self.literal(text, out) {
            self.word(text, out);
        }
    }

    /// Appends the pseudonym of an address that is no plain IP address: written out, or in a text that
    /// nobody knows, which is then mapped as a whole.
    pub fn address_text(&self, text: &[u8], out: &mut Vec<u8>) {
        if !self.literal(text, out) {
            self.word(text, out);
        }
    }

    /// Appends a keyed hash of a hash: as many hexadecimal digits as it has.
    pub fn content_hash(&self, hash: &[u8], out: &mut Vec<u8>) {
        if hash.is_empty() || !hash.iter().all(u8::is_ascii_hexdigit) {
            return self.word(hash, out);
        }
        let lower = hash.to_ascii_lowercase();
        let mut state = self.names.of(Domain::Hash, &lower);
        for digits in hash.chunks(2 * BLOCK) {
            let block = state.to_be_bytes();
            let nibbles = block.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            for (nibble, _) in nibbles.zip(digits) {
                out.push(b"0123456789abcdef"[usize::from(nibble)]);
            }
            state = self.names.of(Domain::Hash, &block);
        }
    }

    /// Appends a pseudonym; what has no letter or digit stays, and so does nothing at all.
    fn word(&self, word: &[u8], out: &mut Vec<u8>) {
        if word.iter().all(|byte| byte.is_ascii_punctuation() || *byte == b' ') {
            out.extend_from_slice(word);
        } else {
            self.pseudonym(Domain::Text, word, out);
        }
    }

    /// Maps `scheme://user@host:port/a/b?k=v#f`, or what begins with a path.
    fn url(&self, url: &[u8], out: &mut Vec<u8>) {
        let mut rest = url;
        if let Some(at) = scheme_end(url) {
            let scheme = &url[..at];
            if is_one_of(scheme, SCHEMES) {
                out.extend_from_slice(scheme);
            } else {
                self.word(scheme, out);
            }
            out.extend_from_slice(b"://");
            rest = &url[at + 3..];
            let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
            let (authority, behind) = rest.split_at(end);
            self.authority(authority, out);
            rest = behind;
        }
        // Segments, and names and values of the query, each by itself.
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| b"/?#&=;".contains(byte)).unwrap_or(rest.len());
            let (segment, behind) = rest.split_at(end);
            self.file_name(segment, out);
            let (sign, behind) = behind.split_at(behind.len().min(1));
            out.extend_from_slice(sign);
            rest = behind;
        }
    }

    fn authority(&self, authority: &[u8], out: &mut Vec<u8>) {
        let at = authority.iter().rposition(|&byte| byte == b'@');
        let (user, host) = match at {
            Some(at) => (&authority[..at], &authority[at + 1..]),
            None => (&b""[..], authority),
        };
        if at.is_some() {
            for (nth, part) in user.splitn(2, |&byte| byte == b':').enumerate() {
                if nth > 0 {
                    out.push(b':');
                }
                self.word(part, out);
            }
            out.push(b'@');
        }
        self.host(host, out);
    }

    /// The pseudonym of a name in a path, with its ending where that is a common one.
    fn file_name(&self, name: &[u8], out: &mut Vec<u8>) {
        let dot = name.iter().rposition(|&byte| byte == b'.');
        match dot.map(|dot| name.split_at(dot)) {
            Some((stem, ending)) if !stem.is_empty() && is_one_of(&ending[1..], ENDINGS) => {
                self.word(stem, out);
                out.extend_from_slice(ending);
            }
            _ => self.word(name, out),
        }
    }

    /// Maps each word of a list of mailboxes; what stands between stays.
    fn mailboxes(&self, list: &[u8], out: &mut Vec<u8>) {
        let mut rest = list;
        while let Some((&first, behind)) = rest.split_first() {
            if is_separator(first) {
                out.push(first);
                rest = behind;
                continue;
            }
            let end = rest.iter().position(|&byte| is_separator(byte)).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            match word.iter().rposition(|&byte| byte == b'@') {
                Some(at) => {
                    self.word(&word[..at], out);
                    out.push(b'@');
                    self.host(&word[at + 1..], out);
                }
                None => self.word(word, out),
            }
            rest = behind;
        }
    }

    /// Maps the values of `CN=…,O=…`, also where slashes stand between; types that are not known, too.
    fn distinguished_name(&self, name: &[u8], out: &mut Vec<u8>) {
        let separators: &[u8] = if name.starts_with(b"/") { b"/" } else { b",+" };
        let mut rest = name;
        while !rest.is_empty() {
            let end = unescaped(rest, separators);
            let (pair, behind) = rest.split_at(end);
            match pair.iter().position(|&byte| byte == b'=') {
                Some(at) => {
                    self.attribute_type(&pair[..at], out);
                    out.push(b'=');
                    self.attribute_value(&pair[at + 1..], out);
                }
                None => self.word(pair, out),
            }
            let (sign, behind) = behind.split_at(behind.len().min(1));
            out.extend_from_slice(sign);
            rest = behind;
        }
    }

    fn attribute_type(&self, kind: &[u8], out: &mut Vec<u8>) {
        let trimmed = kind.trim_ascii_start();
        out.extend_from_slice(&kind[..kind.len() - trimmed.len()]);
        let is_number = trimmed.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
        if is_number || is_one_of(trimmed, ATTRIBUTES) {
            out.extend_from_slice(trimmed);
        } else {
            self.word(trimmed, out);
        }
    }

    /// A host or a mail address by its parts, so that joins survive; anything else as a whole.
    fn attribute_value(&self, value: &[u8], out: &mut Vec<u8>) {
        let is_host = value.contains(&b'.') && !value.iter().any(|&byte| is_separator(byte));
        if value.contains(&b'@') {
            self.mailboxes(value, out);
        } else if is_host {
            self.host(value, out);
        } else {
            self.word(value, out);
        }
    }
}

/// Where the scheme of an absolute URL ends.
fn scheme_end(text: &[u8]) -> Option<usize> {
    let at = text.windows(3).take(32).position(|window| window == b"://")?;
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    (at > 0 && text[..at].iter().all(is_scheme)).then_some(at)
}

/// Whether a text has the form of a URL or of a path.
fn is_url(text: &[u8]) -> bool {
    text.starts_with(b"/") && !is_distinguished(text) || scheme_end(text).is_some()
}

/// Whether a text begins with an attribute of a distinguished name.
fn is_distinguished(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"/").unwrap_or(text);
    let kind = text.split(|&byte| byte == b'=').next().filter(|kind| kind.len() < text.len());
    kind.is_some_and(|kind| is_one_of(kind, ATTRIBUTES))
}

fn is_one_of(word: &[u8], list: &[&str]) -> bool {
    list.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(word))
}

/// What stands between the words of a list of mailboxes.
const fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'<' | b'>' | b',' | b';' | b'"' | b'(' | b')')
}

/// A mailbox without the brackets around it.
fn unwrapped(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"<").and_then(|text| text.strip_suffix(b">")).unwrap_or(text)
}

/// The first of some separators that no backslash stands before; the end where there is none.
fn unescaped(text: &[u8], separators: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate() {
        if !is_escaped && separators.contains(byte) {
            return at;
        }
        is_escaped = !is_escaped && *byte == b'\\';
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anonymize::tests::anonymizer;
    use crate::wire::random::cases;

    type Map = fn(&Anonymizer, &[u8], &mut Vec<u8>);

    fn mapped(map: Map, text: &str) -> String {
        let mut out = Vec::new();
        map(&anonymizer(), text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn urls_keep_their_form() {
        let host = mapped(Anonymizer::host, "www.example.com:8080");
        let url = "http://www.example.com:8080/private/index.html?user=alice&x=1#top";
        let out = mapped(Anonymizer::text, url);
        assert!(out.starts_with(&format!("http://{host}/")), "{out}");
        assert!(out.contains(".html?") && out.contains('&') && out.contains('#'));
        assert_eq!((out.matches('/').count(), out.matches('=').count()), (4, 2));
        let path = mapped(Anonymizer::text, "/private/index.html?user=alice&x=1#top");
        assert!(out.ends_with(&path), "the path alone is mapped alike");
        for hidden in ["www", "example", "private", "index", "user", "alice", "top"] {
            assert!(!out.contains(hidden), "{hidden} in {out}");
        }
        let with_user = mapped(Anonymizer::name, "ftp://alice:secret@192.0.2.7/");
        assert!(!with_user.contains("alice") && !with_user.contains("192.0.2.7"), "{with_user}");
        assert_eq!(with_user.matches(':').count(), 2);
        assert!(!mapped(Anonymizer::text, "bobsapp://x").contains("bobsapp"));
        assert_eq!(mapped(Anonymizer::text, "/"), "/");
    }

    #[test]
    fn mail_addresses_join_with_users_and_hosts() {
        let (user, host) =
            (mapped(Anonymizer::user, "alice"), mapped(Anonymizer::host, "mail.example.org"));
        let mail = format!("{user}@{host}");
        for map in [Anonymizer::user as Map, Anonymizer::name, Anonymizer::text] {
            assert_eq!(mapped(map, "alice@mail.example.org"), mail);
            assert_eq!(mapped(map, "<alice@mail.example.org>"), format!("<{mail}>"));
        }
        let from = mapped(Anonymizer::user, "\"Alice Smith\" <alice@mail.example.org>, bob@x");
        assert!(from.contains(&format!(" <{mail}>, ")), "{from}");
        assert!(!from.contains("Alice") && !from.contains("Smith") && !from.contains("bob"));
        let sentence = "ask alice@mail.example.org about it";
        assert!(
            !mapped(Anonymizer::text, sentence).contains(' '),
            "free text is mapped as a whole"
        );
    }

    #[test]
    fn names_in_certificates_keep_their_attributes() {
        let host = mapped(Anonymizer::host, "*.example.com");
        for (name, parts) in [
            ("CN=*.example.com,O=Example\\, Inc.,C=DE", 3),
            ("/C=DE/O=Example/CN=*.example.com", 3),
            ("CN=Alice Smith,UID=alice,2.5.4.97=NTRDE-1", 3),
        ] {
            let out = mapped(Anonymizer::name, name);
            assert_eq!(out.matches('=').count(), parts, "{out}");
            for hidden in ["Example", "DE", "Alice", "alice", "Inc"] {
                assert!(!out.contains(hidden), "{hidden} in {out}");
            }
            assert!(!name.contains('*') || out.contains(&format!("CN={host}")), "{out}");
        }
        assert!(mapped(Anonymizer::name, "CN=a,secret=b").starts_with("CN="));
        assert!(!mapped(Anonymizer::name, "CN=a,secret=b").contains("secret"));
    }

    #[test]
    fn hashes_become_keyed_hashes_of_their_length() {
        let md5 = "d41d8cd98f00b204e9800998ecf8427e";
        for len in [32, 40, 64, 128, 1, 7] {
            let hash = &md5.repeat(4)[..len];
            let out = mapped(Anonymizer::content_hash, hash);
            assert_eq!(out.len(), len);
            assert!(out.bytes().all(|byte| byte.is_ascii_hexdigit()));
            assert!(len < 8 || out != hash);
            assert_eq!(out, mapped(Anonymizer::content_hash, &hash.to_uppercase()));
        }
        assert_ne!(mapped(Anonymizer::content_hash, "SHA256:abc"), "SHA256:abc");
    }

    /// Words of four letters and more do not come through, whatever they stand among.
    #[test]
    fn no_word_of_any_text_comes_through() {
        let signs =
            [".", "/", "@", ":", "?", "=", "&", ",", " ", "<", ">", "://", "CN=", "[", "]", "%"];
        cases(|random| {
            let mut text = Vec::new();
            let mut words = Vec::new();
            for _ in 0..random.below(8) {
                let word: Vec<u8> = (0..8).map(|_| b'A' + random.byte() % 26).collect();
                text.extend_from_slice(signs[random.below(signs.len())].as_bytes());
                text.extend_from_slice(&word);
                words.push(word);
            }
            for map in
                [Anonymizer::name as Map, Anonymizer::user, Anonymizer::text, Anonymizer::host]
            {
                let mut out = Vec::new();
                map(&anonymizer(), &text, &mut out);
                for word in &words {
                    let found =
                        out.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
                    assert!(!found, "{} became {}", text.escape_ascii(), out.escape_ascii());
                }
            }
            // Any bytes at all do no harm.
            let len = random.below(60);
            let bytes = random.bytes(len);
            for map in [Anonymizer::name as Map, Anonymizer::user, Anonymizer::text] {
                map(&anonymizer(), &bytes, &mut Vec::new());
            }
        });
    }
}
