//! Filters and packets by chance, the same in every run.

use netsniff_testing::filter::capture::Frame;

/// The generator `xorshift64*` of Vigna, 2016.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 32) as usize % bound
    }

    fn one<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// A filter of up to `depth` levels of `and`, `or` and `not`.
    pub(crate) fn filter(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => self.one(PRIMITIVES).to_owned(),
            1 => self.relation(),
            2 | 3 => self.primitive(),
            4 => format!("not ({})", self.filter(depth - 1)),
            5 => format!("({}) or ({})", self.filter(depth - 1), self.filter(depth - 1)),
            _ => format!("({}) and ({})", self.filter(depth - 1), self.filter(depth - 1)),
        }
    }

    fn primitive(&mut self) -> String {
        let direction = self.one(&["", "src ", "dst ", "src and dst "]);
        let port = self.one(&["80", "53", "443", "1024", "0"]);
        let host = self.one(&["192.0.2.1", "10.0.0.1", "2001:db8::1", "224.0.0.1"]);
        let net = self.one(&["192.0.2.0/24", "10.0.0.0/8", "2001:db8::/33", "0.0.0.0/1"]);
        let transport = self.one(&["", "tcp ", "udp ", "sctp "]);
        match self.below(8) {
            0 => format!("{direction}host {host}"),
            1 => format!("{direction}net {net}"),
            2 => format!("{transport}{direction}port {port}"),
            3 => {
                format!("{transport}{direction}portrange {}-{}", self.below(500), self.below(5000))
            }
            4 => format!("ip proto {}", self.one(&["1", "6", "17", "47"])),
            5 => format!("{} {}", self.one(&["less", "greater"]), self.below(120)),
            6 => format!("vlan {}", self.one(&["100", "200", "10", "20"])),
            _ => format!("ether proto {}", self.one(&["0x0800", "0x8100", "0x88a8", "42"])),
        }
    }

    fn relation(&mut self) -> String {
        let comparison = self.one(&["=", "!=", "<", ">", "<=", ">="]);
        format!("{} {comparison} {}", self.number(3), self.number(1))
    }

    fn number(&mut self, depth: usize) -> String {
        match self.below(if depth == 0 { 3 } else { 7 }) {
            0 => self.one(&["0", "1", "4", "14", "255", "0x800", "0x8100", "65535"]).to_owned(),
            1 => "len".to_owned(),
            2 => {
                let offset = self.below(24);
                format!("{}[{offset}:{}]", self.one(HEADERS), self.one(&["1", "2", "4"]))
            }
            3 => {
                let index = self.number(depth - 1);
                format!("{}[{index}:{}]", self.one(HEADERS), self.one(&["1", "2", "4"]))
            }
            4 => format!("-({})", self.number(depth - 1)),
            _ => {
                let operator = self.one(&["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]);
                format!("({} {operator} {})", self.number(depth - 1), self.number(depth - 1))
            }
        }
    }

    /// One of the frames with some bytes changed, maybe cut.
    pub(crate) fn frame(&mut self, frames: &[Frame]) -> Frame {
        let mut frame = frames[self.below(frames.len())].clone();
        for _ in 0..self.below(4) {
            let headers = frame.data.len().min(60);
            if headers > 0 {
                let at = self.below(headers);
                frame.data[at] = self.next() as u8;
            }
        }
        if self.below(4) == 0 { frame.cut(self.below(80)) } else { frame }
    }
}

const HEADERS: &[&str] = &["ether", "ip", "tcp", "udp", "ip6", "icmp", "arp"];

const PRIMITIVES: &[&str] = &[
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "vlan",
    "mpls",
    "pppoes",
    "pppoed",
    "llc",
    "iso",
    "ipx",
    "atalk",
    "broadcast",
    "multicast",
    "ip multicast",
    "ether host 02:00:00:00:00:01",
    "ether src 02:00:00:00:00:02",
];
