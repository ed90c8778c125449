//! What is wrong with the text of a filter, and where.

use core::fmt;

/// Why a text is not a filter, or why a filter cannot be applied to a link type.
///
/// Its `Display` is one line: the sentence and the column. [`caret`](Self::caret) shows the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    sentence: String,
    text: String,
    position: usize,
}

impl FilterError {
    pub(super) fn new(text: &str, position: usize, sentence: impl Into<String>) -> Self {
        let mut position = position.min(text.len());
        while !text.is_char_boundary(position) {
            position -= 1;
        }
        Self { sentence: sentence.into(), text: text.to_owned(), position }
    }

    /// The complaint without its place, for instance `unknown word "tpc"`.
    #[must_use]
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Offset in bytes, from 0, of the offending word in the text.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The offending place in characters, from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.text[..self.position].chars().count() + 1
    }

    /// The text of the filter with a `^` under the offending place, on two lines.
    #[must_use]
    pub const fn caret(&self) -> Caret<'_> {
        Caret(self)
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at column {}", self.sentence, self.column())
    }
}

impl core::error::Error for FilterError {}

/// Displays the text of a filter and marks a place in it.
#[derive(Clone, Copy, Debug)]
pub struct Caret<'a>(&'a FilterError);

impl fmt::Display for Caret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters would move the caret away from its word, or act on the terminal.
        for c in self.0.text.chars() {
            write!(f, "{}", if c.is_control() { ' ' } else { c })?;
        }
        write!(f, "\n{:>width$}", '^', width = self.0.column())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_word() {
        let error = FilterError::new("tcp\nand tpc", 8, "unknown word \"tpc\"");
        assert_eq!(error.to_string(), "unknown word \"tpc\" at column 9");
        assert_eq!(error.caret().to_string(), "tcp and tpc\n        ^");
    }

    #[test]
    fn columns_count_characters_and_never_split_one() {
        let error = FilterError::new("é x", 3, "no");
        assert_eq!((error.column(), error.position()), (3, 3));
        assert_eq!(FilterError::new("é", 1, "no").position(), 0);
        assert_eq!(FilterError::new("é", 99, "no").column(), 2);
    }
}
