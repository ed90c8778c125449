//! Numbers, times and addresses as digits, without floating point and without allocation.

use std::net::{IpAddr, Ipv6Addr};

use netsniff_analysis::record::{Interval, Seconds};
use netsniff_console::calendar::Date;
use netsniff_packet::{Address, Timestamp};

#[inline]
pub(super) fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The digits of a number below 10^8, the first one in the lowest byte: twice a division of all parts at once
/// (Paul Khuong, "How to print integers really fast").
#[inline]
const fn digits_of(value: u32) -> u64 {
    let (high, low) = (value / 10_000, value % 10_000);
    let halves = high as u64 | (low as u64) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (halves - 100 * hundreds) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - 10 * tens) << 8
}

/// What makes signs of eight digits.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// A number below 10^8 with eight digits.
#[inline]
pub(super) const fn eight(value: u32) -> [u8; 8] {
    (digits_of(value) + ZEROS).to_le_bytes()
}

/// A number below 10^8, and how many digits it has.
#[inline]
pub(super) const fn up_to_eight(value: u32) -> ([u8; 8], usize) {
    let digits = digits_of(value);
    // The last one stands also where it is 0.
    let leading = (digits | 1 << 56).trailing_zeros() / 8;
    (((digits + ZEROS) >> (8 * leading)).to_le_bytes(), 8 - leading as usize)
}

/// Whole microseconds of a point in time, rounded down.
///
/// Zeek reads files with libpcap in microseconds, which cuts off the nanoseconds.
#[inline]
pub(crate) fn time_micros(time: Timestamp) -> i64 {
    time.nanos().div_euclid(1000)
}

/// Microseconds of a point in time in whole seconds.
pub(super) const fn whole_micros(time: Seconds) -> i64 {
    time.0.saturating_mul(1_000_000)
}

/// Whole microseconds of a span, rounded to the nearest.
#[inline]
pub(super) fn interval_micros(interval: Interval) -> i64 {
    let nanos = interval.nanos();
    let rest = nanos % 1000;
    nanos / 1000 + i64::from(rest >= 500) - i64::from(rest <= -500)
}

/// Appends microseconds as seconds with six decimals.
#[inline]
pub(crate) fn seconds(out: &mut Vec<u8>, micros: i64) {
    if micros < 0 {
        out.push(b'-');
    }
    let magnitude = micros.unsigned_abs();
    integer(out, magnitude / 1_000_000);
    out.extend_from_slice(&six_decimals((magnitude % 1_000_000) as u32));
}

/// Appends microseconds as the shortest decimal number of seconds with at least one decimal, which
/// is how JSON writers print the nearest double.
#[inline]
pub(super) fn short_seconds(out: &mut Vec<u8>, micros: i64) {
    if micros < 0 {
        out.push(b'-');
    }
    let magnitude = micros.unsigned_abs();
    integer(out, magnitude / 1_000_000);
    let decimals = six_decimals((magnitude % 1_000_000) as u32);
    let mut len = decimals.len();
    while len > 2 && decimals[len - 1] == b'0' {
        len -= 1;
    }
    out.extend_from_slice(&decimals[..len]);
}

/// Appends nanoseconds as seconds, with nine decimals where six do not tell all.
pub(super) fn exact_seconds(out: &mut Vec<u8>, nanos: i64) {
    let magnitude = nanos.unsigned_abs();
    if magnitude.is_multiple_of(1000) {
        return seconds(out, nanos / 1000);
    }
    if nanos < 0 {
        out.push(b'-');
    }
    integer(out, magnitude / 1_000_000_000);
    let rest = (magnitude % 1_000_000_000) as u32;
    out.extend_from_slice(&six_decimals(rest / 1000));
    let [.., a, b, c] = eight(rest % 1000);
    out.extend_from_slice(&[a, b, c]);
}

/// The numbers below 100 in two digits each.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < 100 {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
};

/// A number below 10,000, and how many digits it has.
#[inline]
pub(super) const fn up_to_four(value: u16) -> ([u8; 4], usize) {
    let [a, b] = PAIRS[(value / 100 % 100) as usize];
    let [c, d] = PAIRS[(value % 100) as usize];
    let leading = (value < 1_000) as u32 + (value < 100) as u32 + (value < 10) as u32;
    ((u32::from_le_bytes([a, b, c, d]) >> (8 * leading)).to_le_bytes(), 4 - leading as usize)
}

/// The decimal point and the digits of a number of microseconds below a million.
#[inline]
fn six_decimals(micros: u32) -> [u8; 7] {
    let [a, b] = PAIRS[(micros / 10_000 % 100) as usize];
    let [c, d] = PAIRS[(micros / 100 % 100) as usize];
    let [e, f] = PAIRS[(micros % 100) as usize];
    [b'.', a, b, c, d, e, f]
}

