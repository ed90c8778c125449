//! Packets for filters of pcap-filter(7), and tcpdump's verdicts on them.

#![allow(missing_docs, reason = "fields and methods of tests are named for what they are")]

pub mod capture;
pub mod frames;
