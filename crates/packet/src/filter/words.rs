//! Primitives that are a word of their own: lengths, tags, frames, directions.

use super::FilterError;
use super::lexer::{Keyword, Word};
use super::parser::Parser;
use super::tree::{LlcKind, Primitive, Relation};

impl Parser<'_> {
    /// A keyword that begins a primitive of its own.
    pub(super) fn keyword(&mut self, keyword: Keyword) -> Result<(), FilterError> {
        let token = self.advance();
        let primitive = match keyword {
            Keyword::Less => Primitive::LengthAtMost(self.required_number()?),
            Keyword::Greater => Primitive::LengthAtLeast(self.required_number()?),
            Keyword::Byte => self.byte()?,
            Keyword::Inbound => Primitive::Inbound,
            Keyword::Outbound => Primitive::Outbound,
            Keyword::InterfaceIndex => Primitive::InterfaceIndex(self.required_number()?),
            Keyword::Vlan => Primitive::Vlan(self.limited_number("VLAN", 0xfff)?),
            Keyword::Mpls => Primitive::Mpls(self.limited_number("MPLS label", 0xf_ffff)?),
            Keyword::PppoeDiscovery => Primitive::PppoeDiscovery,
            Keyword::PppoeSession => {
                Primitive::PppoeSession(self.limited_number("PPPoE session", 0xffff)?)
            }
            Keyword::Llc => Primitive::Llc(self.llc()?),
            Keyword::Unsupported => return Err(self.unsupported(token)),
            _ => return Err(self.expected("a condition", token)),
        };
        self.push(primitive, token);
        Ok(())
    }

    fn byte(&mut self) -> Result<Primitive, FilterError> {
        let offset = self.required_number()?;
        let token = self.peek();
        let relation = self.required_relation()?;
        if !matches!(relation, Relation::Equal | Relation::Less | Relation::Greater) {
            return Err(self.expected("\"=\", \"<\" or \">\"", token));
        }
        Ok(Primitive::Byte { offset, relation, value: self.required_number()? })
    }

    fn limited_number(&mut self, what: &str, most: u32) -> Result<Option<u32>, FilterError> {
        let token = self.peek();
        let number = self.optional_number()?;
        if let Some(number) = number.filter(|number| *number > most) {
            return Err(self.error(token, format!("the {what} {number} is above {most}")));
        }
        Ok(number)
    }

    /// The kind of frame after `llc`; IEEE 802.2, 5.4 gives the control bytes.
    fn llc(&mut self) -> Result<LlcKind, FilterError> {
        let token = self.peek();
        let name = match token.word {
            Word::Name(name) => name,
            Word::Keyword(Keyword::Rnr) => "rnr",
            _ => return Ok(LlcKind::Any),
        };
        self.advance();
        Ok(match name {
            "i" => LlcKind::Information,
            "s" => LlcKind::Supervisory,
            "u" => LlcKind::Unnumbered,
            "rr" => LlcKind::SupervisoryCommand(0x01),
            "rnr" => LlcKind::SupervisoryCommand(0x05),
            "rej" => LlcKind::SupervisoryCommand(0x09),
            "ui" => LlcKind::UnnumberedCommand(0x03),
            "dm" => LlcKind::UnnumberedCommand(0x0f),
            "disc" => LlcKind::UnnumberedCommand(0x43),
            "ua" => LlcKind::UnnumberedCommand(0x63),
            "sabme" => LlcKind::UnnumberedCommand(0x6f),
            "frmr" => LlcKind::UnnumberedCommand(0x87),
            "xid" => LlcKind::UnnumberedCommand(0xaf),
            "test" => LlcKind::UnnumberedCommand(0xe3),
            _ => return Err(self.error(token, format!("unknown kind of LLC frame \"{name}\""))),
        })
    }
}
