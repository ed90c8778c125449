//! How much room text takes. No font is read, so widths are those of a wide one (DejaVu Sans): others take less.

/// About how many pixels wide a text is in letters of a size.
pub(super) fn width(text: &str, pixels: f64) -> i32 {
    (text.chars().map(advance).sum::<f64>() * pixels).ceil() as i32
}

/// The width of a letter, as a part of the size.
fn advance(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | '|' | '\'' | '.' | ',' | ' ' => 0.32,
        '\u{2026}' => 1.0,
        'f' | 't' | 'r' | '-' | '/' | ':' | ';' | '(' | ')' | '[' | ']' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 1.0,
        '+' | '=' | '<' | '>' | '\u{2265}' | '\u{2264}' | '\u{2212}' => 0.84,
        'A'..='Z' => 0.75,
        letter if letter.is_ascii() => 0.64,
        letter if letter as u32 >= 0x1100 => 1.1,
        _ => 0.75,
    }
}

/// A text in lines that are no wider than this. Words that are wider themselves are cut.
pub(super) fn wrap(text: &str, pixels: f64, most: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), pixels) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.extend(cut(word, pixels, most)),
        }
    }
    lines
}

/// A text that is no wider than this: the end of one that is, is left out, and three dots say so.
pub(super) fn shorten(text: &str, pixels: f64, most: i32) -> String {
    if width(text, pixels) <= most {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if width(&format!("{short}{letter}\u{2026}"), pixels) > most {
            break;
        }
        short.push(letter);
    }
    short.trim_end().to_owned() + "\u{2026}"
}

fn cut(word: &str, pixels: f64, most: i32) -> Vec<String> {
    let mut parts = vec![String::new()];
    for letter in word.chars() {
        let at = parts.len() - 1;
        if !parts[at].is_empty() && width(&format!("{}{letter}", parts[at]), pixels) > most {
            parts.push(String::new());
        }
        let at = parts.len() - 1;
        parts[at].push(letter);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_no_wider_than_asked_and_nothing_is_lost() {
        let long = "x".repeat(90);
        let text = format!("record, ring 64M, 1518 bytes {long} end");
        for most in [60, 200, 4000] {
            let lines = wrap(&text, 12.0, most);
            assert!(lines.iter().all(|line| width(line, 12.0) <= most), "{lines:?}");
            let all = |text: &str| text.replace(' ', "");
            assert_eq!(all(&lines.concat()), all(&text));
        }
        assert!(wrap("  ", 12.0, 100).is_empty());
        assert_eq!(shorten("ring", 12.0, 100), "ring");
        let short = shorten(&text, 12.0, 100);
        assert!(short.ends_with('\u{2026}') && width(&short, 12.0) <= 100, "{short}");
        assert!(text.starts_with(short.trim_end_matches('\u{2026}')));
        // Measured in a browser: 7.33 pixels for a digit of DejaVu Sans at 11.52.
        assert!((width("0123456789", 11.52) - 73).abs() <= 3);
    }
}
