//! Every bound, with its reason.

use core::time::Duration;

/// What may be held of what exporters tell. Whatever reaches a bound is counted.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Exporters with their observation domains. Whoever forges addresses fills the table; what is new then is refused.
    pub streams: usize,
    /// Silence after which an exporter may make room for another: three times what routers need to tell templates again.
    pub stream_idle: Duration,
    /// Templates of one exporter and domain.
    pub templates: usize,
    /// Fields of a template: routers use some dozens.
    pub fields: usize,
    /// Fields of the templates of all exporters: 12 bytes each.
    pub all_fields: usize,
    /// Time after which a template that was not told again over UDP is forgotten (RFC 7011, 8.4): three times the half
    /// hour of routers.
    pub template_lifetime: Duration,
    /// Bytes of sets that wait for their templates, of one exporter and domain, with what each takes beside its content.
    pub waiting_bytes: usize,
    /// The same of all exporters.
    pub all_waiting_bytes: usize,
    /// How long they wait: routers tell templates again after half an hour at most, unless told otherwise.
    pub waiting_time: Duration,
    /// Samplers of one exporter and domain.
    pub samplers: usize,
    /// Gaps of sequence numbers that are remembered, in which late messages find their place.
    pub gaps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            streams: 4096,
            stream_idle: Duration::from_secs(5400),
            templates: 256,
            fields: 512,
            all_fields: 1 << 20,
            template_lifetime: Duration::from_secs(5400),
            waiting_bytes: 256 << 10,
            all_waiting_bytes: 16 << 20,
            waiting_time: Duration::from_secs(1900),
            samplers: 64,
            gaps: 64,
        }
    }
}
