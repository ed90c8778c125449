//! Information elements: what a field of a record means, declared once.
//!
//! Numbers and names are those of IANA's registry "IPFIX Information Elements"; those below 128 are the field types of
//! NetFlow 9 as well. Elements that are not in the list are passed over by their length.

/// The enterprise number of elements that tell of the reverse direction (RFC 5103).
pub const REVERSE: u32 = 29305;

/// An information element.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Its number in IANA's registry.
    pub id: u16,
    /// Its name there.
    pub name: &'static str,
    /// What becomes of its value.
    pub(crate) meaning: Meaning,
}

/// What becomes of the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It is passed over.
    Nothing,
    Octets,
    Packets,
    /// Since the flow began: what counts where the record has no count since the last one.
    TotalOctets,
    TotalPackets,
    /// The same from the responder, where a record of another kind than RFC 5103 tells of both sides.
    ResponderOctets,
    ResponderPackets,
    PayloadOctets,
    Protocol,
    TcpFlags,
    SourcePort,
    DestinationPort,
    Source,
    Destination,
    IcmpTypeCode,
    IcmpType,
    IcmpCode,
    StartUptime,
    EndUptime,
    StartSeconds,
    EndSeconds,
    StartMillis,
    EndMillis,
    /// Seconds since 1900 and a binary fraction.
    StartNtp,
    EndNtp,
    /// Microseconds before the message was sent.
    StartDelta,
    EndDelta,
    DurationMillis,
    DurationMicros,
    SystemInit,
    EndReason,
    Direction,
    Vlan,
    Ingress,
    Egress,
    Sampler,
    SamplingInterval,
    SamplingChosen,
    SamplingSpace,
    SamplingPopulation,
    SamplingProbability,
    FirewallEvent,
    NatEvent,
    ExportedFlows,
    NotSentFlows,
    IgnoredPackets,
    DroppedPackets,
}

macro_rules! elements {
    ($($id:literal $name:ident => $meaning:ident;)+) => {
        /// Every element that is read, in the order of numbers.
        pub const ELEMENTS: &[Element] = &[
            $(Element { id: $id, name: stringify!($name), meaning: Meaning::$meaning },)+
        ];
    };
}

elements! {
    1 octetDeltaCount => Octets;
    2 packetDeltaCount => Packets;
    4 protocolIdentifier => Protocol;
    6 tcpControlBits => TcpFlags;
    7 sourceTransportPort => SourcePort;
    8 sourceIPv4Address => Source;
    10 ingressInterface => Ingress;
    11 destinationTransportPort => DestinationPort;
    12 destinationIPv4Address => Destination;
    14 egressInterface => Egress;
    21 flowEndSysUpTime => EndUptime;
    22 flowStartSysUpTime => StartUptime;
    27 sourceIPv6Address => Source;
    28 destinationIPv6Address => Destination;
    32 icmpTypeCodeIPv4 => IcmpTypeCode;
    34 samplingInterval => SamplingInterval;
    42 exportedFlowRecordTotalCount => ExportedFlows;
    48 samplerId => Sampler;
    50 samplerRandomInterval => SamplingInterval;
    58 vlanId => Vlan;
    85 octetTotalCount => TotalOctets;
    86 packetTotalCount => TotalPackets;
    135 droppedPacketTotalCount => DroppedPackets;
    136 flowEndReason => EndReason;
    139 icmpTypeCodeIPv6 => IcmpTypeCode;
    150 flowStartSeconds => StartSeconds;
    151 flowEndSeconds => EndSeconds;
    152 flowStartMilliseconds => StartMillis;
    153 flowEndMilliseconds => EndMillis;
    154 flowStartMicroseconds => StartNtp;
    155 flowEndMicroseconds => EndNtp;
    156 flowStartNanoseconds => StartNtp;
    157 flowEndNanoseconds => EndNtp;
    158 flowStartDeltaMicroseconds => StartDelta;
    159 flowEndDeltaMicroseconds => EndDelta;
    160 systemInitTimeMilliseconds => SystemInit;
    161 flowDurationMilliseconds => DurationMillis;
    162 flowDurationMicroseconds => DurationMicros;
    164 ignoredPacketTotalCount => IgnoredPackets;
    166 notSentFlowTotalCount => NotSentFlows;
    176 icmpTypeIPv4 => IcmpType;
    177 icmpCodeIPv4 => IcmpCode;
    178 icmpTypeIPv6 => IcmpType;
    179 icmpCodeIPv6 => IcmpCode;
    180 udpSourcePort => SourcePort;
    181 udpDestinationPort => DestinationPort;
    182 tcpSourcePort => SourcePort;
    183 tcpDestinationPort => DestinationPort;
    230 natEvent => NatEvent;
    231 initiatorOctets => Octets;
    232 responderOctets => ResponderOctets;
    233 firewallEvent => FirewallEvent;
    239 biflowDirection => Direction;
    243 dot1qVlanId => Vlan;
    298 initiatorPackets => Packets;
    299 responderPackets => ResponderPackets;
    302 selectorId => Sampler;
    305 samplingPacketInterval => SamplingChosen;
    306 samplingPacketSpace => SamplingSpace;
    309 samplingSize => SamplingChosen;
    310 samplingPopulation => SamplingPopulation;
    311 samplingProbability => SamplingProbability;
    401 transportOctetDeltaCount => PayloadOctets;
}

impl Meaning {
    /// What becomes of the field of this number, of IANA's registry.
    pub(crate) fn of(id: u16) -> Self {
        let at = ELEMENTS.binary_search_by_key(&id, |element| element.id);
        at.ok().and_then(|at| ELEMENTS.get(at)).map_or(Self::Nothing, |element| element.meaning)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_in_order_and_found() {
        assert!(ELEMENTS.windows(2).all(|pair| pair[0].id < pair[1].id));
        for element in ELEMENTS {
            assert_eq!(Meaning::of(element.id), element.meaning, "{}", element.name);
        }
        assert_eq!(Meaning::of(3), Meaning::Nothing);
    }
}
