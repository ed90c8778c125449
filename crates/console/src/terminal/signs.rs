//! Which signs can be shown: not every terminal has those beyond ASCII.

use std::io::IsTerminal;

/// Terminals that do not have all of the signs that are drawn here, whatever the locale says.
const PLAIN: [&str; 2] = ["dumb", "linux"];

/// The signs that a place shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Signs {
    /// Those of ASCII.
    #[default]
    Ascii,
    /// All of them: bars, arrows and letters of any language.
    Unicode,
}

impl Signs {
    /// Those that `stream` shows, by the environment. The locale must be one in UTF-8, and a terminal one that has them.
    #[must_use]
    pub fn of(stream: &impl IsTerminal) -> Self {
        let set = |name: &str| std::env::var(name).ok();
        if Self::in_locale(set) && !(stream.is_terminal() && Self::is_plain(set)) {
            Self::Unicode
        } else {
            Self::Ascii
        }
    }

    /// Whether signs are written in UTF-8. Of these variables the first that is set and not empty counts (POSIX, 8.2).
    fn in_locale(set: impl Fn(&str) -> Option<String>) -> bool {
        let names = ["LC_ALL", "LC_CTYPE", "LANG"];
        let locale = names.into_iter().filter_map(set).find(|locale| !locale.is_empty());
        locale.is_some_and(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
    }

    fn is_plain(set: impl Fn(&str) -> Option<String>) -> bool {
        set("TERM").is_some_and(|term| PLAIN.contains(&&*term))
    }

    /// What says that a number is the least. Two signs stand for the one: `>` alone would say another thing.
    #[must_use]
    pub const fn at_least(self) -> &'static str {
        match self {
            Self::Unicode => "≥",
            Self::Ascii => ">=",
        }
    }

    /// What stands for a sign here.
    #[must_use]
    pub const fn shown(self, sign: char) -> char {
        match self {
            Self::Unicode => sign,
            Self::Ascii => in_ascii(sign),
        }
    }
}

/// What stands for a sign that is drawn here; `?` for one that came from elsewhere.
const fn in_ascii(sign: char) -> char {
    match sign {
        '\0'..='\x7f' => sign,
        // Bars of eight heights.
        '▁' => '.',
        '▂' => ':',
        '▃' | '▼' => '-',
        '▄' => '=',
        '▅' | '▲' => '+',
        '▆' => '*',
        '▇' => '#',
        '█' => '@',
        '→' => '>',
        '←' => '<',
        '↑' => '^',
        '↓' => 'v',
        '…' => '~',
        'µ' => 'u',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let is_unicode = |set: &[(&str, &str)]| {
            Signs::in_locale(|name| {
                let found = set.iter().find(|(it, _)| *it == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(!is_unicode(&[]));
        assert!(is_unicode(&[("LANG", "de_DE.UTF-8")]) && is_unicode(&[("LC_CTYPE", "C.utf8")]));
        assert!(!is_unicode(&[("LANG", "de_DE.UTF-8"), ("LC_CTYPE", "de_DE.ISO-8859-1")]));
        assert!(!is_unicode(&[("LC_ALL", "C"), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C.UTF-8")]));
        assert!(is_unicode(&[("LC_ALL", ""), ("LC_CTYPE", "C.UTF-8"), ("LANG", "C")]));
        assert!(!is_unicode(&[("LC_MESSAGES", "C.UTF-8"), ("LANG", "POSIX")]));
    }

    #[test]
    fn what_stands_for_a_sign_is_ascii() {
        for sign in "a~▁▂▃▄▅▆▇█▲▼←→↑↓…µüß漢".chars() {
            assert!(Signs::Ascii.shown(sign).is_ascii(), "{sign}");
            assert_eq!(Signs::Unicode.shown(sign), sign);
        }
        let bars: Vec<_> = "▁▂▃▄▅▆▇█".chars().map(|bar| Signs::Ascii.shown(bar)).collect();
        assert!(bars.iter().all(|bar| *bar != '?' && *bar != ' '));
        let distinct: std::collections::BTreeSet<_> = bars.iter().collect();
        assert_eq!(distinct.len(), bars.len());
    }
}
