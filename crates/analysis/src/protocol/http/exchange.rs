//! A request with its response: a row of the log.

use netsniff_packet::Timestamp;

use super::log::Http;
use super::start_line::StatusLine;
use crate::protocol::dns::answers::Following;
use crate::protocol::file_transfer::FileTransfer;
use crate::protocol::mime::Field;
use crate::protocol::syntax::base64;
use crate::protocol::{Findings, Role};
use crate::record::UnsetIfEmpty;

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
pub(super) struct HttpExchange {
    /// The row of the log, as far as it is known.
    row: Box<Http>,
    /// Whether the request wants a part of something.
    wants_range: bool,
    /// Whether the request is still being sent.
    is_requesting: bool,
    /// Whether the response is complete.
    is_responded: bool,
}

impl HttpExchange {
    /// An exchange of which nothing is known but that it is the `depth`th.
    pub(super) fn begun(start: Timestamp, depth: u64) -> Self {
        let row = Box::new(Http {
            ts: start,
            trans_depth: depth,
            method: None,
            host: None,
            uri: None,
            referrer: None,
            version: None,
            user_agent: None,
            origin: None,
            partly_decoded: UnsetIfEmpty::default(),
            request_body_len: Some(0),
            response_body_len: Some(0),
            status_code: None,
            status_msg: None,
            info_code: None,
            info_msg: None,
            tags: &[],
            username: None,
            password: None,
            proxied: UnsetIfEmpty::default(),
            orig_fuids: UnsetIfEmpty::default(),
            orig_filenames: UnsetIfEmpty::default(),
            orig_mime_types: UnsetIfEmpty::default(),
            resp_fuids: UnsetIfEmpty::default(),
            resp_filenames: UnsetIfEmpty::default(),
            resp_mime_types: UnsetIfEmpty::default(),
        });
        Self { row, wants_range: false, is_requesting: false, is_responded: false }
    }

    /// Takes the request line.
    pub(super) fn request(&mut self, method: &[u8], uri: Vec<u8>) {
        self.row.method = Some(method.into());
        self.row.uri = Some(uri.into_boxed_slice());
        self.is_requesting = true;
    }

    /// Takes a field of the request's header.
    pub(super) fn request_field(&mut self, field: &Field<'_>) {
        let slot = if field.is("host") {
            &mut self.row.host
        } else if field.is("referer") {
            &mut self.row.referrer
        } else if field.is("user-agent") {
            &mut self.row.user_agent
        } else if field.is("origin") {
            &mut self.row.origin
        } else if field.is("authorization") || field.is("proxy-authorization") {
            if let Some(username) = username(field.value) {
                self.row.username = Some(username);
            }
            return;
        } else {
            self.wants_range |= field.is("range");
            if let Some(name) = PROXY_FIELDS.into_iter().find(|name| field.is(name)) {
                let told = [name.as_bytes(), b" -> ", field.value].concat().into_boxed_slice();
                if !self.row.proxied.0.contains(&told) {
                    self.row.proxied.0.push(told);
                }
            }
            return;
        };
        *slot = Some(field.value.into());
    }

    /// Takes the status line; without one, 0.9 is the version and there is no status.
    pub(super) fn response(&mut self, line: &StatusLine<'_>) {
        let reason: Box<[u8]> = line.reason.unwrap_or(b"<empty>").into();
        self.row.version = Some(line.version.to_text());
        if is_informational(line.code) {
            self.row.info_code = Some(line.code);
            self.row.info_msg = Some(reason.clone());
        }
        self.row.status_code = Some(line.code);
        self.row.status_msg = Some(reason);
    }

    /// Whether a final status was seen.
    pub(super) fn is_answered(&self) -> bool {
        self.row.status_code.is_some_and(|code| !is_informational(code))
    }

    /// Takes the length of a message's body that has ended. A response that is preliminary is not the
    /// last one.
    pub(super) fn message_ends(&mut self, from: Role, len: Option<u64>) {
        match from {
            Role::Originator => {
                self.row.request_body_len = len;
                self.is_requesting = false;
            }
            Role::Responder => {
                self.row.response_body_len = len;
                self.is_responded = self.is_answered();
            }
        }
    }

    /// Whether all of it was seen. Servers may answer before a request is complete.
    pub(super) const fn is_complete(&self) -> bool {
        self.is_responded && !self.is_requesting
    }

    /// Takes a file that begins.
    pub(super) fn file_begins(&mut self, from: Role, file: &FileTransfer) {
        let row = &mut *self.row;
        let (fuids, names) = match from {
            Role::Originator => (&mut row.orig_fuids.0, &mut row.orig_filenames.0),
            Role::Responder => (&mut row.resp_fuids.0, &mut row.resp_filenames.0),
        };
        if fuids.len() < MAX_FILES {
            fuids.push(file.fuid());
            names.extend(file.filename().map(Box::from));
        }
    }

    /// Takes note that the body of a side was decoded at its begin only.
    pub(super) fn body_is_partly_decoded(&mut self, from: Role) {
        let side = match from {
            Role::Originator => "orig",
            Role::Responder => "resp",
        };
        let sides = &mut self.row.partly_decoded.0;
        if !sides.contains(&side) {
            sides.push(side);
        }
    }

    /// Takes the kind of a file.
    pub(super) fn file_is(&mut self, from: Role, kind: &'static str) {
        let kinds = match from {
            Role::Originator => &mut self.row.orig_mime_types.0,
            Role::Responder => &mut self.row.resp_mime_types.0,
        };
        if kinds.len() < MAX_FILES {
            kinds.push(kind);
        }
    }

    /// Host and URI of which a part is wanted, if it is one.
    pub(super) fn wanted_range(&self) -> Option<[Option<Box<[u8]>>; 2]> {
        self.wants_range.then(|| [self.row.host.clone(), self.row.uri.clone()])
    }

    /// What the log `websocket` repeats: host, URI and user agent.
    pub(super) fn target(&self) -> [Option<Box<[u8]>>; 3] {
        [self.row.host.clone(), self.row.uri.clone(), self.row.user_agent.clone()]
    }

    /// Bytes that it holds outside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let row = &self.row;
        let single = [
            &row.method,
            &row.uri,
            &row.host,
            &row.referrer,
            &row.user_agent,
            &row.origin,
            &row.username,
            &row.status_msg,
            &row.info_msg,
        ];
        let files = row.orig_filenames.0.iter().chain(&row.resp_filenames.0);
        let texts = single.into_iter().flatten().chain(&row.proxied.0).chain(files);
        size_of::<Http>()
            + texts.map(|text| text.len()).sum::<usize>()
            + row.version.as_ref().map_or(0, String::capacity)
    }

    /// Tells the row, by way of the DNS answers that were seen.
    pub(super) fn report(self, found: &mut Findings) {
        let host = self.row.host.clone();
        found.row_with(self.row, Following { host });
    }
}

/// Whether a status tells of a response that is still to come (RFC 9110, section 15.2).
pub(super) const fn is_informational(code: u16) -> bool {
    matches!(code, 100..=199)
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
