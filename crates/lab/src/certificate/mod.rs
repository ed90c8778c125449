//! A certificate: a signed statement of what a host and a configuration captured without loss, which can be checked
//! again. No clock and no I/O here.
//!
//! | module | concern |
//! |---|---|
//! | [`key`] | keys in PEM files |
//! | [`envelope`] | what a statement is signed in |
//! | [`facts`] | what it holds for, compared with what is there |
//! | [`page`] | it for people, which the signature covers, too |
//! | [`recheck`] | a certified rate, checked again |
//! | `sections` | the sections of that page |

pub mod envelope;
pub mod facts;
pub mod key;
pub mod page;
pub mod recheck;
mod sections;

use serde::{Deserialize, Serialize};

use self::envelope::{Envelope, EnvelopeError};
use self::facts::Configuration;
use self::key::{PrivateKey, PublicKey};
use crate::search::lossless::{Cell, proof};
use crate::search::{HighestRate, Purpose};
use crate::trial::{Fault, Trial};

/// The form of statements.
const FORM: u32 = 1;

/// How sure [`Certified::loss_below`] is.
const CONFIDENCE: f64 = 0.95;

/// Frames of which none was lost: with 95 % confidence less than 3 in so many are (the rule of three: ln 0.05 is -3.0).
const RULE_OF_THREE: f64 = 3.0;

/// By what part a rate may be below a certified one that it stands for: what a trial lets the sender be off.
const MOST_OFF: f64 = 0.01;

/// The statement that a certificate signs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The form of this statement.
    pub certificate: u32,
    /// When it was made: UTC, as RFC 3339 writes it.
    pub made: String,
    /// What it holds for.
    pub configuration: Configuration,
    /// What was found, for each size of frames.
    pub sizes: Vec<Certified>,
    /// The key that it is signed with, in PEM: whose it is has to be known from elsewhere.
    pub public_key: String,
}

/// What was found for a size of frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certified {
    /// Bytes of a frame, frame check sequence included.
    pub size: u32,
    /// The highest rate without loss, in frames a second; `at-least` is the sender's limit.
    pub found: HighestRate,
    /// Why no rate is certified; `None` where one is.
    pub not_certified: Option<String>,
    /// Frames that were sent by the runs that confirm the rate.
    pub sent: u64,
    /// Packets of those that were captured.
    pub captured: u64,
    /// A smaller share than this is lost at that rate, for frames that are lost independently of each other.
    pub loss_below: Option<f64>,
    /// How sure that is.
    pub confidence: f64,
    /// Runs that confirm the rate.
    pub confirmations: usize,
    /// All runs, also those that steered to the rate.
    pub runs: usize,
    /// All runs that missed a condition, so that they proved nothing, or nothing but the rate that they reached.
    pub repeated: Vec<Repeated>,
}

/// A run that missed a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeated {
    /// What it was for.
    pub purpose: Purpose,
    /// The rate that was asked for; `None` for full speed.
    pub asked: Option<f64>,
    /// The rate that was reached.
    pub reached: Option<f64>,
    /// Frames that were sent.
    pub sent: u64,
    /// Packets that were captured, as far as that can be told.
    pub captured: Option<u64>,
    /// The conditions that it missed.
    pub faults: Vec<Fault>,
    /// Whether it counts for the rate that it reached, as one that steers may; else it counts for nothing.
    #[serde(default)]
    pub counts_at_reached: bool,
    /// What the tool or the generator said that could not be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Certified {
    /// What a search came to.
    #[must_use]
    pub fn of(cell: &Cell) -> Self {
        let proof = proof(&cell.steps, cell.found);
        let sent = proof.iter().map(|step| step.trial.sent).sum();
        // Lossless trials have it.
        let captured = proof.iter().filter_map(|step| step.trial.counted.captured).sum();
        let repeated =
            cell.steps.iter().filter(|step| !step.trial.is_valid()).map(|step| Repeated {
                purpose: step.purpose,
                asked: step.trial.load.rate,
                reached: step.trial.reached,
                sent: step.trial.sent,
                captured: step.trial.counted.captured,
                faults: step.trial.faults.clone(),
                counts_at_reached: step.is_proof(),
                failure: step.trial.failure.clone(),
            });
        Self {
            size: cell.size,
            found: cell.found,
            not_certified: not_certified(cell),
            sent,
            captured,
            loss_below: (sent > 0).then(|| RULE_OF_THREE / sent as f64),
            confidence: CONFIDENCE,
            confirmations: proof.len(),
            runs: cell.steps.len(),
            repeated: repeated.collect(),
        }
    }

    /// A size that was not come to.
    #[must_use]
    pub fn unavailable(size: u32, why: &str) -> Self {
        Self {
            size,
            found: HighestRate::Ended,
            not_certified: Some(why.to_owned()),
            sent: 0,
            captured: 0,
            loss_below: None,
            confidence: CONFIDENCE,
            confirmations: 0,
            runs: 0,
            repeated: Vec::new(),
        }
    }

    /// The rate that is certified, in frames a second.
    #[must_use]
    pub const fn rate(&self) -> Option<f64> {
        match self.found {
            HighestRate::Rate(rate) | HighestRate::AtLeast(rate)
                if self.not_certified.is_none() =>
            {
                Some(rate)
            }
            _ => None,
        }
    }

    /// What a run says of the certified rate.
    #[must_use]
    pub fn judge(&self, trial: &Trial) -> RateVerdict {
        let Some(rate) = self.rate() else { return RateVerdict::Open };
        let (Some(reached), true) = (trial.reached, trial.is_valid()) else {
            return RateVerdict::Open;
        };
        let (is_slower, is_faster) =
            (reached < rate * (1.0 - MOST_OFF), reached > rate * (1.0 + MOST_OFF));
        match trial.is_lossless() {
            true if is_slower => RateVerdict::Open,
            true => RateVerdict::Holds,
            // Losses at full speed tell nothing of a lower rate.
            false if is_faster => RateVerdict::Open,
            false => RateVerdict::Fails,
        }
    }
}

