//! One connection's picture: its TCP time-sequence graph, as tcptrace draws it, and the numbers behind it.
//!
//! The packets are those of one connection, as `netsniff extract --uid UID -w -` writes them. They go through the engine of
//! `analyze` once more, one by one. So what a segment is (new, sent again, out of order) is what the logs count, and the
//! numbers are the columns of the rows that the engine writes.
//!
//! | module | concern |
//! |---|---|
//! | `reading` | packets through the engine, and what it tells of each |
//! | `rows` | the rows of the logs that are about the connection |
//! | `following` | segments to places in the picture |
//! | `marks` | bounded numbers of marks |
//! | `facts` | what is known in the end |
//! | `plot` | the picture |
//! | `page` | picture and numbers as HTML |

mod facts;
mod following;
mod marks;
mod page;
mod plot;
mod reading;
mod rows;
#[cfg(test)]
mod tests;

pub use facts::{Direction, Figure, Gap, Kind, Sequence};
pub use following::{Sign, SignKind, Track};
pub use marks::{Class, Stairs, Stroke, Strokes};
pub use page::STYLE;
pub use reading::{Limits, of};
