//! Who logs in, in whichever protocol: by SASL, RFC 4422, or by commands in its place. Of secrets nothing is
//! kept.

use super::base64;

/// The longest user name that is told.
const MAX_USER: usize = 255;

/// Mechanisms that are told. Of others only that there was one, since what stands in their place may
/// be anything, even a password.
const MECHANISMS: &[&str] = &[
    "PLAIN",
    "LOGIN",
    "CRAM-MD5",
    "DIGEST-MD5",
    "SCRAM-SHA-1",
    "SCRAM-SHA-1-PLUS",
    "SCRAM-SHA-256",
    "SCRAM-SHA-256-PLUS",
    "XOAUTH2",
    "OAUTHBEARER",
    "EXTERNAL",
    "ANONYMOUS",
    "GSSAPI",
    "GSS-SPNEGO",
    "KERBEROS_V4",
    "NTLM",
    "MSN",
    "OTP",
    "SKEY",
    "APOP",
    "USER",
];

/// An exchange in which a client proves who it is.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct Sasl {
    mechanism: Option<&'static str>,
    user: Option<Box<[u8]>>,
    answers: u32,
    is_successful: Option<bool>,
}

impl Sasl {
    /// An exchange that begins, with the client's first answer where it sends one along.
    pub(in crate::protocol) fn begin(mechanism: &[u8], initial: &[u8]) -> Self {
        let known = MECHANISMS.iter().find(|name| name.as_bytes().eq_ignore_ascii_case(mechanism));
        let mut sasl = Self { mechanism: known.copied(), ..Self::default() };
        if !initial.is_empty() {
            sasl.answer(initial);
        }
        sasl
    }

    /// A log-in whose user is told in the clear, by a command that takes the place of a mechanism.
    pub(in crate::protocol) fn plain(command: &[u8], user: &[u8]) -> Self {
        let mut sasl = Self::begin(command, b"");
        sasl.set_user(user);
        sasl
    }

    /// Takes an answer of the client, in base64. The user stands in the first one.
    fn answer(&mut self, text: &[u8]) {
        self.answers = self.answers.saturating_add(1);
        if self.answers > 1 || text == b"*" {
            return;
        }
        let answer = base64::decode(text);
        let user: Option<&[u8]> = match self.mechanism.unwrap_or_default() {
            // RFC 4616: authorisation identity, user, password.
            "PLAIN" => answer.split(|&byte| byte == 0).nth(1),
            "LOGIN" | "EXTERNAL" => Some(&answer),
            // RFC 2195: user, digest.
            "CRAM-MD5" => answer.split(|&byte| byte == b' ').next(),
            // RFC 7628 and its forerunner: keys and values between 0x01.
            "XOAUTH2" => {
                answer.split(|&byte| byte == 1).find_map(|pair| pair.strip_prefix(b"user="))
            }
            "OAUTHBEARER" => field(&answer, b"a="),
            // RFC 2831.
            "DIGEST-MD5" => field(&answer, b"username=").map(unquoted),
            // RFC 5802.
            mechanism if mechanism.starts_with("SCRAM-") => field(&answer, b"n="),
            _ => None,
        };
        if let Some(user) = user {
            let user = user.to_vec();
            self.set_user(&user);
        }
    }

    fn set_user(&mut self, user: &[u8]) {
        let user = user.get(..MAX_USER).unwrap_or(user);
        self.user = (!user.is_empty()).then(|| user.into());
    }

    /// Learns whether the server believed it.
    const fn finish(&mut self, is_successful: bool) {
        self.is_successful = Some(is_successful);
    }

    /// The mechanism, if it is a known one.
    const fn mechanism(&self) -> Option<&'static str> {
        self.mechanism
    }

    /// The user, where the mechanism tells it.
    fn user(&self) -> Option<&[u8]> {
        self.user.as_deref()
    }

    /// Whether the server believed it; `None` before it said so.
    const fn is_successful(&self) -> Option<bool> {
        self.is_successful
    }

    /// Bytes that it holds outside itself.
    fn heap_bytes(&self) -> usize {
        self.user.as_ref().map_or(0, |user| user.len())
    }
}

/// What a connection does to log in, once or more often.
#[derive(Clone, Debug, Default)]
pub(in crate::protocol) struct LogIn {
    last: Option<Sasl>,
    failures: u32,
}

/// What rows tell of it.
#[derive(Debug, Default)]
pub(in crate::protocol) struct LoggedIn {
    /// The user, where the mechanism tells it.
    pub(in crate::protocol) user: Option<Box<[u8]>>,
    /// The mechanism, if it is a known one.
    pub(in crate::protocol) mechanism: Option<&'static str>,
    /// Whether the server believed it.
    pub(in crate::protocol) is_successful: Option<bool>,
    /// How often the server did not.
    pub(in crate::protocol) failures: u32,
}

impl LogIn {
    pub(in crate::protocol) fn begin(&mut self, exchange: Sasl) {
        self.last = Some(exchange);
    }

    /// Takes an answer of the client.
    pub(in crate::protocol) fn answer(&mut self, text: &[u8]) {
        if let Some(last) = &mut self.last {
            last.answer(text);
        }
    }

