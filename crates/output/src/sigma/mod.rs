//! Rules of Sigma (<https://sigmahq.io>) as rules on the rows of logs.
//!
//! `rsigma-parser` reads them. What a row is asked is said here, since a row of a log is no event of JSON: nothing is made
//! text that no rule asks for.
//!
//! | module | concern |
//! |---|---|
//! | `names` | which log a rule asks, and how Sigma names its columns |
//! | `detection` | the condition of a rule, and its tests |
//! | `pattern` | what a value is compared with |
//! | `encodings` | base64, UTF-16 and dashes |

mod detection;
mod encodings;
mod names;
mod pattern;

use std::sync::Arc;

use netsniff_analysis::log::Confidence;
use netsniff_analysis::notice::rules::{Rule, USUAL};
use rsigma_parser::{Level, SigmaRule, parse_sigma_yaml};

use self::detection::{Question, Refused};
use self::names::NoLog;

/// Bytes of a text that a rule may say.
const LONGEST: usize = 1_000;
/// Characters of the title that make the name of a finding.
const LONGEST_NAME: usize = 100;

/// Brackets that may be open in a file.
const DEEPEST: usize = 1_000;

/// The rules of one file.
#[derive(Debug, Default)]
pub struct Reading {
    /// Those that can be asked. Two may have the same name.
    pub rules: Vec<Rule>,
    /// Those that cannot, though they are for these logs, and what cannot be read.
    pub refused: Vec<NotApplied>,
    /// Rules for other sources than these logs.
    pub foreign: u64,
}

/// A rule that is not applied.
#[derive(Debug, PartialEq, Eq)]
pub struct NotApplied {
    /// Its title; `None` where there is no rule to be read.
    pub title: Option<String>,
    /// Line and column of the word that it is about, from 1, where there is one.
    pub place: Option<(usize, usize)>,
    /// Why.
    pub why: String,
}

/// Reads the rules of a file.
#[must_use]
pub fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    if depth(text) > DEEPEST {
        let why = format!("more than {DEEPEST} brackets are open in it");
        reading.refused.push(NotApplied { title: None, place: None, why });
        return reading;
    }
    let collection = match parse_sigma_yaml(text) {
        Ok(collection) => collection,
        Err(error) => {
            reading.refused.push(unread(&error.to_string(), text));
            return reading;
        }
    };
    for why in collection.errors {
        reading.refused.push(unread(&why, text));
    }
    for correlation in collection.correlations {
        let why = "it correlates other rules".to_owned();
        reading.refused.push(NotApplied { title: Some(correlation.title), place: None, why });
    }
    for filter in collection.filters {
        let why = "it changes other rules".to_owned();
        reading.refused.push(NotApplied { title: Some(filter.title), place: None, why });
    }
    for rule in collection.rules {
        reading.take(&rule, text);
    }
    reading
}

impl Reading {
    fn take(&mut self, rule: &SigmaRule, text: &str) {
        let log = match names::log_of(&rule.logsource) {
            Ok(log) => log,
            Err(NoLog::Foreign) => {
                self.foreign += 1;
                return;
            }
            Err(NoLog::Unnamed) => {
                let (word, why) =
                    (Some("logsource".to_owned()), "it has no service, which names the log");
                self.refuse(rule, text, Refused { word, why: why.to_owned() });
                return;
            }
            Err(NoLog::Unknown(name)) => {
                let word = Some(name.clone());
                let why = format!("there is no log {name}");
                self.refuse(rule, text, Refused { word, why });
                return;
            }
        };
        match Question::of(&rule.detection, log) {
            Ok(question) => self.rules.push(Rule {
                name: name(&rule.title),
                log,
                test: Arc::new(question),
                confidence: confidence(rule.level),
                msg: cut(&rule.title),
                advice: advice(rule),
                count: 1,
                within: None,
                by: log.fields.iter().map(|it| it.name).filter(|it| USUAL.contains(it)).collect(),
            }),
            Err(refused) => self.refuse(rule, text, refused),
        }
    }

    fn refuse(&mut self, rule: &SigmaRule, text: &str, refused: Refused) {
        let place = refused.word.and_then(|word| place(text, &rule.title, &word));
        let title = Some(rule.title.clone());
        self.refused.push(NotApplied { title, place, why: refused.why });
    }
}

