//! Words to a tree of tests.

use netsniff_analysis::record::{FieldInfo, LogType, Scalar, Shape};

use super::error::ConditionError;
use super::test::{Comparison, Kind, Literal, Test};
use super::words::{Token, Word, words};

/// How tests are combined.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// The test of this number.
    Test(usize),
    Not(Box<Self>),
    All(Vec<Self>),
    Any(Vec<Self>),
}

/// How deep parentheses and NOT may be nested; more would be no person's.
const DEEPEST: u32 = 64;

impl Node {
    /// Whether it holds by what the tests say, as SQL has it: what is unknown stays so unless the rest decides.
    pub(super) fn holds(&self, told: &[Option<bool>]) -> Option<bool> {
        let decide = |nodes: &[Self], decisive: bool| {
            let mut outcome = Some(!decisive);
            for node in nodes {
                match node.holds(told) {
                    Some(it) if it == decisive => return Some(decisive),
                    None => outcome = None,
                    Some(_) => {}
                }
            }
            outcome
        };
        match self {
            Self::Test(number) => told.get(*number).copied().flatten(),
            Self::Not(node) => node.holds(told).map(|it| !it),
            Self::All(nodes) => decide(nodes, false),
            Self::Any(nodes) => decide(nodes, true),
        }
    }
}

/// Parses a condition on the rows of a log.
pub(super) fn parse(
    text: &str,
    log: &'static LogType,
) -> Result<(Node, Vec<Test>), ConditionError> {
    let words = words(text)?;
    let mut parser = Parser { text, log, words: &words, tests: Vec::new() };
    let root = parser.any(0)?;
    if let Some(word) = parser.words.first() {
        return Err(parser.error(format!("unexpected {}; AND or OR may follow", word.shown())));
    }
    Ok((root, parser.tests))
}

struct Parser<'t> {
    text: &'t str,
    log: &'static LogType,
    /// What is not read yet.
    words: &'t [Word],
    tests: Vec<Test>,
}

