//! Identification strings, RFC 4253 section 4.2, and which version two sides speak, section 5.

use crate::protocol::Detection;

/// Bytes of a line, beyond which it is none of SSH. RFC 4253 has 255; servers exceed that in lines
/// before their identification.
pub(super) const MAX_LINE: usize = 1024;

/// The versions that an identification string stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaks {
    /// It speaks version 1 only.
    One,
    /// Either: "1.99".
    Both,
    /// It speaks version 2 only.
    Two,
}

/// The version that is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// Whether a line is an identification string. Like Zeek, letters of either case will do.
pub(super) fn is_identification(line: &[u8]) -> bool {
    line.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"SSH-"))
}

/// Whether a stream begins with an identification string.
pub(super) fn begins(head: &[u8]) -> Detection {
    for (&byte, expected) in head.iter().zip(b"SSH-v.") {
        let is_right = match expected {
            b'v' => matches!(byte, b'1' | b'2'),
            _ => byte.eq_ignore_ascii_case(expected),
        };
        if !is_right {
            return Detection::No;
        }
    }
    if head.len() < 6 { Detection::Undecided } else { Detection::Yes }
}

impl Speaks {
    /// What an identification string says.
    pub(super) fn of(identification: &[u8]) -> Option<Self> {
        match (identification.get(4)?, identification.get(6..8)) {
            (b'1', Some(b"99")) => Some(Self::Both),
            (b'1', _) => Some(Self::One),
            (b'2', _) => Some(Self::Two),
            _ => None,
        }
    }

    /// The version that two sides speak; `None` where they have none in common.
    pub(super) const fn agreed(self, other: Self) -> Option<Version> {
        match (self, other) {
            (Self::One, Self::Two) | (Self::Two, Self::One) => None,
            (Self::One, _) | (_, Self::One) => Some(Version::One),
            _ => Some(Version::Two),
        }
    }

    /// The version that a side speaks to whomever; `None` where that depends on the other side.
    pub(super) const fn alone(self) -> Option<Version> {
        match self {
            Self::One => Some(Version::One),
            Self::Both => None,
            Self::Two => Some(Version::Two),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_agreed_on() {
        let speaks = |text: &str| Speaks::of(text.as_bytes()).unwrap();
        let (one, both, two) = (speaks("SSH-1.5-x"), speaks("SSH-1.99-x"), speaks("SSH-2.0-x"));
        assert_eq!((one, both, two), (Speaks::One, Speaks::Both, Speaks::Two));
        assert_eq!(one.agreed(both), Some(Version::One));
        assert_eq!(both.agreed(both), Some(Version::Two));
        assert_eq!(two.agreed(both), Some(Version::Two));
        assert_eq!(one.agreed(two), None);
        assert_eq!(Speaks::of(b"SSH-3.0"), None);
    }
}
