//! A server for whoever watches over a run: metrics, and how it is.
//!
//! Who connects and says nothing, or says it slowly, costs the others nothing: connections are served side by side in
//! one thread, each has its time, and where there are too many the one goes that has waited longest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use netsniff_console::exposition::Dialect;
use tokio::net::{self, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use super::Shared;
use super::health::{Report, Status};

/// Bytes of a request that are kept; what scrapers send is far shorter, and hyper takes no less.
const REQUEST: usize = 8192;

/// How long a connection may take, from its begin to the last byte of the page.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections at once: far more than there are scrapers, and few enough for the descriptors of any process.
const MOST: usize = 64;

/// How long to wait where the system lets nobody in, as it has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket that listens, with what waits for it: both are made before the process gives up its rights.
#[derive(Debug)]
pub(super) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    runtime: Runtime,
}

impl Server {
    /// That of a listener.
    ///
    /// # Errors
    ///
    /// Where it cannot be waited for.
    pub(super) fn new(listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("cannot tell the address of --metrics")?;
        listener.set_nonblocking(true).context("cannot wait for who asks for --metrics")?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.context("cannot wait for who asks for --metrics")?;
        Ok(Self { listener, address, runtime })
    }

    /// The address that it listens on.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers who connects, in a thread of its own, until the process ends.
    ///
    /// # Errors
    ///
    /// Where the thread cannot be started.
    pub(super) fn start(self, shown: Arc<Shared>) -> anyhow::Result<()> {
        let Self { listener, runtime, .. } = self;
        std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || runtime.block_on(accept(listener, shown)))
            .context("cannot start a thread for --metrics")?;
        Ok(())
    }
}

/// Lets all in who connect, and the one out who has waited longest where there are too many.
async fn accept(listener: TcpListener, shown: Arc<Shared>) {
    let Ok(listener) = net::TcpListener::from_std(listener) else { return };
    let mut open = VecDeque::<AbortHandle>::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= MOST
            && let Some(longest) = open.pop_front()
        {
            longest.abort();
        }
        open.push_back(tokio::spawn(converse(stream, Arc::clone(&shown))).abort_handle());
    }
}

async fn converse(stream: TcpStream, shown: Arc<Shared>) {
    let service = service_fn(|request| {
        let response = answer(&request, &shown);
        async { Ok::<_, Infallible>(response) }
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false).max_buf_size(REQUEST);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    // Whoever goes away too early, or is too slow, has no answer.
    let _ = tokio::time::timeout(PATIENCE, connection).await;
}

fn answer(request: &Request<Incoming>, shown: &Shared) -> Response<Full<Bytes>> {
    let plain = |status, text: &str| respond(status, "text/plain", text.to_owned());
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics" | "/") => {
            let accepts = request.headers().get_all(ACCEPT).iter();
            let accepts: Vec<_> = accepts.filter_map(|value| value.to_str().ok()).collect();
            let dialect = Dialect::accepted(&accepts.join(","));
            respond(StatusCode::OK, dialect.content_type(), shown.metrics(dialect))
        }
        (&Method::GET, "/health") => {
            let report = shown.report();
            told(&report, report.status != Status::Unhealthy)
        }
        (&Method::GET, "/ready") => {
            let report = shown.report();
            told(&report, report.ready)
        }
        (&Method::GET, _) => {
            plain(StatusCode::NOT_FOUND, "there are only /metrics, /health and /ready\n")
        }
        _ => plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n"),
    }
}

/// How a run is, as JSON; the code tells whether that is as it should be.
fn told(report: &Report, is_fine: bool) -> Response<Full<Bytes>> {
    let status = if is_fine { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    match serde_json::to_string(report) {
        Ok(text) => respond(status, "application/json", text + "\n"),
        Err(_) => respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", String::new()),
    }
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    /// The address of a server.
    fn serve() -> SocketAddr {
        let server = Server::new(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        let address = server.address();
        server.start(super::super::tests::shared()).unwrap();
        address
    }

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let address = serve();
        let page = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("netsniff_capture_ring_dropped_packets_total"), "{page}");
        let open = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n";
        let page = ask(address, open);
        assert!(page.contains("\r\ncontent-type: application/openmetrics-text;"), "{page}");
        assert!(page.ends_with("\n# EOF\n"), "{page}");
        let other = ask(address, "GET /etc/passwd HTTP/1.1\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        let post = ask(address, "POST /metrics HTTP/1.1\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405"), "{post}");
        assert!(ask(address, "what?\r\n\r\n").starts_with("HTTP/1.1 400"));
    }

    #[test]
    fn whoever_asks_how_it_is_gets_a_code_and_the_reasons() {
        let address = serve();
        let health = ask(address, "GET /health HTTP/1.1\r\n\r\n");
        assert!(health.starts_with("HTTP/1.1 200 OK\r\n"), "{health}");
        let (_, body) = health.split_once("\r\n\r\n").unwrap();
        let expected = r#"{"status":"healthy","phase":"starting","ready":false,"reasons":[]}"#
            .to_owned()
            + "\n";
        assert_eq!(body, expected);
        let ready = ask(address, "GET /ready HTTP/1.1\r\n\r\n");
        assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    }

    #[test]
    fn who_says_nothing_or_half_of_it_keeps_nobody_waiting() {
        let address = serve();
        let idle: Vec<_> = (0..200)
            .map(|number| {
                let mut stream = TcpStream::connect(address).unwrap();
                if number % 2 == 0 {
                    stream.write_all(b"GET /metrics HT").unwrap();
                }
                stream
            })
            .collect();
        let begin = Instant::now();
        let page = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        // Those that have waited longest are gone, and the last ones are not.
        let is_open = |stream: &TcpStream| {
            stream.set_nonblocking(true).unwrap();
            stream.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        let open: Vec<_> = idle.iter().map(is_open).collect();
        assert!(open.iter().filter(|is_open| **is_open).count() <= MOST, "{open:?}");
        assert_eq!((open.first(), open.last()), (Some(&false), Some(&true)));
    }

    #[test]
    fn a_connection_has_its_time() {
        let address = serve();
        let begin = Instant::now();
        let answer = ask(address, "GET /metrics HTTP/1.1\r\n");
        assert!(!answer.contains(" 200 "), "{answer}");
        assert!((PATIENCE..4 * PATIENCE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }
}
