//! Any bytes as a packet of any link type, down into its tunnels.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    netsniff_fuzz::decoding::check(input);
});
