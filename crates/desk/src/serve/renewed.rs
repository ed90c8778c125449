//! What is made once for all who look, and made anew after a change.

use std::sync::Arc;
use std::time::Duration;

use minijinja::Value;
use tokio::sync::watch::{self, Receiver};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt as _};

use crate::watch::data::subjects::Span;

/// Spans of time to choose from on the overview.
pub(super) const SPANS: [(&str, Span); 4] =
    [("1", Span::Last(1)), ("10", Span::Last(10)), ("60", Span::Last(60)), ("all", Span::Whole)];
/// The least time between two renewals.
const PAUSE: Duration = Duration::from_millis(250);

/// The parts of the overview that change, over one span.
#[derive(Debug)]
pub(super) struct Parts {
    /// By the names of their places.
    pub(super) of_page: Value,
    /// The same as an event of the stream.
    pub(super) event: String,
}

/// Something that is made of what changes.
#[derive(Debug)]
pub(super) struct Renewed<T> {
    /// With the change that it was made after.
    made: watch::Sender<Latest<T>>,
    making: Arc<Mutex<()>>,
}

/// What was made last, and after which change.
type Latest<T> = Option<(u64, Arc<T>)>;

impl<T> Default for Renewed<T> {
    fn default() -> Self {
        Self { made: watch::Sender::new(None), making: Arc::default() }
    }
}

impl<T: Send + Sync + 'static> Renewed<T> {
    /// It after the latest change: made in a thread apart, unless somebody has had it made. `None` where that fails.
    pub(super) async fn latest(
        &self,
        changes: &Receiver<u64>,
        make: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Arc<T>> {
        let making: OwnedMutexGuard<()> = Arc::clone(&self.making).lock_owned().await;
        // What is made has this change at least.
        let change = *changes.borrow();
        if let Some((of, it)) = &*self.made.borrow()
            && *of == change
        {
            return Some(Arc::clone(it));
        }
        let made = self.made.clone();
        // It is kept where whoever asked has gone: otherwise the next one would make it once more.
        let work = move || {
            let _making = making;
            let it = Arc::new(make());
            made.send_replace(Some((change, Arc::clone(&it))));
            it
        };
        spawn_blocking(work).await.ok()
    }

    /// Makes it anew after changes, as long as somebody follows it.
    pub(super) async fn renew<M: FnOnce() -> T + Send + 'static>(
        &self,
        mut changes: Receiver<u64>,
        make: impl Fn() -> M,
    ) {
        while changes.changed().await.is_ok() {
            if self.made.receiver_count() > 0 {
                self.latest(&changes, make()).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Tells whenever there is another one, and the last one at first.
    pub(super) fn follow(&self) -> impl Stream<Item = Arc<T>> + use<T> {
        WatchStream::new(self.made.subscribe()).filter_map(|latest| latest.map(|(_, it)| it))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    /// Makes the number of times that it was made, in a while.
    fn counting(made: &Arc<AtomicU32>) -> impl FnOnce() -> u32 + Send + use<> {
        let made = Arc::clone(made);
        move || {
            thread::sleep(Duration::from_millis(50));
            made.fetch_add(1, Ordering::Relaxed) + 1
        }
    }

    #[tokio::test]
    async fn whoever_looks_it_is_made_once_after_a_change() {
        let (made, renewed) = (Arc::new(AtomicU32::new(0)), Arc::new(Renewed::default()));
        let changes = watch::Sender::new(0_u64);
        let (renews, watched, makes) =
            (Arc::clone(&renewed), changes.subscribe(), Arc::clone(&made));
        tokio::spawn(async move { renews.renew(watched, || counting(&makes)).await });
        let mut clients = Vec::new();
        for _ in 0..20 {
            let (renewed, changes) = (Arc::clone(&renewed), changes.subscribe());
            let made = Arc::clone(&made);
            clients.push(tokio::spawn(async move {
                let mut followed = Box::pin(renewed.follow());
                let first = renewed.latest(&changes, counting(&made)).await;
                let mut seen = vec![*first.unwrap()];
                for _ in 0..2 {
                    seen.push(*followed.next().await.unwrap());
                }
                seen
            }));
        }
        // The thread of all tasks has time for others while it is made.
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(made.load(Ordering::Relaxed), 0, "it is made where all tasks run");
        tokio::time::sleep(Duration::from_millis(180)).await;
        changes.send_modify(|change| *change += 1);
        for client in clients {
            assert_eq!(client.await.unwrap(), [1, 1, 2]);
        }
        assert_eq!(made.load(Ordering::Relaxed), 2);
        // Nobody follows it any more.
        changes.send_modify(|change| *change += 1);
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }
}
