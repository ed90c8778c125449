//! Blocks that stand beside packets and are carried over into another file: names, secrets, and what others define.
//!
//! What is written is little-endian, so that blocks of a big-endian section are turned as far as their parts are known.

const NAME_RESOLUTION: u32 = 4;
const DECRYPTION_SECRETS: u32 = 10;
/// A custom block that may be copied into other files.
const CUSTOM: u32 = 0xbad;

/// A block as it is carried over, little-endian; `None` for one that means nothing in another file, must not be copied,
/// or cannot be turned.
pub(super) fn carried<const BIG_ENDIAN: bool>(block_type: u32, block: &[u8]) -> Option<Box<[u8]>> {
    if ![NAME_RESOLUTION, DECRYPTION_SECRETS, CUSTOM].contains(&block_type) {
        return None;
    }
    let body = block.get(8..block.len().checked_sub(4)?)?;
    // Lengths are multiples of four, or readers of other programs fail.
    if !body.len().is_multiple_of(4) {
        return None;
    }
    let length = u32::try_from(block.len()).ok()?.to_le_bytes();
    let mut carried = Vec::with_capacity(block.len());
    carried.extend(block_type.to_le_bytes());
    carried.extend(length);
    match (BIG_ENDIAN, block_type) {
        (false, _) => carried.extend(body),
        (true, NAME_RESOLUTION) => turn_list(body, &mut carried)?,
        (true, DECRYPTION_SECRETS) => turn_secrets(body, &mut carried)?,
        // Only its maker knows the order of its bytes.
        (true, _) => return None,
    }
    carried.extend(length);
    Some(carried.into())
}

/// Turns the type and length of secrets, and the options behind them.
fn turn_secrets(body: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (kind, rest) = body.split_first_chunk::<4>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let len = u32::from_be_bytes(*len);
    out.extend(u32::from_be_bytes(*kind).to_le_bytes());
    out.extend(len.to_le_bytes());
    let (secrets, options) = rest.split_at_checked((len as usize).next_multiple_of(4))?;
    out.extend(secrets);
    turn_list(options, out)
}

/// Turns the codes and lengths of a list of values, which are bytes and texts: records of names, and options.
fn turn_list(mut rest: &[u8], out: &mut Vec<u8>) -> Option<()> {
    while let Some(([c0, c1, l0, l1], behind)) = rest.split_first_chunk::<4>() {
        out.extend([*c1, *c0, *l1, *l0]);
        let len = usize::from(u16::from_be_bytes([*l0, *l1])).next_multiple_of(4);
        let (value, behind) = behind.split_at_checked(len)?;
        out.extend(value);
        rest = behind;
    }
    rest.is_empty().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of these words and bytes, in both orders.
    fn both(block_type: u32, parts: &[Part<'_>]) -> [Vec<u8>; 2] {
        [false, true].map(|is_big| {
            let number =
                |number: u32| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
            let short =
                |number: u16| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
            let mut body = Vec::new();
            for part in parts {
                match part {
                    Part::Long(it) => body.extend(number(*it)),
                    Part::Short(it) => body.extend(short(*it)),
                    Part::Bytes(it) => body.extend(*it),
                }
            }
            let length = number(body.len() as u32 + 12);
            [&number(block_type)[..], &length, &body, &length].concat()
        })
    }

    enum Part<'a> {
        Long(u32),
        Short(u16),
        Bytes(&'a [u8]),
    }

    #[test]
    fn names_and_secrets_of_both_orders_are_carried_over_as_one() {
        use Part::{Bytes, Long, Short};
        let name = [Short(1), Short(6), Bytes(&[192, 0, 2, 1, b'a', 0, 0, 0]), Short(0), Short(0)];
        let comment = [Short(1), Short(2), Bytes(b"hi\0\0"), Short(0), Short(0)];
        let names: Vec<Part<'_>> = name.into_iter().chain(comment).collect();
        let secrets = [
            Long(0x544c_534b),
            Long(5),
            Bytes(b"key=1\0\0\0"),
            Short(1),
            Short(1),
            Bytes(b"x\0\0\0"),
        ];
        for (block_type, parts) in [(NAME_RESOLUTION, &names[..]), (DECRYPTION_SECRETS, &secrets)] {
            let [little, big] = both(block_type, parts);
            assert_eq!(carried::<false>(block_type, &little).unwrap()[..], little[..]);
            assert_eq!(carried::<true>(block_type, &big).unwrap()[..], little[..]);
            for cut in (0..big.len()).step_by(4) {
                // Never a panic, whatever is missing.
                let _ = carried::<true>(block_type, &big[..cut]);
            }
        }
    }

    #[test]
    fn what_must_not_be_copied_or_turned_is_left_out() {
        let [little, big] = both(CUSTOM, &[Part::Long(32_473), Part::Bytes(b"four")]);
        assert!(
            carried::<false>(CUSTOM, &little).is_some() && carried::<true>(CUSTOM, &big).is_none()
        );
        assert!(
            carried::<false>(0x4000_0bad, &little).is_none()
                && carried::<false>(9, &little).is_none()
        );
        assert!(
            carried::<false>(CUSTOM, &little[..15]).is_none()
                && carried::<false>(CUSTOM, &[]).is_none()
        );
    }
}
