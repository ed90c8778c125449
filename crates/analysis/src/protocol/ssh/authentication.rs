//! Whether a login succeeded, by the sizes of what the server sends encrypted, as Zeek infers it.
//!
//! Once the client speaks encrypted, the server answers its first message, the request for the
//! service, by `SSH_MSG_SERVICE_ACCEPT` (RFC 4253, section 10), which has one size. Its answer to the
//! next one, mostly the method "none", is `SSH_MSG_USERAUTH_FAILURE` (RFC 4252, section 5.1): it tells
//! the size of failures. `SSH_MSG_USERAUTH_SUCCESS` is a single byte, and with padding 16 bytes shorter
//! than the acceptance for every cipher.
//!
//! Zeek takes each segment for a message, which whoever cuts the stream decides. Here a message is a
//! packet where lengths are in the clear. Elsewhere it is what comes without a pause, or what comes
//! between two messages of the client where pauses lie within packets.

use netsniff_packet::Timestamp;

use super::framing::{Framing, Lengths};

/// By how much the message of success is shorter than the acceptance of the service.
const SHORTER_BY: u64 = 16;

/// Nanoseconds between two messages of a server, at least. The segments of one message follow each
/// other at the speed of the line; sshd needs longer to begin another one.
const PAUSE: i64 = 200_000;

/// Octets of the longest answer that belongs to a login; what is longer is data of the session.
const MAX_ANSWER: u64 = 1_000;

/// What is known of a login.
#[derive(Debug)]
pub(super) struct Authentication {
    framing: Framing,
    lengths: Lengths,
    /// What the server sends encrypted without a pause, with the time of its last octet.
    burst: Option<(Timestamp, u64)>,
    /// Whether the client has sent something encrypted.
    has_client_begun: bool,
    acceptance: Option<u64>,
    failure: Option<u64>,
    /// Whether pauses were seen within packets, so that they tell nothing.
    has_pauses_within: bool,
    /// Whether sizes were seen that may hide the end of the login.
    is_unsure: bool,
    /// Whether what tells the size of failures may be such a size: until it comes again.
    is_failure_unsure: bool,
    /// Attempts, without the first one if that only told how failures look.
    attempts: u64,
    /// Whether the last attempt succeeded.
    success: Option<bool>,
}

impl Authentication {
    /// Nothing was seen yet of a login whose server frames its packets so.
    pub(super) fn new(framing: Framing) -> Self {
        Self {
            framing,
            lengths: Lengths::default(),
            burst: None,
            has_client_begun: false,
            acceptance: None,
            failure: None,
            has_pauses_within: false,
            is_unsure: false,
            is_failure_unsure: false,
            attempts: 0,
            success: None,
        }
    }

    /// Takes encrypted bytes of the client.
    pub(super) fn client(&mut self) {
        self.close();
        self.has_client_begun = true;
    }

    /// Takes encrypted bytes of the server.
    pub(super) fn server(&mut self, time: Timestamp, bytes: &[u8]) {
        if let Framing::Clear { code } = self.framing {
            let mut lengths = core::mem::take(&mut self.lengths);
            if lengths.push(bytes, code, |len| self.message(len)).is_err() {
                // Nothing tells any more.
                (self.framing, self.is_unsure) = (Framing::Unknown, true);
            }
            self.lengths = lengths;
            return;
        }
        let len = bytes.len() as u64;
        let Some((last, before)) = &mut self.burst else {
            self.burst = Some((time, len));
            return;
        };
        let is_pause = time.nanos().saturating_sub(last.nanos()) > PAUSE;
        if is_pause && !self.has_pauses_within {
            if self.framing != Framing::Unknown && self.framing.can_be_whole(*before) {
                self.close();
                self.burst = Some((time, len));
                return;
            }
            self.has_pauses_within = true;
        }
        (*last, *before) = (time, before.saturating_add(len));
    }

    /// Ends what the server sent, and judges it.
    pub(super) fn close(&mut self) {
        let Some((_, len)) = self.burst.take() else { return };
        self.is_unsure |= len <= MAX_ANSWER && !self.framing.can_be_whole(len);
        self.message(len);
    }

