//! What of a request its response must be read by.

/// What of a request changes the meaning of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Head,
    Connect,
    Other,
}

impl Asked {
    /// What a request with this method asks.
    pub(super) fn by(method: &[u8]) -> Self {
        if method.eq_ignore_ascii_case(b"HEAD") {
            Self::Head
        } else if method.eq_ignore_ascii_case(b"CONNECT") {
            Self::Connect
        } else {
            Self::Other
        }
    }
}
