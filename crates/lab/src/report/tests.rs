//! A small and strict reader of XML, as pictures have it; and the files of a report.

use super::*;

/// An element: its name, its attributes, and the text that is directly in it.
#[derive(Debug, Default)]
pub(super) struct Tag {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) text: String,
}

impl Tag {
    pub(super) fn of(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// All elements of a well-formed document, the outer ones first.
///
/// # Panics
///
/// Where it is not well-formed.
pub(super) fn xml(text: &str) -> Vec<Tag> {
    let is_allowed = |letter: char| {
        matches!(letter, '\t' | '\n' | '\r')
            || (letter >= ' ' && !matches!(letter, '\u{fffe}' | '\u{ffff}'))
    };
    assert!(text.chars().all(is_allowed), "letters that XML does not have: {text:?}");
    let (mut tags, mut open): (Vec<Tag>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        put_text(&mut tags, &open, &rest[..at]);
        let end = rest[at..].find('>').expect("every tag ends") + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        assert!(!tag.contains('<'), "a tag in a tag: {tag}");
        if let Some(name) = tag.strip_prefix('/') {
            let last = open.pop().expect("nothing ends that did not begin");
            assert_eq!(tags[last].name, name);
            continue;
        }
        assert!(!open.is_empty() || tags.is_empty(), "one element has all others: {tag}");
        let (tag, is_empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        tags.push(element(tag));
        if !is_empty {
            open.push(tags.len() - 1);
        }
    }
    put_text(&mut tags, &open, rest);
    assert!(open.is_empty() && !tags.is_empty(), "something does not end");
    for tag in &mut tags {
        tag.text = tag.text.trim().to_owned();
    }
    tags
}

fn put_text(tags: &mut [Tag], open: &[usize], text: &str) {
    match open.last() {
        Some(last) => tags[*last].text += &unescaped(text),
        None => assert!(text.trim().is_empty(), "text outside of everything: {text}"),
    }
}

fn element(tag: &str) -> Tag {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(!name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric()), "{tag}");
    let mut element = Tag { name: name.to_owned(), ..Tag::default() };
    while !rest.trim().is_empty() {
        let (name, value) = rest.trim_start().split_once("=\"").expect("attributes have values");
        let (value, others) = value.split_once('"').expect("values end");
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        assert!(!name.is_empty() && name.chars().all(is_name), "{tag}");
        assert!(element.of(name).is_none(), "{name} is twice in {tag}");
        assert!(others.is_empty() || others.starts_with(' '), "{tag}");
        element.attributes.push((name.to_owned(), unescaped(value)));
        rest = others;
    }
    element
}

fn unescaped(text: &str) -> String {
    const ENTITIES: [(&str, char); 6] =
        [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("#39", '\'')];
    assert!(!text.contains("]]>"), "the end of a section of characters: {text}");
    let mut parts = text.split('&');
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, more) = part.split_once(';').expect("an & begins an entity");
        let known = ENTITIES.iter().find(|(entity, _)| *entity == name);
        all.push(known.unwrap_or_else(|| panic!("there is no entity {name}")).1);
        all += more;
    }
    all
}

#[test]
fn what_is_no_xml_is_refused() {
    let tags = xml("<a b=\"1 &lt;\"><c/>x &amp; y</a>");
    assert_eq!((tags.len(), tags[0].of("b"), tags[0].text.as_str()), (2, Some("1 <"), "x & y"));
    for wrong in [
        "",
        "x",
        "<a>",
        "</a>",
        "<a></b>",
        "<a b></a>",
        "<a b=1/>",
        "<a b=\"1\" b=\"2\"/>",
        "<a/><b/>",
        "<a>&</a>",
        "<a>&x;</a>",
        "<a>\u{1}</a>",
        "<a>]]></a>",
        "<a><</a>",
        "<a b=\"1\"c=\"2\"/>",
    ] {
        assert!(std::panic::catch_unwind(|| xml(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn pictures_are_named_after_their_plots_and_all_are_there() {
    let plot =
        |title: &str| Part::Plot(Plot::new(title, "", Chart::Waterfall(Waterfall::default())));
    let titles = [
        "Loss against rate",
        "Loss against rate",
        "../<x>: of 64/s",
        "\u{3c3}",
        &"word ".repeat(40),
    ];
    let parts = titles.map(plot).to_vec();
    let sections = vec![Section { title: String::new(), parts }];
    let pictures = Report { sections, ..Report::default() }.pictures();
    let names: Vec<_> = pictures.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names.len(), 2 * titles.len());
    assert_eq!(
        names[..3],
        [
            "loss-against-rate-light.svg",
            "loss-against-rate-dark.svg",
            "loss-against-rate-2-light.svg"
        ]
    );
    assert_eq!((names[4], names[6]), ("x-of-64-s-light.svg", "plot-light.svg"));
    assert!(names.iter().all(|name| name.len() <= MOST_NAME + "-light.svg".len()), "{names:?}");
    assert!(pictures.iter().all(|(_, svg)| xml(svg)[0].name == "svg"));
    assert_ne!(pictures[0].1, pictures[1].1);
}