impl Parser<'_> {
    /// An error at the next word.
    fn error(&self, said: impl Into<String>) -> ConditionError {
        let at = self.words.first().map_or(self.text.len(), |word| word.at);
        ConditionError::new(self.text, at, said)
    }

    /// An error for what is missing.
    fn expected(&self, what: &str) -> ConditionError {
        match self.words.first() {
            Some(word) => self.error(format!("{what} is expected, not {}", word.shown())),
            None => self.error(format!("{what} is expected, and the condition ends")),
        }
    }

    /// Takes the next word, if it is this one of the language.
    fn takes(&mut self, keyword: &str) -> bool {
        let is_it = |word: &Word| match &word.token {
            Token::Name(name) => name.eq_ignore_ascii_case(keyword),
            Token::Sign(sign) => *sign == keyword,
            Token::Number(_) | Token::Text(_) => false,
        };
        match self.words.split_first() {
            Some((first, rest)) if is_it(first) => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    fn any(&mut self, depth: u32) -> Result<Node, ConditionError> {
        let mut nodes = vec![self.all(depth)?];
        while self.takes("OR") {
            nodes.push(self.all(depth)?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self, depth: u32) -> Result<Node, ConditionError> {
        let mut nodes = vec![self.one(depth)?];
        while self.takes("AND") {
            nodes.push(self.one(depth)?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) })
    }

    fn one(&mut self, depth: u32) -> Result<Node, ConditionError> {
        if depth > DEEPEST {
            return Err(self.error(format!("nested deeper than {DEEPEST}")));
        }
        if self.takes("NOT") {
            return Ok(Node::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.takes("(") {
            let node = self.any(depth + 1)?;
            return if self.takes(")") { Ok(node) } else { Err(self.expected("\")\"")) };
        }
        self.test()
    }

    /// A column and what is asked of it.
    fn test(&mut self) -> Result<Node, ConditionError> {
        let (column, info) = self.column()?;
        if self.takes("IS") {
            let is_negated = self.takes("NOT");
            if !self.takes("NULL") {
                return Err(self.expected("NULL"));
            }
            return Ok(self.add(column, Kind::IsNull, is_negated));
        }
        let is_negated = self.takes("NOT");
        if self.takes("IN") {
            let literals = self.list(info)?;
            return Ok(self.add(column, Kind::In(literals), is_negated));
        }
        if self.takes("LIKE") {
            let pattern = self.pattern(info)?;
            return Ok(self.add(column, Kind::Like(pattern), is_negated));
        }
        if self.takes("BETWEEN") {
            return self.between(column, info, is_negated);
        }
        if is_negated {
            return Err(self.expected("IN, LIKE or BETWEEN"));
        }
        self.comparison(column, info)
    }

    fn comparison(
        &mut self,
        column: usize,
        info: &'static FieldInfo,
    ) -> Result<Node, ConditionError> {
        let comparison = self.words.first().and_then(|word| match word.token {
            Token::Sign(sign) => Comparison::of(sign),
            _ => None,
        });
        let Some(comparison) = comparison else {
            let is_flag = info.zeek_type.scalar == Scalar::Bool;
            if is_flag {
                let is_true = Kind::Compare(Comparison::Equal, Literal::Bool(true));
                return Ok(self.add(column, is_true, false));
            }
            return Err(self.expected("=, !=, <, >, IN, LIKE, BETWEEN or IS"));
        };
        if comparison.orders() {
            self.check_order(info)?;
        }
        self.words = self.words.get(1..).unwrap_or_default();
        let literal = self.literal(info)?;
        Ok(self.add(column, Kind::Compare(comparison, literal), false))
    }

    fn between(
        &mut self,
        column: usize,
        info: &'static FieldInfo,
        is_negated: bool,
    ) -> Result<Node, ConditionError> {
        self.check_order(info)?;
        let low = self.literal(info)?;
        if !self.takes("AND") {
            return Err(self.expected("AND"));
        }
        let high = self.literal(info)?;
        let low = self.add(column, Kind::Compare(Comparison::GreaterOrEqual, low), false);
        let high = self.add(column, Kind::Compare(Comparison::LessOrEqual, high), false);
        let both = Node::All(vec![low, high]);
        Ok(if is_negated { Node::Not(Box::new(both)) } else { both })
    }

    /// Refuses to order what has none.
    fn check_order(&self, info: &FieldInfo) -> Result<(), ConditionError> {
        let has_none = matches!(info.zeek_type.scalar, Scalar::Bool | Scalar::Addr | Scalar::Enum);
        if has_none || info.zeek_type.shape != Shape::One {
            let (name, kind) = (info.name, info.zeek_type);
            let said =
                format!("{name} has the type {kind}, which has no order; =, != and IN compare it");
            return Err(self.error(said));
        }
        Ok(())
    }

    fn column(&mut self) -> Result<(usize, &'static FieldInfo), ConditionError> {
        let Some(Token::Name(name)) = self.words.first().map(|word| &word.token) else {
            return Err(self.expected("a column"));
        };
        let mut fields = self.log.fields.iter().enumerate();
        let Some(found) = fields.find(|(_, field)| field.name == name) else {
            let (path, near) = (self.log.path, nearest(name, self.log));
            return Err(self.error(format!("{path} has no column {name:?}; did you mean {near}?")));
        };
        self.words = self.words.get(1..).unwrap_or_default();
        Ok(found)
    }

    fn literal(&mut self, info: &FieldInfo) -> Result<Literal, ConditionError> {
        let Some((word, rest)) = self.words.split_first() else {
            return Err(self.expected("a value"));
        };
        let literal = Literal::of(&word.token, info).map_err(|said| self.error(said))?;
        self.words = rest;
        Ok(literal)
    }

    /// Values in parentheses, or one.
    fn list(&mut self, info: &FieldInfo) -> Result<Vec<Literal>, ConditionError> {
        if !self.takes("(") {
            return Ok(vec![self.literal(info)?]);
        }
        let mut literals = vec![self.literal(info)?];
        while self.takes(",") {
            literals.push(self.literal(info)?);
        }
        if self.takes(")") { Ok(literals) } else { Err(self.expected("\",\" or \")\"")) }
    }

    fn pattern(&mut self, info: &FieldInfo) -> Result<Vec<u8>, ConditionError> {
        if !matches!(info.zeek_type.scalar, Scalar::String | Scalar::Enum) {
            return Err(self.error(format!("{} is no text, which LIKE needs", info.name)));
        }
        match self.words.split_first() {
            Some((Word { token: Token::Text(text), .. }, rest)) => {
                let pattern = text.as_bytes().to_vec();
                self.words = rest;
                Ok(pattern)
            }
            _ => Err(self.expected("a pattern between quotes")),
        }
    }

    fn add(&mut self, column: usize, kind: Kind, is_negated: bool) -> Node {
        let node = Node::Test(self.tests.len());
        self.tests.push(Test { column, kind });
        if is_negated { Node::Not(Box::new(node)) } else { node }
    }
}

/// The column whose name takes the fewest changes.
fn nearest(name: &str, log: &'static LogType) -> &'static str {
    let names = log.fields.iter().map(|field| field.name);
    names.min_by_key(|other| changes(name.as_bytes(), other.as_bytes())).unwrap_or_default()
}

/// How many bytes must be changed, added or left out to make one name of another (Levenshtein).
fn changes(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().take(64).enumerate() {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, b) in other.iter().enumerate() {
            let left = row.get(j).copied().unwrap_or(0);
            let Some(cell) = row.get_mut(j + 1) else { continue };
            let changed = diagonal + usize::from(!a.eq_ignore_ascii_case(b));
            diagonal = *cell;
            *cell = changed.min(*cell + 1).min(left + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
