//! Two streams, cut in different ways, through every protocol in the list.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = netsniff_fuzz::conversations::check(input);
});
