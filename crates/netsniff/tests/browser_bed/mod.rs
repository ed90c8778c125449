//! Chromium with a page in it, and a `netsniff serve` for it to look at.
#![allow(dead_code, unused_imports, reason = "each test uses a part of it")]

mod chromium;
mod server;

pub(crate) use chromium::{Chromium, Page};
pub(crate) use server::{Folder, Server, netsniff, recorded};
