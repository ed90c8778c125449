//! Options of IPv4, RFC 791 section 3.1.

/// Kinds of options, with copy flag and class.
pub mod kind {
    /// The list ends here.
    pub const END_OF_LIST: u8 = 0;
    /// No operation.
    pub const NO_OPERATION: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Time stamp.
    pub const TIME_STAMP: u8 = 68;
    /// Loose source route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Router alert, RFC 2113.
    pub const ROUTER_ALERT: u8 = 148;
}

/// One option of an IPv4 header (RFC 791, 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Option<'a> {
    /// Kind, see [`kind`].
    pub kind: u8,
    /// What follows kind and length; empty for the two kinds that have no length.
    pub data: &'a [u8],
}

impl Ipv4Option<'_> {
    /// Writes the option and returns its length, or `None` where `buffer` is too short, the option
    /// longer than an option can be, or there is content in a kind that has none.
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        if self.kind <= kind::NO_OPERATION {
            *buffer.first_mut()? = self.kind;
            return self.data.is_empty().then_some(1);
        }
        let len = self.data.len().checked_add(2).filter(|len| *len <= 40)?;
        let out = buffer.get_mut(..len)?;
        out[0] = self.kind;
        out[1] = len as u8;
        out[2..].copy_from_slice(self.data);
        Some(len)
    }
}

/// The options of a header, in order, up to and with the end of the list or the first that does not
/// fit.
#[derive(Clone, Debug)]
pub struct Ipv4OptionIter<'a>(&'a [u8]);

impl<'a> Ipv4OptionIter<'a> {
    /// Reads the options of a header.
    #[must_use]
    pub const fn new(options: &'a [u8]) -> Self {
        Self(options)
    }
}

impl<'a> Iterator for Ipv4OptionIter<'a> {
    type Item = Ipv4Option<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.0.split_first()?;
        if kind <= kind::NO_OPERATION {
            self.0 = if kind == kind::END_OF_LIST { &[] } else { rest };
            return Some(Ipv4Option { kind, data: &[] });
        }
        let len = usize::from(*rest.first()?);
        let data = self.0.get(2..len)?;
        self.0 = self.0.get(len..)?;
        Some(Ipv4Option { kind, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::random::cases;

    #[test]
    fn a_list_round_trips() {
        cases(|random| {
            let len = random.below(20);
            let data = random.bytes(len);
            let list = [
                Ipv4Option { kind: kind::NO_OPERATION, data: &[] },
                Ipv4Option { kind: random.byte() | 2, data: &data },
                Ipv4Option { kind: kind::END_OF_LIST, data: &[] },
            ];
            let mut buffer = [0xff; 40];
            let mut at = 0;
            for option in list {
                at += option.emit(&mut buffer[at..]).unwrap();
            }
            assert_eq!(Ipv4OptionIter::new(&buffer).collect::<Vec<_>>(), list);
        });
    }

    #[test]
    fn an_option_that_does_not_fit_ends_the_list() {
        for options in [[7, 1, 0, 0], [7, 0, 0, 0], [7, 5, 0, 0]] {
            assert_eq!(Ipv4OptionIter::new(&options).next(), None, "{options:?}");
        }
    }
}
