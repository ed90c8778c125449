//! Statements of searches, signed and judged.

use std::time::Duration;

use super::facts::tests::configuration;
use super::key::tests::{PRIVATE, PUBLIC};
use super::*;
use crate::load::Load;
use crate::search::lossless::Step;
use crate::tools::Counted;

fn trial(rate: Option<f64>, sent: u64, lost: u64, faults: &[Fault]) -> Trial {
    let captured = Some(sent - lost);
    Trial {
        load: Load { size: 64, rate, time: Duration::from_secs(10), ..Load::default() },
        sent,
        reached: rate.or(Some(1000.0)),
        counted: Counted { captured, dropped: Some(lost), ..Counted::default() },
        faults: faults.to_vec(),
        ..Trial::default()
    }
}

fn cell(found: HighestRate, steps: Vec<(Purpose, Trial)>) -> Cell {
    let steps = steps.into_iter().map(|(purpose, trial)| Step { purpose, trial }).collect();
    Cell {
        tool: "record".to_owned(),
        size: 64,
        found,
        tolerated: 0.0,
        confirmed: 0,
        loss_below: None,
        ended: None,
        steps,
    }
}

fn certified(found: HighestRate) -> Certified {
    Certified { found, not_certified: None, ..Certified::unavailable(64, "") }
}

pub(super) fn statement() -> Statement {
    let sizes =
        vec![certified(HighestRate::Rate(400_000.0)), Certified::unavailable(512, "a signal")];
    let key = PublicKey::of_pem(PUBLIC).unwrap();
    Statement::new("2026-01-02T03:04:05Z".to_owned(), configuration(), sizes, &key).unwrap()
}

#[test]
fn only_the_runs_that_confirm_are_counted() {
    let rate = Some(500.0);
    let cell = cell(
        HighestRate::Rate(500.0),
        vec![
            (Purpose::Top, trial(None, 9000, 100, &[])),
            (Purpose::Steer, trial(rate, 1000, 0, &[Fault::Slips])),
            (Purpose::Steer, trial(rate, 1000, 0, &[Fault::Wire])),
            (Purpose::Confirm, trial(Some(600.0), 6000, 1, &[])),
            (Purpose::Confirm, trial(rate, 5001, 0, &[])),
            (Purpose::Confirm, trial(rate, 7000, 0, &[Fault::Slips])),
            (Purpose::Confirm, trial(rate, 4999, 0, &[])),
            // What is looked for between this rate and the one above that lost.
            (Purpose::Confirm, trial(Some(550.0), 5500, 0, &[])),
            (Purpose::Confirm, trial(Some(550.0), 5500, 1, &[])),
        ],
    );
    let certified = Certified::of(&cell);
    assert_eq!((certified.sent, certified.captured, certified.confirmations), (10_000, 10_000, 2));
    assert_eq!((certified.loss_below, certified.confidence), (Some(3e-4), 0.95));
    assert_eq!((certified.rate(), certified.runs), (Some(500.0), 9));
    // A run that steers may be off its rate: it is told, too.
    let repeated: Vec<_> = certified
        .repeated
        .iter()
        .map(|run| (run.sent, &run.faults[..], run.counts_at_reached))
        .collect();
    let expected = [
        (1000, &[Fault::Slips][..], true),
        (1000, &[Fault::Wire], false),
        (7000, &[Fault::Slips], false),
    ];
    assert_eq!(repeated, expected);
}

#[test]
fn what_is_not_certified_says_why() {
    let runs = || vec![(Purpose::Confirm, trial(Some(5.0), 50, 0, &[]))];
    let below = Certified::of(&cell(HighestRate::Below(5.0), runs()));
    assert_eq!((below.rate(), below.sent, below.loss_below), (None, 0, None));
    assert!(below.not_certified.unwrap().contains("at the lowest rate"));
    let why = Some("the budget is used up".to_owned());
    let ended = Cell { ended: why.clone(), ..cell(HighestRate::Ended, runs()) };
    let ended = Certified::of(&ended);
    assert_eq!((ended.rate(), ended.not_certified, ended.sent), (None, why, 0));
    let never = Certified::unavailable(64, "a signal");
    assert_eq!((never.rate(), never.not_certified.as_deref()), (None, Some("a signal")));
}

