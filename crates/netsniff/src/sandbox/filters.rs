//! seccomp(2): programs in the kernel that answer system calls with an error.

use std::collections::BTreeMap;

use anyhow::Context as _;
use libc::{c_long, c_ulong};
use rustix::thread::{SecureComputingMode, secure_computing_mode};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::Mode;
use super::calls::{DENIED, NEEDED, OTHER_NUMBERS, REFUSED_REQUESTS, X32};

/// Calls by their numbers, each with the arguments that matter: any where there are none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Filters the calls of this thread, and of those that it starts, and returns how many calls the
/// filters name: those that are refused, or with [`Mode::Strict`], those that are allowed.
pub(super) fn apply(mode: Mode) -> anyhow::Result<usize> {
    let build = || -> anyhow::Result<usize> {
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        let mut named = 0;
        if mode != Mode::Off {
            install(denied()?, SeccompAction::Allow, refused.clone())?;
            named = DENIED.len();
        }
        if mode == Mode::Strict {
            let needed: Rules = NEEDED.iter().map(|call| (*call, Vec::new())).collect();
            named = needed.len();
            install(needed, refused, SeccompAction::Allow)?;
        }
        if mode != Mode::Off {
            // A filter cannot see its flags. Where it is not there, libraries use clone(2); of several
            // filters that answer with an error, the last one's is told.
            let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
            let missing = SeccompAction::Errno(libc::ENOSYS as u32);
            install(clone3, SeccompAction::Allow, missing)?;
        }
        Ok(named)
    };
    build().context("cannot filter system calls; --sandbox off does without")
}

/// Whether calls of this thread are filtered.
pub(super) fn are_active() -> anyhow::Result<bool> {
    let mode = secure_computing_mode().context("cannot ask for the filters of system calls")?;
    Ok(mode == SecureComputingMode::Filter)
}

fn install(rules: Rules, others: SeccompAction, these: SeccompAction) -> anyhow::Result<()> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let program: seccompiler::BpfProgram =
        SeccompFilter::new(rules, others, these, machine)?.try_into()?;
    Ok(apply_filter(&program)?)
}

/// What no capture needs.
fn denied() -> anyhow::Result<Rules> {
    let mut rules = Rules::new();
    for call in DENIED {
        rules.insert(*call, Vec::new());
        rules.insert(*call | X32, Vec::new());
    }
    for call in OTHER_NUMBERS {
        rules.insert(*call | X32, Vec::new());
    }
    // Within a user namespace of its own a process has every capability, and with it much more of the
    // kernel to attack.
    let user_namespace = libc::CLONE_NEWUSER as u64;
    let flag = SeccompCmpOp::MaskedEq(user_namespace);
    let begins_one = |number| -> anyhow::Result<SeccompRule> {
        let is_set =
            SeccompCondition::new(number, SeccompCmpArgLen::Qword, flag.clone(), user_namespace)?;
        Ok(SeccompRule::new(vec![is_set])?)
    };
    let requests = REFUSED_REQUESTS.iter().map(|request: &c_ulong| {
        let is_it =
            SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *request as _)?;
        Ok(SeccompRule::new(vec![is_it])?)
    });
    let requests = requests.collect::<anyhow::Result<Vec<_>>>()?;
    for bit in [0, X32] {
        rules.insert(libc::SYS_clone | bit, vec![begins_one(0)?]);
        rules.insert(ioctl_number(bit), requests.clone());
    }
    Ok(rules)
}

/// `ioctl`, which has a number of its own where pointers are short.
const fn ioctl_number(bit: c_long) -> c_long {
    const IOCTL_OF_X32: c_long = 514;
    if bit == 0 { libc::SYS_ioctl } else { IOCTL_OF_X32 | bit }
}
