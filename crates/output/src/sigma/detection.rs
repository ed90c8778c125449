//! What a rule asks of a row: tests of columns, put together by its condition.

use netsniff_analysis::notice::rules::RecordTest;
use netsniff_analysis::record::{FieldInfo, LogType, Value, Visitor};
use rsigma_parser::{
    ConditionExpr, Detection, DetectionItem, Detections, Modifier, Quantifier, SigmaValue,
};

use super::names;
use super::not_applied::Refused;
use super::pattern::Pattern;

/// Tests of one rule. Each is asked of each row of its log.
const MOST_TESTS: usize = 10_000;

/// The detection of a rule, in terms of a log.
#[derive(Debug)]
pub(super) struct Question {
    root: Node,
    tests: Vec<Test>,
}

/// A test of a column, or of all.
#[derive(Debug)]
struct Test {
    /// `None` for any column.
    column: Option<usize>,
    pattern: Pattern,
}

/// Tests that must hold together.
#[derive(Debug)]
enum Node {
    /// The test with this number.
    Test(usize),
    All(Vec<Self>),
    /// So many of them at least.
    Some(usize, Vec<Self>),
    Not(Box<Self>),
}

impl Question {
    /// Puts a detection in terms of a log.
    pub(super) fn of(detections: &Detections, log: &'static LogType) -> Result<Self, Refused> {
        if detections.timeframe.is_some() {
            return Err(Refused::new(
                Some("timeframe"),
                "it counts within a time, which Sigma 2 has correlations for",
            ));
        }
        let mut compiler = Compiler { detections, log, tests: Vec::new() };
        let conditions = detections.conditions.iter().map(|it| compiler.condition(it));
        // A rule with several conditions matches where one of them does.
        let root = Node::Some(1, conditions.collect::<Result<_, _>>()?);
        Ok(Self { root, tests: compiler.tests })
    }
}

struct Compiler<'a> {
    detections: &'a Detections,
    log: &'static LogType,
    tests: Vec<Test>,
}