#[test]
fn a_run_is_judged_at_the_certified_rate() {
    let certified = certified(HighestRate::AtLeast(1000.0));
    let at = |reached: f64, lost: u64, faults: &[Fault]| {
        let trial = trial(None, 100_000, lost, faults);
        certified.judge(&Trial { reached: Some(reached), ..trial })
    };
    assert_eq!(at(1000.0, 0, &[]), RateVerdict::Holds);
    assert_eq!(at(991.0, 0, &[]), RateVerdict::Holds);
    assert_eq!(at(2000.0, 0, &[]), RateVerdict::Holds);
    assert_eq!(at(989.0, 0, &[]), RateVerdict::Open, "a lower rate proves nothing of this one");
    assert_eq!(at(1000.0, 1, &[]), RateVerdict::Fails);
    assert_eq!(at(500.0, 1, &[]), RateVerdict::Fails);
    assert_eq!(at(1011.0, 1, &[]), RateVerdict::Open, "a higher rate proves nothing of this one");
    for (lost, fault) in [(0, Fault::Wire), (9, Fault::Slips)] {
        assert_eq!(at(1000.0, lost, &[fault]), RateVerdict::Open);
    }
    let backlog = Trial { backlog_dropped: 1, ..trial(Some(1000.0), 100, 0, &[]) };
    assert_eq!(certified.judge(&backlog), RateVerdict::Fails);
    let unknown = Trial { reached: None, ..trial(Some(1000.0), 100, 0, &[]) };
    assert_eq!(certified.judge(&unknown), RateVerdict::Open);
    let none = Certified::unavailable(64, "");
    assert_eq!(none.judge(&trial(Some(1000.0), 100, 0, &[])), RateVerdict::Open);
}

#[test]
fn a_certificate_is_verified() {
    let (private, public) =
        (PrivateKey::of_pem(PRIVATE).unwrap(), PublicKey::of_pem(PUBLIC).unwrap());
    let text = statement().sign(&private).unwrap();
    assert_eq!(Statement::verified(&text, Some(&public)), Ok((statement(), public.clone())));
    assert_eq!(Statement::verified(&text, None), Ok((statement(), public.clone())));
    let other = PrivateKey::of_pem(&PRIVATE.replace("IIDpecF2", "IIDpecF3")).unwrap();
    assert_eq!(Statement::verified(&text, Some(&other.public())), Err(EnvelopeError::Signature));
    assert!(statement().sign(&other).unwrap_err().contains("another key"));

    let seal = |payload: &str, key: &PrivateKey| {
        let envelope = Envelope::seal(payload.as_bytes(), key, String::new());
        serde_json::to_string(&envelope).unwrap()
    };
    let payload = serde_json::to_string(&statement()).unwrap();
    // Who signs what names another key is not that one.
    let stolen = seal(&payload, &other);
    assert_eq!(Statement::verified(&stolen, None), Err(EnvelopeError::Signature));
    let said = |text: &str, key: &PrivateKey| {
        Statement::verified(text, Some(&key.public())).unwrap_err().to_string()
    };
    assert!(said(&stolen, &other).contains("it names another key than signed it"));
    let newer = payload.replace("\"certificate\":1", "\"certificate\":2");
    assert!(said(&seal(&newer, &private), &private).contains("its form is 2"));
    let twice = payload.replace("{\"certificate\":1", "{\"certificate\":1,\"certificate\":1");
    assert!(said(&seal(&twice, &private), &private).contains("duplicate field"));
    let lacking = payload.replace("\"sizes\"", "\"other\"");
    assert!(said(&seal(&lacking, &private), &private).contains("missing field `sizes`"));
    assert!(said("no json", &private).contains("it is no certificate"));
}
