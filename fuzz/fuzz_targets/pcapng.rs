//! pcapng files: any bytes behind the type of a section header.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut file = data.to_vec();
    let Some(block_type) = file.first_chunk_mut::<4>() else { return };
    *block_type = [0x0a, 0x0d, 0x0d, 0x0a];
    netsniff_fuzz::read_both_ways(&file, data.len() % 97);
});
