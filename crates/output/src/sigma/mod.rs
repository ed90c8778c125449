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
//! | `correlation` | what rules count |
//! | `told` | what a finding says of its rule |
//! | `not_applied` | why a rule is not applied, and its place |

mod correlation;
mod detection;
mod encodings;
mod names;
mod not_applied;
mod pattern;
mod told;

use std::sync::Arc;

use netsniff_analysis::notice::rules::{Ask, Counts, Rule, USUAL};
use netsniff_analysis::record::LogType;
use rsigma_parser::{SigmaRule, parse_sigma_yaml};

use self::correlation::{Correlation, Why};
use self::detection::Question;
use self::names::NoLog;
use self::not_applied::{File, Refused};
use self::told::Told;

pub use not_applied::NotApplied;

/// Brackets that may be open in a file.
const DEEPEST: usize = 1_000;

/// The rules of some files, which may name each other.
#[derive(Debug, Default)]
pub struct Collection {
    bases: Vec<Base>,
    correlations: Vec<Correlation>,
    refused: Vec<NotApplied>,
    foreign: u64,
}

/// A rule that is no correlation.
#[derive(Debug)]
struct Base {
    file: String,
    title: String,
    /// What correlations name it by.
    keys: Vec<String>,
    what: What,
}

#[derive(Debug)]
enum What {
    /// It can be asked.
    Asked(Told, Ask),
    /// It cannot.
    Refused,
    /// It is for another source than these logs.
    Foreign,
}

/// What became of all rules.
#[derive(Debug, Default)]
pub struct Reading {
    /// Those that can be asked. Two may have the same name.
    pub rules: Vec<Rule>,
    /// How many rules find nothing by themselves, since correlations count what they find.
    pub parts: u64,
    /// Those that cannot be asked, though they are for these logs.
    pub refused: Vec<NotApplied>,
    /// How many are for other sources than these logs.
    pub foreign: u64,
}

impl Collection {
    /// Reads the rules of a file with a name, and tells what in it cannot be read. `lacks` tells the option without
    /// which there is no such log.
    pub fn read(
        &mut self,
        name: &str,
        text: &str,
        lacks: impl Fn(&LogType) -> Option<&'static str>,
    ) -> Vec<NotApplied> {
        let file = File { name, text };
        if file.depth() > DEEPEST {
            return vec![file.whole(format!("more than {DEEPEST} brackets are open in it"))];
        }
        let collection = match parse_sigma_yaml(text) {
            Ok(collection) => collection,
            Err(error) => return vec![file.unread(&error.to_string())],
        };
        for filter in collection.filters {
            let refused = Refused::new(None, "it changes other rules");
            self.refused.push(file.refused(&filter.title, refused));
        }
        for rule in collection.rules {
            let what = self.what(&rule, file, &lacks);
            let keys = [&rule.id, &rule.name].into_iter().flatten().cloned().collect();
            self.bases.push(Base { file: name.to_owned(), title: rule.title, keys, what });
        }
        let correlations = collection.correlations.iter();
        self.correlations.extend(correlations.map(|it| Correlation::read(it, file)));
        collection.errors.iter().map(|why| file.unread(why)).collect()
    }

    fn what(
        &mut self,
        rule: &SigmaRule,
        file: File<'_>,
        lacks: impl Fn(&LogType) -> Option<&'static str>,
    ) -> What {
        let refused = match names::log_of(&rule.logsource) {
            Ok(log) => match (lacks(log), Question::of(&rule.detection, log)) {
                (None, Ok(question)) => return What::Asked(Told::from(rule), usual(question, log)),
                (_, Err(refused)) => refused,
                (Some(option), _) => {
                    let why = format!("the log {} is not made without {option}", log.path);
                    Refused::new(None, why)
                }
            },
            Err(NoLog::Foreign) => {
                self.foreign += 1;
                return What::Foreign;
            }
            Err(NoLog::Unnamed) => {
                Refused::new(Some("logsource"), "it has no service, which names the log")
            }
            Err(NoLog::Unknown(name)) => {
                Refused::new(Some(&name), format!("there is no log {name}"))
            }
        };
        self.refused.push(file.refused(&rule.title, refused));
        What::Refused
    }

