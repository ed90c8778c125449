//! Pictures and numbers as a piece of HTML, for a page that has the style.

use minijinja::{AutoEscape, Environment, Value, context};
use netsniff_console::number::{duration, exact};

use super::facts::{Direction, Gap, Kind, Sequence};
use super::following::SignKind;
use super::marks::Class;
use super::plot::{class_name, gap_name};

/// What the pictures look like, in light and in dark. A page that contains them needs it.
pub const STYLE: &str = include_str!("templates/sequence.css");

const TEMPLATE: &str = include_str!("templates/sequence.html");

impl Sequence {
    /// Both pictures with their legends and tables.
    ///
    /// # Errors
    ///
    /// Where the template is wrong, which tests exclude.
    pub fn html(&self) -> Result<String, minijinja::Error> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.add_template("sequence.html", TEMPLATE)?;
        let sides = [0, 1].map(|role| {
            let side = &self.directions[role];
            context! {
                id => role,
                from => side.from,
                to => side.to,
                svg => self.svg(role),
                legend => self.legend(side),
                notes => self.notes_of(side),
                gaps => side.gaps.iter().map(gap).collect::<Vec<_>>(),
                more_gaps => side.more_gaps,
            }
        });
        let [first, second] = &self.directions;
        let figures = first.figures.iter().map(|figure| {
            let values = [figure.value, second.figure(figure.column)].map(number);
            context! { name => figure.name, column => figure.column, values => values }
        });
        environment.get_template("sequence.html")?.render(context! {
            uid => self.uid,
            is_tcp => self.kind == Kind::Tcp,
            notes => self.notes(),
            sides => sides,
            figures => figures.collect::<Vec<_>>(),
            words => self.words,
            whole => self.whole.iter().map(|(name, value)| (*name, number(*value))).collect::<Vec<_>>(),
        })
    }

    /// What is wrong with the pictures as a whole.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_cut {
            notes.push(format!(
                "Only the first {} packets were read: pictures and numbers are of these alone.",
                exact(self.datagrams.into())
            ));
        }
        if self.damage > 0 {
            notes.push(format!("The capture is damaged at {} places.", self.damage));
        }
        if self.is_named_otherwise {
            notes.push(format!(
                "Among these packets alone the connection has the name {}: it is the innermost one of the first packet.",
                self.uid
            ));
        }
        if self.others > 0 {
            notes.push(format!("{} packets are of other connections.", exact(self.others.into())));
        }
        notes
    }

    /// What the picture of a side cannot show.
    fn notes_of(&self, side: &Direction) -> Vec<String> {
        let mut notes = Vec::new();
        if self.kind == Kind::Datagrams {
            return notes;
        }
        let all = || Class::ALL.iter().map(|class| side.strokes(*class));
        let most = all().map(super::Strokes::most_segments).max().unwrap_or(0);
        if most > 1 {
            notes.push(format!("Each mark is up to {most} segments."));
        }
        let left_out: u64 = all().map(|strokes| strokes.left_out).sum();
        if left_out > 0 {
            notes.push(format!("{} segments have no mark.", exact(left_out.into())));
        }
        if side.track.acknowledged.stride > 1 || side.track.window.stride > 1 {
            let stride = side.track.acknowledged.stride.max(side.track.window.stride);
            notes.push(format!("The lines have a point for each {stride} changes."));
        }
        if side.track.far > 0 {
            notes.push(format!(
                "{} segments lie more than 1 GiB from the others, and are not drawn.",
                exact(side.track.far.into())
            ));
        }
        if side.track.more_signs > 0 {
            notes.push(format!("{} signs are not drawn.", exact(side.track.more_signs.into())));
        }
        let window = match side.track.window.highest() {
            None if side.track.acknowledged.points.is_empty() => "",
            None => "The limit of the window is not known: the SYN with its scale was not seen.",
            Some(_) if side.shows_window() => "",
            Some(_) => "The limit of the other side's window lies above the picture.",
        };
        if !window.is_empty() {
            notes.push(window.to_owned());
        }
        notes
    }

    /// Marks that are in the picture of a side: class, kind of mark, and meaning.
    fn legend(&self, side: &Direction) -> Vec<(&'static str, &'static str, &'static str)> {
        if self.kind == Kind::Datagrams {
            return vec![("seq-bytes", "line", "payload bytes so far")];
        }
        let mut legend = Vec::new();
        for class in Class::ALL.iter().filter(|class| !side.strokes(**class).list.is_empty()) {
            legend.push((class_name(*class), "stroke", meaning(*class)));
        }
        if !side.track.acknowledged.points.is_empty() {
            legend.push(("seq-ack", "line", "acknowledged by the other side up to here"));
        }
        if side.shows_window() {
            let meaning = "limit of the other side's window, up to where it leaves the picture";
            legend.push(("seq-window", "line", meaning));
        }
        for kind in SignKind::ALL {
            if side.track.signs.iter().any(|sign| sign.kind == kind) {
                legend.push(of_sign(kind));
            }
        }
        let gaps = [
            ("seq-gap-capture", "lost by the capture: never seen, though acknowledged"),
            ("seq-gap-network", "lost by the network"),
            ("seq-gap-unknown", "missing, and nothing tells who lost it"),
        ];
        let has = |name: &str| {
            side.gaps.iter().any(|gap| gap.what == "data" && gap_name(&gap.cause) == name)
        };
        legend.extend(
            gaps.into_iter().filter(|(name, _)| has(name)).map(|(name, text)| (name, "box", text)),
        );
        legend
    }
}

const fn meaning(class: Class) -> &'static str {
    match class {
        Class::Data => "data, first byte to last byte of a segment",
        Class::Again => "sent again",
        Class::Needless => "sent again though the other side had it",
        Class::Late => "out of order",
        Class::Doubled => "the same packet twice",
        Class::Probe => "keep-alive or window probe",
        Class::Refused => "accepted by no host",
        Class::Sack => "reported by SACK",
    }
}

const fn of_sign(kind: SignKind) -> (&'static str, &'static str, &'static str) {
    match kind {
        SignKind::Syn => ("seq-syn", "syn", "SYN"),
        SignKind::Fin => ("seq-fin", "box", "FIN"),
        SignKind::Rst => ("seq-rst", "cross", "RST"),
        SignKind::ZeroWindow => ("seq-zero", "zero", "window of 0 from the other side"),
    }
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| exact(value.into()))
}

fn gap(gap: &Gap) -> Value {
    let time = |nanos: i64| {
        let sign = if nanos < 0 { "-" } else { "" };
        format!("{sign}{}", duration(nanos.unsigned_abs()))
    };
    context! {
        what => gap.what,
        start => exact(gap.start.into()),
        end => exact(gap.end.into()),
        bytes => number(gap.bytes),
        cause => gap.cause,
        ended => gap.ended,
        at => time(gap.at),
        until => time(gap.until),
    }
}