    /// Judges a message of the server.
    fn message(&mut self, len: u64) {
        if !self.has_client_begun || self.has_succeeded() {
            return;
        }
        let Some(acceptance) = self.acceptance else {
            self.acceptance = Some(len);
            return;
        };
        let success = acceptance.checked_sub(SHORTER_BY);
        match self.failure {
            Some(failure) if failure == len => {
                self.is_failure_unsure = false;
                self.attempted(false);
            }
            _ if success == Some(len) => self.attempted(true),
            // Where pauses tell nothing, the success may have more behind it.
            _ if self.has_pauses_within && success.is_some_and(|success| success < len) => {
                let is_first = self.failure.is_none();
                self.is_failure_unsure |= is_first;
                self.is_unsure |= !is_first;
                self.failure.get_or_insert(len);
            }
            None => self.failure = Some(len),
            Some(_) => {}
        }
    }

    fn attempted(&mut self, success: bool) {
        self.attempts = self.attempts.saturating_add(1);
        self.success = Some(success);
    }

    /// Whether the login is over, since it succeeded.
    pub(super) fn has_succeeded(&self) -> bool {
        self.success == Some(true)
    }

    /// Whether the login succeeded, with how many attempts; `None` where nothing tells.
    pub(super) fn result(&self) -> (Option<bool>, Option<u64>) {
        let is_unsure = self.is_unsure || self.is_failure_unsure;
        let is_known = self.has_succeeded() || !is_unsure;
        if is_known { (self.success, Some(self.attempts)) } else { (None, None) }
    }
}

impl Default for Authentication {
    fn default() -> Self {
        Self::new(Framing::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of a server, in pieces of a size that come so far from each other.
    fn answer(login: &mut Authentication, now: &mut i64, bytes: &[u8], size: usize, step: i64) {
        *now += 50_000_000;
        login.client();
        for piece in bytes.chunks(size) {
            login.server(Timestamp::from_nanos(*now), piece);
            *now += step;
        }
    }

    /// A login in which each answer of the server has one of these sizes.
    fn login(framing: Framing, sizes: &[usize], piece: usize, step: i64) -> Told {
        let (mut login, mut now) = (Authentication::new(framing), 0);
        // What the server sends before the client tells nothing.
        let packet = |size: usize| match framing {
            Framing::Clear { code } => {
                let len = size as u32 - 4 - code as u32;
                [&len.to_be_bytes()[..], &vec![7; size - 4]].concat()
            }
            Framing::Hidden { .. } | Framing::Unknown => vec![0xff; size],
        };
        login.server(Timestamp::from_nanos(0), &packet(404));
        for &size in sizes {
            answer(&mut login, &mut now, &packet(size), piece, step);
        }
        login.close();
        login.result()
    }

    type Told = (Option<bool>, Option<u64>);

    const FRAMINGS: [Framing; 3] =
        [Framing::Hidden { block: 8, beside: 20 }, Framing::Clear { code: 16 }, Framing::Unknown];

    #[test]
    fn sizes_tell_the_result() {
        for framing in FRAMINGS {
            for (sizes, success, attempts) in [
                (&[][..], None, 0),
                (&[52], None, 0),
                (&[52, 84], None, 0),
                (&[52, 36], Some(true), 1),
                (&[52, 84, 36], Some(true), 1),
                (&[52, 84, 84, 84], Some(false), 2),
                (&[52, 84, 84, 36, 84], Some(true), 2),
                // The question for a password has some other size.
                (&[52, 84, 100, 84, 100, 36], Some(true), 2),
            ] {
                for (size, step) in [(1000, 0), (1, 0), (1, 1_000), (7, 1_000), (36, 100_000)] {
                    let told = login(framing, sizes, size, step);
                    assert_eq!(told, (success, Some(attempts)), "{framing:?} {sizes:?} {size}");
                }
            }
        }
    }

    #[test]
    fn pauses_within_packets_never_tell_what_is_not_so() {
        for framing in FRAMINGS {
            for size in [1, 2, 3, 5, 10, 20, 30, 40] {
                let told = login(framing, &[52, 84, 100, 84, 36], size, 5_000_000);
                let right = (Some(true), Some(2));
                assert!(told == right || told == (None, None), "{framing:?} {size} {told:?}");
                let told = login(framing, &[52, 84, 84, 84], size, 5_000_000);
                let right = (Some(false), Some(2));
                assert!(told == right || told == (None, None), "{framing:?} {size} {told:?}");
            }
        }
    }

    #[test]
    fn what_follows_the_success_after_a_pause_does_not_hide_it() {
        let mut login = Authentication::new(FRAMINGS[0]);
        let mut now = 0;
        for size in [52, 84, 36] {
            answer(&mut login, &mut now, &vec![1; size], 1000, 0);
        }
        login.server(Timestamp::from_nanos(now + 3_000_000), &[1; 244]);
        login.close();
        assert_eq!(login.result(), (Some(true), Some(1)));
    }
}
