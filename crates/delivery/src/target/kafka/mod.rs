//! Records of Kafka: one for each row, which is delivered once all in-sync replicas of its partition have it.

mod client;
mod topic;
mod value;

use std::time::Duration;

use krafka::error::ErrorCode;
use krafka::{KrafkaError, Record};

use self::client::Client;
use self::topic::Topic;
use self::value::{Form, key};
use super::{Answer, Opened, Receiver, RowAnswer, set};
use crate::Address;
use crate::identity::Row;
use crate::spool::BatchBounds;

const BOUNDS: BatchBounds =
    BatchBounds { rows: 5000, bytes: 2 << 20, linger: Duration::from_millis(500) };

pub(super) fn open(mut address: Address) -> anyhow::Result<Opened> {
    let topic = Topic::of(&address)?;
    let form = Form::of(&mut address)?;
    let (client, ports) = Client::new(&mut address)?;
    address.no_more_parameters()?;
    Ok(Opened { receiver: Box::new(Records { topic, form, client }), ports, bounds: BOUNDS })
}

struct Records {
    topic: Topic,
    form: Form,
    client: Client,
}

impl Records {
    /// The record of a row; the error is why it can never be one.
    fn record(&self, row: &Row<'_>) -> Result<Record, String> {
        let record = Record::new(self.topic.of_log(row.log), self.form.value(row)?);
        // Kafka counts milliseconds.
        let record = record.timestamp(row.happened().div_euclid(1_000_000));
        Ok(match key(row.json) {
            Some(key) => record.key(key),
            None => record,
        })
    }

    /// Sends records with the places of their rows, and notes what became of each.
    ///
    /// A broker judges records that come together, and says of all of them what may be true of one: these are sent in parts, down to a
    /// single one, which is refused.
    fn settle(&mut self, all: Vec<(usize, Record)>, answers: &mut [RowAnswer]) {
        let mut groups = vec![all];
        while let Some(group) = groups.pop() {
            let records: Vec<_> = group.iter().map(|(_, record)| record.clone()).collect();
            let is_single = records.len() == 1;
            let (mut unfit, mut untimed) = (Vec::new(), Vec::new());
            for ((at, record), error) in group.into_iter().zip(self.client.send(records)) {
                let Some(error) = error else {
                    set(answers, at, RowAnswer::Accepted);
                    continue;
                };
                if is_of_records(&error) && !is_single {
                    unfit.push((at, record));
                    continue;
                }
                if is_of_time(&error) && record.timestamp.is_some() {
                    let mut record = record;
                    record.timestamp = None;
                    untimed.push((at, record));
                    continue;
                }
                let why = self.client.told(&error);
                let is_refused = is_of_records(&error);
                let answer =
                    if is_refused { RowAnswer::Refused(why) } else { RowAnswer::Later(why) };
                set(answers, at, answer);
            }
            let half = unfit.split_off(unfit.len() / 2);
            groups.extend([half, unfit, untimed].into_iter().filter(|part| !part.is_empty()));
        }
    }
}

/// Whether a broker takes no records of such times (`message.timestamp.after.max.ms`, an hour ahead of its clock unless told). A record
/// is then sent without its time: the row has it as well.
const fn is_of_time(error: &KrafkaError) -> bool {
    matches!(error, KrafkaError::Broker { code: ErrorCode::InvalidTimestamp, .. })
}

/// Whether an error speaks of the records themselves. All others may be due to how a cluster or an address is set up.
const fn is_of_records(error: &KrafkaError) -> bool {
    use ErrorCode::{InvalidRecord, MessageTooLarge, RecordListTooLarge};
    is_of_time(error)
        || matches!(
            error,
            KrafkaError::Broker { code: MessageTooLarge | RecordListTooLarge | InvalidRecord, .. }
        )
}

impl Receiver for Records {
    fn send(&mut self, rows: &[Row<'_>]) -> Answer {
        let (mut answers, mut records) = (Vec::with_capacity(rows.len()), Vec::new());
        for (at, row) in rows.iter().enumerate() {
            answers.push(match self.record(row) {
                Ok(record) => {
                    records.push((at, record));
                    RowAnswer::Later("there was no answer".to_owned())
                }
                Err(why) => RowAnswer::Refused(why),
            });
        }
        self.settle(records, &mut answers);
        Answer::Each(answers)
    }
}

#[cfg(test)]
mod tests;
