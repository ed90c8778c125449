//! Stamps by which a receiver proves which frames arrived.
//!
//! A stamp is 18 bytes at the begin of a frame's payload: run (32 bits), stream (16), sequence number (48)
//! and send time (48: nanoseconds since the run's start), all big-endian.

/// Bytes of a stamp.
pub const LEN: usize = 18;

/// The largest value of the two fields of 48 bits.
const MAX_48: u64 = (1 << 48) - 1;

/// What a frame says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Which run it belongs to, so that frames of another one are not counted.
    pub run: u32,
    /// Which of the run's streams, each of which counts by itself.
    pub stream: u16,
    /// Its number in the stream, from 0; 48 bits.
    pub sequence: u64,
    /// When it was sent, in nanoseconds since the start of the run; 48 bits, which is 78 hours.
    pub sent: u64,
}

impl Stamp {
    /// Writes the stamp to the begin of `payload`; `false` where it does not fit.
    #[must_use]
    #[inline]
    pub fn emit(&self, payload: &mut [u8]) -> bool {
        let Some(place) = payload.first_chunk_mut::<LEN>() else { return false };
        place[0..4].copy_from_slice(&self.run.to_be_bytes());
        place[4..6].copy_from_slice(&self.stream.to_be_bytes());
        place[6..12].copy_from_slice(&(self.sequence & MAX_48).to_be_bytes()[2..]);
        place[12..18].copy_from_slice(&(self.sent & MAX_48).to_be_bytes()[2..]);
        true
    }

    /// Reads the stamp at the begin of `payload`; `None` where it is too short for one.
    #[must_use]
    #[inline]
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let place = payload.first_chunk::<LEN>()?;
        let [r0, r1, r2, r3, t0, t1, s0, s1, s2, s3, s4, s5, n0, n1, n2, n3, n4, n5] = *place;
        Some(Self {
            run: u32::from_be_bytes([r0, r1, r2, r3]),
            stream: u16::from_be_bytes([t0, t1]),
            sequence: u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]),
            sent: u64::from_be_bytes([0, 0, n0, n1, n2, n3, n4, n5]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_back() {
        for stamp in [
            Stamp { run: 1, stream: 2, sequence: 3, sent: 4 },
            Stamp { run: u32::MAX, stream: u16::MAX, sequence: MAX_48, sent: MAX_48 },
            Stamp { run: 0x0102_0304, stream: 0x0506, sequence: 0x0708_090a_0b0c, sent: 7 },
        ] {
            let mut payload = [0xff; 20];
            assert!(stamp.emit(&mut payload));
            assert_eq!(Stamp::parse(&payload), Some(stamp));
            assert_eq!(payload[18..], [0xff; 2], "nothing behind it is touched");
            assert!(!stamp.emit(&mut payload[..17]));
            assert_eq!(Stamp::parse(&payload[..17]), None);
        }
    }

    #[test]
    fn fields_lie_where_they_should() {
        let mut payload = [0; LEN];
        let stamp = Stamp { run: 0x0102_0304, stream: 0x0506, sequence: 7, sent: 0x0102_0304_0506 };
        assert!(stamp.emit(&mut payload));
        assert_eq!(payload, [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6]);
    }
}
