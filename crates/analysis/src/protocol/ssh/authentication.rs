//! Whether a login succeeded, by the sizes of what the server sends encrypted, as Zeek infers it.
//!
//! Once the client speaks encrypted, the server answers its first message, the request for the
//! service, by `SSH_MSG_SERVICE_ACCEPT` (RFC 4253, section 10), which has one size. Its answer to the
//! next one, mostly the method "none", is `SSH_MSG_USERAUTH_FAILURE` (RFC 4252, section 5.1): it tells
//! the size of failures. `SSH_MSG_USERAUTH_SUCCESS` is a single byte, and with padding 16 bytes shorter
//! than the acceptance for every cipher.

use netsniff_packet::Timestamp;

/// By how much the message of success is shorter than the acceptance of the service.
const SHORTER_BY: u64 = 16;

/// What is known of a login.
#[derive(Debug, Default)]
pub(super) struct Authentication {
    /// What the server sends encrypted at one time: those are the bytes of one segment, however the
    /// stream is cut beyond that.
    burst: Option<(Timestamp, u64)>,
    /// Whether the client has sent something encrypted.
    has_client_begun: bool,
    acceptance: Option<u64>,
    failure: Option<u64>,
    /// Attempts, without the first one if that only told how failures look.
    pub(super) attempts: u64,
    /// Whether the last attempt succeeded.
    pub(super) success: Option<bool>,
}

impl Authentication {
    /// Takes encrypted bytes of the client.
    pub(super) fn client(&mut self) {
        self.close();
        self.has_client_begun = true;
    }

    /// Takes encrypted bytes of the server.
    pub(super) fn server(&mut self, time: Timestamp, len: usize) {
        if let Some((begun, bytes)) = &mut self.burst
            && *begun == time
        {
            *bytes = bytes.saturating_add(len as u64);
            return;
        }
        self.close();
        self.burst = Some((time, len as u64));
    }

    /// Ends what the server sent at one time, and judges it.
    pub(super) fn close(&mut self) {
        let Some((_, bytes)) = self.burst.take() else { return };
        if !self.has_client_begun || self.success == Some(true) {
            return;
        }
        let Some(acceptance) = self.acceptance else {
            self.acceptance = Some(bytes);
            return;
        };
        let is_success = bytes.checked_add(SHORTER_BY) == Some(acceptance);
        match self.failure {
            Some(failure) if failure == bytes => self.attempted(false),
            _ if is_success => self.attempted(true),
            None => self.failure = Some(bytes),
            Some(_) => {}
        }
    }

    fn attempted(&mut self, success: bool) {
        self.attempts = self.attempts.saturating_add(1);
        self.success = Some(success);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A login in which each answer of the server has one of these sizes.
    fn login(sizes: &[usize]) -> (Option<bool>, u64) {
        let mut login = Authentication::default();
        // What the server sends before the client tells nothing.
        login.server(Timestamp::from_nanos(0), 400);
        for (at, &size) in sizes.iter().enumerate() {
            login.client();
            login.server(Timestamp::from_nanos(1 + at as i64), size - 1);
            login.server(Timestamp::from_nanos(1 + at as i64), 1);
        }
        login.close();
        (login.success, login.attempts)
    }

    #[test]
    fn sizes_tell_the_result() {
        assert_eq!(login(&[]), (None, 0));
        assert_eq!(login(&[52]), (None, 0));
        assert_eq!(login(&[52, 84]), (None, 0));
        assert_eq!(login(&[52, 36]), (Some(true), 1));
        assert_eq!(login(&[52, 84, 36]), (Some(true), 1));
        assert_eq!(login(&[52, 84, 84, 84]), (Some(false), 2));
        assert_eq!(login(&[52, 84, 84, 36, 84]), (Some(true), 2));
        // The question for a password has some other size.
        assert_eq!(login(&[52, 84, 100, 84, 100, 36]), (Some(true), 2));
    }
}
