//! Answers that are made while they are sent.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{OwnedPermit, Sender, channel};
use tokio_stream::wrappers::ReceiverStream;

/// Bytes that are passed on at once.
pub(super) const PIECE: usize = 64 << 10;
/// Pieces that wait to be sent.
const WAITING: usize = 4;
/// How long whoever asked may take none of them. Then they count as gone, and make room for others.
const PATIENCE: Duration = Duration::from_secs(60);

type Sent = io::Result<Frame<Bytes>>;

/// Where the pieces of an answer go. One that is dropped before [`Self::finish`] ends the connection in the middle of the
/// answer, so that a part of it is never taken for all.
pub(super) struct Pieces {
    sender: Sender<Sent>,
    /// Room for how it ends, whatever waits.
    end: Option<OwnedPermit<Sent>>,
}

/// The two ends of an answer.
pub(super) fn answer() -> (Pieces, Body) {
    let (sender, sent) = channel(WAITING + 1);
    let end = sender.clone().try_reserve_owned().ok();
    (Pieces { sender, end }, Body::new(StreamBody::new(ReceiverStream::new(sent))))
}

impl Pieces {
    /// Sends a piece; `false` where nobody takes it any more.
    pub(super) async fn send(&self, piece: Bytes) -> bool {
        self.sender.send_timeout(Ok(Frame::data(piece)), PATIENCE).await.is_ok()
    }

    /// The same for threads that may wait.
    pub(super) fn send_and_wait(&self, piece: Bytes) -> bool {
        Handle::current().block_on(self.send(piece))
    }

    /// Whether nobody takes any piece any more.
    pub(super) fn are_unwanted(&self) -> bool {
        self.sender.is_closed()
    }

    /// All was sent. Fields behind it reach those who asked for them (RFC 9110, 6.5).
    pub(super) fn finish(mut self, behind: HeaderMap) {
        if let Some(end) = self.end.take().filter(|_| !behind.is_empty()) {
            end.send(Ok(Frame::trailers(behind)));
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end.send(Err(io::Error::other("the answer could not be made to its end")));
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Collected};

    use super::*;

    #[tokio::test]
    async fn an_answer_that_was_not_finished_is_none() {
        let send = async |is_finished: bool| {
            let (pieces, body) = answer();
            let all = tokio::spawn(async move { body.collect().await.map(Collected::to_bytes) });
            for piece in 0..2 * WAITING as u8 {
                assert!(pieces.send(vec![piece].into()).await);
            }
            if is_finished {
                pieces.finish(HeaderMap::new());
            } else {
                drop(pieces);
            }
            all.await.unwrap()
        };
        assert_eq!(send(true).await.unwrap().len(), 2 * WAITING);
        assert!(send(false).await.is_err());
    }

    #[tokio::test]
    async fn who_has_gone_is_known_without_a_piece() {
        let (pieces, body) = answer();
        assert!(!pieces.are_unwanted());
        drop(body);
        assert!(pieces.are_unwanted() && !pieces.send(Bytes::new()).await);
    }
}