fn not_certified(cell: &Cell) -> Option<String> {
    match cell.found {
        HighestRate::Rate(_) | HighestRate::AtLeast(_) => None,
        HighestRate::Below(_) => {
            Some("something was lost at the lowest rate that was tried".to_owned())
        }
        HighestRate::Ended => {
            Some(cell.ended.clone().unwrap_or("the search ended before".to_owned()))
        }
    }
}

/// What a run says of a certified rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateVerdict {
    /// Nothing was lost at it.
    Holds,
    /// Something was lost at it, or below.
    Fails,
    /// Nothing is decided yet.
    Open,
}

impl Statement {
    /// A statement, to be signed with a key.
    ///
    /// # Errors
    ///
    /// A sentence, where the key cannot be written down.
    pub fn new(
        made: String,
        configuration: Configuration,
        sizes: Vec<Certified>,
        key: &PublicKey,
    ) -> Result<Self, String> {
        let public_key = key.to_pem()?;
        Ok(Self { certificate: FORM, made, configuration, sizes, public_key })
    }

    /// The certificate: the text of a file.
    ///
    /// # Errors
    ///
    /// A sentence, where this key is not the one that the statement names.
    pub fn sign(&self, key: &PrivateKey) -> Result<String, String> {
        if PublicKey::of_pem(&self.public_key)? != key.public() {
            return Err("the statement names another key".to_owned());
        }
        let text = |error: serde_json::Error| error.to_string();
        let payload = serde_json::to_string_pretty(self).map_err(text)? + "\n";
        let envelope = Envelope::seal(payload.as_bytes(), key, key.public().fingerprint()?);
        Ok(serde_json::to_string_pretty(&envelope).map_err(text)? + "\n")
    }

    /// The statement of a certificate, if its signature is valid, and the key that signed it: the given one, or without
    /// one the key that it names itself, which anybody can have made.
    ///
    /// # Errors
    ///
    /// Where it is not.
    pub fn verified(
        text: &str,
        key: Option<&PublicKey>,
    ) -> Result<(Self, PublicKey), EnvelopeError> {
        let envelope = Envelope::parse(text)?;
        let named = || Named::of(&envelope.unverified()?);
        let key = key.map_or_else(named, |key| Ok(key.clone()))?;
        let payload = envelope.open(&key)?;
        if Named::of(&payload)? != key {
            return Err(EnvelopeError::Statement("it names another key than signed it".to_owned()));
        }
        let statement: Self = serde_json::from_slice(&payload)
            .map_err(|error| EnvelopeError::Statement(error.to_string()))?;
        Ok((statement, key))
    }
}

/// What has to be read before anything else.
#[derive(Deserialize)]
struct Named {
    certificate: u32,
    public_key: String,
}

impl Named {
    fn of(payload: &[u8]) -> Result<PublicKey, EnvelopeError> {
        let named: Self = serde_json::from_slice(payload)
            .map_err(|error| EnvelopeError::Statement(error.to_string()))?;
        if named.certificate != FORM {
            let said =
                format!("its form is {}, and {FORM} is what is known here", named.certificate);
            return Err(EnvelopeError::Statement(said));
        }
        PublicKey::of_pem(&named.public_key).map_err(EnvelopeError::Statement)
    }
}

#[cfg(test)]
mod tests;