    /// Takes whether the server believed the client.
    pub(in crate::protocol) const fn judge(&mut self, is_successful: bool) {
        if let Some(last) = &mut self.last {
            last.finish(is_successful);
        }
        if !is_successful {
            self.failures = self.failures.saturating_add(1);
        }
    }

    /// Whether the client has tried.
    pub(in crate::protocol) const fn is_begun(&self) -> bool {
        self.last.is_some()
    }

    /// How often the server did not believe the client.
    pub(in crate::protocol) const fn failures(&self) -> u32 {
        self.failures
    }

    /// Who logged in, and whether that succeeded.
    pub(in crate::protocol) fn logged_in(&self) -> LoggedIn {
        let last = self.last.as_ref();
        LoggedIn {
            user: last.and_then(Sasl::user).map(Into::into),
            mechanism: last.and_then(Sasl::mechanism),
            is_successful: last.and_then(Sasl::is_successful),
            failures: self.failures,
        }
    }

    /// Bytes that it holds outside itself.
    pub(in crate::protocol) fn heap_bytes(&self) -> usize {
        self.last.as_ref().map_or(0, Sasl::heap_bytes)
    }
}

/// The value of a field between commas.
fn field<'a>(answer: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let fields = answer.split(|byte| matches!(byte, b',' | 1));
    fields.filter_map(|field| field.trim_ascii().strip_prefix(name)).next()
}

fn unquoted(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    text.strip_suffix(b"\"").unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(mechanism: &str, answer: &str) -> Option<String> {
        let mut sasl = Sasl::begin(mechanism.as_bytes(), b"");
        sasl.answer(answer.as_bytes());
        sasl.answer(b"c2VjcmV0");
        let text = format!("{sasl:?}");
        assert!(!text.contains("secret") && !text.contains("c2VjcmV0"), "{text}");
        sasl.user().map(|user| String::from_utf8_lossy(user).into_owned())
    }

    #[test]
    fn users_are_those_of_the_examples_in_the_rfcs() {
        // RFC 4616, section 4 (authorisation identity and user, then only the user).
        assert_eq!(user("plain", "AHRpbQB0YW5zdGFhZnRhbnN0YWFm").unwrap(), "tim");
        // RFC 2195, section 2.
        let cram = "dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw";
        assert_eq!(user("CRAM-MD5", cram).unwrap(), "tim");
        // RFC 5802, section 5: n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL
        let scram = "biwsbj11c2VyLHI9ZnlrbytkMmxiYkZnT05Sdjlxa3hkYXdM";
        assert_eq!(user("SCRAM-SHA-1", scram).unwrap(), "user");
        // RFC 7628, section 4.1.
        let oauth = "bixhPXVzZXJAZXhhbXBsZS5jb20sAWhvc3Q9c2VydmVyLmV4YW1wbGUuY29tAQEB";
        assert_eq!(user("OAUTHBEARER", oauth).unwrap(), "user@example.com");
        assert_eq!(user("LOGIN", "YWxpY2U=").unwrap(), "alice");
        assert_eq!(user("GSSAPI", "YWxpY2U="), None);
        assert_eq!(user("PLAIN", "*"), None);
    }

    #[test]
    fn what_is_no_mechanism_is_not_told() {
        assert_eq!(Sasl::begin(b"plain", b"").mechanism(), Some("PLAIN"));
        let sasl = Sasl::begin(b"pa55word", b"");
        assert_eq!(sasl.mechanism(), None);
        assert!(!format!("{sasl:?}").to_lowercase().contains("pa55"));
    }

    #[test]
    fn of_several_exchanges_the_last_is_told_and_the_failures_of_all() {
        let told = |log_in: &LogIn| {
            let LoggedIn { user, mechanism, is_successful, failures } = log_in.logged_in();
            let user = user.map(|user| String::from_utf8_lossy(&user).into_owned());
            (user, mechanism, is_successful, failures)
        };
        let mut log_in = LogIn::default();
        log_in.answer(b"YWxpY2U=");
        log_in.judge(false);
        assert!(!log_in.is_begun());
        assert_eq!(told(&log_in), (None, None, None, 1));
        log_in.begin(Sasl::plain(b"USER", b"bob"));
        log_in.judge(false);
        assert_eq!(told(&log_in), (Some("bob".to_owned()), Some("USER"), Some(false), 2));
        log_in.begin(Sasl::begin(b"LOGIN", b""));
        log_in.answer(b"YWxpY2U=");
        assert_eq!(told(&log_in), (Some("alice".to_owned()), Some("LOGIN"), None, 2));
        log_in.judge(true);
        assert_eq!(told(&log_in), (Some("alice".to_owned()), Some("LOGIN"), Some(true), 2));
    }

    #[test]
    fn an_answer_may_come_with_the_mechanism() {
        let sasl = Sasl::begin(b"PLAIN", b"AHRpbQB0YW5zdGFhZnRhbnN0YWFm");
        assert_eq!(sasl.user(), Some(b"tim".as_slice()));
    }
}
