//! The books for Prometheus: a tiny server of one page.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;

use crate::books::{Entry, prometheus};

/// Bytes of a request that are read; what scrapers send is far shorter.
const REQUEST: u64 = 8192;

/// How long one who asks may take, so that nobody keeps the others waiting for long.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers who asks for the books.
#[derive(Debug)]
pub struct Metrics {
    address: SocketAddr,
    page: Arc<Mutex<String>>,
}

impl Metrics {
    /// Answers who connects, in a thread of its own, until the process ends.
    ///
    /// # Errors
    ///
    /// Where the thread cannot be started.
    pub fn serve(listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("cannot tell the address of --metrics")?;
        let page = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&page);
        std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    // Whoever goes away too early has no answer.
                    let _ = answer(stream, &shown);
                }
            })
            .context("cannot start a thread for --metrics")?;
        Ok(Self { address, page })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shows these books from now on.
    pub fn show(&self, entries: &[Entry]) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = prometheus(entries);
    }
}

fn answer(mut stream: TcpStream, page: &Mutex<String>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = String::new();
    let mut lines = BufReader::new(stream.try_clone()?.take(REQUEST));
    lines.read_line(&mut request)?;
    let mut line = String::new();
    while lines.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut words = request.split(' ');
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics" | "/")) => {
            ("200 OK", page.lock().unwrap_or_else(PoisonError::into_inner).clone())
        }
        (Some("GET"), _) => ("404 Not Found", "there is only /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_page_is_served_and_nothing_else() {
        let metrics = Metrics::serve(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        metrics.show(&[crate::books::tests::entry(Some(1), Some(2), Some(3))]);
        let page = ask(metrics.address(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("netsniff_capture_ring_dropped_packets_total"), "{page}");
        let other = ask(metrics.address(), "GET /etc/passwd HTTP/1.1\r\n\r\n");
        assert!(other.starts_with("HTTP/1.1 404"), "{other}");
        let post = ask(metrics.address(), "POST /metrics HTTP/1.1\r\n\r\n");
        assert!(post.starts_with("HTTP/1.1 405"), "{post}");
        assert!(ask(metrics.address(), "\r\n\r\n").starts_with("HTTP/1.1 405"));
    }
}
