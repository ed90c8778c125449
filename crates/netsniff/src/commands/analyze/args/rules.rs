//! Files of findings that the user writes down: `--notice-rules`.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use netsniff_analysis::log::Confidence;
use netsniff_analysis::notice::findings::FINDINGS;
use netsniff_analysis::notice::rules::{Ask, Counts, LATE, MOST_COUNT, NOT_ASKED, Rule, USUAL};
use netsniff_analysis::record::{LogType, Scalar};
use netsniff_analysis::rows::LOGS;
use netsniff_output::condition::Condition;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong in a file, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    file: String,
    line: usize,
    column: usize,
    said: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, said } = self;
        write!(f, "{file}:{line}:{column}: {said}")
    }
}

/// The keys of a rule.
const KEYS: [&str; 9] =
    ["name", "log", "where", "confidence", "msg", "advice", "count", "within", "by"];
/// Bytes of a text that a rule may say.
const LONGEST: usize = 1_000;
/// Most rules of a file. Each asks every record of its log.
const MOST_RULES: usize = 1_000;

/// The rules of a file, in its order.
///
/// # Errors
///
/// The first thing that is wrong in it.
pub(super) fn rules(path: &Path, text: &str) -> Result<Vec<Rule>, Fault> {
    let file = File { path, text };
    let root = DeTable::parse(text).map_err(|error| {
        let said = error.message().trim().replace('\n', ", ");
        file.fault(&error.span().unwrap_or_default(), said)
    })?;
    let mut rules: Vec<Rule> = Vec::new();
    for (key, value) in root.get_ref() {
        let DeValue::Array(tables) = value.get_ref() else {
            return Err(file.fault(&key.span(), WANTED));
        };
        if key.get_ref() != "rule" {
            return Err(file.fault(&key.span(), WANTED));
        }
        for table in tables.iter() {
            let DeValue::Table(of) = table.get_ref() else {
                return Err(file.fault(&table.span(), WANTED));
            };
            let rule = Table { file: &file, of, at: table.span() }.rule()?;
            if rules.iter().any(|other| other.name == rule.name) {
                let said = format!("two rules have the name {}", rule.name);
                return Err(file.fault(&table.span(), said));
            }
            rules.push(rule);
        }
    }
    if rules.is_empty() || rules.len() > MOST_RULES {
        let said = format!("there are {} rules, and must be 1 to {MOST_RULES}", rules.len());
        return Err(file.fault(&(0..0), said));
    }
    Ok(rules)
}

const WANTED: &str = "a file of rules has tables [[rule]] only";

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn fault(&self, span: &Range<usize>, said: impl Into<String>) -> Fault {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        Fault {
            file: self.path.display().to_string(),
            line: 1 + before.matches('\n').count(),
            column: 1 + before.rsplit('\n').next().unwrap_or_default().chars().count(),
            said: said.into(),
        }
    }
}

/// The table of one rule.
struct Table<'a> {
    file: &'a File<'a>,
    of: &'a DeTable<'a>,
    at: Range<usize>,
}

