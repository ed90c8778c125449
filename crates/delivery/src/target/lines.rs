//! Lines of JSON in a connection. There is no acknowledgement: a row is delivered when the system took it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;

use super::stream::{Place, Stream};
use super::{Answer, Opened, Receiver};
use crate::Address;
use crate::identity::Row;
use crate::spool::BatchBounds;

const BOUNDS: BatchBounds =
    BatchBounds { rows: 1000, bytes: 256 << 10, linger: Duration::from_millis(200) };

pub(super) fn open(mut address: Address) -> anyhow::Result<Opened> {
    let place = if address.scheme == "unix" {
        ensure!(!address.path.is_empty(), "unix:// names no path: unix:///run/rows.sock");
        Place::Local(PathBuf::from(&address.path))
    } else {
        let is_tls = address.scheme == "tls";
        Place::of(&mut address, is_tls, None)?
    };
    address.no_more_parameters()?;
    let stream = Stream::new(place);
    let ports = stream.ports();
    Ok(Opened { receiver: Box::new(Lines { stream, text: Vec::new() }), ports, bounds: BOUNDS })
}

struct Lines {
    stream: Stream,
    text: Vec<u8>,
}

impl Receiver for Lines {
    fn send(&mut self, rows: &[Row<'_>]) -> Answer {
        self.text.clear();
        for row in rows {
            row.with_identity(&mut self.text);
            self.text.push(b'\n');
        }
        match self.stream.write(&self.text) {
            Ok(()) => Answer::Accepted,
            Err(error) => Answer::later(error),
        }
    }
}
