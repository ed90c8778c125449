//! How protocols write things down: what several of them have in common.
//!
//! | module | concern |
//! |---|---|
//! | [`line`] | lines of text |
//! | [`der`] | values of ASN.1 |
//! | [`base64`] | bytes as letters |
//! | [`sasl`] | who logs in |

pub(super) mod base64;
pub(super) mod der;
pub(super) mod line;
pub(super) mod sasl;
