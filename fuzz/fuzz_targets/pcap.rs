//! Classic pcap files: any bytes behind any of the magics.
#![no_main]

use libfuzzer_sys::fuzz_target;

const MAGICS: [u32; 3] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];

fuzz_target!(|data: &[u8]| {
    let [first, second, third, fourth, rest @ ..] = data else { return };
    let magic = u32::from_le_bytes([*first, *second, *third, *fourth]);
    // The seeds begin with a magic; what does not is given one.
    let magic = if MAGICS.contains(&magic) || MAGICS.contains(&magic.swap_bytes()) {
        magic
    } else {
        let magic = MAGICS[usize::from(*first) % MAGICS.len()];
        if first & 0x80 == 0 { magic } else { magic.swap_bytes() }
    };
    let file = [&magic.to_le_bytes(), rest].concat();
    netsniff_fuzz::read_both_ways(&file, usize::from(*rest.first().unwrap_or(&1)));
});
