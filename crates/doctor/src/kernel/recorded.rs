//! Answers that were recorded on a machine, and whoever records them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use netsniff_capture::ethtool::Ethtool;
use netsniff_capture::host::{PacketSocket, Qdisc};
use serde::{Deserialize, Serialize};

use super::Kernel;

/// What a kernel answered to each question, in the order in which it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers(BTreeMap<String, Vec<Answer>>);

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Text(String),
    Names(Vec<String>),
    Words(Vec<u32>),
    Sockets(Vec<PacketSocket>),
    Qdiscs(Vec<Qdisc>),
    Holders(Vec<(u32, Vec<String>)>),
    /// A number of errno(3); 0 where there was none.
    Failed(i32),
}

impl Answer {
    fn of<T>(result: &io::Result<T>, good: impl FnOnce(&T) -> Self) -> Self {
        match result {
            Ok(value) => good(value),
            Err(error) => Self::Failed(error.raw_os_error().unwrap_or_default()),
        }
    }
}

fn question_of(interface: &str, words: &[u32]) -> String {
    // What is asked stands in the first words; what follows is room, whose size matters.
    let head: Vec<_> = words.iter().take(4).map(|word| format!("{word:x}")).collect();
    format!("ethtool {interface} {} {}", words.len(), head.join(" "))
}

/// Answers in the place of a kernel. A question that was asked again is answered as it was then; asked more often, as it
/// was the last time. What is written is remembered, and read again from then on.
#[derive(Debug, Default)]
pub struct Recorded {
    answers: Answers,
    asked: RefCell<BTreeMap<String, usize>>,
    written: RefCell<BTreeMap<String, String>>,
}

impl Recorded {
    /// The kernel that answered so.
    #[must_use]
    pub fn new(answers: Answers) -> Self {
        Self { answers, ..Self::default() }
    }

    /// A kernel with files of these names and texts.
    #[must_use]
    pub fn of_files<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let answer = |(path, text): (&str, &str)| {
            (format!("read {path}"), vec![Answer::Text(text.to_owned())])
        };
        Self::new(Answers(files.into_iter().map(answer).collect()))
    }

    /// Whatever was written, by the names of files.
    #[must_use]
    pub fn written(&self) -> BTreeMap<String, String> {
        self.written.borrow().clone()
    }

    fn answer(&self, question: &str) -> io::Result<&Answer> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let answers = self.answers.0.get(question).ok_or_else(missing)?;
        let mut asked = self.asked.borrow_mut();
        let number = asked.entry(question.to_owned()).or_default();
        let answer = answers.get(*number).or(answers.last()).ok_or_else(missing)?;
        *number += 1;
        match answer {
            Answer::Failed(0) => Err(missing()),
            Answer::Failed(number) => Err(io::Error::from_raw_os_error(*number)),
            answer => Ok(answer),
        }
    }
}

/// An answer of another kind than the question wants.
fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the recorded answer is of another kind")
}

impl Ethtool for Recorded {
    fn ask(&self, interface: &str, words: &mut [u32]) -> io::Result<()> {
        let question = question_of(interface, words);
        let answer = match self.answer(&question) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(io::Error::from(io::ErrorKind::Unsupported));
            }
            answer => answer?,
        };
        let Answer::Words(answer) = answer else { return Err(wrong()) };
        words.iter_mut().zip(answer).for_each(|(word, answer)| *word = *answer);
        Ok(())
    }
}

impl Kernel for Recorded {
    fn read(&self, path: &str) -> io::Result<String> {
        if let Some(value) = self.written.borrow().get(path) {
            return Ok(value.clone());
        }
        match self.answer(&format!("read {path}"))? {
            Answer::Text(text) => Ok(text.clone()),
            _ => Err(wrong()),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        match self.answer(&format!("list {path}"))? {
            Answer::Names(names) => Ok(names.clone()),
            _ => Err(wrong()),
        }
    }

    fn target(&self, path: &str) -> io::Result<String> {
        match self.answer(&format!("target {path}"))? {
            Answer::Text(text) => Ok(text.clone()),
            _ => Err(wrong()),
        }
    }

    fn holders(&self, _: &[String]) -> Vec<(u32, Vec<String>)> {
        match self.answer("holders") {
            Ok(Answer::Holders(pids)) => pids.clone(),
            _ => Vec::new(),
        }
    }

    fn packet_sockets(&self) -> io::Result<Vec<PacketSocket>> {
        match self.answer("packet_sockets")? {
            Answer::Sockets(sockets) => Ok(sockets.clone()),
            _ => Err(wrong()),
        }
    }

    fn qdiscs(&self) -> io::Result<Vec<Qdisc>> {
        match self.answer("qdiscs")? {
            Answer::Qdiscs(all) => Ok(all.clone()),
            _ => Err(wrong()),
        }
    }

    fn write(&self, path: &str, value: &str) -> io::Result<()> {
        self.read(path)?;
        self.written.borrow_mut().insert(path.to_owned(), value.trim().to_owned());
        Ok(())
    }
}

/// Asks a kernel, and writes down what it answers.
#[derive(Debug)]
pub struct Recorder<'a, K: Kernel> {
    kernel: &'a K,
    answers: RefCell<Answers>,
}

impl<'a, K: Kernel> Recorder<'a, K> {
    /// Nothing asked yet.
    pub fn new(kernel: &'a K) -> Self {
        Self { kernel, answers: RefCell::default() }
    }

    /// Whatever was answered.
    #[must_use]
    pub fn answers(self) -> Answers {
        self.answers.into_inner()
    }

    fn note(&self, question: String, answer: Answer) {
        self.answers.borrow_mut().0.entry(question).or_default().push(answer);
    }
}

impl<K: Kernel> Ethtool for Recorder<'_, K> {
    fn ask(&self, interface: &str, words: &mut [u32]) -> io::Result<()> {
        let question = question_of(interface, words);
        let result = self.kernel.ask(interface, words);
        self.note(question, Answer::of(&result, |()| Answer::Words(words.to_vec())));
        result
    }
}

impl<K: Kernel> Kernel for Recorder<'_, K> {
    fn read(&self, path: &str) -> io::Result<String> {
        let result = self.kernel.read(path);
        self.note(format!("read {path}"), Answer::of(&result, |text| Answer::Text(text.clone())));
        result
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let result = self.kernel.list(path);
        self.note(format!("list {path}"), Answer::of(&result, |all| Answer::Names(all.clone())));
        result
    }

    fn target(&self, path: &str) -> io::Result<String> {
        let result = self.kernel.target(path);
        self.note(format!("target {path}"), Answer::of(&result, |to| Answer::Text(to.clone())));
        result
    }

    fn holders(&self, wanted: &[String]) -> Vec<(u32, Vec<String>)> {
        let pids = self.kernel.holders(wanted);
        self.note("holders".to_owned(), Answer::Holders(pids.clone()));
        pids
    }

    fn packet_sockets(&self) -> io::Result<Vec<PacketSocket>> {
        let result = self.kernel.packet_sockets();
        self.note(
            "packet_sockets".to_owned(),
            Answer::of(&result, |all| Answer::Sockets(all.clone())),
        );
        result
    }

    fn qdiscs(&self) -> io::Result<Vec<Qdisc>> {
        let result = self.kernel.qdiscs();
        self.note("qdiscs".to_owned(), Answer::of(&result, |all| Answer::Qdiscs(all.clone())));
        result
    }

    fn write(&self, path: &str, value: &str) -> io::Result<()> {
        self.kernel.write(path, value)
    }
}
