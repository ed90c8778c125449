//! What a finding says of the rule that it was made by.

use netsniff_analysis::log::Confidence;
use rsigma_parser::{CorrelationRule, Level, SigmaRule};

/// Bytes of a text that a rule may say.
const LONGEST: usize = 1_000;
/// Characters of the title that make the name of a finding.
const LONGEST_NAME: usize = 100;

/// The words of a finding.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) name: String,
    pub(super) confidence: Confidence,
    pub(super) msg: String,
    pub(super) advice: String,
}

impl From<&SigmaRule> for Told {
    fn from(rule: &SigmaRule) -> Self {
        let lists = [&*rule.falsepositives, &*rule.tags, &*rule.references];
        Self::new(&rule.title, rule.level, lists, rule.id.as_deref())
    }
}

impl From<&CorrelationRule> for Told {
    fn from(rule: &CorrelationRule) -> Self {
        let lists = [&*rule.falsepositives, &*rule.tags, &*rule.references];
        Self::new(&rule.title, rule.level, lists, rule.id.as_deref())
    }
}

impl Told {
    /// `lists` are how a rule may be wrong, its tags, and where it comes from.
    fn new(title: &str, level: Option<Level>, lists: [&[String]; 3], id: Option<&str>) -> Self {
        let list = |(what, of): (&str, &[String])| {
            (!of.is_empty()).then(|| format!("{what}: {}.", of.join("; ")))
        };
        let lists = ["May also be", "Tags", "See"].into_iter().zip(lists).map(list);
        let id = id.map(|id| format!("Rule {id} of Sigma."));
        let advice: Vec<_> = lists.chain([id]).flatten().collect();
        Self {
            name: name(title),
            confidence: confidence(level),
            msg: cut(title),
            advice: cut(&advice.join(" ")),
        }
    }
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

fn cut(text: &str) -> String {
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
