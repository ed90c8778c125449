//! What is written is read back.

use netsniff_packet::{Batch, LinkType, Packet, Source as _, Timestamp};
use netsniff_pcapfile::{
    Counters, Interface, PacketNotes, PcapEncoder, PcapWriter, PcapngEncoder, PcapngWriter, Reader,
    Resolution, Section, Statistics,
};

use crate::bytes::{Random, Read1, payload, read_whole};

fn packets(data: &[u8]) -> Vec<Packet<'_>> {
    let mut random = Random(11);
    let mut packet = |index: usize| {
        let data = &data[..random.below(data.len() + 1)];
        Packet {
            timestamp: Timestamp::from_nanos((random.next() % (1 << 61)) as i64),
            data,
            wire_len: data.len() as u32 + index as u32 % 3,
            link_type: LinkType::ETHERNET,
            interface: 0,
        }
    };
    (0..200).map(&mut packet).collect()
}

fn expected(packets: &[Packet<'_>]) -> Vec<Read1> {
    packets.iter().map(|packet| Read1::of(*packet)).collect()
}

#[test]
fn classic_packets_come_back() {
    let data = payload(2000);
    let packets = packets(&data);
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 262_144).unwrap();
    packets.iter().for_each(|packet| writer.write_packet(packet).unwrap());
    let whole = read_whole(&writer.finish().unwrap());
    assert_eq!(whole.packets, expected(&packets));
    assert_eq!((whole.damage, whole.interfaces[0].snaplen), (vec![], Some(262_144)));
}

#[test]
fn pcapng_packets_interfaces_and_counters_come_back() {
    let data = payload(2000);
    let mut interfaces = vec![Interface::new(LinkType::ETHERNET, 0); 2];
    interfaces[0].resolution = Resolution::NANOSECONDS;
    interfaces[0].name = Some("eth0".into());
    interfaces[0].filter = Some("not port 22".into());
    interfaces[1] = Interface {
        resolution: Resolution(0x80 | 31),
        time_offset: -1_000,
        speed: Some(100_000_000_000),
        description: Some("the other one".into()),
        os: Some("Linux".into()),
        hardware: Some("NIC".into()),
        fcs_len: Some(4),
        ..Interface::new(LinkType::RAW, 96)
    };
    interfaces[1].counters =
        Counters { received: Some(9), dropped_by_os: Some(0), ..Counters::NONE };
    let comments = vec!["first".into(), "second".into()];
    let section = Section { application: Some("tests".into()), comments, ..Section::default() };
    let mut writer = PcapngWriter::new(Vec::new(), &section).unwrap();
    for interface in &interfaces {
        writer.add_interface(interface).unwrap();
    }
    let mut packets = packets(&data);
    for packet in packets.iter_mut().step_by(2) {
        packet.interface = 1;
        packet.link_type = LinkType::RAW;
        // What 31 bits of a second can tell, and its counter of 64 bits can hold.
        let nanos = packet.timestamp.nanos() % 1_000_000_000_000;
        packet.timestamp = Timestamp::from_nanos(nanos);
    }
    packets.iter().for_each(|packet| writer.write_packet(packet).unwrap());
    writer.write_counters(1, Timestamp::EPOCH, &interfaces[1].counters).unwrap();
    let file = writer.finish().unwrap();
    let whole = read_whole(&file);
    assert_eq!(whole.packets, expected(&packets));
    assert_eq!((whole.interfaces, whole.damage), (interfaces, vec![]));
    let mut reader = Reader::new(file.as_slice()).unwrap();
    reader.read_batch(&mut Batch::default()).unwrap();
    assert_eq!(reader.sections(), [section]);
}

#[test]
fn what_cannot_be_encoded_leaves_the_buffer_as_it_was() {
    let packet = Packet {
        timestamp: Timestamp::from_nanos(-1),
        data: &[1, 2, 3],
        wire_len: 3,
        link_type: LinkType::ETHERNET,
        interface: 0,
    };
    let mut encoder = PcapngEncoder::default();
    let mut out = Vec::new();
    encoder.section(&Section::default(), &mut out).unwrap();
    let interface =
        Interface { resolution: Resolution::NANOSECONDS, ..Interface::new(LinkType::ETHERNET, 0) };
    encoder.interface(&interface, &mut out).unwrap();
    let before = out.clone();
    assert!(encoder.packet(&packet, PacketNotes::default(), &mut out).is_err());
    let unknown = Packet { interface: 1, timestamp: Timestamp::EPOCH, ..packet };
    assert!(encoder.packet(&unknown, PacketNotes::default(), &mut out).is_err());
    let statistics = Statistics { started: Some(packet.timestamp), ..Statistics::default() };
    assert!(encoder.statistics(0, Timestamp::EPOCH, &statistics, &mut out).is_err());
    assert!(PcapEncoder::new(LinkType::ETHERNET).packet(&packet, &mut out).is_err());
    assert_eq!(out, before);
}

#[test]
fn every_length_of_packet_is_padded_and_notes_are_read() {
    let data = payload(16);
    let mut encoder = PcapngEncoder::default();
    let mut out = Vec::new();
    encoder.section(&Section::default(), &mut out).unwrap();
    let interface =
        Interface { resolution: Resolution::NANOSECONDS, ..Interface::new(LinkType::ETHERNET, 0) };
    encoder.interface(&interface, &mut out).unwrap();
    for len in 0..16 {
        let packet = Packet {
            timestamp: Timestamp::from_nanos(1_700_000_000_000_000_001 + len as i64),
            data: &data[..len],
            wire_len: 60,
            link_type: LinkType::ETHERNET,
            interface: 0,
        };
        let lost = (len % 3 == 0).then_some(len as u64);
        let before = out.len();
        encoder.packet(&packet, PacketNotes { lost, comments: &[] }, &mut out).unwrap();
        let most = PcapngEncoder::PACKET_OVERHEAD + len;
        assert!((before..=before + most).contains(&out.len()), "{len}");
    }
    let started = Some(Timestamp::from_nanos(7));
    let counters = Counters { dropped_by_os: Some(30), ..Counters::NONE };
    let statistics = Statistics { counters, started, ended: started, comment: Some("thirty") };
    encoder.statistics(0, Timestamp::from_nanos(9), &statistics, &mut out).unwrap();
    let whole = read_whole(&out);
    assert_eq!((whole.packets.len(), whole.damage), (16, vec![]));
    for (len, packet) in whole.packets.iter().enumerate() {
        assert_eq!(packet.data, data[..len]);
        assert_eq!(packet.nanos, 1_700_000_000_000_000_001 + len as i64);
    }
    let read = whole.interfaces[0].counters;
    assert_eq!(
        (read.dropped_between_packets, read.dropped_by_os),
        (Some(3 + 6 + 9 + 12 + 15), Some(30))
    );
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let packet = Packet {
        timestamp: Timestamp::from_nanos(-1),
        data: &[],
        wire_len: 0,
        link_type: LinkType::ETHERNET,
        interface: 0,
    };
    let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET, 0).unwrap();
    assert!(writer.write_packet(&packet).is_err());
    let raw = Packet { timestamp: Timestamp::EPOCH, link_type: LinkType::RAW, ..packet };
    assert!(writer.write_packet(&raw).is_err());
    let mut writer = PcapngWriter::new(Vec::new(), &Section::default()).unwrap();
    assert!(writer.write_packet(&raw).is_err());
}
