//! Words to tree: the grammar of pcap-filter(7), with negation binding closest and `and` and `or`
//! of equal precedence from left to right.

use super::FilterError;
use super::lexer::{Keyword, Token, Word, tokens};
use super::qualified::Qualifiers;
use super::tree::{Node, Primitive, Protocol, Relation, Term, Tree};

/// Longest text that is parsed, in bytes; the kernel would refuse programs of this size long before.
const MAX_TEXT: usize = 64 * 1024;
/// Deepest nesting of parentheses, brackets and signs.
const MAX_DEPTH: usize = 100;

/// Parses a whole filter.
pub(super) fn parse(text: &str) -> Result<Tree, FilterError> {
    if text.len() > MAX_TEXT {
        let sentence = format!("a filter longer than {MAX_TEXT} bytes is not read");
        return Err(FilterError::new(text, MAX_TEXT, sentence));
    }
    let mut parser =
        Parser { text, tokens: tokens(text)?, next: 0, tree: Tree::default(), depth: 0 };
    if parser.peek().word == Word::End {
        return Ok(parser.tree);
    }
    let item = parser.expression(None)?;
    parser.settle(item, None)?;
    match parser.peek().word {
        Word::End => Ok(parser.tree),
        _ => Err(parser.unexpected("\"and\", \"or\" or the end")),
    }
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
    pub(super) tree: Tree,
    depth: usize,
}

/// What a part of the text turned out to be. A parenthesis may hold either.
enum Item<'a> {
    /// A condition, and the qualifiers that a bare value after `and` or `or` takes from it. Its
    /// node is the last of the tree.
    Condition(Option<Qualifiers>),
    /// Terms from `start` to the end of the tree's terms, written from `first` on.
    Arithmetic { start: usize, first: Token<'a> },
}