impl Table<'_> {
    fn rule(&self) -> Result<Rule, Fault> {
        if let Some((key, _)) = self.of.iter().find(|(key, _)| !KEYS.contains(&&**key.get_ref())) {
            let said = format!("unknown key {:?}; a rule has {}", key.get_ref(), KEYS.join(", "));
            return Err(self.file.fault(&key.span(), said));
        }
        let (name, log) = (self.name()?, self.log()?);
        let count = self.number("count")?.unwrap_or(1);
        if count > MOST_COUNT as u64 {
            return Err(self.wrong("count", format!("count is at most {MOST_COUNT}")));
        }
        Ok(Rule {
            name,
            asks: vec![Ask {
                log,
                test: Arc::new(self.condition(log)?),
                by: self.by(log)?,
                of: Vec::new(),
            }],
            confidence: self.confidence()?,
            msg: self.needed("msg")?.to_owned(),
            advice: self.text("advice")?.unwrap_or_default().to_owned(),
            counts: Counts::Records,
            count: count as usize,
            within: self.number("within")?.map(|seconds| seconds.saturating_mul(1_000_000_000)),
        })
    }

    fn value(&self, key: &str) -> Option<&Spanned<DeValue<'_>>> {
        self.of.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    /// An error at the value of a key, or at the rule where it has none.
    fn wrong(&self, key: &str, said: impl Into<String>) -> Fault {
        let span = self.value(key).map_or_else(|| self.at.clone(), Spanned::span);
        self.file.fault(&span, said)
    }

    fn text(&self, key: &str) -> Result<Option<&str>, Fault> {
        match self.value(key).map(Spanned::get_ref) {
            None => Ok(None),
            Some(DeValue::String(text)) if (1..=LONGEST).contains(&text.len()) => Ok(Some(text)),
            Some(_) => {
                Err(self.wrong(key, format!("{key} is a text of 1 to {LONGEST} bytes in quotes")))
            }
        }
    }

    fn needed(&self, key: &str) -> Result<&str, Fault> {
        self.text(key)?.ok_or_else(|| self.wrong(key, format!("the rule has no {key}")))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Fault> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let said = || self.wrong(key, format!("{key} is a whole number above 0"));
        number.filter(|number| *number > 0).map(Some).ok_or_else(said)
    }

    /// The name of what is found, which no format needs to escape and no finding of netsniff has.
    fn name(&self) -> Result<String, Fault> {
        let name = self.needed("name")?;
        let may_stand = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.');
        if !name.chars().all(may_stand) || name == "-" {
            let said =
                "name has letters and digits of ASCII, and _ : - . between, as Site::Old_Server";
            return Err(self.wrong("name", said));
        }
        let notes = FINDINGS.iter().flat_map(|finding| finding.notes);
        if notes.into_iter().any(|note| note.name == name) {
            return Err(self.wrong("name", format!("{name} is a finding of netsniff")));
        }
        Ok(name.to_owned())
    }

    fn log(&self) -> Result<&'static LogType, Fault> {
        let name = self.needed("log")?;
        let can_be_asked = |log: &&&LogType| !NOT_ASKED.contains(&log.path);
        let mut logs = LOGS.iter().filter(can_be_asked);
        logs.clone().find(|log| log.path == name).copied().ok_or_else(|| {
            let names: Vec<_> = logs.by_ref().map(|log| log.path).collect();
            self.wrong("log", format!("no rule can ask {name:?}; there are {}", names.join(", ")))
        })
    }

    fn condition(&self, log: &'static LogType) -> Result<Condition, Fault> {
        let condition = Condition::parse(self.needed("where")?, log)
            .map_err(|error| self.wrong("where", error.to_string()))?;
        let late = condition.columns().find(|column| LATE.contains(column));
        late.map_or(Ok(()), |column| Err(self.wrong("where", is_late(column))))?;
        Ok(condition)
    }

    fn confidence(&self) -> Result<Confidence, Fault> {
        let word = self.needed("confidence")?;
        let known = Confidence::ALL.iter().find(|confidence| confidence.name() == word);
        let said = || self.wrong("confidence", "confidence is \"high\", \"medium\" or \"low\"");
        known.copied().ok_or_else(said)
    }

    /// The columns that records are counted by.
    fn by(&self, log: &'static LogType) -> Result<Vec<&'static str>, Fault> {
        let names = || log.fields.iter().map(|field| field.name);
        let Some(value) = self.value("by") else {
            return Ok(names().filter(|name| USUAL.contains(name)).collect());
        };
        let DeValue::Array(columns) = value.get_ref() else {
            return Err(self.wrong("by", "by is a list of columns, as [\"id.orig_h\"]"));
        };
        let one = |column: &Spanned<DeValue<'_>>| {
            let name = column.get_ref().as_str().unwrap_or_default();
            let said = match names().find(|known| *known == name) {
                Some(name) if LATE.contains(&name) => is_late(name),
                Some(name) if is_fraction(log, name) => {
                    format!("{name} is a fraction, and rows are counted by what is the same")
                }
                Some(name) => return Ok(name),
                None => format!("{} has no column {name:?}", log.path),
            };
            Err(self.file.fault(&column.span(), said))
        };
        columns.iter().map(one).collect()
    }
}

