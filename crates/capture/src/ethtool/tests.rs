//! Answers as drivers give them.

use std::cell::RefCell;

use super::*;

/// A driver with two statistics and 33 features, that remembers what it was told.
#[derive(Default)]
struct Driver {
    told: RefCell<Vec<Vec<u32>>>,
}

fn put(words: &mut [u32], at: usize, text: &str) {
    let mut bytes = [0; NAME];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    for (word, bytes) in words[at..].iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
}

impl Ethtool for Driver {
    fn ask(&self, _: &str, words: &mut [u32]) -> io::Result<()> {
        let count = |set: u32| if set == STATISTICS { 2 } else { 33 };
        match words[0] {
            GET_SET_SIZES => {
                let set = join([words[2], words[3]]).trailing_zeros();
                words[4] = count(set);
            }
            GET_STRINGS if words[1] == STATISTICS => {
                put(words, 3, "rx_missed_errors");
                put(words, 11, "  rx_no_buffer");
            }
            GET_STRINGS => {
                (0..33).for_each(|at| put(words, 3 + at * 8, &format!("feature-{at}")));
            }
            GET_STATISTICS => words[2..].copy_from_slice(&[halves(7), halves(1 << 40)].concat()),
            GET_FEATURES => {
                // The last one is alone in its block: on, and can be switched; all of the first are fixed.
                words[2..10].copy_from_slice(&[u32::MAX, 0, 1, u32::MAX, 1, 0, 1, 0]);
            }
            0x10 => words[1..].copy_from_slice(&[4096, 0, 0, 4096, 512, 0, 0, 512]),
            0x3c => words[1..].copy_from_slice(&[2, 0, 1, 8, 1, 0, 1, 4]),
            0x0e => (words[1], words[2], words[10]) = (50, 0, 1),
            0x46 if words.len() == 6 => (words[2], words[3]) = (4, 6),
            0x46 => {
                words[4] = u32::from_ne_bytes([1, 0, 0, 0]);
                words[6..10].copy_from_slice(&[0, 1, 0, 1]);
                words[10] = u32::from_ne_bytes([0x6d, 0x5a, 0x6d, 0x5a]);
                words[11] = u32::from_ne_bytes([0x6d, 0x5a, 9, 9]);
            }
            0x29 if words[1] == HashFields::TCP_IPV4 => words[2] = 0xf0,
            0x29 => words[2] = 0x30,
            0x11 | 0x3d | 0x0f | SET_FEATURES => self.told.borrow_mut().push(words.to_vec()),
            _ => return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
        Ok(())
    }
}

#[test]
fn what_a_driver_tells_is_read() {
    let driver = Driver::default();
    let counted = statistics(&driver, "eth0").unwrap();
    let expected = [("rx_missed_errors", 7), ("rx_no_buffer", 1 << 40)];
    assert_eq!(counted, expected.map(|(name, count)| (name.to_owned(), count)));
    let rings = rings(&driver, "eth0").unwrap();
    assert_eq!((rings.rx, rings.rx_max, rings.tx, rings.tx_max), (512, 4096, 512, 4096));
    let channels = channels(&driver, "eth0").unwrap();
    let kind = channels.kind();
    assert_eq!((kind.name(), channels.count(kind), channels.receiving_max()), ("combined", 4, 8));
    let alone = Channels { combined: 0, combined_max: 0, ..channels };
    let kind = alone.kind();
    assert_eq!((kind.name(), alone.count(kind), alone.receiving_max()), ("rx", 1, 2));
    assert_eq!(alone.with(kind, 2), Channels { rx: 2, ..alone });
    let features = features(&driver, "eth0").unwrap();
    assert_eq!(features.len(), 33);
    assert!(features[0].is_on && features[0].is_fixed && !features[1].is_on);
    assert!(features[32].is_on && !features[32].is_fixed);
    let hash = receive_hash(&driver, "eth0").unwrap();
    assert_eq!((hash.queues.len(), hash.key.len(), hash.is_symmetric()), (4, 6, Some(true)));
    let other = ReceiveHash { key: vec![0x6d, 0x5a, 0x56, 0xda], ..hash };
    assert_eq!(other.is_symmetric(), Some(false));
    // The XOR of all, CRC-32, what the kernel does not tell, and symmetric-xor before Toeplitz.
    for (function, transformation) in [(2, 0), (4, 0), (0, 0), (1, 1)] {
        let told = ReceiveHash { function, transformation, ..other.clone() }.is_symmetric();
        assert_eq!(told, None, "{function} {transformation}");
    }
    assert_eq!(ReceiveHash::default().is_symmetric(), None);
    let fields = [HashFields::TCP_IPV4, HashFields::UDP_IPV4]
        .map(|kind| hash_fields(&driver, "eth0", kind).unwrap().has_ports);
    assert_eq!(fields, [true, false]);
}

#[test]
fn only_what_is_changed_is_changed() {
    let driver = Driver::default();
    set_rings(&driver, "eth0", 4096).unwrap();
    let now = channels(&driver, "eth0").unwrap();
    set_channels(&driver, "eth0", now.with(now.kind(), 8)).unwrap();
    let now = coalescing(&driver, "eth0").unwrap();
    set_coalescing(&driver, "eth0", Coalescing { rx_usecs: 100, ..now }).unwrap();
    set_feature(&driver, "eth0", "feature-32", false).unwrap();
    assert!(set_feature(&driver, "eth0", "feature-33", false).is_err());
    let told = driver.told.borrow();
    assert_eq!(told[0], [0x11, 4096, 0, 0, 4096, 4096, 0, 0, 512]);
    assert_eq!(told[1], [0x3d, 2, 0, 1, 8, 1, 0, 1, 8]);
    assert_eq!((told[2][0], told[2][1], told[2][10]), (0x0f, 100, 1));
    assert_eq!(told[3], [SET_FEATURES, 2, 0, 0, 1, 0]);
}

#[test]
fn the_loopback_interface_has_features_and_no_rings() {
    let calls = Calls::open().unwrap();
    let features = features(&calls, "lo").unwrap();
    assert!(features.iter().any(|feature| feature.name == "rx-gro"), "{features:?}");
    let refused = rings(&calls, "lo").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    assert!(calls.ask("nowhere0", &mut [GET_FEATURES, 0]).is_err());
}
