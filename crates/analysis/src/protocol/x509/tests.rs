//! A certificate that `openssl req -x509` made for these tests, against what `openssl x509 -text`
//! says of it; and what is left of it when it is cut or changed.

use super::*;
use crate::protocol::tls::tests::{Row, cells, mutate};

const EXAMPLE: &str = "\
    3082028d30820213a003020102020400a1b2c3300a06082a8648ce3d040303305b310b30090603550406130244\
    4531183016060355040a0c0f4dc3bc6c6c65722c2053c3b6686e65311a301806092a864886f70d010901160b61\
    40622e6578616d706c653116301406035504030c0d2a2e6578616d706c652e6f7267301e170d32363131323230\
    35313030315a170d3336313131393035313030315a305b310b300906035504061302444531183016060355040a\
    0c0f4dc3bc6c6c65722c2053c3b6686e65311a301806092a864886f70d010901160b6140622e6578616d706c65\
    3116301406035504030c0d2a2e6578616d706c652e6f72673076301006072a8648ce3d020106052b8104002203\
    6200048d6073b9113606dd7c4b63ab5bf1fd0ad0d073b98043d154d1ae3a065c8d7d29eda4bc79bc8359ad8620\
    bf6b6cfd823d1c477d02b7cf5f331c6a2c387827b34196a1aceeaf46d1b38dab029eb1e02458f18aa3541a24b1\
    48dc6e219252bff33ba381a73081a430120603551d130101ff040830060101ff020103306f0603551d11046830\
    66820f7777772e6578616d706c652e6f7267820d2a2e6578616d706c652e6f72678704c0000207871020010db8\
    000000000000000000000007861468747470733a2f2f6578616d706c652e6f72672f810b6140622e6578616d70\
    6c65a00906022a03a0030c0178301d0603551d0e041604146e63d832d782e993867c268c911bf5077316eb8430\
    0a06082a8648ce3d040303036800306502301c2a49ac36c700d693e9a56238e52cca217b0bacb0d114d8819db8\
    4334696d9cfa98b6729d939dfc14525bc26f2a98c0023100a4a5897c334e3aea2f7ec7b516a859540709d60fcb\
    7c51d8a487bcfb81cae98f4ebb9bf2b62d66a3420e2ad7ad094a2b\
";

/// The certificate in DER.
pub(in crate::protocol) fn example() -> Vec<u8> {
    unhex(EXAMPLE)
}

/// The octets that digits stand for.
pub(in crate::protocol) fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] << 4 | pair[1]).unwrap()).collect()
}

fn read(bytes: &[u8]) -> Option<Certificate> {
    Certificate::of(bytes)
}

fn row(certificate: Certificate) -> Row {
    let time = Timestamp::from_nanos(5);
    let certificate = Arc::new(certificate);
    let presented = Presented { certificate, time, is_host: true, is_client: false };
    cells(&presented.row())
}

/// The example at this time in nanoseconds.
pub(crate) fn presented(time: i64, is_host: bool) -> Presented {
    let certificate = Arc::new(read(&example()).unwrap());
    Presented { certificate, time: Timestamp::from_nanos(time), is_host, is_client: false }
}

#[test]
fn every_column_is_as_openssl_tells_it() {
    let row = row(read(&example()).unwrap());
    let name = "CN=*.example.org,emailAddress=a@b.example,O=M\\C3\\BCller\\, S\\C3\\B6hne,C=DE";
    let expected = [
        ("ts", "5"),
        ("fingerprint", "154876334e5859bd2755e170c85a725d0a5c9cefdecd237587a8a8dfc1c4b410"),
        ("certificate.version", "3"),
        ("certificate.serial", "A1B2C3"),
        ("certificate.subject", name),
        ("certificate.issuer", name),
        ("certificate.not_valid_before", "1795324201"),
        ("certificate.not_valid_after", "2110684201"),
        ("certificate.key_alg", "id-ecPublicKey"),
        ("certificate.sig_alg", "ecdsa-with-SHA384"),
        ("certificate.key_type", "ecdsa"),
        ("certificate.key_length", "384"),
        ("certificate.exponent", "-"),
        ("certificate.curve", "secp384r1"),
        ("san.dns", "www.example.org,*.example.org"),
        ("san.uri", "https://example.org/"),
        ("san.email", "a@b.example"),
        ("san.ip", "192.0.2.7,2001:db8::7"),
        ("basic_constraints.ca", "T"),
        ("basic_constraints.path_len", "3"),
        ("host_cert", "T"),
        ("client_cert", "F"),
        ("sha1", "d8a7c47445414643ec625872ac136abefc361e22"),
    ];
    assert_eq!(row.len(), expected.len());
    for (column, cell) in expected {
        assert_eq!(row[column], cell, "{column}");
    }
}

#[test]
fn it_is_for_its_names_and_addresses() {
    let certificate = read(&example()).unwrap();
    for host in ["www.example.org", "x.example.org", "192.0.2.7", "2001:DB8::7"] {
        assert!(certificate.is_for(host.as_bytes()), "{host}");
    }
    for host in ["example.org", "a.b.example.org", "192.0.2.8", "a@b.example", ""] {
        assert!(!certificate.is_for(host.as_bytes()), "{host}");
    }
}

#[test]
fn what_follows_is_no_part_of_it_and_a_cut_one_is_none() {
    let example = example();
    let longer = [&example[..], &[0; 9]].concat();
    assert_eq!(
        row(read(&longer).unwrap())["fingerprint"],
        row(read(&example).unwrap())["fingerprint"]
    );
    for cut in 0..example.len() {
        assert!(read(&example[..cut]).is_none(), "{cut}");
    }
}

#[test]
fn serial_numbers_have_signs_and_no_zeros_in_front() {
    let told = [&[0, 0xf0, 1][..], &[1], &[0], &[0x80], &[0xff, 0x7f], &[]].map(serial);
    assert_eq!(told, ["F001", "01", "00", "-80", "-81", "00"]);
}

#[test]
fn days_are_those_of_utc() {
    let day = |time| presented(time, true).day();
    let midnight = 20_000 * 86_400_000_000_000;
    assert_eq!([-1, 0, midnight - 1, midnight].map(day), [-1, 0, 19_999, 20_000]);
}

#[test]
fn changed_certificates_do_no_harm() {
    let mut readable = 0;
    for seed in 0..4_000 {
        let mut bytes = example();
        mutate(&mut bytes, seed);
        if let Some(certificate) = read(&bytes) {
            readable += 1;
            certificate.is_for(b"www.example.org");
            assert!(certificate.heap_bytes() > 0);
            row(certificate);
        }
    }
    assert!(readable > 1_000, "{readable}");
}
