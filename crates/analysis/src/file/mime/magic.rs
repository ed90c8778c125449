//! Kinds of files that bytes at a place tell.

use std::sync::LazyLock;

/// Bytes that stand at a place in files of one kind.
struct Magic {
    /// Offset of the bytes in the file.
    at: usize,
    /// Bytes that every file of the kind has there.
    bytes: &'static [u8],
    /// The MIME type.
    mime: &'static str,
}

const fn magic(at: usize, bytes: &'static [u8], mime: &'static str) -> Magic {
    Magic { at, bytes, mime }
}

/// By the first byte of a file, those of [`MAGICS`] that it may have, in their order.
static BY_FIRST: LazyLock<Vec<Vec<&Magic>>> = LazyLock::new(|| {
    let may_have = |magic: &&Magic, first| magic.at > 0 || magic.bytes.first() == Some(&first);
    let having = |first| MAGICS.iter().filter(|magic| may_have(magic, first)).collect();
    (0..=u8::MAX).map(having).collect()
});

/// The kind of a file with this head, if it has one of [`MAGICS`].
pub(super) fn of(head: &[u8]) -> Option<&'static str> {
    // The first byte alone refuses nearly all of them.
    let has = |magic: &&&Magic| {
        head.get(magic.at) == magic.bytes.first()
            && head.get(magic.at..).is_some_and(|rest| rest.starts_with(magic.bytes))
    };
    let candidates = BY_FIRST.get(usize::from(*head.first()?))?;
    candidates.iter().find(has).map(|magic| magic.mime)
}

