//! Correlations of Sigma 2: how many records of some rules there must be within a time.

use netsniff_analysis::notice::rules::{Ask, Counts, MOST_COUNT, Rule};
use netsniff_analysis::record::{LogType, Scalar, ZeekType};
use rsigma_parser::{
    ConditionOperator, CorrelationCondition, CorrelationRule, CorrelationType, FieldAlias,
    WindowMode,
};

use super::names;
use super::not_applied::{File, NotApplied, Refused};
use super::told::Told;
use super::{Base, What};

/// Rules that a correlation may name.
const MOST_RULES: usize = 100;

/// Fields by which a correlation may count, or whose values it may.
const MOST_FIELDS: usize = 32;

/// A correlation, whose rules may stand in other files.
#[derive(Debug)]
pub(super) struct Correlation {
    file: String,
    pub(super) title: String,
    pub(super) keys: Vec<String>,
    rules: Vec<Word>,
    /// Whether its rules make findings of their own, too.
    pub(super) generates: bool,
    /// What it asks of their records, or why it cannot.
    asks: Result<Asks, NotApplied>,
}

/// A word of a correlation, with its place.
#[derive(Debug)]
struct Word {
    text: String,
    place: Option<(usize, usize)>,
}

#[derive(Debug)]
struct Asks {
    told: Told,
    counts: Counts,
    count: usize,
    /// Nanoseconds.
    within: u64,
    by: Vec<Word>,
    of: Vec<Word>,
    aliases: Vec<FieldAlias>,
}

/// Why a correlation is not applied.
#[derive(Debug)]
pub(super) enum Why {
    /// All its rules are for other logs.
    Foreign,
    Refused(NotApplied),
}

impl Correlation {
    pub(super) fn read(rule: &CorrelationRule, file: File<'_>) -> Self {
        let word =
            |text: &String| Word { text: text.clone(), place: file.place(&rule.title, text) };
        // Of more words than may be it is refused, and to look for the place of each would take the square of their number.
        let words = |texts: &[String]| texts.iter().take(MOST_RULES).map(word).collect::<Vec<_>>();
        let asks = asked(rule).map(|(counts, count, of)| Asks {
            told: Told::from(rule),
            counts,
            count,
            within: rule.timespan.seconds.saturating_mul(1_000_000_000),
            by: words(&rule.group_by),
            of: words(of),
            aliases: rule.aliases.clone(),
        });
        Self {
            file: file.name.to_owned(),
            title: rule.title.clone(),
            keys: [&rule.id, &rule.name].into_iter().flatten().cloned().collect(),
            rules: words(&rule.rules),
            generates: rule.generate,
            asks: asks.map_err(|refused| file.refused(&rule.title, refused)),
        }
    }

    /// Whether it names a rule.
    pub(super) fn names(&self, base: &Base) -> bool {
        self.rules.iter().any(|word| base.keys.contains(&word.text))
    }

    /// The rule that it makes of `bases`; `others` are all correlations.
    pub(super) fn rule(&self, bases: &[Base], others: &[Self]) -> Result<Rule, Why> {
        let asks = self.asks.as_ref().map_err(|why| Why::Refused(why.clone()))?;
        let named = self.named(bases, others)?;
        if named.iter().all(|base| matches!(base.what, What::Foreign)) {
            return Err(Why::Foreign);
        }
        let all = self.rules.iter().zip(named).map(|(word, base)| self.ask(asks, word, base));
        let all = all.collect::<Result<Vec<_>, _>>().map_err(Why::Refused)?;
        self.alike(&all, asks).map_err(Why::Refused)?;
        Ok(Rule {
            name: asks.told.name.clone(),
            confidence: asks.told.confidence,
            msg: asks.told.msg.clone(),
            advice: asks.told.advice.clone(),
            counts: asks.counts,
            count: if asks.counts == Counts::Asks { all.len() } else { asks.count },
            within: Some(asks.within),
            asks: all,
        })
    }

    fn refused(&self, word: &Word, why: impl Into<String>) -> NotApplied {
        let (file, title) = (self.file.clone(), Some(self.title.clone()));
        NotApplied { file, title, place: word.place, why: why.into() }
    }

