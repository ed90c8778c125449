//! Tests of the engine from outside, in one program: a hundred programs would each be linked anew.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read files and say what they skip, and the crate does neither"
)]
#![allow(unreachable_pub, reason = "some modules are public in the crate of the fuzz targets")]

#[path = "../../../../fuzz/src/anonymity.rs"]
mod anonymity;
#[path = "../../../../fuzz/src/conversations.rs"]
mod conversations;
#[path = "../../../../fuzz/src/decoding.rs"]
mod decoding;
#[allow(dead_code, reason = "seeds of fuzz targets need more of it")]
#[path = "../../../../fuzz/src/dialogues.rs"]
mod dialogues;
#[path = "../../../../fuzz/src/engine.rs"]
mod engine;
#[path = "../../../../fuzz/src/packets.rs"]
mod packets;
mod support;
#[path = "../../../../fuzz/src/transfers/mod.rs"]
mod transfers;

mod acceptance;
mod checksums;
mod clocks;
mod crowds;
mod datagrams;
mod decoys;
mod depth;
mod dns;
mod dns_joins;
mod dns_streams;
mod exchanges;
mod flood;
mod ftp;
mod fuzz;
mod http;
mod http_heads;
mod http_hostile;
mod http_losses;
mod http_tunnels;
mod imap;
mod irc;
mod late_segments;
mod loss_bounds;
mod loss_evidence;
mod losses;
mod lost_messages;
mod office_mail;
mod pop3;
mod programs;
mod recorded_messages;
mod refusals;
mod resegmented;
mod reuse;
mod roles;
mod said_in_all_ways;
mod segments;
mod smtp;
mod socks;
mod split;
mod ssh;
mod tls;
mod tunnels;
mod unpacked;
mod zeek_fragments;
mod zeek_tunnels;
