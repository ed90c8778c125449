//! Filters as arguments.

use netsniff_console::UsageError;
use netsniff_packet::filter::Filter;

/// Parses a filter; the error shows its text with a mark under the offending word.
pub(super) fn parse(text: &str) -> Result<Filter, UsageError> {
    Filter::parse(text).map_err(|error| {
        let caret = error.caret().to_string().replace('\n', "\n  ");
        UsageError(format!("filter: {error}\n  {caret}"))
    })
}

/// Parses those of some filters that are there and not empty.
///
/// # Errors
///
/// Where one is no filter; the error shows the place.
pub fn filters<'t>(
    texts: impl IntoIterator<Item = Option<&'t str>>,
) -> Result<Vec<Filter>, UsageError> {
    let texts = texts.into_iter().flatten().filter(|text| !text.trim().is_empty());
    texts.map(parse).collect()
}
