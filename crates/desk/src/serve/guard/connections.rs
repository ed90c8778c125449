//! Clients side by side: each connection has its bounds in time, bytes and number, so that none holds up another.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use netsniff_console::say;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::admission::{Caller, Door, Entry, Refusal, Rules};
use super::headers;
use super::tls::Identity;

/// Connections at once: many browsers, and few enough for the descriptors of any process.
pub(super) const MOST: usize = 64;
/// Bytes of a request's head.
pub(super) const HEAD: usize = 16 * 1024;
/// Bytes of a request's body: forms are far shorter.
pub(super) const BODY: usize = 64 * 1024;
/// The patience of a [`Guard`].
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long answers may go on once the end was asked for. Streams never end by themselves.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// How long to wait where the system lets nobody in, as it has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);
/// Lists of sockets that are read at once.
const LOOKS: usize = 4;

/// A socket that listens, and all that decides who may look.
pub(crate) struct Guard {
    pub(super) listener: net::TcpListener,
    pub(super) rules: Rules,
    pub(super) identity: Option<Identity>,
    /// Host and port for people.
    pub(super) shown: String,
    /// How long a TLS handshake, a head or a body may take, and a connection may be idle.
    pub(super) patience: Duration,
}

impl Guard {
    /// The address to open in a browser, with the token if that was made for this run.
    pub(crate) fn address(&self) -> String {
        let scheme = if self.identity.is_some() { "https" } else { "http" };
        let token = match &self.rules.door {
            Door::Token(token) => token.told().map(|token| format!("?token={token}")),
            Door::Users(_) => None,
        };
        format!("{scheme}://{}/{}", self.shown, token.unwrap_or_default())
    }

    /// Says where to look, and what to compare with what a browser shows.
    fn announce(&self) {
        say(&format!("open {}", self.address()));
        if matches!(&self.rules.door, Door::Token(token) if token.told().is_none()) {
            say("with ?token=TOKEN behind it, which is what the token file contains");
        }
        if let Some(identity) = &self.identity {
            say(&format!("SHA-256 of the certificate: {}", identity.fingerprint));
        }
    }

    /// Answers with these pages until the end, which closes streams, too.
    ///
    /// # Errors
    ///
    /// Where the socket cannot be waited for.
    pub(crate) async fn serve(
        self,
        pages: Router,
        end: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        self.announce();
        let listener = TcpListener::from_std(self.listener).context("cannot wait for who asks")?;
        let (closing, closed) = watch::channel(());
        let house = Arc::new(House {
            rules: self.rules,
            identity: self.identity,
            pages,
            patience: self.patience,
            looks: Arc::new(Semaphore::new(LOOKS)),
        });
        let mut crowd = Crowd::default();
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        crowd.make_room();
                        crowd.enter(&house, stream, peer, closed.clone());
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
            }
        }
        drop((listener, closing));
        crowd.leave().await;
        Ok(())
    }
}

/// What all connections share.
struct House {
    rules: Rules,
    identity: Option<Identity>,
    pages: Router,
    patience: Duration,
    looks: Arc<Semaphore>,
}

/// The connections that are open, the oldest first.
#[derive(Default)]
struct Crowd(VecDeque<Visitor>);

struct Visitor {
    task: JoinHandle<()>,
    /// Whether a page has answered it.
    is_admitted: Arc<AtomicBool>,
}

impl Crowd {
    /// Where there are too many, the oldest goes: of those whom no page has answered, if there are any. The browser of a
    /// stream that is closed connects anew.
    fn make_room(&mut self) {
        self.0.retain(|visitor| !visitor.task.is_finished());
        while self.0.len() >= MOST {
            let is_stranger = |visitor: &Visitor| !visitor.is_admitted.load(Ordering::Relaxed);
            let oldest = self.0.iter().position(is_stranger).unwrap_or(0);
            if let Some(visitor) = self.0.remove(oldest) {
                visitor.task.abort();
            }
        }
    }

