//! What is wrong with a condition, and where.

use core::fmt;

/// A condition that cannot be understood. Its `Display` shows the text with a mark under the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    said: String,
    text: String,
    /// Byte offset of the place.
    at: usize,
}

impl ConditionError {
    pub(super) fn new(text: &str, at: usize, said: impl Into<String>) -> Self {
        Self { said: said.into(), text: text.to_owned(), at }
    }

    /// The place in characters, from 1.
    fn column(&self) -> usize {
        self.text.char_indices().filter(|(at, _)| *at < self.at).count() + 1
    }
}

impl core::error::Error for ConditionError {}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} at column {}", self.said, self.column())?;
        // Control characters would move the mark away from its word.
        let shown: String =
            self.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "  {shown}\n  {:>width$}", '^', width = self.column())
    }
}