impl<'a> Parser<'a> {
    /// Conditions joined by `and` and `or`, or one arithmetic expression without comparison before
    /// a closing parenthesis.
    fn expression(&mut self, inherited: Option<Qualifiers>) -> Result<Item<'a>, FilterError> {
        let mut qualifiers = match self.condition(inherited)? {
            arithmetic @ Item::Arithmetic { .. } if self.peek().word == Word::CloseParenthesis => {
                return Ok(arithmetic);
            }
            item => self.settle(item, inherited)?,
        };
        loop {
            let left = self.root();
            let conjunction = match self.peek().word {
                Word::Keyword(Keyword::And) => Node::And,
                Word::Keyword(Keyword::Or) => Node::Or,
                _ => return Ok(Item::Condition(qualifiers)),
            };
            self.advance();
            let item = self.condition(qualifiers)?;
            qualifiers = self.settle(item, qualifiers)?;
            let right = self.root();
            self.tree.nodes.push(conjunction(left, right));
        }
    }

    /// Makes a condition of what may be a lone number: after `port 80 or` it is a value.
    fn settle(
        &mut self,
        item: Item<'a>,
        inherited: Option<Qualifiers>,
    ) -> Result<Option<Qualifiers>, FilterError> {
        let (start, first) = match item {
            Item::Condition(qualifiers) => return Ok(qualifiers),
            Item::Arithmetic { start, first } => (start, first),
        };
        if let (Some(qualifiers), [Term::Number(number)]) = (inherited, &self.tree.terms[start..]) {
            let number = *number;
            self.tree.terms.truncate(start);
            self.number(qualifiers, number, first)?;
            return Ok(inherited);
        }
        Err(self.unexpected("a comparison such as \"=\""))
    }

    /// One condition with the negations before it, or an arithmetic expression.
    fn condition(&mut self, inherited: Option<Qualifiers>) -> Result<Item<'a>, FilterError> {
        self.enter()?;
        let start = self.tree.terms.len();
        let first = self.peek();
        let item = match first.word {
            Word::Keyword(Keyword::Not) => {
                self.advance();
                let item = self.condition(inherited)?;
                let qualifiers = self.settle(item, inherited)?;
                let operand = self.root();
                self.tree.nodes.push(Node::Not(operand));
                Item::Condition(qualifiers)
            }
            Word::OpenParenthesis => {
                self.advance();
                let inner = self.expression(inherited)?;
                self.expect(Word::CloseParenthesis, "\")\"")?;
                match inner {
                    Item::Condition(_) => Item::Condition(inherited),
                    Item::Arithmetic { .. } => {
                        self.operators(0)?;
                        self.comparison(start, first)?
                    }
                }
            }
            Word::Number(_) | Word::Operator(_) | Word::Keyword(Keyword::Length) => {
                self.arithmetic(0)?;
                self.comparison(start, first)?
            }
            Word::Protocol(_) if self.peek_second() == Word::OpenBracket => {
                self.arithmetic(0)?;
                self.comparison(start, first)?
            }
            _ => Item::Condition(self.primitive(inherited)?),
        };
        self.leave();
        Ok(item)
    }

    /// What stands after an arithmetic expression: a comparison makes it a condition.
    fn comparison(&mut self, start: usize, first: Token<'a>) -> Result<Item<'a>, FilterError> {
        let Word::Relation(relation) = self.peek().word else {
            return Ok(Item::Arithmetic { start, first });
        };
        self.advance();
        let middle = self.tree.terms.len();
        self.arithmetic(0)?;
        let end = self.tree.terms.len();
        let primitive = Primitive::Relation { relation, left: start..middle, right: middle..end };
        self.push(primitive, first);
        Ok(Item::Condition(None))
    }

    /// An arithmetic expression whose operators bind at least as closely as `level`.
    pub(super) fn arithmetic(&mut self, level: u8) -> Result<(), FilterError> {
        self.enter()?;
        let token = self.advance();
        match token.word {
            Word::Number(number) => self.tree.terms.push(Term::Number(number)),
            Word::Keyword(Keyword::Length) => self.tree.terms.push(Term::Length),
            Word::Operator(super::tree::Operator::Subtract) => {
                self.arithmetic(CLOSEST)?;
                self.tree.terms.push(Term::Negate);
            }
            Word::OpenParenthesis => {
                self.arithmetic(0)?;
                self.expect(Word::CloseParenthesis, "\")\"")?;
            }
            Word::Protocol(protocol) => self.load(protocol)?,
            _ => return Err(self.expected("a number, \"len\" or \"proto[offset]\"", token)),
        }
        self.operators(level)?;
        self.leave();
        Ok(())
    }

    /// The operators and right operands that follow a left operand.
    ///
    /// In libpcap's grammar `%` and `^` have no precedence: they take what stands to the left of
    /// them at once, and everything to the right.
    fn operators(&mut self, level: u8) -> Result<(), FilterError> {
        use super::tree::Operator as O;
        while let Word::Operator(operator) = self.peek().word {
            let (own, right) = match operator {
                O::Or => (1, 2),
                O::And => (2, 3),
                O::ShiftLeft | O::ShiftRight => (3, 4),
                O::Add | O::Subtract => (4, 5),
                O::Multiply | O::Divide => (5, CLOSEST),
                O::Modulo | O::Xor => (CLOSEST, 0),
            };
            if own < level {
                break;
            }
            self.advance();
            self.arithmetic(right)?;
            self.tree.terms.push(Term::Binary(operator));
        }
        Ok(())
    }

    /// `[offset]` or `[offset:size]` after a protocol.
    fn load(&mut self, protocol: Protocol) -> Result<(), FilterError> {
        self.expect(Word::OpenBracket, "\"[\"")?;
        self.arithmetic(0)?;
        let mut size = 1;
        if self.peek().word == Word::Colon {
            self.advance();
            let token = self.advance();
            size = match token.word {
                Word::Number(number @ (1 | 2 | 4)) => number as u8,
                _ => return Err(self.expected("a size of 1, 2 or 4 bytes", token)),
            };
        }
        self.expect(Word::CloseBracket, "\"]\"")?;
        self.tree.terms.push(Term::Load { protocol, size });
        Ok(())
    }

    /// A number, perhaps in parentheses, after a word that can do without one.
    pub(super) fn optional_number(&mut self) -> Result<Option<u32>, FilterError> {
        let mut ahead = self.next;
        while self.tokens.get(ahead).is_some_and(|token| token.word == Word::OpenParenthesis) {
            ahead += 1;
        }
        let parentheses = ahead - self.next;
        let Some(&Token { word: Word::Number(number), .. }) = self.tokens.get(ahead) else {
            return Ok(None);
        };
        self.next = ahead + 1;
        for _ in 0..parentheses {
            self.expect(Word::CloseParenthesis, "\")\"")?;
        }
        Ok(Some(number))
    }

    /// The number that must stand here.
    pub(super) fn required_number(&mut self) -> Result<u32, FilterError> {
        let token = self.advance();
        match token.word {
            Word::Number(number) => Ok(number),
            _ => Err(self.expected("a number", token)),
        }
    }

    /// The relation that must stand here.
    pub(super) fn required_relation(&mut self) -> Result<Relation, FilterError> {
        let token = self.advance();
        match token.word {
            Word::Relation(relation) => Ok(relation),
            _ => Err(self.expected("\"=\", \"<\" or \">\"", token)),
        }
    }

    pub(super) fn push(&mut self, primitive: Primitive, token: Token<'_>) {
        self.tree.nodes.push(Node::Primitive { primitive, position: token.start });
    }

    /// Index of the node that was finished last.
    pub(super) fn root(&self) -> usize {
        self.tree.nodes.len() - 1
    }

    pub(super) fn peek(&self) -> Token<'a> {
        // The last token is the end, and it is never passed.
        self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    fn peek_second(&self) -> Word<'a> {
        self.tokens.get(self.next + 1).map_or(Word::End, |token| token.word)
    }

    pub(super) fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    pub(super) fn enter(&mut self) -> Result<(), FilterError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(self.peek(), format!("nesting deeper than {MAX_DEPTH}")));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn expect(&mut self, word: Word<'_>, wanted: &str) -> Result<(), FilterError> {
        let token = self.advance();
        if token.word == word { Ok(()) } else { Err(self.expected(wanted, token)) }
    }

    pub(super) fn error(&self, token: Token<'_>, sentence: impl Into<String>) -> FilterError {
        FilterError::new(self.text, token.start, sentence)
    }

    fn unexpected(&self, wanted: &str) -> FilterError {
        self.expected(wanted, self.peek())
    }

    pub(super) fn expected(&self, wanted: &str, found: Token<'_>) -> FilterError {
        match found.word {
            Word::End => self.error(found, format!("the filter ends where {wanted} is expected")),
            Word::Keyword(Keyword::Unsupported) => self.unsupported(found),
            _ => {
                let text = &self.text[found.start..found.end];
                self.error(found, format!("expected {wanted}, found \"{text}\""))
            }
        }
    }

    pub(super) fn unsupported(&self, token: Token<'_>) -> FilterError {
        let text = &self.text[token.start..token.end];
        self.error(token, format!("\"{text}\" is a word of pcap-filter that is not supported here"))
    }
}

