//! A row that is rendered up to its last columns, with these behind it, is the row as it is rendered at once, in
//! every format.

use std::sync::Arc;

use netsniff_analysis::Uid;
use netsniff_analysis::key::Endpoint;
use netsniff_analysis::record::{
    BegunRow, Columns, Connection, LastColumns, Port, Proto, Record, RecordAnonymizer, WholeRow,
};
use netsniff_analysis::rows::Encode as _;
use netsniff_output::{Format, RowStyle};
use netsniff_packet::anonymize::{Keep, Key, Method};
use netsniff_packet::{Address, Anonymizer, Timestamp};

netsniff_analysis::columns! {
    /// Where a host stands.
    pub struct Place {
        /// Address of its switch.
        switch: Option<Address> => "switch", addr, None, Address, Netsniff;
        /// Number of the room.
        room: Option<u64> => "room", count, None, Plain, Netsniff;
    }
}

netsniff_analysis::record! {
    /// One row for each host.
    pub struct Host => "host" {
        /// Time of its first packet.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        connection Netsniff;
        /// Its name.
        name: Option<Box<[u8]>> => "name", string, None, Name, Netsniff;
        joined Place;
    }
}

netsniff_analysis::record! {
    /// The same columns in one declaration.
    pub struct AtOnce<'a> => "host" {
        /// Time of its first packet.
        ts: Timestamp => "ts", time, Seconds, Plain, Netsniff;
        /// Its connection.
        uid: Uid => "uid", string, None, Plain, Netsniff;
        /// The originator.
        orig_h: Address => "id.orig_h", addr, None, Address, Netsniff;
        /// Its port.
        orig_p: Port => "id.orig_p", port, None, Plain, Netsniff;
        /// The responder.
        resp_h: Address => "id.resp_h", addr, None, Address, Netsniff;
        /// Its port.
        resp_p: Port => "id.resp_p", port, None, Plain, Netsniff;
        /// Its name.
        name: Option<&'a [u8]> => "name", string, None, Name, Netsniff;
        /// Address of its switch.
        switch: Option<Address> => "switch", addr, None, Address, Netsniff;
        /// Number of the room.
        room: Option<u64> => "room", count, None, Plain, Netsniff;
    }
}

fn connection() -> Connection {
    let end = |last, port| Endpoint { address: Address::from_v4([192, 0, 2, last]), port };
    Connection {
        uid: Uid::NONE,
        originator: end(1, 40_000),
        responder: end(2, 80),
        proto: Proto::Tcp,
        start: None,
        local: [false; 2],
    }
}

/// The columns as `format` renders them, which are pseudonyms where `key` is one.
fn columns<R: Record>(format: Format, key: Option<[u8; 32]>, record: &R, out: &mut Vec<u8>) {
    match key {
        None => RowStyle::of(format).columns(record, out),
        Some(key) => {
            let mut anonymizer = RecordAnonymizer::new(Arc::new(Anonymizer::new(
                Method::CryptoPan,
                &Key::new(key),
                &Keep::default(),
            )));
            RowStyle::of(format).columns(&anonymizer.record(record), out);
        }
    }
}

fn rendered<R: Record>(first: &R, parts: impl Fn(&mut Vec<u8>), format: Format) -> String {
    let (style, mut out) = (RowStyle::of(format), b"before".to_vec());
    style.begin(first, Some(Timestamp::EPOCH), &mut out);
    parts(&mut out);
    style.end(first.log(), 6, &mut out);
    out.escape_ascii().to_string()
}

#[test]
fn a_row_in_two_parts_is_the_row() {
    let connection = connection();
    let switches = [None, Some(Address::from_v4([192, 0, 2, 9]))];
    let names: [Option<&[u8]>; 4] = [None, Some(b"#1"), Some(b"{"), Some(b"")];
    let mut compared = 0;
    for (&format, key) in Format::ALL.iter().flat_map(|it| [(it, None), (it, Some([7; 32]))]) {
        for (name, switch, room) in names.iter().flat_map(|&name| {
            let rooms = [None, Some(3)];
            switches.iter().flat_map(move |&it| rooms.map(move |room| (name, it, room)))
        }) {
            let row = Host { ts: Timestamp::EPOCH, name: name.map(Box::from) };
            let begun = BegunRow { connection: &connection, row: &row };
            let place = Place { switch, room };
            let is_set = switch.is_some() || room.is_some();
            let last =
                LastColumns { end: begun.end(), columns: is_set.then_some(&place as &dyn Columns) };
            let parts = rendered(
                &begun,
                |out| {
                    columns(format, key, &begun, out);
                    columns(format, key, &last, out);
                },
                format,
            );
            let at_once = AtOnce {
                ts: row.ts,
                uid: connection.uid,
                orig_h: connection.originator.address,
                orig_p: Port(connection.originator.port),
                resp_h: connection.responder.address,
                resp_p: Port(connection.responder.port),
                name,
                switch,
                room,
            };
            assert_eq!(
                parts,
                rendered(&at_once, |out| columns(format, key, &at_once, out), format)
            );
            if !is_set {
                let whole = WholeRow(begun);
                assert_eq!(
                    parts,
                    rendered(&whole, |out| columns(format, key, &whole, out), format)
                );
            }
            compared += 1;
        }
    }
    assert_eq!(compared, Format::ALL.len() * 2 * 4 * 2 * 2);
}