/// What cannot be read. The library draws conditions over several lines, with places in them.
fn unread(error: &str, text: &str) -> NotApplied {
    let Some(said) = error.strip_prefix("Condition parse error") else {
        return NotApplied { title: None, place: None, why: error.to_owned() };
    };
    let drawn = |from: &str| said.lines().find_map(|line| line.trim().strip_prefix(from));
    let character = drawn("--> 1:").or_else(|| said.split_once("--> 1:").map(|(_, rest)| rest));
    let character = character.and_then(|rest| rest.lines().next()).unwrap_or("?");
    let expected = drawn("= ").unwrap_or(said);
    let is_only = text.matches("condition:").count() == 1;
    NotApplied {
        title: None,
        place: place(text, "", "condition").filter(|_| is_only),
        why: format!("its condition cannot be read at character {character}: {expected}"),
    }
}

/// How many brackets are open at most, wherever they stand. To read them takes time that grows with the square.
fn depth(text: &str) -> usize {
    let depths = text.bytes().scan(0_usize, |depth, byte| {
        match byte {
            b'[' | b'{' => *depth += 1,
            b']' | b'}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    depths.max().unwrap_or(0)
}

/// Line and column of a word that stands alone behind the title of its rule, as a key if it is one anywhere.
fn place(text: &str, title: &str, word: &str) -> Option<(usize, usize)> {
    let begin = text.find(title).map_or(0, |at| at + title.len());
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "_.-".contains(c));
    let behind = |at: usize| &text[at + word.len()..];
    let places = text.match_indices(word).map(|(at, _)| at).filter(|&at| {
        let is_begin = !is_part(text[..at].chars().next_back());
        at >= begin && is_begin && !is_part(behind(at).chars().next())
    });
    let is_key = |at: &usize| behind(*at).starts_with([':', '|']);
    let at = places.clone().find(is_key).or_else(|| places.clone().next())?;
    let before = &text[..at];
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some((1 + before.matches('\n').count(), 1 + line.chars().count()))
}

/// The name of a finding: what no format needs to escape.
fn name(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name: String = words.collect::<Vec<_>>().join("_");
    name.truncate(LONGEST_NAME);
    format!("Sigma::{name}")
}

/// How sure it is: what a rule has of that is how much deserves a look.
const fn confidence(level: Option<Level>) -> Confidence {
    match level {
        Some(Level::Critical | Level::High) => Confidence::High,
        Some(Level::Medium) => Confidence::Medium,
        Some(Level::Low | Level::Informational) | None => Confidence::Low,
    }
}

/// What else is said of it: how it may be wrong, its tags, where it comes from.
fn advice(rule: &SigmaRule) -> String {
    let list =
        |what: &str, of: &[String]| (!of.is_empty()).then(|| format!("{what}: {}.", of.join("; ")));
    let parts = [
        list("May also be", &rule.falsepositives),
        list("Tags", &rule.tags),
        list("See", &rule.references),
        rule.id.as_ref().map(|id| format!("Rule {id} of Sigma.")),
    ];
    cut(&parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_analysis::record::{LogType, Value, Visitor};
    use netsniff_analysis::rows::LOGS;

    const RULE: &str = "title: 'Odd name: asked'\nid: 1-2\nlevel: medium\ntags: [attack.x]\nreferences: ['https://a.example/']\n\
        logsource:\n  product: zeek\n  service: dns\ndetection:\n  name:\n    query|endswith: '.odd.example'\n  \
        kept_a:\n    answers|startswith: '10.'\n  kept_b:\n    rejected: 'true'\n  mute:\n    rcode: null\n  \
        condition: name and not 1 of kept_* and not mute\n";

    fn log(path: &str) -> &'static LogType {
        LOGS.iter().find(|log| log.path == path).unwrap()
    }

    /// Whether a rule is true of a row of DNS with these values.
    fn holds(rule: &str, values: &[(&str, Value<'_>)]) -> bool {
        let reading = read(rule);
        assert!(reading.refused.is_empty(), "{:?}", reading.refused);
        let fields = log("dns").fields;
        let mut visit = |visitor: &mut dyn Visitor| {
            for (index, field) in fields.iter().enumerate() {
                let value = values.iter().find(|(name, _)| *name == field.name);
                visitor.field(index, field, value.map_or(Value::Unset, |(_, value)| *value));
            }
        };
        reading.rules[0].test.holds(&mut visit)
    }

    #[test]
    fn a_rule_is_read_with_what_it_says_of_itself() {
        let reading = read(RULE);
        let rule = &reading.rules[0];
        assert_eq!(
            (rule.name.as_str(), rule.log.path, rule.count),
            ("Sigma::Odd_name_asked", "dns", 1)
        );
        assert_eq!((rule.msg.as_str(), rule.confidence), ("Odd name: asked", Confidence::Medium));
        assert_eq!(rule.advice, "Tags: attack.x. See: https://a.example/. Rule 1-2 of Sigma.");
        assert_eq!(rule.by, USUAL);
    }

    #[test]
    fn conditions_hold_as_sigma_has_it() {
        let query = ("query", Value::Bytes(b"www.ODD.example"));
        let code = ("rcode", Value::Count(0));
        assert!(holds(RULE, &[query, code, ("rejected", Value::Bool(false))]));
        assert!(holds(RULE, &[query, code]), "what is not set is not true");
        assert!(!holds(RULE, &[query]), "rcode is null");
        assert!(!holds(RULE, &[query, code, ("rejected", Value::Bool(true))]));
        assert!(!holds(RULE, &[query, code, ("answers", Value::Bytes(b"10.0.0.1"))]));
        assert!(!holds(RULE, &[("query", Value::Bytes(b"odd.example.org")), code]));
        let all =
            RULE.replace("query|endswith: '.odd.example'", "query|contains|all: [odd, '.example']");
        assert!(
            holds(&all, &[query, code]) && !holds(&all, &[("query", Value::Bytes(b"odd")), code])
        );
        let them = RULE.replace("name and not 1 of kept_* and not mute", "all of them");
        assert!(!holds(&them, &[query]));
        let words =
            RULE.replace("  name:\n    query|endswith: '.odd.example'\n", "  name: [odd]\n");
        assert!(holds(&words, &[query, code]) && !holds(&words, &[code]));
    }

    #[test]
    fn what_cannot_be_applied_is_told_with_its_place() {
        let refused = |from: &str, to: &str| {
            let reading = read(&RULE.replacen(from, to, 1));
            assert!(reading.rules.is_empty());
            let NotApplied { title, place, why } = reading.refused.into_iter().next().unwrap();
            (title.is_some(), place, why)
        };
        let (_, place, why) = refused("query|", "querry|");
        assert_eq!((place, why.as_str()), (Some((11, 5)), "the log dns has no column querry"));
        let (_, place, why) = refused("service: dns", "service: dsn");
        assert_eq!((place, why.as_str()), (Some((8, 12)), "there is no log dsn"));
        let (is_rule, _, why) = refused("query|endswith", "query|endwith");
        assert!(!is_rule && why.contains("endwith"), "{why}");
        let (_, _, why) = refused("name and", "nmae and");
        assert!(why.contains("no detection has the name nmae"), "{why}");
        let (_, place, why) = refused("name and", "name nad");
        let expected =
            "its condition cannot be read at character 6: expected EOI, or_op, or and_op";
        assert_eq!((place, why.as_str()), (Some((18, 3)), expected));
        let (_, place, why) = refused("  service: dns\n", "");
        assert_eq!((place, why.as_str()), (Some((6, 1)), "it has no service, which names the log"));
        let (is_rule, _, why) = refused("  name:\n", "  name: [\n");
        assert!(!is_rule && why.contains("line"), "{why}");
        let (_, place, _) = refused("  condition", "  timeframe: 5m\n  condition");
        assert_eq!(place, Some((18, 3)));
        let other = read(&RULE.replace("product: zeek", "product: windows"));
        assert_eq!((other.rules.len(), other.refused.len(), other.foreign), (0, 0, 1));
    }

    #[test]
    fn hostile_files_are_refused_and_nothing_else() {
        let deep = format!("{}name{}", "(".repeat(100_000), ")".repeat(100_000));
        for (from, to) in [
            ("name and not 1 of kept_* and not mute", deep.as_str()),
            ("[attack.x]", &"not ".repeat(100_000)),
            ("name and", &"not ".repeat(50_000)),
            ("'.odd.example'", "&a [*a, *a]"),
            ("medium", "\u{0}"),
        ] {
            let reading = read(&RULE.replacen(from, to, 1));
            assert!(reading.rules.len() + reading.refused.len() <= 1);
        }
        let brackets = read(&RULE.replacen("[attack.x]", &"[".repeat(100_000), 1));
        assert!(brackets.refused[0].why.contains("brackets are open"), "it would take seconds");
    }
}
