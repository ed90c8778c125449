//! The books for Prometheus: a server of one page.
//!
//! Who connects and says nothing, or says it slowly, costs the others nothing: connections are served side by side in
//! one thread, each has its time, and where there are too many the one goes that has waited longest.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use netsniff_pipeline::books::{BooksLine, prometheus};
use tokio::net::{self, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// Bytes of a request that are kept; what scrapers send is far shorter, and hyper takes no less.
const REQUEST: usize = 8192;

/// How long a connection may take, from its begin to the last byte of the page.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections at once: far more than there are scrapers, and few enough for the descriptors of any process.
const MOST: usize = 64;

/// How long to wait where the system lets nobody in, as it has no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers who asks for the books.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
    page: Arc<Mutex<String>>,
}

/// A socket that listens, with what waits for it: both are made before the process gives up its rights.
#[derive(Debug)]
pub struct MetricsSocket {
    listener: TcpListener,
    address: SocketAddr,
    runtime: Runtime,
}

impl MetricsSocket {
    /// That of a listener.
    ///
    /// # Errors
    ///
    /// Where it cannot be waited for.
    pub fn new(listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("cannot tell the address of --metrics")?;
        listener.set_nonblocking(true).context("cannot wait for who asks for --metrics")?;
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.context("cannot wait for who asks for --metrics")?;
        Ok(Self { listener, address, runtime })
    }
}

impl Metrics {
    /// Answers who connects, in a thread of its own, until the process ends.
    ///
    /// # Errors
    ///
    /// Where the thread cannot be started.
    pub fn serve(socket: MetricsSocket) -> anyhow::Result<Self> {
        let MetricsSocket { listener, address, runtime } = socket;
        let page = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&page);
        std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || runtime.block_on(accept(listener, shown)))
            .context("cannot start a thread for --metrics")?;
        Ok(Self { address, page })
    }

    /// The address that the page listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows these books from now on.
    pub fn show(&self, entries: &[BooksLine]) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = prometheus(entries);
    }
}

/// Lets all in who connect, and the one out who has waited longest where there are too many.
async fn accept(listener: TcpListener, page: Arc<Mutex<String>>) {
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
        open.push_back(tokio::spawn(converse(stream, Arc::clone(&page))).abort_handle());
    }
}

async fn converse(stream: TcpStream, page: Arc<Mutex<String>>) {
    let service = service_fn(|request| {
        let response = answer(&request, &page);
        async { Ok::<_, Infallible>(response) }
    });
    let mut server = http1::Builder::new();
    server.keep_alive(false).max_buf_size(REQUEST);
    let connection = server.serve_connection(TokioIo::new(stream), service);
    // Whoever goes away too early, or is too slow, has no answer.
    let _ = tokio::time::timeout(PATIENCE, connection).await;
}

fn answer(request: &Request<Incoming>, page: &Mutex<String>) -> Response<Full<Bytes>> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics" | "/") => {
            (StatusCode::OK, page.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "there is only /metrics\n".to_owned()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    fn serve() -> Metrics {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let metrics = Metrics::serve(MetricsSocket::new(listener).unwrap()).unwrap();
        metrics.show(&[netsniff_pipeline::books::testing::entry(Some(1), Some(2), Some(3))]);
        metrics
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
        let metrics = serve();
        let page = ask(metrics.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("netsniff_capture_ring_dropped_packets_total"), "{page}");
        let other = ask(metrics.address(), "GET /etc/passwd HTTP/1.1\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        let post = ask(metrics.address(), "POST /metrics HTTP/1.1\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405"), "{post}");
        assert!(ask(metrics.address(), "what?\r\n\r\n").starts_with("HTTP/1.1 400"));
    }

    #[test]
    fn who_says_nothing_or_half_of_it_keeps_nobody_waiting() {
        let metrics = serve();
        let idle: Vec<_> = (0..200)
            .map(|number| {
                let mut stream = TcpStream::connect(metrics.address()).unwrap();
                if number % 2 == 0 {
                    stream.write_all(b"GET /metrics HT").unwrap();
                }
                stream
            })
            .collect();
        let begin = Instant::now();
        let page = ask(metrics.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
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
        let metrics = serve();
        let begin = Instant::now();
        let answer = ask(metrics.address(), "GET /metrics HTTP/1.1\r\n");
        assert!(!answer.contains(" 200 "), "{answer}");
        assert!((PATIENCE..4 * PATIENCE).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    }
}
