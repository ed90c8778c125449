//! Two streams, cut in different ways, through every protocol in the list, or through those that
//! `NETSNIFF_FUZZ_PROTOCOL` names, with commas between.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use netsniff_analysis::protocol::{ProtocolId, ProtocolSet};

/// The protocols that are tried.
fn wanted() -> ProtocolSet {
    static WANTED: OnceLock<ProtocolSet> = OnceLock::new();
    *WANTED.get_or_init(|| match std::env::var("NETSNIFF_FUZZ_PROTOCOL") {
        Err(_) => ProtocolSet::ALL,
        Ok(names) => names.split(',').fold(ProtocolSet::NONE, |set, name| {
            set.with(ProtocolId::named(name).expect("the name of a protocol in the list"))
        }),
    })
}

fuzz_target!(|input: &[u8]| {
    let _ = netsniff_fuzz::conversations::check(wanted(), input);
});
