//! The page of a report.

use std::fmt::Write as _;

use super::escape::escape;
use super::plot::Palette;
use super::{Part, Plot, Report, Section, Table};

/// Colours follow what the reader's system asks for; plots are there in both.
const STYLE: &str = "\
:root{color-scheme:light dark;--page:#ffffff;--text:#1c1f23;--faint:#59636e;--line:#d5dae0;--box:#f5f7f9}\
@media(prefers-color-scheme:dark){:root{--page:#14171a;--text:#e6e9ec;--faint:#a3adb8;--line:#363d45;--box:#1d2226}}\
body{margin:0 auto;padding:1.5rem;max-width:112rem;background:var(--page);color:var(--text);\
font:16px/1.5 system-ui,sans-serif}\
h1{font-size:1.7rem;line-height:1.2}h2{font-size:1.25rem;margin-top:2.5rem}\
p,li,dd{max-width:75ch}figure{margin:1.5rem 0}figcaption,.note{color:var(--faint);font-size:.9rem;max-width:75ch}\
figure svg{width:100%;max-width:72rem;min-width:38rem;height:auto;display:block}.wide{overflow-x:auto}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(44rem,100%),1fr));gap:0 2rem}\
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}\
th,td{padding:.25rem .75rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}\
th{border-bottom-width:2px}td.number{text-align:right;white-space:nowrap}th.number{text-align:right}\
pre{background:var(--box);padding:.75rem;overflow-x:auto;font-size:.85rem}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;font-size:.9rem}dt{color:var(--faint)}dd{margin:0;\
overflow-wrap:anywhere}\
.dark{display:none}@media(prefers-color-scheme:dark){.dark{display:block}.light{display:none}}\
@media print{.dark{display:none}.light{display:block}}";

pub(super) fn page(report: &Report) -> String {
    let title = escape(&report.title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    for text in &report.lead {
        // A String takes everything.
        let _ = writeln!(page, "<p>{}</p>", escape(text));
    }
    for Section { title, parts } in &report.sections {
        let _ = writeln!(page, "<section>\n<h2>{}</h2>", escape(title));
        let is_picture = |part: &Part| matches!(part, Part::Plot(plot) if !plot.is_empty());
        for (number, part) in parts.iter().enumerate() {
            // Pictures that follow each other share a row where there is room.
            let beside =
                |at: Option<usize>| at.and_then(|at| parts.get(at)).is_some_and(is_picture);
            let (is_first, is_last) =
                (!beside(number.checked_sub(1)), !beside(number.checked_add(1)));
            if is_picture(part) && is_first {
                page += "<div class=\"plots\">\n";
            }
            match part {
                Part::Text(text) => {
                    let _ = writeln!(page, "<p>{}</p>", escape(text));
                }
                Part::Code(text) => {
                    let _ = writeln!(page, "<pre>{}</pre>", escape(text));
                }
                Part::Table(table) => put_table(&mut page, table),
                Part::Plot(plot) => put_plot(&mut page, plot),
            }
            if is_picture(part) && is_last {
                page += "</div>\n";
            }
        }
        page += "</section>\n";
    }
    if !report.facts.is_empty() {
        page += "<section>\n<h2>Where this was measured</h2>\n<dl>\n";
        for (name, value) in &report.facts {
            let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        page += "</dl>\n</section>\n";
    }
    page + "</body>\n</html>\n"
}

fn put_table(page: &mut String, table: &Table) {
    let class = |is_number: bool| if is_number { " class=\"number\"" } else { "" };
    *page += "<div class=\"wide\"><table>\n<thead><tr>";
    for (name, is_number) in &table.columns {
        // A String takes everything.
        let _ = write!(page, "<th scope=\"col\"{}>{}</th>", class(*is_number), escape(name));
    }
    *page += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        *page += "<tr>";
        for (cell, (_, is_number)) in row.iter().zip(&table.columns) {
            let _ = write!(page, "<td{}>{}</td>", class(*is_number), escape(cell));
        }
        *page += "</tr>\n";
    }
    *page += "</tbody>\n</table></div>\n";
    if let Some(note) = &table.note {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(note));
    }
}

fn put_plot(page: &mut String, plot: &Plot) {
    let title = escape(&plot.title);
    let note = plot.note().map_or_else(String::new, |note| escape(&note));
    if plot.is_empty() {
        // A String takes everything.
        let _ = writeln!(page, "<p><strong>{title}.</strong> {note}</p>");
        return;
    }
    let note = if note.is_empty() { note } else { format!("<br>{note}") };
    // A String takes everything.
    let _ = writeln!(
        page,
        "<figure>\n<div class=\"wide\">\n<div class=\"light\">{}</div>\n\
         <div class=\"dark\">{}</div>\n</div>\n\
         <figcaption><strong>{title}.</strong> {}{note}</figcaption>\n</figure>",
        plot.svg(Palette::Light),
        plot.svg(Palette::Dark),
        escape(&plot.caption)
    );
}

/// What [`Part::Code`] became in a page, as it was before.
pub(crate) fn blocks(page: &str) -> impl Iterator<Item = String> {
    let blocks = page.split("<pre>").skip(1).filter_map(|rest| rest.split_once("</pre>"));
    blocks.map(|(text, _)| unescape(text))
}

fn unescape(text: &str) -> String {
    // What an & was made of comes last, so that nothing is made of it.
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    marks.iter().fold(text.to_owned(), |text, (escaped, mark)| text.replace(escaped, mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_users_write_is_text() {
        let evil = "<script>\"a\" & 'b'</script>".to_owned();
        let table = Table {
            columns: vec![(evil.clone(), true)],
            rows: vec![vec![evil.clone()]],
            note: Some(evil.clone()),
        };
        let parts = vec![Part::Text(evil.clone()), Part::Code(evil.clone()), Part::Table(table)];
        let report = Report {
            title: evil.clone(),
            lead: vec![evil.clone()],
            facts: vec![(evil.clone(), evil.clone())],
            sections: vec![Section { title: evil, parts }],
        };
        let page = report.html();
        assert!(!page.contains("<script>"), "{page}");
        assert_eq!(
            page.matches("&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;").count(),
            11
        );
        assert_eq!(page.matches("class=\"number\"").count(), 2);
        assert!(!page.contains("http"), "nothing is loaded from anywhere");
    }

    #[test]
    fn code_is_found_again_in_a_page() {
        let codes = ["a < b && \"c\" > 'd'\n", "&lt;pre&gt; </pre> &amp;amp;", "\u{1b}[2J\t"];
        let parts = codes.map(|code| Part::Code(code.to_owned())).to_vec();
        let report = Report {
            sections: vec![Section { title: "<pre>".to_owned(), parts }],
            ..Report::default()
        };
        let found: Vec<_> = blocks(&report.html()).collect();
        assert_eq!(found, [codes[0], codes[1], "\u{fffd}[2J\t"]);
    }
}
