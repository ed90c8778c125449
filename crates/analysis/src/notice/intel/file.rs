//! Files of indicators, in the format that Zeek reads.

use core::fmt;

use super::{IndicatorType, Indicators, Meta, masked, places};

/// Why a file of indicators cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub why: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl core::error::Error for FileError {}

/// Where the columns that count stand in a line.
#[derive(Debug)]
struct Header {
    columns: usize,
    indicator: usize,
    kind: usize,
    source: usize,
    do_notice: Option<usize>,
    only_in: Option<usize>,
}

/// The columns without which nothing can be read.
const NEEDED: &str = "a line `#fields` with tabs between the names of the columns, of which there must be \
                      indicator, indicator_type and meta.source";

impl Header {
    fn read(names: &str) -> Result<Self, String> {
        let names: Vec<&str> = names.split('\t').collect();
        let at = |wanted: &str| names.iter().position(|name| *name == wanted);
        let needed = |wanted: &str| {
            at(wanted)
                .ok_or_else(|| format!("there is no column {wanted}; Zeek's format has {NEEDED}"))
        };
        Ok(Self {
            columns: names.len(),
            indicator: needed("indicator")?,
            kind: needed("indicator_type")?,
            source: needed("meta.source")?,
            do_notice: at("meta.do_notice"),
            only_in: at("meta.if_in"),
        })
    }
}

impl Indicators {
    /// Adds the indicators of a file, and returns how many there were.
    ///
    /// # Errors
    ///
    /// At the first line that cannot be read. What stands before it was added.
    pub fn read(&mut self, text: &str) -> Result<usize, FileError> {
        let mut header = None;
        let mut count = 0;
        for (line, number) in text.lines().zip(1..) {
            let fail = |why| FileError { line: number, why };
            if let Some(names) = line.strip_prefix("#fields\t") {
                header = Some(Header::read(names).map_err(fail)?);
            } else if !line.is_empty() && !line.starts_with('#') {
                let why = || fail(format!("before this line there must be {NEEDED}"));
                self.add(header.as_ref().ok_or_else(why)?, line).map_err(fail)?;
                count += 1;
            }
        }
        Ok(count)
    }

    fn add(&mut self, header: &Header, line: &str) -> Result<(), String> {
        let values: Vec<&str> = line.split('\t').collect();
        if values.len() != header.columns {
            return Err(format!(
                "there are {} columns, but `#fields` names {}; tabs stand between columns",
                values.len(),
                header.columns
            ));
        }
        let value = |at: usize| values.get(at).copied().unwrap_or_default();
        let set = |at: Option<usize>| at.map(value).filter(|text| *text != "-");
        let do_notice = match set(header.do_notice) {
            None | Some("F") => false,
            Some("T") => true,
            Some(other) => return Err(format!("meta.do_notice is {other:?}, and must be T or F")),
        };
        let meta = Meta {
            source: value(header.source).to_owned(),
            do_notice,
            only_in: set(header.only_in).map(str::to_owned),
        };
        let kind = value(header.kind);
        let Some(kind) = IndicatorType::ALL.iter().find(|known| known.name() == kind) else {
            let names: Vec<_> = IndicatorType::ALL.iter().map(|kind| kind.name()).collect();
            return Err(format!("unknown indicator_type {kind:?}; there are {}", names.join(", ")));
        };
        self.enter(*kind, value(header.indicator), meta)
    }

    fn enter(&mut self, kind: IndicatorType, text: &str, meta: Meta) -> Result<(), String> {
        let address = |text: &str| {
            places::address(text.as_bytes()).ok_or_else(|| format!("{text:?} is no IP address"))
        };
        let key = match kind {
            _ if text.is_empty() || text == "-" => return Err("the indicator is empty".to_owned()),
            IndicatorType::Subnet => {
                let (base, bits) = text
                    .split_once('/')
                    .ok_or_else(|| format!("{text:?} is no net, as 192.0.2.0/24"))?;
                let base = address(base)?;
                let offset = if base.is_v4() { 96 } else { 0 };
                let bits: u8 = bits
                    .parse()
                    .ok()
                    .filter(|bits| *bits <= 128 - offset)
                    .ok_or_else(|| format!("{text:?} has no such number of leading bits"))?;
                let net = (offset + bits, masked(base, offset + bits));
                enter(self.nets.entry(net).or_default(), meta);
                return Ok(());
            }
            IndicatorType::Addr => address(text)?.to_string(),
            IndicatorType::Url if text.contains("://") => {
                return Err(format!(
                    "{text:?} has a scheme; URLs stand without one, as example.com/x"
                ));
            }
            _ => text.to_ascii_lowercase(),
        };
        enter(self.others.entry((kind, key.into_bytes().into())).or_default(), meta);
        Ok(())
    }
}