/// Kinds that a few bytes tell for sure, the more particular first.
static MAGICS: &[Magic] = &[
    magic(0, b"\x89PNG", "image/png"),
    magic(0, b"GIF8", "image/gif"),
    magic(0, b"\xff\xd8", "image/jpeg"),
    magic(0, b"8BPS", "image/vnd.adobe.photoshop"),
    magic(0, b"II*\0", "image/tiff"),
    magic(0, b"II+\0", "image/tiff"),
    magic(0, b"MM\0*", "image/tiff"),
    magic(0, b"MM\0+", "image/tiff"),
    magic(0, b"gimp xcf", "image/x-xcf"),
    magic(0, b"AC10", "image/vnd.dwg"),
    magic(0, b"AT&TFORM", "image/vnd.djvu"),
    magic(0, b"\0\0\x01\0", "image/x-icon"),
    magic(0, b"\0\0\x02\0", "image/x-cursor"),
    magic(0, b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2"),
    magic(8, b"WEBP", "image/webp"),
    magic(8, b"WAVE", "audio/x-wav"),
    magic(8, b"AVI ", "video/x-msvideo"),
    magic(4, b"ftypqt", "video/quicktime"),
    magic(4, b"ftypm4a", "audio/m4a"),
    magic(4, b"ftypM4A", "audio/mp4"),
    magic(4, b"ftypM4V", "video/mp4"),
    magic(4, b"ftypisom", "video/mp4"),
    magic(4, b"ftypmp41", "video/mp4"),
    magic(4, b"ftypmp42", "video/mp4"),
    magic(4, b"ftyp3ge", "video/3gpp"),
    magic(4, b"ftyp3gg", "video/3gpp"),
    magic(4, b"ftyp3gp", "video/3gpp"),
    magic(4, b"ftyp3gs", "video/3gpp"),
    magic(4, b"ftyp3g2", "video/3gpp"),
    magic(4, b"ftypavc1", "video/3gpp"),
    magic(4, b"ftypmmp4", "video/3gpp"),
    magic(4, b"ftypjp2", "image/jp2"),
    magic(4, b"mdat", "video/quicktime"),
    magic(4, b"moov", "video/quicktime"),
    magic(0, b"\0\0\x01\xb3", "video/mpv"),
    magic(0, b"\x30\x26\xb2\x75", "video/x-ms-asf"),
    magic(0, b"FLV", "video/x-flv"),
    magic(0, b"OggS", "application/ogg"),
    magic(0, b"ID3", "audio/mpeg"),
    magic(0, b"\xff\xf1", "audio/x-hx-aac-adts"),
    magic(0, b"\xff\xf9", "audio/x-hx-aac-adts"),
    magic(0, b"fLaC", "audio/x-flac"),
    magic(0, b"MThd", "audio/midi"),
    magic(0, b"FWS", "application/x-shockwave-flash"),
    magic(0, b"CWS", "application/x-shockwave-flash"),
    magic(0, b"ZWS", "application/x-shockwave-flash"),
    magic(0, b"%PDF-", "application/pdf"),
    magic(0, b"%!", "application/postscript"),
    magic(0, b"\x04%!", "application/postscript"),
    magic(0, b"%FDF-", "application/vnd.fdf"),
    magic(0, b"{\\rtf", "text/rtf"),
    magic(0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/msword"),
    magic(0, b"\x78\x9f\x3e\x22", "application/vnd.ms-tnef"),
    magic(0, b"MZ", "application/x-dosexec"),
    magic(0, b"\xce\xfa\xed\xfe", "application/x-mach-o-executable"),
    magic(0, b"\xcf\xfa\xed\xfe", "application/x-mach-o-executable"),
    magic(0, b"!<arch>\ndebian", "application/vnd.debian.binary-package"),
    magic(0, b"\xed\xab\xee\xdb", "application/x-rpm"),
    magic(0, b"\x1f\x8b", "application/x-gzip"),
    magic(0, b"BZh", "application/x-bzip2"),
    magic(0, b"\xfd7zXZ\0", "application/x-xz"),
    magic(0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    magic(0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    magic(0, b"Rar!", "application/x-rar"),
    magic(0, b"\x1f\x9d", "application/x-compress"),
    magic(0, b"\x5d\0\0", "application/x-lzma"),
    magic(0, b"\x04\x22\x4d\x18", "application/x-lz4"),
    magic(0, b"\x02\x21\x4c\x18", "application/x-lz4"),
    magic(0, b"LZIP", "application/x-lzip"),
    magic(0, b"xar!", "application/x-xar"),
    magic(0, b"WARC/", "application/warc"),
    magic(0, b"\x60\xea", "application/x-arj"),
    magic(7, b"**ACE**", "application/x-ace"),
    magic(0, b"PK\x07\x08PK\x03\x04", "application/zip"),
    magic(0, b"\x4c\0\0\0\x01\x14\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46", "application/x-ms-shortcut"),
    magic(4, b"Standard Jet DB\0", "application/x-msaccess"),
    magic(4, b"Standard ACE DB\0", "application/x-msaccess"),
    magic(128, b"DICM", "application/dicom"),
    magic(0, b"MSCF\0\0\0\0", "application/vnd.ms-cab-compressed"),
    magic(257, b"ustar", "application/x-tar"),
    magic(0, b"\xd4\xc3\xb2\xa1", "application/vnd.tcpdump.pcap"),
    magic(0, b"\xa1\xb2\xc3\xd4", "application/vnd.tcpdump.pcap"),
    magic(0, b"\n\r\r\n", "application/vnd.tcpdump.pcap"),
    magic(0, b"SQLite format 3\0", "application/x-sqlite3"),
    magic(0, b"wOFF", "application/font-woff"),
    magic(0, b"wOF2", "application/font-woff2"),
    magic(0, b"OTTO", "application/vnd.ms-opentype"),
    magic(0, b"\0\x01\0\0\0", "application/x-font-ttf"),
    magic(0, b"-----BEGIN CERTIFICATE-----", "application/x-pem"),
    magic(0, b"<jnlp ", "application/x-java-jnlp-file"),
    magic(0, b"-----BEGIN PGP PUBLIC KEY BLOCK-", "application/pgp-keys"),
    magic(0, b"-----BEGIN PGP SIGNATURE-", "application/pgp-signature"),
    magic(0, b"-----BEGIN PGP ", "application/pgp"),
    magic(0, b"Received:", "message/rfc822"),
    magic(0, b"Relay-Version:", "message/rfc822"),
    magic(0, b"From:", "message/rfc822"),
    magic(0, b"Path:", "message/news"),
    magic(0, b"Xref:", "message/news"),
    magic(0, b"Article", "message/news"),
    magic(0, b"BEGIN:VCALENDAR", "text/calendar"),
    magic(0, b"BEGIN:VCARD", "text/x-vcard"),
    magic(0, b"d8:announce", "application/x-bittorrent"),
    magic(0, b"diff --git ", "text/x-diff"),
    magic(0, b"diff ", "text/x-diff"),
    magic(0, b"Index: ", "text/x-diff"),
    magic(0, b"*** ", "text/x-diff"),
    magic(0, b"--- ", "text/x-diff"),
    magic(0, b"AFP", "application/vnd.apple-afpinfo"),
    magic(0, b"PReg", "application/vnd.ms-pol"),
    magic(0, b"REGEDIT4", "application/vnd.ms-reg"),
    magic(0, b"regf", "application/vnd.ms-regf"),
    magic(0, b"!BDN", "application/vnd.ms-outlook"),
    magic(0, b"DDS", "application/x-ms-dds"),
    magic(0, b"BSDIFF", "application/bsdiff"),
    magic(0, b"DIFF", "application/bindiff"),
    magic(0, b"KLZF", "application/x-kaspavdb"),
    magic(0, b"KLD2", "application/x-kaspavupdate"),
    magic(0, b"MSSQLBAK", "application/mssql-bak"),
    magic(0, b"TAPE", "application/mtf"),
    magic(0, b"bplist", "application/bplist"),
    magic(0, b"ITSF", "application/mshelp"),
    magic(0, b"MPQ\x1a", "application/x-game-mpq"),
    magic(0, b"BLTE", "application/x-blizgame"),
    magic(0, b"VMP4", "application/map-tile"),
    magic(0, b"Cr24", "application/chrome-ext"),
    magic(0, b"CrOD", "application/chrome-ext-upd"),
    magic(0, b"MSQM", "application/msqm"),
    magic(0, b"b0VIM", "application/x-vim-tmp"),
    magic(0, b"MDMP", "application/x-windows-minidump"),
    magic(0, b"solid ", "application/sla"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The first of all that a file has.
    fn first_of(head: &[u8]) -> Option<&'static str> {
        let has =
            |magic: &&Magic| head.get(magic.at..).is_some_and(|rest| rest.starts_with(magic.bytes));
        MAGICS.iter().find(has).map(|magic| magic.mime)
    }

    #[test]
    fn every_kind_is_found_in_its_order_and_no_prefix_panics() {
        for magic in MAGICS {
            for first in 0..=u8::MAX {
                let mut file = vec![0; magic.at];
                file.extend_from_slice(magic.bytes);
                if magic.at > 0 {
                    file[0] = first;
                }
                assert!(of(&file).is_some(), "{}", magic.mime);
                for len in 0..=file.len() {
                    assert_eq!(of(&file[..len]), first_of(&file[..len]), "{} {first}", magic.mime);
                }
            }
        }
    }
}
