//! The kinds of traffic whose shares a mix must keep.

/// What a packet belongs to, by port, or by the subject of the capture that it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// HTTP without TLS.
    Http,
    /// TLS over TCP.
    Tls,
    /// QUIC.
    Quic,
    /// FTP control and data.
    Ftp,
    /// SMTP, with and without STARTTLS.
    Smtp,
    /// SSH.
    Ssh,
    /// DNS over UDP and TCP, multicast DNS.
    Dns,
    /// SMB.
    Smb,
    /// Everything else.
    Other,
}

/// How many categories there are.
pub const COUNT: usize = Category::ALL.len();

impl Category {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Http,
        Self::Tls,
        Self::Quic,
        Self::Ftp,
        Self::Smtp,
        Self::Ssh,
        Self::Dns,
        Self::Smb,
        Self::Other,
    ];

    /// The name, which is also that of the folder of its captures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["http", "tls", "quic", "ftp", "smtp", "ssh", "dns", "smb", "other"][self as usize]
    }

    /// The category with a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }

    /// What well-known ports say of a packet, either port of it.
    #[must_use]
    pub fn from_ports(protocol: u8, ports: (u16, u16)) -> Option<Self> {
        [ports.0.min(ports.1), ports.0.max(ports.1)].into_iter().find_map(|port| {
            match (protocol, port) {
                (6, 80 | 8080 | 8000 | 3128) => Some(Self::Http),
                (6, 443 | 465 | 993 | 995 | 8443) => Some(Self::Tls),
                (17, 443) => Some(Self::Quic),
                (6, 20 | 21) => Some(Self::Ftp),
                (6, 25 | 587) => Some(Self::Smtp),
                (6, 22) => Some(Self::Ssh),
                (6 | 17, 53) | (17, 5353 | 5355) => Some(Self::Dns),
                (6, 139 | 445) | (17, 137 | 138) => Some(Self::Smb),
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for category in Category::ALL {
            assert_eq!(Category::from_name(category.name()), Some(category));
        }
    }

    #[test]
    fn the_lower_port_is_asked_first() {
        assert_eq!(Category::from_ports(6, (8080, 25)), Some(Category::Smtp));
        assert_eq!(Category::from_ports(17, (50_000, 443)), Some(Category::Quic));
        assert_eq!(Category::from_ports(17, (50_000, 22)), None);
    }
}