    /// The rules of all files that were read.
    #[must_use]
    pub fn finish(self) -> Reading {
        let Self { bases, correlations, refused, foreign } = self;
        let mut all = Reading { refused, foreign, ..Reading::default() };
        let made: Vec<_> = correlations.iter().map(|it| it.rule(&bases, &correlations)).collect();
        for base in bases {
            let all_made = correlations.iter().zip(&made);
            let by = all_made.filter(|(it, _)| !it.generates && it.names(&base));
            let by: Vec<_> = by.map(|(it, rule)| (it, rule.is_ok())).collect();
            all.take(base, &by);
        }
        for rule in made {
            match rule {
                Ok(rule) => all.rules.push(rule),
                Err(Why::Foreign) => all.foreign += 1,
                Err(Why::Refused(refused)) => all.refused.push(refused),
            }
        }
        all
    }
}

impl Reading {
    /// Takes a rule, which finds nothing by itself where correlations count what it finds: these, of which each is
    /// applied or not.
    fn take(&mut self, base: Base, by: &[(&Correlation, bool)]) {
        let What::Asked(told, ask) = base.what else { return };
        let Some((correlation, _)) = by.first() else {
            self.rules.push(alone(told, ask));
            return;
        };
        if by.iter().any(|(_, is_applied)| *is_applied) {
            self.parts += 1;
            return;
        }
        let why = format!("only {} counts it, which is not applied", correlation.title);
        let (file, title) = (base.file, Some(base.title));
        self.refused.push(NotApplied { file, title, place: None, why });
    }
}

/// What a rule asks, if it finds something by itself.
fn usual(question: Question, log: &'static LogType) -> Ask {
    let names = log.fields.iter().map(|field| field.name);
    let by = names.filter(|name| USUAL.contains(name)).collect();
    Ask { log, test: Arc::new(question), by, of: Vec::new() }
}

/// A rule of which each record makes a finding.
fn alone(told: Told, ask: Ask) -> Rule {
    let Told { name, confidence, msg, advice } = told;
    let (asks, counts, within) = (vec![ask], Counts::Records, None);
    Rule { name, asks, confidence, msg, advice, counts, count: 1, within }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netsniff_analysis::log::Confidence;
    use netsniff_analysis::record::{LogType, Value, Visitor};
    use netsniff_analysis::rows::LOGS;

    const RULE: &str = "title: 'Odd name: asked'\nid: 1-2\nlevel: medium\ntags: [attack.x]\nreferences: ['https://a.example/']\n\
        logsource:\n  product: zeek\n  service: dns\ndetection:\n  name:\n    query|endswith: '.odd.example'\n  \
        kept_a:\n    answers|startswith: '10.'\n  kept_b:\n    rejected: 'true'\n  mute:\n    rcode: null\n  \
        condition: name and not 1 of kept_* and not mute\n";

    fn read(text: &str) -> Reading {
        let mut collection = Collection::default();
        let unread = collection.read("r.yml", text, |_| None);
        let mut reading = collection.finish();
        reading.refused.extend(unread);
        reading
    }

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
        reading.rules[0].asks[0].test.holds(&mut visit)
    }

    #[test]
    fn a_rule_is_read_with_what_it_says_of_itself() {
        let reading = read(RULE);
        let rule = &reading.rules[0];
        assert_eq!(
            (rule.name.as_str(), rule.asks[0].log.path, rule.count),
            ("Sigma::Odd_name_asked", "dns", 1)
        );
        assert_eq!((rule.msg.as_str(), rule.confidence), ("Odd name: asked", Confidence::Medium));
        assert_eq!(rule.advice, "Tags: attack.x. See: https://a.example/. Rule 1-2 of Sigma.");
        assert_eq!(rule.asks[0].by, USUAL);
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
            let NotApplied { title, place, why, .. } = reading.refused.into_iter().next().unwrap();
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
        // So would it to look for the place of each of many words.
        let fields = vec!["uid"; 100_000].join(", ");
        let many = read(&format!(
            "title: Many\ncorrelation:\n  type: event_count\n  rules: [a]\n  group-by: [{fields}]\n  timespan: 1h\n  \
             condition:\n    gte: 10\n"
        ));
        assert!(many.refused[0].why.contains("100000 fields"), "{:?}", many.refused);
    }
}
