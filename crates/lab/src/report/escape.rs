//! Text on pages.

/// Text as HTML has it.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            // It would steer the terminal that a page is looked at with.
            letter if letter.is_control() && letter != '\n' && letter != '\t' => {
                escaped.push('\u{fffd}');
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}