impl Compiler<'_> {
    fn condition(&mut self, condition: &ConditionExpr) -> Result<Node, Refused> {
        Ok(match condition {
            ConditionExpr::And(parts) => Node::All(self.conditions(parts)?),
            ConditionExpr::Or(parts) => Node::Some(1, self.conditions(parts)?),
            ConditionExpr::Not(part) => Node::Not(Box::new(self.condition(part)?)),
            ConditionExpr::Identifier(name) => {
                let named = self.detections.named.get(name).ok_or_else(|| {
                    Refused::new(Some(name), format!("no detection has the name {name}"))
                })?;
                self.detection(named)?
            }
            ConditionExpr::Selector { quantifier, pattern } => {
                let mut names: Vec<_> = self.detections.named.iter().collect();
                names.retain(|(name, _)| pattern.matches_detection_name(name));
                names.sort_unstable_by_key(|(name, _)| *name);
                if names.is_empty() {
                    return Err(Refused::new(None, format!("no detection is one of {pattern}")));
                }
                let nodes = names.into_iter().map(|(_, detection)| self.detection(detection));
                let nodes = nodes.collect::<Result<_, _>>()?;
                match quantifier {
                    Quantifier::Any => Node::Some(1, nodes),
                    Quantifier::All => Node::All(nodes),
                    Quantifier::Count(count) => {
                        Node::Some(usize::try_from(*count).unwrap_or(usize::MAX), nodes)
                    }
                }
            }
        })
    }

    fn conditions(&mut self, parts: &[ConditionExpr]) -> Result<Vec<Node>, Refused> {
        parts.iter().map(|part| self.condition(part)).collect()
    }

    fn detection(&mut self, detection: &Detection) -> Result<Node, Refused> {
        Ok(match detection {
            Detection::AllOf(items) => {
                Node::All(items.iter().map(|item| self.item(item)).collect::<Result<_, _>>()?)
            }
            Detection::AnyOf(parts) => Node::Some(1, self.detections(parts)?),
            Detection::And(parts) => Node::All(self.detections(parts)?),
            Detection::Keywords(values) => {
                let words = values.iter().map(|value| self.keyword(value));
                Node::Some(1, words.collect::<Result<_, _>>()?)
            }
            Detection::ArrayMatch { field, .. } => {
                return Err(Refused::new(Some(field), "it asks for members of lists"));
            }
            Detection::Conditional { .. } => {
                return Err(Refused::new(None, "it asks for members of lists"));
            }
        })
    }

    fn detections(&mut self, parts: &[Detection]) -> Result<Vec<Node>, Refused> {
        parts.iter().map(|part| self.detection(part)).collect()
    }

    fn item(&mut self, item: &DetectionItem) -> Result<Node, Refused> {
        let modifiers = &*item.field.modifiers;
        let Some(name) = item.field.name.as_deref() else {
            let words =
                item.values.iter().map(|value| self.keyword(value)).collect::<Result<_, _>>()?;
            return Ok(linked(words, modifiers));
        };
        let column =
            names::column_of(self.log, name).map_err(|why| Refused::new(Some(name), why))?;
        let of_value = |value: &SigmaValue| {
            let patterns =
                Pattern::of(value, modifiers).map_err(|why| Refused::new(Some(name), why))?;
            let tests = patterns.into_iter().map(|it| self.test(Some(column), it));
            Ok(Node::Some(1, tests.collect::<Result<_, _>>()?))
        };
        let values = item.values.iter().map(of_value).collect::<Result<_, _>>()?;
        Ok(linked(values, modifiers))
    }

    fn keyword(&mut self, value: &SigmaValue) -> Result<Node, Refused> {
        let pattern = Pattern::keyword(value).map_err(|why| Refused::new(None, why))?;
        self.test(None, pattern)
    }

    fn test(&mut self, column: Option<usize>, pattern: Pattern) -> Result<Node, Refused> {
        if self.tests.len() >= MOST_TESTS {
            return Err(Refused::new(None, format!("it has more than {MOST_TESTS} values")));
        }
        self.tests.push(Test { column, pattern });
        Ok(Node::Test(self.tests.len() - 1))
    }
}

/// Values of which one must hold, or each.
fn linked(values: Vec<Node>, modifiers: &[Modifier]) -> Node {
    let is_each = modifiers.contains(&Modifier::All);
    if is_each { Node::All(values) } else { Node::Some(1, values) }
}

impl Node {
    fn holds(&self, told: &[bool]) -> bool {
        match self {
            Self::Test(number) => told.get(*number).copied().unwrap_or(false),
            Self::All(nodes) => nodes.iter().all(|node| node.holds(told)),
            Self::Some(least, nodes) => {
                nodes.iter().filter(|node| node.holds(told)).take(*least).count() == *least
            }
            Self::Not(node) => !node.holds(told),
        }
    }
}

impl RecordTest for Question {
    fn holds(&self, visit: &mut dyn FnMut(&mut dyn Visitor)) -> bool {
        // What is not told of a column is that it is not set.
        let is_unset = |test: &Test| matches!(test.pattern, Pattern::Unset);
        let mut answers =
            Answers { tests: &self.tests, told: self.tests.iter().map(is_unset).collect() };
        visit(&mut answers);
        self.root.holds(&answers.told)
    }
}

/// What the tests say of a row.
struct Answers<'a> {
    tests: &'a [Test],
    told: Vec<bool>,
}

impl Visitor for Answers<'_> {
    fn field(&mut self, index: usize, _: &'static FieldInfo, value: Value<'_>) {
        if matches!(value, Value::Unset) {
            return;
        }
        for (test, told) in self.tests.iter().zip(&mut self.told) {
            match test.column {
                Some(column) if column == index => *told = test.pattern.holds(&value),
                None => *told |= test.pattern.holds(&value),
                Some(_) => {}
            }
        }
    }
}
