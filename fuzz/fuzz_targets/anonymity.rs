//! Packets with known hardware addresses in any headers, of which anonymisation leaves none.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    netsniff_fuzz::anonymity::check(input);
});
