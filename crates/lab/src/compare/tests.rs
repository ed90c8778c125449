//! Which part of what was measured a side is.

use super::*;
use crate::search::sweep::Point;
use crate::trial::Trial;

fn run(tool: &str, settings: &[(&str, &str)]) -> Run {
    let settings = settings.iter().map(|(name, value)| setting(name, value)).collect();
    let point = Point {
        tool: tool.to_owned(),
        settings,
        load: Default::default(),
        host: Vec::new(),
        repetition: 0,
    };
    Run { point, trial: Trial::default() }
}

fn selection(text: &str) -> Selection {
    Selection::of_words(text.split(':').filter(|word| !word.is_empty())).unwrap()
}

fn choice(a: (&str, &[Run]), b: (&str, &[Run])) -> Result<[Selection; 2], String> {
    let chosen = choose([(selection(a.0), a.1), (selection(b.0), b.1)])?;
    Ok(chosen.map(|side| side.selection))
}

#[test]
fn words_are_a_tool_and_settings() {
    let wanted = selection("record:--ring=2M:filter=a=b");
    assert_eq!(wanted.tool.as_deref(), Some("record"));
    assert_eq!(wanted.settings, [setting("ring", "2M"), setting("filter", "a=b")]);
    for (words, said) in [
        (&["x", "y"][..], "y is a second tool: a side has one, or all"),
        (&["ring=1", "--ring=2"], "ring is given twice"),
        (&["x", ""], "there is nothing after a colon"),
    ] {
        assert_eq!(Selection::of_words(words.iter().copied()), Err(said.to_owned()));
    }
}

#[test]
fn a_side_is_completed_where_there_is_no_choice() {
    let both = [run("count", &[("wait", "poll")]), run("count", &[("wait", "adaptive")])];
    let other = [run("record", &[("wait", "poll")])];
    // What neither names stays what points are paired by.
    assert_eq!(choice(("", &both), ("", &other)), Ok([selection(""), selection("")]));
    let expected = [selection("count:wait=adaptive"), selection("record:wait=poll")];
    assert_eq!(choice(("count:wait=adaptive", &both), ("", &other)), Ok(expected));
    // A tool as it comes has no values.
    let plain = [run("count", &[])];
    let expected = [selection("wait=poll"), selection("")];
    assert_eq!(choice(("wait=poll", &both), ("", &plain)), Ok(expected));
    let said = choice(("", &both), ("wait=poll", &other)).unwrap_err();
    assert!(said.contains("B names a value of wait, and A has several: poll, adaptive"), "{said}");
    let tools = [run("count", &[]), run("record", &[])];
    let said = choice(("count", &tools), ("", &tools)).unwrap_err();
    assert!(said.contains("A names a tool, and B has several: count, record"), "{said}");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let runs = [run("count", &[("wait", "poll")]), run("record", &[("wait", "adaptive")])];
    let said = |text: &str| choice((text, &runs), ("", &runs)).unwrap_err();
    assert_eq!(said("pigeon"), "there is no tool pigeon in A; there are count, record");
    assert_eq!(said("ring=2M"), "there is no setting ring in A; there are wait");
    assert_eq!(said("count:wait=adaptive"), "there is no wait=adaptive in A; wait is poll");
    assert!(said("").starts_with("A and B are the same"));
    assert_eq!(choice(("", &[]), ("", &runs)).unwrap_err(), "nothing was measured in A");
}

#[test]
fn tools_are_paired_with_themselves_or_as_they_are_selected() {
    let (first, second) = ([run("x", &[]), run("y", &[])], [run("y", &[]), run("z", &[])]);
    let pairs_of = |a: &str, b: &str| {
        let sides = choose([(selection(a), &first[..]), (selection(b), &second[..])]).unwrap();
        let name = |tool: Option<String>| tool.unwrap_or_default();
        pairs(&sides).into_iter().map(|pair| pair.map(name).join(">")).collect::<Vec<_>>()
    };
    assert_eq!(pairs_of("", ""), ["x>", "y>y", ">z"]);
    assert_eq!(pairs_of("x", "z"), ["x>z"]);
    let (both, alone) = paired(&[3, 1, 2], &[2, 5, 3]);
    assert_eq!((both, alone), (vec![3, 2], vec![(Side::A, 1), (Side::B, 5)]));
}
