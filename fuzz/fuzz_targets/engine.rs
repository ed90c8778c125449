//! Packets that form flows, as the input says, through the whole engine.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = netsniff_fuzz::engine::check(input);
});
