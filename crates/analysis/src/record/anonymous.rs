//! Records without what tells of people: between a record and its writer, by the privacy class of
//! each field.

use core::cell::RefCell;
use core::ops::Range;
use std::sync::Arc;

use netsniff_packet::anonymize::AddressCache;
use netsniff_packet::{Address, Anonymizer};

use super::{Elements, FieldInfo, LogType, Privacy, Proto, Record, Value, Visitor};

/// Maps the values of records, in memory that is used again and again.
#[derive(Clone, Debug)]
pub struct RecordAnonymizer {
    addresses: AddressCache,
    /// The text of the value that is being visited.
    text: Vec<u8>,
    /// What became of the elements of the list that is being visited.
    elements: Vec<Mapped>,
}

impl RecordAnonymizer {
    /// Maps by `anonymizer`.
    #[must_use]
    pub fn new(anonymizer: Arc<Anonymizer>) -> Self {
        let addresses = AddressCache::new(anonymizer);
        Self { addresses, text: Vec::new(), elements: Vec::new() }
    }

    /// The record as it may be written.
    pub const fn record<'a, R: Record>(&'a mut self, record: &'a R) -> Anonymous<'a, R> {
        Anonymous { record, anonymizer: RefCell::new(self) }
    }

    /// Maps one value; text is appended to the buffer.
    fn map(&mut self, info: &FieldInfo, value: Value<'_>) -> Mapped {
        let bytes = match value {
            // Neither a point in time nor a port is more than plain.
            Value::Unset
            | Value::Bool(_)
            | Value::Time(_)
            | Value::Seconds(_)
            | Value::Interval(_)
            | Value::Port(_) => {
                return Mapped::Same;
            }
            // Nothing tells how to map a number that is an address or a name.
            Value::Count(_) | Value::Int(_) | Value::Double(_) | Value::List(_) => {
                return Mapped::Unset;
            }
            Value::Addr(address) => return Mapped::Address(self.addresses.address(address)),
            Value::Word(_) if !info.words.is_empty() => return Mapped::Same,
            Value::Word(bytes) | Value::Bytes(bytes) => bytes,
            Value::Str(text) => text.as_bytes(),
        };
        let start = self.text.len();
        let (anonymizer, out) = (self.addresses.anonymizer(), &mut self.text);
        match info.privacy.of_text(bytes) {
            Privacy::Address => anonymizer.address_text(bytes, out),
            Privacy::Name => anonymizer.name(bytes, out),
            Privacy::User => anonymizer.user(bytes, out),
            Privacy::FreeText | Privacy::Word(_) => anonymizer.text(bytes, out),
            Privacy::ContentHash => anonymizer.content_hash(bytes, out),
            Privacy::FromAddress | Privacy::Plain => return Mapped::Same,
        }
        Mapped::Text(start..self.text.len())
    }
}

/// What became of a value.
#[derive(Clone, Debug)]
enum Mapped {
    /// It may be told.
    Same,
    /// The value may not be shown.
    Unset,
    /// The pseudonym of an address.
    Address(Address),
    /// A pseudonym in the buffer.
    Text(Range<usize>),
}

impl Mapped {
    fn value<'v>(&'v self, original: Value<'v>, text: &'v [u8]) -> Value<'v> {
        match self {
            Self::Same => original,
            Self::Unset => Value::Unset,
            Self::Address(address) => Value::Addr(*address),
            Self::Text(range) => Value::Bytes(text.get(range.clone()).unwrap_or_default()),
        }
    }
}

/// A record whose values are pseudonyms where their fields are not [`Privacy::Plain`]. Whoever visits
/// it sees nothing else.
#[derive(Debug)]
pub struct Anonymous<'a, R> {
    record: &'a R,
    anonymizer: RefCell<&'a mut RecordAnonymizer>,
}

impl<R: Record> Record for Anonymous<'_, R> {
    fn log(&self) -> &'static LogType {
        self.record.log()
    }

    fn transport(&self) -> Option<Proto> {
        self.record.transport()
    }

    #[inline]
    fn visit<V: Visitor>(&self, visitor: &mut V) {
        // A visitor that visits the same record again, while it does so, sees nothing of it.
        if let Ok(mut anonymizer) = self.anonymizer.try_borrow_mut() {
            self.record.visit(&mut Mapping { anonymizer: *anonymizer, visitor });
        }
    }
}

/// Stands before a visitor.
struct Mapping<'a, V> {
    anonymizer: &'a mut RecordAnonymizer,
    visitor: &'a mut V,
}

impl<V: Visitor> Visitor for Mapping<'_, V> {
    #[inline]
    fn field(&mut self, index: usize, info: &'static FieldInfo, value: Value<'_>) {
        if matches!(info.privacy, Privacy::Plain | Privacy::FromAddress) {
            return self.visitor.field(index, info, value);
        }
        let anonymizer = &mut *self.anonymizer;
        anonymizer.text.clear();
        let Value::List(elements) = value else {
            let mapped = anonymizer.map(info, value);
            return self.visitor.field(index, info, mapped.value(value, &anonymizer.text));
        };
        anonymizer.elements.clear();
        for at in 0..elements.count() {
            let mapped = anonymizer.map(info, elements.element(at));
            anonymizer.elements.push(mapped);
        }
        let list =
            MappedList { original: elements, mapped: &anonymizer.elements, text: &anonymizer.text };
        self.visitor.field(index, info, Value::List(&list));
    }
}

