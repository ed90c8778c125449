//! Shorter programs: a test whose outcome is already known is jumped over.
//!
//! `tcp port 80` asks for the EtherType before each alternative; once it is known to be that of
//! IPv4, the program need not ask again. libpcap's optimiser does the same, and because a test that
//! is left out cannot fall outside the packet, both must leave out the same ones: `ip[100] = 1 or
//! ip` matches short IPv4 packets only so.

use super::program::{Comparison, Program, Step, Test};

/// Programs with more steps than this are lists of addresses, where little is gained.
const MAX_STEPS: usize = 4096;
/// Most outcomes remembered for one step.
const MAX_FACTS: usize = 16;
/// Each round may open the way for another, and this many are always enough in practice.
const ROUNDS: usize = 4;

/// A step that was passed, and its outcome.
type Fact = (usize, bool);

/// Jumps over the tests that need not be made, and removes the steps that are never reached.
pub(super) fn simplify(program: &mut Program) {
    if program.steps.len() > MAX_STEPS {
        return;
    }
    for _ in 0..ROUNDS {
        let before = program.steps.clone();
        jump_over_known(program);
        jump_over_pointless(program);
        if program.steps == before {
            break;
        }
    }
    remove_unreached(program);
}

/// Follows each exit past the tests whose outcome is known on the way to it.
fn jump_over_known(program: &mut Program) {
    let steps = &mut program.steps;
    // What is known before each step; `None` where nothing leads to it.
    let mut known: Vec<Option<Vec<Fact>>> = vec![None; steps.len()];
    if let Some(start) = known.get_mut(program.start as usize) {
        *start = Some(Vec::new());
    }
    for at in 0..steps.len() {
        let Some(facts) = known[at].take() else {
            continue;
        };
        for outcome in [true, false] {
            let mut facts = facts.clone();
            if facts.len() == MAX_FACTS {
                facts.remove(0);
            }
            facts.push((at, outcome));
            let mut target = if outcome { steps[at].on_true } else { steps[at].on_false };
            while let Some(next) = steps.get(target as usize) {
                match implied(steps, &facts, &next.test) {
                    Some(true) => target = next.on_true,
                    Some(false) => target = next.on_false,
                    None => break,
                }
            }
            *(if outcome { &mut steps[at].on_true } else { &mut steps[at].on_false }) = target;
            if let Some(slot) = known.get_mut(target as usize) {
                match slot {
                    Some(common) => common.retain(|fact| facts.contains(fact)),
                    None => *slot = Some(facts),
                }
            }
        }
    }
}

/// The outcome of `test` where the facts decide it.
fn implied(steps: &[Step], facts: &[Fact], test: &Test) -> Option<bool> {
    if let Test::Constant(outcome) = test {
        return Some(*outcome);
    }
    facts.iter().rev().find_map(|(step, outcome)| {
        let fact = &steps[*step].test;
        if fact == test {
            return Some(*outcome);
        }
        match (fact, test) {
            (
                Test::Field { field, mask, comparison: Comparison::Equal, value },
                Test::Field { field: other, mask: wanted, comparison, value: limit },
            ) if *outcome && field == other && (mask == wanted || *mask == u32::MAX) => {
                Some(comparison.holds(value & wanted, *limit))
            }
            _ => None,
        }
    })
}

/// Follows each exit past the steps with only one way out.
fn jump_over_pointless(program: &mut Program) {
    let pointless = |steps: &[Step], mut target: u32| {
        while let Some(step) = steps.get(target as usize)
            && step.on_true == step.on_false
        {
            target = step.on_true;
        }
        target
    };
    for at in (0..program.steps.len()).rev() {
        program.steps[at].on_true = pointless(&program.steps, program.steps[at].on_true);
        program.steps[at].on_false = pointless(&program.steps, program.steps[at].on_false);
    }
    program.start = pointless(&program.steps, program.start);
    while let Some(Step { test: Test::Constant(outcome), on_true, on_false }) =
        program.steps.get(program.start as usize)
    {
        program.start = if *outcome { *on_true } else { *on_false };
    }
}

fn remove_unreached(program: &mut Program) {
    let mut reached = vec![false; program.steps.len()];
    let mut open = vec![program.start];
    while let Some(at) = open.pop() {
        if let Some(step) = program.steps.get(at as usize)
            && !core::mem::replace(&mut reached[at as usize], true)
        {
            open.extend([step.on_true, step.on_false]);
        }
    }
    let mut count = 0;
    let renumbered: Vec<u32> = reached
        .iter()
        .map(|reached| {
            count += u32::from(*reached);
            count.saturating_sub(1)
        })
        .collect();
    let renumber = |at: u32| renumbered.get(at as usize).copied().unwrap_or(at);
    program.start = renumber(program.start);
    let mut reached = reached.into_iter();
    program.steps.retain(|_| reached.next() == Some(true));
    for step in &mut program.steps {
        (step.on_true, step.on_false) = (renumber(step.on_true), renumber(step.on_false));
    }
}
