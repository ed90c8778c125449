//! A condition as words, each with its place.

use super::error::ConditionError;

/// A word of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A name of a column, or a word of the language.
    Name(String),
    /// Digits and what belongs to them.
    Number(String),
    /// What stood between quotes.
    Text(String),
    /// `=`, `!=`, `<`, `<=`, `>`, `>=`, `(`, `)` or `,`.
    Sign(&'static str),
}

/// A word with the offset of its first byte.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) at: usize,
    pub(super) token: Token,
}

/// The longer ones first.
const SIGNS: [(&str, &str); 11] = [
    ("==", "="),
    ("!=", "!="),
    ("<>", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("=", "="),
    ("<", "<"),
    (">", ">"),
    ("(", "("),
    (")", ")"),
    (",", ","),
];

/// Words of a condition; more are none that a person wrote.
const MOST: usize = 10_000;

impl Word {
    /// The word as it may be told.
    pub(super) fn shown(&self) -> String {
        match &self.token {
            Token::Name(text) | Token::Number(text) => format!("{text:?}"),
            Token::Text(text) => format!("'{text}'"),
            Token::Sign(sign) => format!("{sign:?}"),
        }
    }
}

/// Takes a condition apart.
pub(super) fn words(text: &str) -> Result<Vec<Word>, ConditionError> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        if words.len() >= MOST {
            return Err(ConditionError::new(text, at, format!("more than {MOST} words")));
        }
        let rest = text.get(at..).unwrap_or_default();
        let (token, len) = one(rest, first).map_err(|said| ConditionError::new(text, at, said))?;
        words.push(Word { at, token });
        at += len;
    }
    Ok(words)
}

/// The word at the begin of a text, and its length.
fn one(rest: &str, first: char) -> Result<(Token, usize), String> {
    if first == '\'' || first == '"' {
        return quoted(rest, first);
    }
    if let Some((sign, meaning)) = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
        return Ok((Token::Sign(meaning), sign.len()));
    }
    let is_number = first.is_ascii_digit() || first == '-';
    let mut before = first;
    let belongs = |c: &char| {
        // The sign of an exponent belongs to its number.
        let is_sign = is_number && matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        before = *c;
        c.is_alphanumeric() || matches!(c, '_' | '.') || is_sign
    };
    let behind: usize = rest.chars().skip(1).take_while(belongs).map(char::len_utf8).sum();
    let len = first.len_utf8() + behind;
    let word = rest.get(..len).unwrap_or_default().to_owned();
    if is_number {
        Ok((Token::Number(word.replace("e+", "e").replace("E+", "E")), len))
    } else if first.is_alphabetic() || first == '_' {
        Ok((Token::Name(word), len))
    } else {
        Err(format!("unexpected {first:?}"))
    }
}

/// What stands between quotes; a doubled quote stands for one.
fn quoted(rest: &str, quote: char) -> Result<(Token, usize), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != quote {
            text.push(c);
        } else if chars.next_if(|(_, next)| *next == quote).is_some() {
            text.push(quote);
        } else {
            return Ok((Token::Text(text), at + 1));
        }
    }
    Err(format!("a text that begins with {quote} and does not end"))
}