/// Adds what a line says, unless another one says the same.
fn enter(metas: &mut Vec<Meta>, meta: Meta) {
    if let Err(at) = metas.binary_search(&meta) {
        metas.insert(at, meta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = "#fields\tindicator\tindicator_type\tmeta.source\tmeta.do_notice\n";

    fn matched(file: &str, kind: IndicatorType, what: &str) -> Vec<&'static str> {
        let mut indicators = Indicators::default();
        indicators.read(&format!("{FIELDS}{file}")).unwrap();
        indicators.matching(kind, what.as_bytes()).iter().map(|(kind, _)| kind.name()).collect()
    }

    #[test]
    fn addresses_match_exactly_and_by_their_nets() {
        let file = "192.0.2.7\tIntel::ADDR\tone\tF\n192.0.2.0/24\tIntel::SUBNET\ttwo\t-\n\
                    2001:db8::/33\tIntel::SUBNET\tthree\tT\n";
        let of = |what| matched(file, IndicatorType::Addr, what);
        assert_eq!(of("192.0.2.7"), ["Intel::ADDR", "Intel::SUBNET"]);
        assert_eq!(of("192.0.2.255"), ["Intel::SUBNET"]);
        assert_eq!(of("192.0.3.0"), Vec::<&str>::new());
        assert_eq!(of("2001:db8:7fff::1"), ["Intel::SUBNET"]);
        assert_eq!(of("2001:db8:8000::1"), Vec::<&str>::new());
    }

    #[test]
    fn equal_lines_are_kept_once() {
        let mut indicators = Indicators::default();
        let line = "example.com\tIntel::DOMAIN\tone\tF\n";
        let other = "example.com\tIntel::DOMAIN\ttwo\tF\n";
        indicators.read(&format!("{FIELDS}{line}{other}{}", line.repeat(1000))).unwrap();
        let found = indicators.matching(IndicatorType::Domain, b"example.com");
        assert_eq!(found.iter().map(|(_, metas)| metas.len()).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn names_match_as_a_whole_and_without_regard_to_case() {
        let file = "Example.com\tIntel::DOMAIN\tone\tF\n";
        assert_eq!(matched(file, IndicatorType::Domain, "EXAMPLE.com"), ["Intel::DOMAIN"]);
        assert!(matched(file, IndicatorType::Domain, "www.example.com").is_empty());
        assert!(matched(file, IndicatorType::Url, "example.com").is_empty());
    }

    #[test]
    fn errors_tell_the_line_and_what_would_be_right() {
        for (file, line, said) in [
            ("x\n", 1, "before this line there must be a line `#fields`"),
            ("#fields\tindicator\tmeta.source\n", 1, "no column indicator_type"),
            (&*format!("{FIELDS}\nx\ty\n"), 3, "there are 2 columns, but `#fields` names 4"),
            (
                &format!("{FIELDS}x\tADDR\ts\tF\n"),
                2,
                "unknown indicator_type \"ADDR\"; there are Intel::ADDR",
            ),
            (&format!("{FIELDS}x\tIntel::ADDR\ts\tF\n"), 2, "\"x\" is no IP address"),
            (&format!("{FIELDS}1.2.3.4/33\tIntel::SUBNET\ts\tF\n"), 2, "no such number"),
            (&format!("{FIELDS}1.2.3.4\tIntel::SUBNET\ts\tF\n"), 2, "is no net"),
            (&format!("{FIELDS}http://a/\tIntel::URL\ts\tF\n"), 2, "has a scheme"),
            (&format!("{FIELDS}-\tIntel::DOMAIN\ts\tF\n"), 2, "is empty"),
            (&format!("{FIELDS}a\tIntel::DOMAIN\ts\tyes\n"), 2, "must be T or F"),
        ] {
            let error = Indicators::default().read(file).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
