//! Rules that are not applied: why, and where in their files.

use core::fmt;

/// A rule that is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotApplied {
    /// Its file.
    pub file: String,
    /// Its title; `None` where there is no rule to be read.
    pub title: Option<String>,
    /// Line and column of the word that it is about, from 1, where there is one.
    pub place: Option<(usize, usize)>,
    /// Why.
    pub why: String,
}

impl fmt::Display for NotApplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(title) = &self.title {
            write!(f, ": {title}")?;
        }
        write!(f, ": {}", self.why)
    }
}

/// What cannot be asked, with the word of the rule that it is about.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) word: Option<String>,
    pub(super) why: String,
}

impl Refused {
    pub(super) fn new(word: Option<&str>, why: impl Into<String>) -> Self {
        Self { word: word.map(str::to_owned), why: why.into() }
    }
}

/// A file of rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
}

impl File<'_> {
    /// What cannot be read. The library draws conditions over several lines, with places in them.
    pub(super) fn unread(&self, error: &str) -> NotApplied {
        let Some(said) = error.strip_prefix("Condition parse error") else {
            return self.whole(error);
        };
        let drawn = |from: &str| said.lines().find_map(|line| line.trim().strip_prefix(from));
        let place = drawn("--> 1:").or_else(|| said.split_once("--> 1:").map(|(_, rest)| rest));
        let character = place.and_then(|rest| rest.lines().next()).unwrap_or("?");
        let expected = drawn("= ").unwrap_or(said);
        let is_only = self.text.matches("condition:").count() == 1;
        let mut why = format!("its condition cannot be read at character {character}: {expected}");
        if drawn("1 | ").is_some_and(|condition| condition.contains('|')) {
            why = "its condition counts behind a |, which Sigma 2 has correlations for".to_owned();
        }
        let place = self.place("", "condition").filter(|_| is_only);
        NotApplied { place, ..self.whole(why) }
    }

    /// Why nothing of it can be read, or a part without a title.
    pub(super) fn whole(&self, why: impl Into<String>) -> NotApplied {
        NotApplied { file: self.name.to_owned(), title: None, place: None, why: why.into() }
    }

    /// Why the rule with a title is not applied.
    pub(super) fn refused(&self, title: &str, refused: Refused) -> NotApplied {
        NotApplied {
            title: Some(title.to_owned()),
            place: refused.word.and_then(|word| self.place(title, &word)),
            ..self.whole(refused.why)
        }
    }

    /// Line and column of a word that stands alone behind the title of its rule, as a key if it is one anywhere.
    pub(super) fn place(&self, title: &str, word: &str) -> Option<(usize, usize)> {
        let text = self.text;
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

    /// How many brackets are open at most, wherever they stand. To read them takes time that grows with the square.
    pub(super) fn depth(&self) -> usize {
        let depths = self.text.bytes().scan(0_usize, |depth, byte| {
            match byte {
                b'[' | b'{' => *depth += 1,
                b']' | b'}' => *depth = depth.saturating_sub(1),
                _ => {}
            }
            Some(*depth)
        });
        depths.max().unwrap_or(0)
    }
}
