//! Why segments are not taken.

crate::words! {
    /// What is odd about a segment that is not taken: THE list.
    pub(super) enum Oddness {
        /// It begins a connection and ends it.
        Christmas => "TCP_christmas",
        /// It acknowledges nothing, behind the begin.
        WithoutAck => "segment_without_ACK",
        /// Its numbers are none that its receiver awaits.
        OutsideWindow => "segment_outside_window",
        /// It ends what has ended.
        BehindFin => "FIN_advanced_last_seq",
        /// It answers another SYN.
        BadAnswer => "bad_SYN_ack",
        /// It resets a connection that has not begun, and answers nothing.
        UnacceptableReset => "unacceptable_RST",
        /// It acknowledges what nobody has sent.
        UnsentData => "ack_of_unsent_data",
        /// It begins the connection with other numbers.
        SynJump => "SYN_seq_jump",
        /// It resets a connection, and its number is none that its receiver awaits.
        ResetOutsideWindow => "RST_outside_window",
        /// It begins another connection within this one.
        ActiveReuse => "active_connection_reuse",
        /// It is a SYN behind a FIN.
        SynAfterClose => "SYN_after_close",
        /// It is a SYN behind a RST.
        SynAfterReset => "SYN_after_reset",
    }
}

/// Why a segment is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// What is odd about it.
    pub oddness: Oddness,
    /// Whether it may begin a connection anew, or number one otherwise, if the other side says so.
    pub is_rival: bool,
    /// Whether it shows that its sender is there still, so that the connection lasts as long.
    pub is_late: bool,
}

/// A segment that is odd so, and nothing more.
pub(super) const fn refuse(oddness: Oddness) -> Option<Refusal> {
    Some(Refusal { oddness, is_rival: false, is_late: false })
}

/// One that may begin a connection anew, or number one otherwise.
pub(super) const fn rival(oddness: Oddness) -> Option<Refusal> {
    Some(Refusal { oddness, is_rival: true, is_late: false })
}
