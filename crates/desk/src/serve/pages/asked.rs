//! Which rows of a log an address asks for.

use netsniff_analysis::record::LogType;
use netsniff_output::condition::Condition;
use serde::{Deserialize, Serialize};

use crate::serve::rows::order::Order;
use crate::serve::rows::pass::Wanted;

/// Rows of a page, unless asked for others.
const ROWS: usize = 50;
/// The most that a page has.
const MOST: usize = 500;

/// What is asked for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Asked {
    /// A condition on rows.
    #[serde(rename = "where", default, skip_serializing_if = "String::is_empty")]
    pub(super) condition: String,
    /// The column that they are in order by, with `-` before it the most first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) sort: String,
    /// The page, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) page: Option<usize>,
    /// Rows of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rows: Option<usize>,
}

impl Asked {
    pub(super) fn of(condition: &str) -> Self {
        Self { condition: condition.to_owned(), ..Self::default() }
    }

    pub(super) fn most(&self) -> usize {
        self.rows.unwrap_or(ROWS).clamp(1, MOST)
    }

    /// The address of a page that is asked for this.
    pub(super) fn at(&self, page: &str) -> String {
        let words = serde_urlencoded::to_string(self).unwrap_or_default();
        if words.is_empty() { page.to_owned() } else { format!("{page}?{words}") }
    }

    /// The rows that it asks for; otherwise what is wrong with it.
    pub(super) fn wanted(&self, log: &'static LogType) -> Result<Wanted, String> {
        let condition = match self.condition.trim() {
            "" => None,
            text => Some(Condition::parse(text, log).map_err(|error| error.to_string())?),
        };
        Ok(Wanted { log, condition })
    }

    /// The order that it asks for, if any; otherwise what is wrong with it.
    pub(super) fn order(&self, log: &'static LogType) -> Result<Option<Order>, String> {
        if self.sort.is_empty() {
            return Ok(None);
        }
        let (name, is_ascending) = direction(&self.sort);
        let column = log.fields.iter().find(|field| field.name == name);
        let column = column.ok_or_else(|| format!("the log {} has no column {name}", log.path))?;
        Ok(Some(Order { column, is_ascending }))
    }
}

/// The column of an order, and whether the least comes first.
pub(super) fn direction(sort: &str) -> (&str, bool) {
    sort.strip_prefix('-').map_or((sort, true), |name| (name, false))
}