/// The level of unary minus.
const CLOSEST: u8 = 6;

#[cfg(test)]
mod tests {
    use crate::Filter;

    fn full(text: &str) -> String {
        Filter::parse(text).unwrap_or_else(|error| panic!("{text:.80}: {error}")).to_string()
    }

    #[track_caller]
    fn fails(text: &str, message: &str) {
        assert_eq!(Filter::parse(text).unwrap_err().to_string(), message, "{text}");
    }

    #[test]
    fn and_and_or_have_equal_precedence_and_not_binds_closest() {
        assert_eq!(full("tcp or udp and icmp"), "((tcp or udp) and icmp)");
        assert_eq!(full("tcp or (udp && icmp)"), "(tcp or (udp and icmp))");
        assert_eq!(full("not tcp or udp"), "(not tcp or udp)");
        assert_eq!(full("!(tcp || udp)"), "not (tcp or udp)");
        assert_eq!(full(""), "");
        assert_eq!(full(" \t\n"), "");
    }

    #[test]
    fn bare_values_take_the_qualifiers_before_them() {
        assert_eq!(full("tcp dst port 80 or 443"), "(tcp dst port 80 or tcp dst port 443)");
        assert_eq!(full("port http or (53)"), "(tcp port 80 or port 53)");
        assert_eq!(
            full("host 192.0.2.1 and (port 80 or 443) or 10.0.0.1"),
            "((host 192.0.2.1 and (port 80 or port 443)) or host 10.0.0.1)"
        );
        assert_eq!(
            full("src net (10 or not 192.168)"),
            "(src net 10.0.0.0 mask 255.0.0.0 or not src net 192.168.0.0 mask 255.255.0.0)"
        );
        assert_eq!(full("port 80 or (443) + 1 = len"), "(port 80 or (443 + 1) = len)");
    }

