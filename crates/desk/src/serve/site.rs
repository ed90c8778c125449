//! What all pages have in common, and how they are made.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::response::Response;
use minijinja::{Environment, Value, context};
use tokio::sync::Semaphore;

use super::answer::{Failure, typed};
use super::args::{Kind, ServeArgs};
use super::packets::Packets;
use super::watched::Watched;
use crate::page;
use crate::report::{self, Overview};

/// What all pages have in common.
pub(super) struct Site {
    pub(super) title: String,
    pub(super) kind: Kind,
    /// Where the logs are.
    pub(super) directory: PathBuf,
    pub(super) watched: Arc<Watched>,
    pub(super) packets: Packets,
    templates: Environment<'static>,
    /// How many may read logs at once.
    readers: Semaphore,
    overview: Mutex<Option<(Instant, Arc<Overview>)>>,
}

/// Readers of logs at once: each takes a processor and a disk.
const READERS: usize = 2;
/// How long what all logs amount to is good for.
const FRESH: Duration = Duration::from_secs(10);

const TEMPLATES: [(&str, &str); 7] = [
    ("base.html", include_str!("templates/base.html")),
    ("dashboard.html", include_str!("templates/dashboard.html")),
    ("browse.html", include_str!("templates/browse.html")),
    ("connection.html", include_str!("templates/connection.html")),
    ("packets.html", include_str!("templates/packets.html")),
    ("sections.html", include_str!("templates/sections.html")),
    ("text.html", include_str!("templates/text.html")),
];

impl Site {
    /// A site of what the arguments name, whose logs are in `directory`.
    ///
    /// # Errors
    ///
    /// Where a template is wrong, which tests exclude.
    pub(super) fn new(
        args: &ServeArgs,
        kind: Kind,
        directory: PathBuf,
        watched: Arc<Watched>,
    ) -> anyhow::Result<Self> {
        let mut templates = page::environment()?;
        for (name, text) in TEMPLATES {
            templates.add_template(name, text).with_context(|| format!("the template {name}"))?;
        }
        Ok(Self {
            title: args.title(),
            kind,
            directory,
            watched,
            packets: Packets::of(args)?,
            templates,
            readers: Semaphore::new(READERS),
            overview: Mutex::new(None),
        })
    }

    /// A template with what all pages have.
    ///
    /// # Errors
    ///
    /// Where the template is wrong, which tests exclude.
    pub(super) fn render(&self, template: &str, at: &str, of: Value) -> Result<String, Failure> {
        let common = context! { site => self.title, at => at, is_live => self.kind == Kind::Live };
        let template = self.templates.get_template(template);
        let html = template.and_then(|template| template.render(context! { ..of, ..common }));
        html.map_err(|error| Failure::inside(&format!("cannot make the page: {error:#}")))
    }

    /// A template as an answer.
    pub(super) fn page(&self, template: &str, at: &str, of: Value) -> Result<Response, Failure> {
        self.render(template, at, of).map(|html| typed("text/html; charset=utf-8", html))
    }

    /// Reads logs, beside a few others that do.
    ///
    /// # Errors
    ///
    /// What reading them fails at.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self, &AtomicBool) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let _permit = self.readers.acquire().await.map_err(|_| Failure::inside("it ends"))?;
        let given_up = GivenUp::default();
        let (site, told) = (Arc::clone(self), Arc::clone(&given_up.0));
        let result = tokio::task::spawn_blocking(move || read(&site, &told)).await;
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Failure::inside(&format!("{error:#}"))),
            Err(_) => Err(Failure::inside("the logs could not be read")),
        }
    }

    /// What all logs amount to, of some seconds ago at most.
    pub(super) fn overview(&self) -> anyhow::Result<Arc<Overview>> {
        let mut kept = self.overview.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((when, overview)) = &*kept
            && when.elapsed() < FRESH
        {
            return Ok(Arc::clone(overview));
        }
        let overview = Arc::new(report::overview(&self.directory)?);
        *kept = Some((Instant::now(), Arc::clone(&overview)));
        Ok(overview)
    }
}

/// Tells whoever reads that nobody waits any more.
#[derive(Default)]
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
