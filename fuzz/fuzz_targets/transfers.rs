//! Whole transfers over TCP under losses, disorder and forgery, of which the records say nothing wrong.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = netsniff_fuzz::transfers::check(input);
});