    #[test]
    fn percent_and_circumflex_take_all_that_follows() {
        assert_eq!(full("1+2*3 - 4 = 5"), "((1 + (2 * 3)) - 4) = 5");
        assert_eq!(full("6 % 4 + 1 = len"), "(6 % (4 + 1)) = len");
        assert_eq!(full("2 * 6 ^ 4 + 1 = len"), "(2 * (6 ^ (4 + 1))) = len");
        assert_eq!(full("-ip[8] % 3 < 1 << 2 & 7"), "(-(ip[8] % 3)) < ((1 << 2) & 7)");
        assert_eq!(full("tcp[(ip[0]&0xf)<<2:4]!=len"), "tcp[((ip[0] & 15) << 2):4] != len");
    }

    #[test]
    fn what_is_written_out_in_full_parses_to_the_same() {
        let expressions = include_str!("../../tests/filter/expressions.txt");
        for text in expressions.lines().filter(|line| !line.starts_with('#')) {
            let once = full(text);
            assert_eq!(full(&once), once, "{text}");
        }
    }

    #[test]
    fn errors_name_the_word_and_its_place() {
        fails("tcp tpc", "expected \"and\", \"or\" or the end, found \"tpc\" at column 5");
        fails("udp and tpc port 80", "unknown word \"tpc\" at column 9");
        fails("tcp and", "the filter ends where a condition is expected at column 8");
        fails("(tcp", "the filter ends where \")\" is expected at column 5");
        fails("tcp)", "expected \"and\", \"or\" or the end, found \")\" at column 4");
        fails(
            "host example.com",
            "\"example.com\" is a name, and names are not looked up: write an address at column 6",
        );
        fails("192.0.2.1", "write \"host\" or \"net\" before \"192.0.2.1\" at column 1");
        fails("host", "the filter ends where a value after \"host\" is expected at column 5");
        fails("ip proto tcp", "\"tcp\" is a keyword: write \"\\tcp\" after \"proto\" at column 10");
        fails("port 70000", "the port 70000 is above 65535 at column 6");
        fails("port nonsense", "unknown port \"nonsense\" at column 6");
        fails("udp port http", "the service \"http\" does not run over this protocol at column 10");
        fails("icmp port 80", "\"icmp\" has no \"port\" at column 11");
        fails("net 10.0.0.1/8", "the address has bits outside the mask at column 5");
        fails("net 10.0.0.0/33", "the prefix length 33 is above 32 at column 14");
        fails("host 10.0.0.0/8", "only \"net\" takes a prefix length at column 15");
        fails(
            "tcp host 10.0.0.1",
            "\"tcp host\" does not go with this kind of address at column 10",
        );
        fails("host 2:0:0:0:0:1", "a MAC address is only valid after \"ether host\" at column 6");
        fails("vlan 4096", "the VLAN 4096 is above 4095 at column 6");
        fails("ip[0:3] = 1", "expected a size of 1, 2 or 4 bytes, found \"3\" at column 6");
        fails("len", "the filter ends where a comparison such as \"=\" is expected at column 4");
        fails(
            "ip protochain 6",
            "\"protochain\" is a word of pcap-filter that is not supported here at column 4",
        );
        fails(
            "geneve",
            "\"geneve\" is a word of pcap-filter that is not supported here at column 1",
        );
    }

    #[test]
    fn nesting_and_length_are_bounded() {
        let deep = |open: &str, close: &str| open.repeat(5000) + "1" + &close.repeat(5000);
        for text in [
            deep("(", ")"),
            deep("not ", ""),
            deep("-", ""),
            deep("ip[", "]"),
            deep("1%", ""),
            deep("port (", ")"),
            deep("src host not ", ""),
        ] {
            let error = Filter::parse(&text).unwrap_err();
            assert!(
                error.sentence().starts_with("nesting deeper")
                    || error.sentence().starts_with("expected"),
                "{error}"
            );
        }
        let hosts = vec!["host 192.0.2.1"; 3000].join(" or ");
        assert_eq!(full(&hosts).len(), hosts.len() + 2 * 2999);
        let error = Filter::parse(&"tcp or ".repeat(20_000)).unwrap_err();
        assert_eq!(error.sentence(), "a filter longer than 65536 bytes is not read");
    }
}
