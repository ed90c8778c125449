//! A request with its response: a row of the log.

use netsniff_packet::Timestamp;

use super::start_line::{StatusLine, Version};
use crate::correlator::Answer;
use crate::file::FileTransfer;
use crate::log::Http;
use crate::protocol::base64;
use crate::protocol::mime::Field;
use crate::protocol::{Connection, Role};
use crate::record::Port;
use crate::uid::Uid;

/// Files of each side that a row names (`HTTP::max_files_orig`, `max_files_resp`).
const MAX_FILES: usize = 15;

/// Header fields by which proxies tell of themselves (`HTTP::proxy_headers`).
const PROXY_FIELDS: [&str; 7] = [
    "FORWARDED",
    "X-FORWARDED-FOR",
    "X-FORWARDED-FROM",
    "CLIENT-IP",
    "VIA",
    "XROXY-CONNECTION",
    "PROXY-CONNECTION",
];

/// A request with its response, or one of them.
#[derive(Debug)]
pub struct Exchange {
    /// Time of its first sign.
    start: Timestamp,
    /// Its number in the connection, from 1 on.
    depth: u64,
    method: Option<Box<[u8]>>,
    uri: Option<Box<[u8]>>,
    host: Option<Box<[u8]>>,
    referrer: Option<Box<[u8]>>,
    user_agent: Option<Box<[u8]>>,
    origin: Option<Box<[u8]>>,
    username: Option<Box<[u8]>>,
    proxied: Vec<Box<[u8]>>,
    version: Option<Version>,
    status: Option<Status>,
    information: Option<Status>,
    /// Lengths of both bodies, where they can be told.
    body_lens: [Option<u64>; 2],
    files: [FilesOfSide; 2],
    /// Whether the request wants a part of something.
    wants_range: bool,
    /// Whether the request is still being sent.
    is_requesting: bool,
    /// Whether the response is complete.
    is_responded: bool,
}

#[derive(Clone, Debug)]
struct Status {
    code: u16,
    reason: Box<[u8]>,
}

#[derive(Debug, Default)]
struct FilesOfSide {
    fuids: Vec<Uid>,
    names: Vec<Box<[u8]>>,
    kinds: Vec<&'static str>,
}

impl Exchange {
    /// An exchange of which nothing is known but that it is the `depth`th.
    pub(super) fn begun(start: Timestamp, depth: u64) -> Self {
        Self {
            start,
            depth,
            method: None,
            uri: None,
            host: None,
            referrer: None,
            user_agent: None,
            origin: None,
            username: None,
            proxied: Vec::new(),
            version: None,
            status: None,
            information: None,
            body_lens: [Some(0); 2],
            files: Default::default(),
            wants_range: false,
            is_requesting: false,
            is_responded: false,
        }
    }

    /// Takes the request line.
    pub(super) fn request(&mut self, method: &[u8], uri: Vec<u8>) {
        self.method = Some(method.into());
        self.uri = Some(uri.into_boxed_slice());
        self.is_requesting = true;
    }

    /// Takes a field of the request's header.
    pub(super) fn request_field(&mut self, field: &Field<'_>) {
        let slot = if field.is("host") {
            &mut self.host
        } else if field.is("referer") {
            &mut self.referrer
        } else if field.is("user-agent") {
            &mut self.user_agent
        } else if field.is("origin") {
            &mut self.origin
        } else if field.is("authorization") || field.is("proxy-authorization") {
            if let Some(username) = username(field.value) {
                self.username = Some(username);
            }
            return;
        } else {
            self.wants_range |= field.is("range");
            if let Some(name) = PROXY_FIELDS.into_iter().find(|name| field.is(name)) {
                let told = [name.as_bytes(), b" -> ", field.value].concat().into_boxed_slice();
                if !self.proxied.contains(&told) {
                    self.proxied.push(told);
                }
            }
            return;
        };
        *slot = Some(field.value.into());
    }

    /// Takes the status line; without one, 0.9 is the version and there is no status.
    pub(super) fn response(&mut self, line: &StatusLine<'_>) {
        let reason = line.reason.unwrap_or(b"<empty>").into();
        let status = Status { code: line.code, reason };
        self.version = Some(line.version);
        if is_informational(line.code) {
            self.information = Some(status.clone());
        }
        self.status = Some(status);
    }

    /// Whether a final status was seen.
    pub(super) fn is_answered(&self) -> bool {
        self.status.as_ref().is_some_and(|status| !is_informational(status.code))
    }

    /// Takes the length of a message's body that has ended. A response that is preliminary is not the
    /// last one.
    pub(super) fn message_ends(&mut self, from: Role, len: Option<u64>) {
        self.body_lens[from.index()] = len;
        match from {
            Role::Originator => self.is_requesting = false,
            Role::Responder => self.is_responded = self.is_answered(),
        }
    }

