//! DNS, RFC 1035, with its kin: NetBIOS names, multicast DNS and LLMNR.

use core::time::Duration;

use super::{Exchange, Protocol, Verdict};

/// Messages over UDP.
#[derive(Debug)]
pub(super) struct Dns;

/// Length of the header, RFC 1035 section 4.1.1.
const HEADER_LEN: usize = 12;

impl Protocol for Dns {
    fn name(&self) -> &'static str {
        "dns"
    }

    fn udp_ports(&self) -> &'static [u16] {
        &[53, 137, 5353, 5355]
    }

    fn datagram(&self, payload: &[u8]) -> Verdict {
        let Some(header) = payload.first_chunk::<HEADER_LEN>() else { return Verdict::Contradicts };
        if header[2] & 0x80 != 0 { Verdict::FromServer } else { Verdict::FromClient }
    }

    /// A resolver takes its port for one exchange. Zeek looks every `dns_session_timeout`, and
    /// takes a second less of silence for enough.
    fn exchange(&self) -> Option<Exchange> {
        Some(Exchange { interval: Duration::from_secs(10), silence: Duration::from_secs(9) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_bit_tells_who_speaks() {
        let mut message = [0; HEADER_LEN];
        assert_eq!(Dns.datagram(&message), Verdict::FromClient);
        message[2] = 0x81;
        assert_eq!(Dns.datagram(&message), Verdict::FromServer);
        assert_eq!(Dns.datagram(&message[..11]), Verdict::Contradicts);
    }
}