fn is_fraction(log: &LogType, column: &str) -> bool {
    let mut fields = log.fields.iter().filter(|field| field.name == column);
    fields.any(|field| field.zeek_type.scalar == Scalar::Double)
}

fn is_late(column: &str) -> String {
    format!("{column} is set when the rows of all workers are merged, which no rule sees")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "[[rule]]\nname = \"Site::Big\"\nlog = \"conn\"\nwhere = \"orig_bytes > 1e6\"\n\
                        confidence = \"low\"\nmsg = \"much was sent\"\n";

    #[test]
    fn a_rule_is_read_with_what_it_leaves_out() {
        let read = rules(Path::new("r.toml"), RULE).unwrap();
        let rule = &read[0];
        assert_eq!(
            (rule.name.as_str(), rule.asks[0].log.path, rule.count),
            ("Site::Big", "conn", 1)
        );
        assert_eq!((rule.within, rule.asks[0].by.as_slice()), (None, &USUAL[..]));
        let more =
            format!("{RULE}count = 3\nwithin = 60\nby = [\"id.orig_h\"]\nadvice = \"look\"\n");
        let rule = &rules(Path::new("r.toml"), &more).unwrap()[0];
        assert_eq!((rule.count, rule.within), (3, Some(60_000_000_000)));
        assert_eq!(
            (rule.asks[0].by.as_slice(), rule.advice.as_str()),
            (&["id.orig_h"][..], "look")
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (change, place, said) in [
            (("\"conn\"", "\"con\""), "3:7", "no rule can ask \"con\""),
            (("\"conn\"", "\"notice\""), "3:7", "no rule can ask \"notice\""),
            (("orig_bytes", "orig_byte"), "4:9", "did you mean orig_bytes"),
            (("Site::Big", "Site Big"), "2:8", "name has letters"),
            (("Site::Big", "Scan::Port_Scan"), "2:8", "is a finding of netsniff"),
            (("\"low\"", "\"sure\""), "5:14", "confidence is"),
            (("msg", "message"), "6:1", "unknown key \"message\""),
            (("msg = \"much was sent\"", ""), "1:1", "the rule has no msg"),
            (("[[rule]]", "[rule]"), "1:2", "tables [[rule]] only"),
            (("\"low\"", "low"), "5:14", ""),
            (("\"low\"", "\"low\"\ncount = 0"), "6:9", "count is a whole number above 0"),
            (("\"low\"", "\"low\"\ncount = 5000"), "6:9", "count is at most 1000"),
            (("\"low\"", "\"low\"\nby = [\"uid\", \"mac\"]"), "6:14", "conn has no column \"mac\""),
        ] {
            let text = RULE.replacen(change.0, change.1, 1);
            let fault = rules(Path::new("r.toml"), &text).unwrap_err().to_string();
            assert!(fault.starts_with(&format!("r.toml:{place}: ")), "{fault}");
            assert!(fault.contains(said), "{fault}");
        }
        let fraction = RULE.replace("conn", "tcp").replace("orig_bytes", "orig_retx_rto")
            + "by = [\"orig_loss_rate\"]\n";
        let fault = rules(Path::new("r.toml"), &fraction).unwrap_err().to_string();
        assert!(fault.contains("orig_loss_rate is a fraction"), "{fault}");
        let name = RULE.replace("\"Site::Big\"", "5").replace("log = \"conn\"\n", "");
        let fault = rules(Path::new("r.toml"), &name).unwrap_err().to_string();
        assert!(fault.contains("2:8: name is a text"), "{fault}");
        let late = RULE.replace("conn", "http").replace("orig_bytes > 1e6", "dns_uid IS NULL");
        let fault = rules(Path::new("r.toml"), &late).unwrap_err().to_string();
        assert!(fault.contains("4:9: dns_uid is set when"), "{fault}");
        assert!(rules(Path::new("r.toml"), "").is_err());
    }
}
