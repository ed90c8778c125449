//! What the comparisons over the corpus are made of.
//!
//! | module | concern |
//! |---|---|
//! | [`corpus`] | the captures with expected answers, and running the program on them |
//! | [`log`] | a log in Zeek's tab-separated values |
//! | [`columns`] | which columns are compared |
//! | [`compare`] | two logs, row by row |
//! | [`differences`] | the rows that `docs/differences-from-zeek.md` takes out of the comparison |
//! | [`total`] | what the comparisons of all captures amount to |
//! | [`unbuilt`] | what Zeek tells of protocols that netsniff does not know |
//! | [`whole`] | captures that the page lists for a log as a whole |

pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod corpus;
pub(crate) mod differences;
pub(crate) mod total;
pub(crate) mod unbuilt;
pub(crate) mod whole;

pub(crate) use netsniff_testing::log;