    /// Whether all of it was seen. Servers may answer before a request is complete.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_responded && !self.is_requesting
    }

    /// Takes a file that begins.
    pub(super) fn file_begins(&mut self, from: Role, file: &FileTransfer) {
        let files = &mut self.files[from.index()];
        if files.fuids.len() < MAX_FILES {
            files.fuids.push(file.fuid());
            files.names.extend(file.filename().map(Box::from));
        }
    }

    /// Takes the kind of a file.
    pub(super) fn file_is(&mut self, from: Role, kind: &'static str) {
        let kinds = &mut self.files[from.index()].kinds;
        if kinds.len() < MAX_FILES {
            kinds.push(kind);
        }
    }

    /// Host and URI of which a part is wanted, if it is one.
    pub(super) fn wanted_range(&self) -> Option<[Option<Box<[u8]>>; 2]> {
        self.wants_range.then(|| [self.host.clone(), self.uri.clone()])
    }

    /// What the log `websocket` repeats: host, URI and user agent.
    pub(super) fn target(&self) -> [Option<Box<[u8]>>; 3] {
        [self.host.clone(), self.uri.clone(), self.user_agent.clone()]
    }

    /// Bytes that it takes, itself included.
    pub(crate) fn bytes(&self) -> usize {
        let single = [
            &self.method,
            &self.uri,
            &self.host,
            &self.referrer,
            &self.user_agent,
            &self.origin,
            &self.username,
        ];
        let files = self.files.iter().flat_map(|files| &files.names);
        let texts = single.into_iter().flatten().chain(&self.proxied).chain(files);
        let statuses = self.status.iter().chain(&self.information);
        size_of::<Self>()
            + texts.map(|text| text.len()).sum::<usize>()
            + statuses.map(|status| status.reason.len()).sum::<usize>()
    }

    /// The host that the request is for, with the port if there is one.
    #[must_use]
    pub fn host(&self) -> Option<&[u8]> {
        self.host.as_deref()
    }

    /// Hands the row of the log to `take`, with the DNS answer that the connection followed.
    pub fn report<T>(
        &self,
        connection: &Connection,
        answer: Option<&Answer>,
        take: impl FnOnce(&Http<'_>) -> T,
    ) -> T {
        let version = self.version.map(|version| format!("{}.{}", version.major, version.minor));
        let [sent, received] = &self.files;
        take(&Http {
            ts: self.start,
            uid: connection.uid,
            id_orig_h: connection.originator.address,
            id_orig_p: Port(connection.originator.port),
            id_resp_h: connection.responder.address,
            id_resp_p: Port(connection.responder.port),
            trans_depth: self.depth,
            method: self.method.as_deref(),
            host: self.host.as_deref(),
            uri: self.uri.as_deref(),
            referrer: self.referrer.as_deref(),
            version: version.as_deref(),
            user_agent: self.user_agent.as_deref(),
            origin: self.origin.as_deref(),
            request_body_len: self.body_lens[Role::Originator.index()],
            response_body_len: self.body_lens[Role::Responder.index()],
            status_code: self.status.as_ref().map(|status| status.code),
            status_msg: self.status.as_ref().map(|status| &*status.reason),
            info_code: self.information.as_ref().map(|status| status.code),
            info_msg: self.information.as_ref().map(|status| &*status.reason),
            tags: &[],
            username: self.username.as_deref(),
            password: None,
            proxied: some(&self.proxied),
            orig_fuids: some(&sent.fuids),
            orig_filenames: some(&sent.names),
            orig_mime_types: some(&sent.kinds),
            resp_fuids: some(&received.fuids),
            resp_filenames: some(&received.names),
            resp_mime_types: some(&received.kinds),
            dns_uid: answer.map(|answer| answer.uid),
            dns_rtt: answer.and_then(|answer| answer.rtt),
            dns_age: answer.map(|answer| answer.age),
        })
    }
}

/// Whether a status tells of a response that is still to come (RFC 9110, section 15.2).
pub(super) const fn is_informational(code: u16) -> bool {
    matches!(code, 100..=199)
}

fn some<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// The user of Basic authentication (RFC 7617). The password is nobody's business: as in Zeek by
/// default, it is not kept.
fn username(value: &[u8]) -> Option<Box<[u8]>> {
    let (scheme, rest) = value.split_at_checked(5)?;
    if !scheme.eq_ignore_ascii_case(b"basic") || !rest.starts_with(b" ") {
        return None;
    }
    let decoded = base64::decode(rest.trim_ascii_start());
    let colon = decoded.iter().position(|&byte| byte == b':');
    Some(match colon.and_then(|colon| decoded.get(..colon)) {
        Some(user) => user.into(),
        None => [b"<problem-decoding> (", value, b")"].concat().into_boxed_slice(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_kept_and_the_password_is_not() {
        let user = |value: &str| {
            username(value.as_bytes()).map(|user| String::from_utf8_lossy(&user).into_owned())
        };
        assert_eq!(user("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").as_deref(), Some("Aladdin"));
        assert_eq!(user("bASIC  OnB3").as_deref(), Some(""));
        assert_eq!(user("Basic Zm9v").as_deref(), Some("<problem-decoding> (Basic Zm9v)"));
        assert_eq!(user("Bearer x"), None);
        assert_eq!(user("Basic"), None);
    }
}