/// Appends an address as `inet_ntop` of the GNU C library does.
#[inline]
pub(super) fn address(out: &mut Vec<u8>, address: Address) {
    match address.to_ip() {
        IpAddr::V4(v4) => append_dotted(out, v4.octets()),
        IpAddr::V6(v6) => colons(out, v6),
    }
}

/// Appends four numbers with dots between.
fn append_dotted(out: &mut Vec<u8>, octets: [u8; 4]) {
    let (text, len) = dotted(octets);
    out.extend_from_slice(text.get(..len).unwrap_or_default());
}

/// Each number of an IPv4 address with a dot behind it.
const OCTETS: [[u8; 4]; 256] = {
    let mut octets = [[0; 4]; 256];
    let mut value = 0;
    while value < 256 {
        let ([a, b, c, ..], len) = up_to_eight(value as u32);
        octets[value] = [a, b, c, 0];
        octets[value][len] = b'.';
        value += 1;
    }
    octets
};

/// Four numbers with dots between, and how many bytes that takes.
#[inline]
pub(super) fn dotted(octets: [u8; 4]) -> ([u8; 16], usize) {
    let (mut text, mut len) = ([0; 16], 0);
    for octet in octets {
        if let Some(free) = text.get_mut(len..).and_then(<[u8]>::first_chunk_mut) {
            *free = OCTETS[usize::from(octet)];
        }
        len += 2 + usize::from(octet >= 10) + usize::from(octet >= 100);
    }
    (text, len - 1)
}

/// Appends an IPv6 address: the first longest run of zeros as `::` (RFC 5952, section 4.2), and an
/// embedded IPv4 address where only the last 32 bits are set (RFC 4291, section 2.5.5.1).
fn colons(out: &mut Vec<u8>, address: Ipv6Addr) {
    let words = address.segments();
    let (start, len) = longest_zeros(&words);
    let mut index = 0;
    while index < words.len() {
        if len > 1 && index == start {
            out.extend_from_slice(b"::");
            index += len;
            continue;
        }
        if index > 0 && out.last() != Some(&b':') {
            out.push(b':');
        }
        if index == 6 && start == 0 && len == 6 {
            let [.., a, b, c, d] = address.octets();
            return append_dotted(out, [a, b, c, d]);
        }
        hexadecimal(out, words[index]);
        index += 1;
    }
}

/// Where the first longest run of zeros starts, and its length.
fn longest_zeros(words: &[u16; 8]) -> (usize, usize) {
    let (mut best, mut run) = ((0, 0), (0, 0));
    for (index, &word) in words.iter().enumerate() {
        run = if word != 0 { (index + 1, 0) } else { (run.0, run.1 + 1) };
        if run.1 > best.1 {
            best = run;
        }
    }
    best
}

/// Appends a number in base 16 without leading zeros.
fn hexadecimal(out: &mut Vec<u8>, word: u16) {
    let mut started = false;
    for shift in [12, 8, 4, 0] {
        let digit = word >> shift & 0xf;
        started |= digit != 0 || shift == 0;
        if started {
            out.push(b"0123456789abcdef"[usize::from(digit)]);
        }
    }
}

/// Appends `\x` and the two digits of a byte.
pub(super) fn escaped_byte(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"\\x");
    out.push(HEX[usize::from(byte >> 4)]);
    out.push(HEX[usize::from(byte & 0xf)]);
}

/// Appends a time as Zeek's headers have it, `2011-09-30-17-02-58` in UTC.
pub(crate) fn date(out: &mut Vec<u8>, time: Timestamp) {
    let Date { year, month, day, hour, minute, second } = Date::of(time);
    let text = format!("{year:04}-{month:02}-{day:02}-{hour:02}-{minute:02}-{second:02}");
    out.extend_from_slice(text.as_bytes());
}

