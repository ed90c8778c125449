//! Extensions of certificates: other names of the subject and basic constraints, RFC 5280 sections
//! 4.2.1.6 and 4.2.1.9.

use netsniff_packet::Address;

use crate::protocol::syntax::der::{
    BOOLEAN, Elements, INTEGER, OBJECT, OCTET_STRING, SEQUENCE, unsigned,
};

/// `subjectAltName` (2.5.29.17).
const OTHER_NAMES: &[u8] = &[0x55, 0x1d, 17];
/// `basicConstraints` (2.5.29.19).
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];

/// `[1] rfc822Name` of `GeneralName`.
const MAIL: u8 = 0x81;
/// `[2] dNSName`.
const HOST: u8 = 0x82;
/// `[6] uniformResourceIdentifier`.
const URI: u8 = 0x86;
/// `[7] iPAddress`.
const ADDRESS: u8 = 0x87;

/// The extensions that are told of. What cannot be read is left out.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    /// Other names of the subject.
    pub(super) other_names: OtherNames,
    /// Whether it may sign certificates.
    pub(super) constraints: Option<Constraints>,
}

/// Other names of the subject, of each kind in their order.
#[derive(Debug, Default)]
pub(super) struct OtherNames {
    pub(super) hosts: Vec<Box<[u8]>>,
    pub(super) uris: Vec<Box<[u8]>>,
    pub(super) mails: Vec<Box<[u8]>>,
    pub(super) addresses: Vec<Address>,
}

/// `basicConstraints` (RFC 5280, 4.2.1.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constraints {
    /// Whether the subject may sign certificates.
    pub(super) is_authority: bool,
    /// Authorities that may stand between it and a host's certificate.
    pub(super) path_len: Option<u64>,
}

impl Extensions {
    /// The extensions in the content of their field.
    pub(super) fn of(field: &[u8]) -> Self {
        let mut extensions = Self::default();
        let list = Elements::new(field).content(SEQUENCE).unwrap_or_default();
        for extension in Elements::new(list).filter(|it| it.tag == SEQUENCE) {
            let mut fields = Elements::new(extension.content);
            let Some(kind) = fields.content(OBJECT) else { continue };
            fields.next_if(BOOLEAN);
            let Some(value) = fields.content(OCTET_STRING) else { continue };
            let Some(value) = Elements::new(value).content(SEQUENCE) else { continue };
            match kind {
                OTHER_NAMES => extensions.other_names = OtherNames::of(value),
                BASIC_CONSTRAINTS => extensions.constraints = Some(Constraints::of(value)),
                _ => {}
            }
        }
        extensions
    }
}

impl OtherNames {
    fn of(list: &[u8]) -> Self {
        let mut names = Self::default();
        for name in Elements::new(list) {
            match name.tag {
                HOST => names.hosts.push(name.content.into()),
                URI => names.uris.push(name.content.into()),
                MAIL => names.mails.push(name.content.into()),
                ADDRESS => names.addresses.extend(address(name.content)),
                _ => {}
            }
        }
        names
    }
}

fn address(octets: &[u8]) -> Option<Address> {
    let v4 = <[u8; 4]>::try_from(octets).ok().map(Address::from_v4);
    v4.or_else(|| <[u8; 16]>::try_from(octets).ok().map(Address::from_v6))
}

impl Constraints {
    fn of(fields: &[u8]) -> Self {
        let mut fields = Elements::new(fields);
        let is_authority = fields.content(BOOLEAN).is_some_and(|value| value != [0]);
        Self { is_authority, path_len: fields.content(INTEGER).and_then(unsigned) }
    }
}
