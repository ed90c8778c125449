//! What is wrong with TLS: its certificates, their keys, its versions and suites.

pub(super) mod certificate;
pub(super) mod weak_key;
pub(super) mod weak_tls;