/// Appends microseconds since 1970-01-01 as ISO 8601 has them, `2011-09-30T17:02:58.123456`, in UTC and without its zone.
/// Years that have not four digits are in the expanded form, with a sign.
pub(super) fn iso8601(out: &mut Vec<u8>, micros: i64) {
    let date = Date::of_second(micros.div_euclid(1_000_000));
    if !(0..10_000).contains(&date.year) {
        out.push(if date.year < 0 { b'-' } else { b'+' });
    }
    let year = date.year.unsigned_abs() as u32;
    let (digits, len) = if year < 10_000 { (eight(year), 4) } else { (eight(year), 6) };
    out.extend_from_slice(&digits[8 - len..]);
    let two = |value: i64| PAIRS[value.rem_euclid(100) as usize];
    let ([mo, nth], [day, of_month]) = (two(date.month), two(date.day));
    let ([h, hour], [m, minute], [s, second]) =
        (two(date.hour), two(date.minute), two(date.second));
    out.extend_from_slice(&[
        b'-', mo, nth, b'-', day, of_month, b'T', h, hour, b':', m, minute, b':', s, second,
    ]);
    out.extend_from_slice(&six_decimals(micros.rem_euclid(1_000_000) as u32));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_as_iso_8601_has_them() {
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00.000000"),
            (-1, "1969-12-31T23:59:59.999999"),
            (1_329_843_175_736_107, "2012-02-21T16:52:55.736107"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999"),
            (253_402_300_800_000_000, "+010000-01-01T00:00:00.000000"),
            (i64::MIN, "-290308-12-21T19:59:05.224192"),
            (i64::MAX, "+294247-01-10T04:00:54.775807"),
        ] {
            assert_eq!(text(|out| iso8601(out, micros)), expected);
        }
    }

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn seconds_have_six_decimals() {
        for (micros, expected, short) in [
            (0, "0.000000", "0.0"),
            (1, "0.000001", "0.000001"),
            (-1, "-0.000001", "-0.000001"),
            (1_329_843_175_736_107, "1329843175.736107", "1329843175.736107"),
            (-1_500_000, "-1.500000", "-1.5"),
            (163_820, "0.163820", "0.16382"),
            (i64::MIN, "-9223372036854.775808", "-9223372036854.775808"),
        ] {
            assert_eq!(text(|out| seconds(out, micros)), expected);
            assert_eq!(text(|out| short_seconds(out, micros)), short);
        }
    }

    #[test]
    fn exact_seconds_have_nine_decimals_where_they_need_them() {
        for (nanos, expected) in [
            (0, "0.000000"),
            (1, "0.000000001"),
            (-1, "-0.000000001"),
            (1_000, "0.000001"),
            (1_767_225_600_000_123_456, "1767225600.000123456"),
            (-1_500_000_000, "-1.500000"),
            (999_999_999, "0.999999999"),
            (i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(text(|out| exact_seconds(out, nanos)), expected);
        }
    }

    #[test]
    fn small_numbers_have_their_digits() {
        for value in 0..10_000 {
            let (digits, len) = up_to_four(value);
            assert_eq!(core::str::from_utf8(&digits[..len]).unwrap(), value.to_string());
        }
    }

    #[test]
    fn times_round_down_and_spans_to_the_nearest() {
        let time = |nanos| time_micros(Timestamp::from_nanos(nanos));
        assert_eq!([time(1999), time(-1), time(-1000), time(-1001)], [1, -1, -1, -2]);
        let span = |nanos| interval_micros(Interval::from_nanos(nanos));
        assert_eq!([span(1499), span(1500), span(-1499), span(-1500)], [1, 2, -1, -2]);
        assert_eq!(span(i64::MAX), i64::MAX / 1000 + 1);
    }

    #[test]
    fn addresses_print_as_the_c_library_does() {
        for (address, expected) in [
            ("0.0.0.0", "0.0.0.0"),
            ("192.0.2.255", "192.0.2.255"),
            ("10.9.100.99", "10.9.100.99"),
            ("::", "::"),
            ("::1", "::1"),
            ("1::", "1::"),
            ("::1.2.3.4", "::1.2.3.4"),
            ("::2:0.0.0.1", "::2:0:1"),
            ("2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"),
            ("2001:0:0:1:0:0:1:1", "2001::1:0:0:1:1"),
            ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("fe80::ffff:1.2.3.4", "fe80::ffff:102:304"),
            ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
            ("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"),
        ] {
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(text(|out| super::address(out, ip.into())), expected);
        }
    }

    #[test]
    fn addresses_agree_with_the_standard_library() {
        // Its one difference, the embedded IPv4 address, needs six leading zero words.
        let mut state = 1u64;
        for _ in 0..20_000 {
            let mut words = [0u16; 8];
            for word in &mut words[1..] {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let wanted = state >> 60;
                *word = if wanted < 8 { 0 } else { (state >> 33) as u16 >> ((wanted & 3) * 4) };
            }
            words[0] = 0x2001;
            let ip = Ipv6Addr::from(words);
            assert_eq!(text(|out| colons(out, ip)), ip.to_string());
        }
    }

    #[test]
    fn dates_are_as_in_the_headers_of_zeek() {
        let time = Timestamp::from_secs_nanos(1_317_402_178, 5);
        assert_eq!(text(|out| date(out, time)), "2011-09-30-17-02-58");
    }
}
