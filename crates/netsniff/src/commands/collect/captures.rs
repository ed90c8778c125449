//! Messages out of capture files: datagrams to known ports, put together from fragments, also in tunnels.

use std::borrow::Cow;

use netsniff_analysis::engine::decoding::DecodeStage;
use netsniff_analysis::{DecodedDatagram, Limits, Observer, Options, Record, SortKey};
use netsniff_ipfix::{Exporter, Transport};
use netsniff_output::RowSink;
use netsniff_packet::decode::Transport as Header;
use netsniff_packet::{Batch, Progress, Source as _};
use netsniff_pipeline::collecting::Collection;

use super::summary::Summary;
use crate::commands::inputs::Inputs;

/// Packets decoded at once.
const ROUND: usize = 256;

/// What the packets themselves amount to is not wanted.
struct Nobody;

impl Observer for Nobody {
    fn record<R: Record>(&mut self, _: &SortKey, _: &R) {}
}

/// Captures that messages are read out of.
pub(super) struct Captures<'a> {
    inputs: &'a mut Inputs,
    ports: &'a [u16],
    /// Datagrams to the ports that the capture cut.
    cut: u64,
    /// Segments of TCP to the ports, which are not read.
    segments: u64,
}

impl<'a> Captures<'a> {
    pub(super) const fn new(inputs: &'a mut Inputs, ports: &'a [u16]) -> Self {
        Self { inputs, ports, cut: 0, segments: 0 }
    }

    /// Reads them to the end.
    pub(super) fn read<S: RowSink<Error = anyhow::Error>>(
        &mut self,
        mut collection: Collection<S>,
    ) -> anyhow::Result<(Summary, S)> {
        let mut stage = DecodeStage::new(Limits::default(), Options::default(), ROUND);
        let mut batch = Batch::default();
        let mut result = Ok(());
        loop {
            let Ok(progress) = self.inputs.read_batch(&mut batch);
            let borrowed = Cow::Borrowed(&batch);
            stage.batch(&borrowed, Cow::Owned, &mut (), &mut Nobody, |stage, batch, _| {
                result = self.round(stage, &batch.data, &mut collection);
            });
            core::mem::replace(&mut result, Ok(()))?;
            if progress == Progress::End {
                break;
            }
        }
        stage.finish(Cow::Owned, &mut (), &mut Nobody, |stage, batch: &Cow<'_, Batch>, _| {
            result = self.round(stage, &batch.data, &mut collection);
        });
        result?;
        let waiting = collection.waiting();
        let (outcome, sink) = collection.finish()?;
        let mut summary = Summary::new(outcome, waiting);
        (summary.cut_datagrams, summary.segments) = (self.cut, self.segments);
        summary.packets = Some(self.inputs.packets());
        Ok((summary, sink))
    }

    fn round<S: RowSink<Error = anyhow::Error>>(
        &mut self,
        stage: &mut DecodeStage,
        bytes: &[u8],
        collection: &mut Collection<S>,
    ) -> anyhow::Result<()> {
        for unit in stage.units().as_slice() {
            self.datagram(unit, bytes, collection)?;
        }
        stage.clear_units();
        Ok(())
    }

    fn datagram<S: RowSink<Error = anyhow::Error>>(
        &mut self,
        unit: &DecodedDatagram,
        bytes: &[u8],
        collection: &mut Collection<S>,
    ) -> anyhow::Result<()> {
        let Some(ip) = unit.ip() else { return Ok(()) };
        match &unit.decoded.transport {
            Header::Tcp(tcp) if self.ports.contains(&tcp.destination_port) => {
                self.segments += u64::from(tcp.payload_len > 0);
            }
            Header::Udp(udp) if self.ports.contains(&udp.destination_port) => {
                let (address, port) = (ip.source, udp.source_port);
                if udp.payload_captured < udp.payload_len {
                    self.cut += 1;
                    return collection.advance(unit.now);
                }
                let exporter = Exporter { address, port, transport: Transport::Udp };
                // Why it is refused is in the books.
                let _ = collection.message(exporter, unit.now, unit.payload(bytes))?;
            }
            _ => {}
        }
        Ok(())
    }
}
