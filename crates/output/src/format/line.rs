//! Text that grows by a few bytes at a time, each of which is stored without a call.

use netsniff_analysis::record::{Interval, Seconds};
use netsniff_packet::{Address, Timestamp};

use super::digits;

/// Bytes that are gathered before they are appended. Most rows have no more.
const GATHERED: usize = 384;

/// Appends to a buffer, for which it gathers what is short.
pub(super) struct Line<'a> {
    out: &'a mut Vec<u8>,
    gathered: [u8; GATHERED],
    len: usize,
}

impl<'a> Line<'a> {
    pub(super) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, gathered: [0; GATHERED], len: 0 }
    }

    /// The buffer, in which everything so far is.
    pub(super) fn settled(&mut self) -> &mut Vec<u8> {
        self.out.extend_from_slice(self.gathered.get(..self.len).unwrap_or_default());
        self.len = 0;
        self.out
    }

    /// Appends the first `len` of some bytes. All are stored, since a store of fixed size needs no loop.
    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        let free = self.gathered.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut);
        match free {
            Some(free) => {
                *free = bytes;
                self.len += len;
            }
            None => self.settled().extend_from_slice(bytes.get(..len).unwrap_or_default()),
        }
    }

    /// Appends bytes as they are.
    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        match self.gathered.get_mut(self.len..self.len + bytes.len()) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.settled().extend_from_slice(bytes),
        }
    }

    /// Appends a number. Most are below 10.
    #[inline(always)]
    pub(super) fn number(&mut self, value: u64) {
        match value {
            0..10 => self.put([b'0' + value as u8], 1),
            _ => self.large_number(value),
        }
    }

    #[inline(never)]
    fn large_number(&mut self, value: u64) {
        const LIMIT: u64 = 100_000_000;
        if value < 10_000 {
            let (digits, len) = digits::up_to_four(value as u16);
            return self.put(digits, len);
        }
        let (high, low) = (value / LIMIT, (value % LIMIT) as u32);
        if high == 0 {
            let (digits, len) = digits::up_to_eight(low);
            return self.put(digits, len);
        }
        if high >= LIMIT {
            return digits::integer(self.settled(), value);
        }
        let (digits, len) = digits::up_to_eight(high as u32);
        self.put(digits, len);
        self.put(digits::eight(low), 8);
    }

    /// Appends a number that may be below 0.
    pub(super) fn signed(&mut self, value: i64) {
        if value < 0 {
            self.put(*b"-", 1);
        }
        self.number(value.unsigned_abs());
    }

    /// Appends microseconds as seconds with six decimals.
    fn micros(&mut self, micros: i64) {
        if micros < 0 {
            self.put(*b"-", 1);
        }
        let magnitude = micros.unsigned_abs();
        self.number(magnitude / 1_000_000);
        let [_, _, decimals @ ..] = digits::eight((magnitude % 1_000_000) as u32);
        let [a, b, c, d, e, f] = decimals;
        self.put([b'.', a, b, c, d, e, f, 0], 7);
    }

    /// Appends microseconds as the shortest decimal number of seconds with at least one decimal.
    pub(super) fn short_micros(&mut self, micros: i64) {
        if micros < 0 {
            self.put(*b"-", 1);
        }
        let magnitude = micros.unsigned_abs();
        self.number(magnitude / 1_000_000);
        let [_, _, a, b, c, d, e, f] = digits::eight((magnitude % 1_000_000) as u32);
        let decimals = [a, b, c, d, e, f];
        let zeros = decimals.iter().rev().take_while(|&&digit| digit == b'0').count();
        self.put([b'.', a, b, c, d, e, f, 0], 1 + (6 - zeros).max(1));
    }

    /// Appends a point in time.
    #[inline]
    pub(super) fn time(&mut self, time: Timestamp) {
        self.micros(digits::time_micros(time));
    }

    /// Appends a point in time in whole seconds.
    #[inline]
    pub(super) fn seconds(&mut self, seconds: Seconds) {
        self.micros(digits::whole_micros(seconds));
    }

    /// Appends a span.
    #[inline]
    pub(super) fn interval(&mut self, interval: Interval) {
        self.micros(digits::interval_micros(interval));
    }

    /// Appends an address.
    pub(super) fn address(&mut self, address: Address) {
        match address.to_ip() {
            std::net::IpAddr::V4(v4) => {
                let (text, len) = digits::dotted(v4.octets());
                self.put(text, len);
            }
            std::net::IpAddr::V6(_) => digits::address(self.settled(), address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Line<'_>)) -> String {
        let mut out = Vec::new();
        let mut line = Line::new(&mut out);
        write(&mut line);
        line.settled();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_have_all_their_digits() {
        let mut values = vec![0, 1, u64::MAX, u64::MAX - 1, i64::MAX as u64];
        for power in (0..20).map(|exponent| 10_u64.pow(exponent)) {
            values.extend([power - 1, power, power + 1, power.saturating_mul(7), power / 3 * 2]);
        }
        let mut value = 1_u64;
        for _ in 0..10_000 {
            value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            values.extend([value, value >> 20, value >> 36, value >> 44, value >> 52]);
        }
        for value in values {
            assert_eq!(text(|line| line.number(value)), value.to_string());
            let signed = value.cast_signed();
            assert_eq!(text(|line| line.signed(signed)), signed.to_string());
        }
        for value in 0..20_000 {
            assert_eq!(text(|line| line.number(value)), value.to_string());
        }
    }

    #[test]
    fn times_are_those_of_the_plain_way() {
        for nanos in [0, 1, 999, 1_000, -1, -1_000, 1_767_225_600_000_123_456, i64::MAX, i64::MIN] {
            let plain = |micros| {
                let mut out = Vec::new();
                digits::seconds(&mut out, micros);
                String::from_utf8(out).unwrap()
            };
            let (time, span) = (Timestamp::from_nanos(nanos), Interval::from_nanos(nanos));
            assert_eq!(text(|line| line.time(time)), plain(digits::time_micros(time)));
            assert_eq!(text(|line| line.interval(span)), plain(digits::interval_micros(span)));
        }
        for micros in
            [0, 1, 10, 163_820, 100_000, 999_999, 1_000_000, -1, -1_500_000, i64::MAX, i64::MIN]
        {
            let mut out = Vec::new();
            digits::short_seconds(&mut out, micros);
            assert_eq!(text(|line| line.short_micros(micros)).into_bytes(), out);
        }
    }

    #[test]
    fn what_is_gathered_and_what_is_not_come_in_order() {
        let long = vec![b'x'; 2 * GATHERED];
        for before in 0..GATHERED + 20 {
            let mut expected = "1".repeat(before);
            let gathered = text(|line| {
                (0..before).for_each(|_| line.number(1));
                line.bytes(b"abc");
                line.address(Address::from_v4([10, 0, 255, 1]));
                line.bytes(&long);
                line.put(*b"\t-", 2);
                line.number(10_000_000_000_000_000_000);
                line.number(1_234_567_890);
            });
            expected += "abc10.0.255.1";
            expected += core::str::from_utf8(&long).unwrap();
            expected += "\t-100000000000000000001234567890";
            assert_eq!(gathered, expected);
        }
    }
}
