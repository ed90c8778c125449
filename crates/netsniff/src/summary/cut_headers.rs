//! What it means that a snap length cuts headers.

use netsniff_analysis::ingress::cut_headers::CutHeaders;
use netsniff_console::number::{count, things};
use serde::Serialize;

use super::Count;

/// Packets whose headers the snap length cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CutHeaderBooks {
    /// Packets that were cut, and whose headers were looked at: all that were analysed, or a part of those recorded.
    pub looked_at: u64,
    /// Packets among them whose headers were cut, too.
    pub packets: u64,
    /// These by the layer whose header was cut.
    pub by_layer: Vec<Count>,
    /// The snap length that reaches the end of all these headers, in bytes; 0 where none is cut.
    pub enough: u32,
}

impl CutHeaderBooks {
    /// As programs get it; `None` where no packet was looked at.
    #[must_use]
    pub fn of(cut: &CutHeaders) -> Option<Self> {
        let of_layer = |(layer, packets): (&netsniff_packet::decode::Layer, &u64)| Count {
            name: layer.name().to_owned(),
            count: *packets,
        };
        (cut.looked_at() > 0).then(|| Self {
            looked_at: cut.looked_at(),
            packets: cut.packets(),
            by_layer: cut.by_layer().iter().map(of_layer).collect(),
            enough: cut.enough(),
        })
    }
}

/// A sentence on what was cut in a capture that is analysed; `None` where no header was.
#[must_use]
pub fn cut_headers(cut: &CutHeaders) -> Option<String> {
    (cut.packets() > 0).then(|| {
        format!(
            "the snap length of the capture cut headers of {}: {}; {} bytes would have kept these headers",
            things(cut.packets(), "packet"),
            layers(cut),
            cut.enough()
        )
    })
}

/// The same while packets are captured, with what to do.
#[must_use]
pub fn cut_headers_now(cut: &CutHeaders, snaplen: u32) -> Option<String> {
    (cut.packets() > 0).then(|| {
        format!(
            "--snaplen {snaplen} cuts headers: of {} that it cut and whose headers were looked at so far, {} lack some \
             ({}). These headers need --snaplen {}, and others behind them more",
            things(cut.looked_at(), "packet"),
            count(cut.packets()),
            layers(cut),
            cut.enough()
        )
    })
}

fn layers(cut: &CutHeaders) -> String {
    let layers = cut
        .by_layer()
        .iter()
        .map(|(layer, packets)| format!("{} {}", layer.name(), count(*packets)));
    layers.collect::<Vec<_>>().join(", ")
}
