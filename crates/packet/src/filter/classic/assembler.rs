//! Instructions with labels instead of distances, and how they become a program.

use std::collections::HashMap;

use super::Instruction;
use super::opcode as op;

/// A place further on in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Distances beyond this are jumped over by a [`op::JA`] of their own. A branch has eight bits for
/// a distance, and up to two such jumps may come between it and what follows.
const NEAR: usize = u8::MAX as usize - 2;

enum Item {
    Plain(Instruction),
    Branch { code: u16, k: u32, on_true: Label, on_false: Label },
    Goto(Label),
    Here(Label),
}

/// Collects a program from its first instruction on. All jumps go forward.
#[derive(Default)]
pub(super) struct Assembler {
    items: Vec<Item>,
    labels: usize,
}

impl Assembler {
    /// A label that is yet to be placed by [`here`](Self::here).
    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub(super) fn here(&mut self, label: Label) {
        self.items.push(Item::Here(label));
    }

    pub(super) fn plain(&mut self, code: u16, k: u32) {
        self.items.push(Item::Plain(Instruction::new(code, k)));
    }

    pub(super) fn goto(&mut self, label: Label) {
        self.items.push(Item::Goto(label));
    }

    /// Goes to `on_true` if the comparison `code` holds between `A` and `k`.
    pub(super) fn branch(&mut self, code: u16, k: u32, on_true: Label, on_false: Label) {
        self.items.push(Item::Branch { code, k, on_true, on_false });
    }

    /// Whether anything goes to the label.
    pub(super) fn leads_to(&self, label: Label) -> bool {
        self.items.iter().any(|item| match item {
            Item::Branch { on_true, on_false, .. } => *on_true == label || *on_false == label,
            Item::Goto(target) => *target == label,
            Item::Plain(_) | Item::Here(_) => false,
        })
    }

    /// The instructions, with every jump as short as it can be.
    pub(super) fn finish(self) -> Vec<Instruction> {
        // From the last item to the first, so that every target is known before the jump to it.
        let mut backwards = Backwards {
            instructions: Vec::new(),
            targets: vec![0; self.labels],
            relays: HashMap::new(),
        };
        for item in self.items.into_iter().rev() {
            backwards.push(item);
        }
        backwards.instructions.reverse();
        backwards.instructions
    }
}

/// A program from its end.
struct Backwards {
    /// The last instruction first.
    instructions: Vec<Instruction>,
    /// For each label, how many instructions there are from it to the end.
    targets: Vec<usize>,
    /// For targets too far for a branch, the nearest jump that leads there.
    relays: HashMap<usize, usize>,
}

impl Backwards {
    fn push(&mut self, item: Item) {
        match item {
            Item::Plain(instruction) => self.instructions.push(instruction),
            Item::Here(Label(label)) => self.targets[label] = self.instructions.len(),
            Item::Goto(label) => {
                let target = self.resolve(label);
                if target != self.instructions.len() {
                    self.jump(target);
                }
            }
            Item::Branch { code, k, on_true, on_false } => {
                self.branch(code, k, self.resolve(on_true), self.resolve(on_false));
            }
        }
    }

    /// Where a label leads in the end: a jump to a jump goes to the last target at once.
    fn resolve(&self, Label(label): Label) -> usize {
        let mut target = self.targets[label];
        while let Some(Instruction { code: op::JA, k, .. }) = self.at(target) {
            target = target.saturating_sub(k as usize + 1);
        }
        target
    }

    /// The instruction that has `target` instructions from itself to the end.
    fn at(&self, target: usize) -> Option<Instruction> {
        self.instructions.get(target.checked_sub(1)?).copied()
    }

    /// How many instructions lie between what is pushed next and the target.
    fn distance(&self, target: usize) -> usize {
        self.instructions.len().saturating_sub(target)
    }

    /// Goes to the target, or does at once what is done there if that is the end.
    fn jump(&mut self, target: usize) {
        let jump = match self.at(target) {
            Some(end) if end.code & op::CLASS == op::CLASS_RET => end,
            _ => Instruction::new(op::JA, self.distance(target) as u32),
        };
        self.instructions.push(jump);
    }

    /// A jump to the target that is near enough: one of those that are there, or a new one. The branch
    /// before it goes elsewhere in both cases, so nothing runs into it.
    fn relay(&mut self, target: usize) -> usize {
        if let Some(relay) = self.relays.get(&target)
            && self.distance(*relay) <= NEAR
        {
            return *relay;
        }
        self.jump(target);
        self.relays.insert(target, self.instructions.len());
        self.instructions.len()
    }

    fn branch(&mut self, code: u16, k: u32, mut on_true: usize, mut on_false: usize) {
        if on_true == on_false {
            if on_true != self.instructions.len() {
                self.jump(on_true);
            }
            return;
        }
        for target in [&mut on_false, &mut on_true] {
            if self.distance(*target) > NEAR {
                *target = self.relay(*target);
            }
        }
        let [jt, jf] = [on_true, on_false].map(|target| self.distance(target) as u8);
        self.instructions.push(Instruction { code, jt, jf, k });
    }
}
