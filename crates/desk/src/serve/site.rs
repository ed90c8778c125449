//! What all pages have in common, and how they are made.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::response::Response;
use minijinja::{Environment, Value, context};
use netsniff_console::say;
use tokio::sync::{Mutex, Semaphore};

use super::answer::{Failure, typed};
use super::args::{Kind, ServeArgs};
use super::control::Control;
use super::packets::Packets;
use super::renewed::{Parts, Renewed, SPANS};
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
    /// The parts of the overview, over each span.
    pub(super) parts: [Renewed<Parts>; SPANS.len()],
    pub(super) packets: Packets,
    /// What a browser may do, where it may do anything.
    pub(super) control: Option<Control>,
    templates: Environment<'static>,
    /// How many may read logs at once.
    readers: Arc<Semaphore>,
    /// How many may take all rows of a log at once, as slow as they are: pages need not wait for them.
    pub(super) downloads: Arc<Semaphore>,
    overview: Mutex<Option<(Instant, Arc<Overview>)>>,
}

/// Readers of logs at once: each takes a processor and a disk.
const READERS: usize = 2;
const DOWNLOADS: usize = 2;
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
            parts: Default::default(),
            packets: Packets::of(args)?,
            control: args.control()?,
            templates,
            readers: Arc::new(Semaphore::new(READERS)),
            downloads: Arc::new(Semaphore::new(DOWNLOADS)),
            overview: Mutex::new(None),
        })
    }

    /// Ends what it has begun: whoever looks may still hold it.
    pub(super) fn end(&self) {
        self.packets.end();
        if let Some(Ok((_, told))) = self.control.as_ref().map(Control::end) {
            say(&told);
        }
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
        read: impl FnOnce(&Self, &Arc<AtomicBool>) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = Arc::clone(&self.readers).acquire_owned().await;
        let permit = permit.map_err(|_| Failure::inside("it ends"))?;
        let given_up = GivenUp::default();
        let (site, told) = (Arc::clone(self), Arc::clone(&given_up.0));
        // Whoever asked may go; the place is free when the work has ended.
        let work = move || {
            let _permit = permit;
            read(&site, &told)
        };
        let result = tokio::task::spawn_blocking(work).await;
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(Failure::inside(&format!("{error:#}"))),
            Err(_) => Err(Failure::inside("the logs could not be read")),
        }
    }

    /// What all logs amount to, of some seconds ago at most. Who asks meanwhile waits for the same.
    ///
    /// # Errors
    ///
    /// What reading them fails at.
    pub(super) async fn overview(self: &Arc<Self>) -> Result<Arc<Overview>, Failure> {
        let site = Arc::clone(self);
        // It goes on where whoever asked has gone: otherwise the next one would begin it once more.
        let gathered = tokio::spawn(async move { site.gathered().await }).await;
        gathered.unwrap_or_else(|_| Err(Failure::inside("the logs could not be read")))
    }

    async fn gathered(self: &Arc<Self>) -> Result<Arc<Overview>, Failure> {
        let mut kept = self.overview.lock().await;
        if let Some((when, overview)) = &*kept
            && when.elapsed() < FRESH
        {
            return Ok(Arc::clone(overview));
        }
        let overview = self.read(|site, _| report::overview(&site.directory)).await?;
        let overview = Arc::new(overview);
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
