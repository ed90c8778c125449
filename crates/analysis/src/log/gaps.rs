//! The `gaps` log: what is missing, where, who lost it, and how that is known.

use netsniff_packet::{Address, Loss, Stage, Timestamp};

use crate::key::uid::Uid;
use crate::record::{Port, Proto};

crate::record! {
    /// One row for each loss: of the capture itself, in time, or of one connection, in a stream.
    pub struct Gaps => "gaps" {
        /// When it was noticed; for a loss that the capture tells of the last time at which surely
        /// nothing was missing yet, or the first one after where the loss may reach back to the begin.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Identifier of the connection; unset where the capture tells of the loss, and nobody knows
        /// whose packets they were.
        uid: Option<Uid> => "uid", string, None, Plain, Netsniff;
        /// Address of the originator.
        id_orig_h: Option<Address> => "id.orig_h", addr, None, Address, Netsniff;
        /// Port of the originator.
        id_orig_p: Option<Port> => "id.orig_p", port, None, Plain, Netsniff;
        /// Address of the responder.
        id_resp_h: Option<Address> => "id.resp_h", addr, None, Address, Netsniff;
        /// Port of the responder.
        id_resp_p: Option<Port> => "id.resp_p", port, None, Plain, Netsniff;
        /// Transport protocol.
        proto: Option<Proto> => "proto", enum, None, Plain, Netsniff;
        /// Whether the originator sent what is missing.
        is_orig: Option<bool> => "is_orig", bool, None, Plain, Netsniff;
        /// What is missing.
        what: Missing => "what", enum, None, Plain, Netsniff;
        /// Who lost it.
        cause: Cause => "cause", enum, None, Plain, Netsniff;
        /// How it ended.
        ended: Ended => "ended", enum, None, Plain, Netsniff;
        /// When it ended.
        until: Option<Timestamp> => "until", time, Seconds, Plain, Netsniff;
        /// Where it begins in the stream: bytes from the first byte of data, or from the first that
        /// was seen where no SYN was.
        start: Option<u64> => "start", count, Bytes, Plain, Netsniff;
        /// Where it ends in the stream: one past its last byte, counted like `start`.
        end: Option<u64> => "end", count, Bytes, Plain, Netsniff;
        /// Payload bytes that are missing.
        bytes: Option<u64> => "bytes", count, Bytes, Plain, Netsniff;
        /// Packets that are missing, where the capture tells.
        packets: Option<u64> => "packets", count, Packets, Plain, Netsniff;
        /// Where the capture lost them.
        stage: Option<LossStage> => "stage", enum, None, Plain, Netsniff;
        /// Further losses of this side of the connection, for which there was no room; in its last
        /// row.
        more: Option<u64> => "more", count, None, Plain, Netsniff;
    }
}

crate::words! {
    /// What is missing.
    pub enum Missing {
        /// Payload of a stream.
        Data => "data",
        /// The SYN that opens a connection.
        Syn => "syn",
        /// The SYN that answers it.
        SynAck => "syn_ack",
        /// A FIN.
        Fin => "fin",
        /// A second copy of data that was seen: the receiver lacked it, and got it.
        Retransmission => "retransmission",
        /// Packets of whatever connection.
        Packets => "packets",
    }
}

crate::words! {
    /// Who lost something.
    pub enum Cause {
        /// The capture: the receiver has what was never seen, or the capture tells of it.
        Capture => "capture",
        /// The network, between the sender and the tap.
        NetworkBefore => "network_before",
        /// The network, between the tap and the receiver.
        NetworkBehind => "network_behind",
        /// The packets do not tell.
        Unknown => "unknown",
    }
}

crate::words! {
    /// How a hole ended.
    pub enum Ended {
        /// The receiver acknowledged what was never seen.
        Acknowledged => "acknowledged",
        /// The data came (again).
        Filled => "filled",
        /// It was given up, since too many holes were open.
        Bound => "bound",
        /// It was open when the connection ended.
        EndOfFlow => "end_of_flow",
        /// The capture went on.
        Resumed => "resumed",
    }
}

crate::words! {
    /// Where a capture loses packets.
    pub enum LossStage {
        /// The interface had no room.
        Interface => "interface",
        /// The operating system dropped them.
        System => "system",
        /// The capture does not tell.
        Unknown => "unknown",
    }
}

impl Gaps {
    /// A loss that the capture tells of.
    #[must_use]
    pub fn of_capture(loss: &Loss) -> Self {
        Self {
            ts: loss.before.unwrap_or(loss.after),
            uid: None,
            id_orig_h: None,
            id_orig_p: None,
            id_resp_h: None,
            id_resp_p: None,
            proto: None,
            is_orig: None,
            what: Missing::Packets,
            cause: Cause::Capture,
            ended: Ended::Resumed,
            until: Some(loss.after),
            start: None,
            end: None,
            bytes: None,
            packets: Some(loss.packets),
            stage: Some(loss.stage.into()),
            more: None,
        }
    }
}

impl From<Stage> for LossStage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Interface => Self::Interface,
            Stage::System => Self::System,
            Stage::Unknown => Self::Unknown,
        }
    }
}
