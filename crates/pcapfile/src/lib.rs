//! pcap and pcapng capture files: told by their magic, unpacked on the fly, read in large pieces.