    fn enter(
        &mut self,
        house: &Arc<House>,
        stream: TcpStream,
        peer: SocketAddr,
        closed: watch::Receiver<()>,
    ) {
        let is_admitted = Arc::new(AtomicBool::new(false));
        let (house, admitted) = (Arc::clone(house), Arc::clone(&is_admitted));
        let task =
            tokio::spawn(async move { house.receive(stream, peer, &admitted, closed).await });
        self.0.push_back(Visitor { task, is_admitted });
    }

    /// Waits a moment for answers under way, and ends the others.
    async fn leave(mut self) {
        let all = async {
            for visitor in &mut self.0 {
                let _ = (&mut visitor.task).await;
            }
        };
        let _ = timeout(GRACE, all).await;
        for visitor in &self.0 {
            visitor.task.abort();
        }
    }
}

impl House {
    async fn receive(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        admitted: &AtomicBool,
        closed: watch::Receiver<()>,
    ) {
        let Ok(local) = stream.local_addr() else { return };
        // An event goes out at once.
        let _ = stream.set_nodelay(true);
        let is_of_users = Arc::clone(&self).is_of_users(peer, local).await;
        let caller = Caller { local, is_of_users };
        match &self.identity {
            None => self.converse(stream, caller, admitted, closed).await,
            Some(identity) => {
                let handshake = identity.acceptor().accept(stream);
                if let Ok(Ok(stream)) = timeout(self.patience, handshake).await {
                    self.converse(stream, caller, admitted, closed).await;
                }
            }
        }
    }

    /// Whether one of the users has a connection, asked once: it stays theirs.
    async fn is_of_users(self: Arc<Self>, peer: SocketAddr, local: SocketAddr) -> bool {
        if matches!(self.rules.door, Door::Token(_)) {
            return false;
        }
        let Ok(permit) = Arc::clone(&self.looks).acquire_owned().await else { return false };
        let look = move || {
            let _permit = permit;
            matches!(&self.rules.door, Door::Users(users) if users.have(peer, local))
        };
        tokio::task::spawn_blocking(look).await.unwrap_or(false)
    }

    /// Answers the requests of a connection. Who goes away too early, or is too slow, has no answer.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        caller: Caller,
        admitted: &AtomicBool,
        mut closed: watch::Receiver<()>,
    ) {
        let answer = service_fn(|request| async move {
            Ok::<_, Infallible>(self.answer(request, caller, admitted).await)
        });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(self.patience).max_buf_size(HEAD);
        let connection = server.serve_connection(TokioIo::new(stream), answer);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = closed.changed() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        caller: Caller,
        admitted: &AtomicBool,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let mut response = match self.rules.judge(&head, caller) {
            Err(refusal) => refusal.response(),
            Ok(Entry::Forwarded(response)) => response,
            Ok(Entry::Admitted) => {
                admitted.store(true, Ordering::Relaxed);
                match whole(body, self.patience).await {
                    Err(refusal) => refusal.response(),
                    Ok(body) => self.page(Request::from_parts(head, body.into())).await,
                }
            }
        };
        headers::set(response.headers_mut());
        response
    }

    async fn page(&self, request: Request<Body>) -> Response<Body> {
        match TowerToHyperService::new(self.pages.clone()).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// A body once all of it is there: no page waits for a slow client.
async fn whole(body: Incoming, patience: Duration) -> Result<Bytes, Refusal> {
    const TOO_LONG: Refusal =
        Refusal(StatusCode::PAYLOAD_TOO_LARGE, "The body of this request is too long.");
    if body.size_hint().lower() > BODY as u64 {
        return Err(TOO_LONG);
    }
    match timeout(patience, Limited::new(body, BODY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(TOO_LONG),
        Err(_) => Err(Refusal(StatusCode::REQUEST_TIMEOUT, "This request took too long.")),
    }
}
