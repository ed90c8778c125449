//! Who may look: the listening socket of `netsniff serve`, and what a client must show before a page answers.
//!
//! | file | concern |
//! |---|---|
//! | `listening` | arguments, and what they amount to |
//! | `connections` | clients side by side, each with its bounds |
//! | `admission` | whether a request is answered |
//! | `users` | which user of this host has a connection |
//! | `token`, `tls`, `secret_file` | secrets and certificates |
//! | `headers` | what browsers are told with each answer |

mod admission;
mod connections;
mod headers;
mod listening;
mod secret_file;
mod tls;
mod token;
mod users;

#[cfg(all(test, unix))]
mod tests;

pub(super) use connections::Guard;
pub(super) use listening::Listening;
