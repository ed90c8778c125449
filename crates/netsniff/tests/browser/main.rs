//! Pages in Chromium: they load without a complaint, show the numbers of the logs, and text from packets is text. With
//! `NETSNIFF_PICTURES` set, pictures of them are put into `target/tmp/browser`, to be looked at. Needs Chromium, and says so where it is missing.

#[path = "../browser_bed/mod.rs"]
mod browser_bed;

mod hostile;
mod keyboard;
mod pages;
mod report;
