//! Shorter programs: a test whose outcome is already known is jumped over, tests of one field stand
//! together, and equal tests that lead to the same places are one.
//!
//! `tcp port 80` asks for the EtherType before each alternative; once it is known to be that of
//! IPv4, the program need not ask again. libpcap's optimiser does the same, and because a test that
//! is left out cannot fall outside the packet, both must leave out the same ones: `ip[100] = 1 or
//! ip` matches short IPv4 packets only so.

use std::collections::HashMap;

use super::program::{Comparison, Field, Program, REJECT, Step, Test};

/// Programs with more steps than this are lists of more than 1,300 hosts: too long for the kernel however
/// short they are made.
const MAX_STEPS: usize = 1 << 14;
/// Most outcomes remembered for one step.
const MAX_FACTS: usize = 16;
/// Each round may open the way for another, and this many are always enough in practice.
const ROUNDS: usize = 4;

/// A step that was passed, and its outcome.
type Fact = (usize, bool);

/// Jumps over the tests that need not be made, and removes the steps that are never reached.
///
/// A test with only one way out is left out where `may_go` says so. Where it does not, only the
/// verdicts on packets that do not have the bytes would differ.
pub(super) fn simplify(program: &mut Program, may_go: impl Fn(&Test) -> bool) {
    if program.steps.len() > MAX_STEPS {
        return;
    }
    for _ in 0..ROUNDS {
        let before = program.steps.clone();
        jump_over_known(program);
        jump_over_pointless(program, &may_go);
        if program.steps == before {
            break;
        }
    }
    remove_unreached(program);
    group_by_field(program);
    unite_equal(program);
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
                // What a packet is decides more tests than what it is not, and in a list of hosts the
                // EtherType is what every one of them asks for.
                let least = facts.iter().position(|(_, outcome)| !outcome);
                facts.remove(least.unwrap_or(0));
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

/// Follows each exit past the steps with only one way out. To be rejected for want of a byte is to be
/// rejected, so that a step that leads nowhere else may always go.
fn jump_over_pointless(program: &mut Program, may_go: impl Fn(&Test) -> bool) {
    let pointless = |steps: &[Step], mut target: u32| {
        while let Some(step) = steps.get(target as usize)
            && step.on_true == step.on_false
            && (step.on_true == REJECT || may_go(&step.test))
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

/// Puts the tests of one field together where several lead to the same place: `host A or B` asks for
/// the source of each, then for the destination of each. In classic BPF each group loads once.
///
/// A test only comes to stand earlier behind another one of its field, so that the packet has the bytes.
fn group_by_field(program: &mut Program) {
    let mut entrances = vec![0_u32; program.steps.len()];
    let exits = program.steps.iter().flat_map(|step| [step.on_true, step.on_false]);
    for exit in exits.chain([program.start]) {
        if let Some(count) = entrances.get_mut(exit as usize) {
            *count += 1;
        }
    }
    let mut is_done = vec![false; program.steps.len()];
    for first in 0..program.steps.len() {
        if is_done[first] {
            continue;
        }
        let chain = [true, false]
            .map(|shared| chain(&program.steps, &entrances, first, shared))
            .into_iter()
            .max_by_key(Vec::len)
            .unwrap_or_default();
        let mut groups: HashMap<Option<(Field, u32)>, usize> = HashMap::new();
        let mut tests: Vec<_> =
            chain.iter().map(|at| program.steps[*at].test.clone()).enumerate().collect();
        tests.sort_by_cached_key(|(number, test)| {
            let key = match test {
                Test::Field { field, mask, .. } => Some((*field, *mask)),
                _ => return *number,
            };
            *groups.entry(key).or_insert(*number)
        });
        for (at, (_, test)) in chain.into_iter().zip(tests) {
            program.steps[at].test = test;
            is_done[at] = true;
        }
    }
}

/// Steps from `first` on, each reached from the one before alone, whose exits on the outcome `shared` are
/// the same.
fn chain(steps: &[Step], entrances: &[u32], first: usize, shared: bool) -> Vec<usize> {
    let exits = |step: &Step| match shared {
        true => (step.on_true, step.on_false),
        false => (step.on_false, step.on_true),
    };
    let mut chain = vec![first];
    let (common, mut next) = exits(&steps[first]);
    while let Some(step) = steps.get(next as usize)
        && entrances[next as usize] == 1
        && exits(step).0 == common
    {
        chain.push(next as usize);
        next = exits(step).1;
    }
    chain
}

/// Makes one of the steps with the same test and the same exits, from the last step on, so that
/// equal ends of a program become one.
fn unite_equal(program: &mut Program) {
    let mut last: HashMap<Step, u32> = HashMap::new();
    let mut united: Vec<u32> = (0..program.steps.len() as u32).collect();
    let follow = |united: &[u32], at: u32| united.get(at as usize).copied().unwrap_or(at);
    for at in (0..program.steps.len()).rev() {
        let step = &mut program.steps[at];
        step.on_true = follow(&united, step.on_true);
        step.on_false = follow(&united, step.on_false);
        united[at] = *last.entry(step.clone()).or_insert(at as u32);
    }
    program.start = follow(&united, program.start);
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
