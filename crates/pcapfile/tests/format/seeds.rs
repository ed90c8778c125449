//! The seeds of the fuzz targets: files of this project's own making, kept in `fuzz/seeds`.
//!
//! With `NETSNIFF_WRITE_SEEDS` set they are written anew.

use std::fs;
use std::path::Path;

use crate::bytes::{classic, every_block};

#[test]
fn seeds_are_what_the_tests_make() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let seeds = [
        ("pcap/microseconds", classic(false, 0xa1b2_c3d4)),
        ("pcap/big_endian_nanoseconds", classic(true, 0xa1b2_3c4d)),
        ("pcap/modified", classic(false, 0xa1b2_cd34)),
        ("pcapng/every_block", every_block()),
    ];
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if std::env::var_os("NETSNIFF_WRITE_SEEDS").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let seed = fs::read(&path).unwrap_or_default();
        assert!(seed == bytes, "{name} is old: run the tests with NETSNIFF_WRITE_SEEDS=1");
    }
}