/// A list whose elements are mapped.
struct MappedList<'a> {
    original: &'a dyn Elements,
    mapped: &'a [Mapped],
    text: &'a [u8],
}

impl Elements for MappedList<'_> {
    fn count(&self) -> usize {
        self.mapped.len()
    }

    fn element(&self, index: usize) -> Value<'_> {
        let mapped = self.mapped.get(index);
        mapped.map_or(Value::Unset, |it| it.value(self.original.element(index), self.text))
    }
}

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares records for other crates")]
mod tests {
    use netsniff_packet::Timestamp;
    use netsniff_packet::anonymize::{Keep, Key, Method};

    use super::*;
    use crate::key::uid::Uid;
    use crate::record::Port;

    crate::record! {
        /// A record with a field of each class.
        pub struct Everything<'a> => "everything" {
            /// Plain.
            uid: Uid => "uid", string, None, Plain, Netsniff;
            /// Plain.
            ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
            /// An address.
            address: Address => "address", addr, None, Address, Netsniff;
            /// A port that somebody thought an address.
            port: Port => "port", port, None, Address, Netsniff;
            /// A number that is an address.
            number: u32 => "number", count, None, Address, Netsniff;
            /// Addresses.
            addresses: &'a [Address] => "addresses", set[addr], None, Address, Netsniff;
            /// Names.
            names: &'a [&'a str] => "names", vector[string], None, Name, Netsniff;
            /// A user.
            user: Option<&'a str> => "user", string, None, User, Netsniff;
            /// No user.
            nobody: Option<&'a str> => "nobody", string, None, User, Netsniff;
            /// A text.
            text: &'a [u8] => "text", string, None, FreeText, Netsniff;
            /// Words that are registered, and one that is not.
            words: &'a [&'a [u8]] => "words", vector[string], None, Word(HttpMethod), Netsniff;
            /// A hash.
            hash: &'a str => "hash", string, None, ContentHash, Netsniff;
            /// Computed from pseudonyms.
            derived: &'a str => "derived", string, None, FromAddress, Netsniff;
        }
    }

    /// The values as text.
    #[derive(Default)]
    struct Seen(Vec<String>);

    fn shown(value: Value<'_>) -> String {
        match value {
            Value::Unset => "-".to_owned(),
            Value::Addr(address) => address.to_string(),
            Value::Port(number) => number.to_string(),
            Value::Count(number) => number.to_string(),
            Value::Time(time) => time.nanos().to_string(),
            Value::Word(bytes) | Value::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            Value::Str(text) => text.to_owned(),
            Value::List(list) => {
                let all: Vec<_> = (0..=list.count()).map(|at| shown(list.element(at))).collect();
                all.join(" ")
            }
            Value::Bool(_)
            | Value::Int(_)
            | Value::Double(_)
            | Value::Interval(_)
            | Value::Seconds(_) => {
                panic!("no such field")
            }
        }
    }

    impl Visitor for Seen {
        fn field(&mut self, index: usize, _: &'static FieldInfo, value: Value<'_>) {
            assert_eq!(index, self.0.len());
            self.0.push(shown(value));
        }
    }

    #[test]
    fn each_class_is_mapped_by_its_rule() {
        let key = Key::new(core::array::from_fn(|at| at as u8));
        let anonymizer = Arc::new(Anonymizer::new(Method::CryptoPan, &key, &Keep::default()));
        let mut records = RecordAnonymizer::new(Arc::clone(&anonymizer));
        let address = Address::from_v4([192, 0, 2, 7]);
        let md5 = "d41d8cd98f00b204e9800998ecf8427e";
        let record = Everything {
            uid: Uid::new(5),
            ts: Timestamp::from_nanos(7),
            address,
            port: Port(80),
            number: 0xc000_0207,
            addresses: &[address, Address::from_v4([127, 0, 0, 1])],
            names: &["www.example.com", "192.0.2.7"],
            user: Some("alice"),
            nobody: None,
            text: b"free text",
            words: &[b"PROPFIND", b"mueller", b"get"],
            hash: md5,
            derived: "1:abc=",
        };
        let mut seen = Seen::default();
        // A second visit sees the same, whatever the buffers hold.
        for _ in 0..2 {
            seen = Seen::default();
            records.record(&record).visit(&mut seen);
        }
        let pseudonym = anonymizer.address(address).to_string();
        let text = |map: fn(&Anonymizer, &[u8], &mut Vec<u8>), text: &str| {
            let mut out = Vec::new();
            map(&anonymizer, text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        let expected = [
            "C00000000000000005".to_owned(),
            "7".to_owned(),
            pseudonym.clone(),
            "80".to_owned(),
            "-".to_owned(),
            format!("{pseudonym} 127.0.0.1 -"),
            format!("{} {pseudonym} -", text(Anonymizer::name, "www.example.com")),
            text(Anonymizer::user, "alice"),
            "-".to_owned(),
            text(Anonymizer::text, "free text"),
            ["PROPFIND", &*text(Anonymizer::text, "mueller"), &*text(Anonymizer::text, "get"), "-"]
                .join(" "),
            text(Anonymizer::content_hash, md5),
            "1:abc=".to_owned(),
        ];
        assert_eq!(seen.0, expected);
        assert_ne!(pseudonym, "192.0.2.7");
    }
}