    /// The rules that it names.
    fn named<'a>(&self, bases: &'a [Base], others: &[Self]) -> Result<Vec<&'a Base>, Why> {
        let one = |word: &Word| {
            let mut known = bases.iter().filter(|base| base.keys.contains(&word.text));
            let name = &word.text;
            let why = match (known.next(), known.next()) {
                (Some(base), None) => return Ok(base),
                (Some(_), Some(_)) => format!("two rules have the name {name}"),
                (None, _) if others.iter().any(|other| other.keys.contains(name)) => {
                    format!("{name} is a correlation itself")
                }
                (None, _) => format!("no rule has the name or id {name}"),
            };
            Err(Why::Refused(self.refused(word, why)))
        };
        self.rules.iter().map(one).collect()
    }

    /// What it asks of the records of a rule.
    fn ask(&self, asks: &Asks, word: &Word, base: &Base) -> Result<Ask, NotApplied> {
        let ask = match &base.what {
            What::Asked(_, ask) => ask,
            What::Foreign => {
                return Err(self.refused(word, format!("the rule {} is for other logs", word.text)));
            }
            What::Refused => {
                return Err(self.refused(word, format!("the rule {} is not applied", word.text)));
            }
        };
        let column = |name: &Word| {
            let said = |why: String| self.refused(name, why);
            let field = field(&asks.aliases, &name.text, base);
            let field = field.map_err(|()| {
                said(format!("the alias {} has no column of the rule {}", name.text, word.text))
            })?;
            let column = names::column_of(ask.log, field).map_err(said)?;
            let column = &ask.log.fields[column];
            match column.zeek_type.scalar {
                Scalar::Double => Err(said(format!(
                    "{} is a fraction, and rows are counted by what is the same",
                    column.name
                ))),
                _ => Ok(column.name),
            }
        };
        let columns = |words: &[Word]| words.iter().map(column).collect::<Result<Vec<_>, _>>();
        let (by, of) = (columns(&asks.by)?, columns(&asks.of)?);
        Ok(Ask { log: ask.log, test: ask.test.clone(), by, of })
    }

    /// Sees to it that values of two logs can be the same at all.
    fn alike(&self, all: &[Ask], asks: &Asks) -> Result<(), NotApplied> {
        let Some((first, others)) = all.split_first() else { return Ok(()) };
        for other in others {
            let by = first.by.iter().zip(&other.by).zip(&asks.by);
            let of = first.of.iter().zip(&other.of).zip(&asks.of);
            for ((one, two), word) in by.chain(of) {
                if kind(first.log, one) != kind(other.log, two) {
                    let (log, second) = (first.log.path, other.log.path);
                    let why = format!("{one} of {log} and {two} of {second} are not of one type");
                    return Err(self.refused(word, why));
                }
            }
        }
        Ok(())
    }
}

fn kind(log: &LogType, column: &str) -> Option<ZeekType> {
    log.fields.iter().find(|field| field.name == column).map(|field| field.zeek_type)
}

/// The column of a rule that a name of a correlation stands for.
fn field<'a>(aliases: &'a [FieldAlias], name: &'a str, base: &Base) -> Result<&'a str, ()> {
    let Some(alias) = aliases.iter().find(|alias| alias.alias == name) else { return Ok(name) };
    let mut fields = base.keys.iter().filter_map(|key| alias.mapping.get(key));
    fields.next().map(String::as_str).ok_or(())
}

/// What a correlation counts, how many of that are enough, and the columns whose values are counted.
fn asked(rule: &CorrelationRule) -> Result<(Counts, usize, &[String]), Refused> {
    let refuse = |word, why: &str| Err(Refused::new(Some(word), why));
    let of = match &rule.condition {
        CorrelationCondition::Threshold { field, .. } => field.as_deref().unwrap_or_default(),
        CorrelationCondition::Extended(_) => {
            return refuse("condition", "its condition is no number");
        }
    };
    if rule.window != WindowMode::Sliding {
        return refuse("window", "its window does not slide");
    }
    if rule.rules.is_empty() || rule.rules.len() > MOST_RULES {
        return refuse(
            "rules",
            &format!("it names {} rules, and may name 1 to {MOST_RULES}", rule.rules.len()),
        );
    }
    if (1..rule.rules.len()).any(|at| rule.rules[..at].contains(&rule.rules[at])) {
        return refuse("rules", "it names a rule twice");
    }
    for (name, fields) in [("group-by", rule.group_by.as_slice()), ("field", of)] {
        if fields.len() > MOST_FIELDS {
            let why = format!("it names {} fields, and may name {MOST_FIELDS}", fields.len());
            return refuse(name, &why);
        }
    }
    if rule.timespan.seconds == 0 {
        return refuse("timespan", "its time is none");
    }
    let counts = match rule.correlation_type {
        CorrelationType::EventCount => Counts::Records,
        CorrelationType::ValueCount if of.is_empty() => {
            return refuse("condition", "it names no field whose values are counted");
        }
        CorrelationType::ValueCount => Counts::Values,
        CorrelationType::Temporal => return Ok((Counts::Asks, 0, &[])),
        other => {
            return refuse(
                other.as_str(),
                &format!("the type {} is not known here", other.as_str()),
            );
        }
    };
    let of = if counts == Counts::Values { of } else { &[] };
    Ok((counts, least(rule)?, of))
}

/// The least number that a condition is true of.
fn least(rule: &CorrelationRule) -> Result<usize, Refused> {
    let refused = |why: String| Refused::new(Some("condition"), why);
    let CorrelationCondition::Threshold { predicates, .. } = &rule.condition else {
        return Err(refused("its condition is no number".to_owned()));
    };
    let [(operator, number)] = **predicates else {
        return Err(refused("it wants a number between others".to_owned()));
    };
    let least = match operator {
        ConditionOperator::Gte => number,
        ConditionOperator::Gt => number.saturating_add(1),
        _ => {
            return Err(refused(
                "what does not happen is not counted: only gt and gte are known".to_owned(),
            ));
        }
    };
    match usize::try_from(least) {
        Ok(least @ 1..=MOST_COUNT) => Ok(least),
        _ => Err(refused(format!("it counts up to {least}, and may count from 1 to {MOST_COUNT}"))),
    }
}
