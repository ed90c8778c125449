//! The page of `netsniff report`: its script sorts and searches tables.

use crate::browser_bed::{Chromium, Folder, Page, netsniff, recorded};

/// A cell of a row: the number behind it, and its text.
type Cell = (Option<String>, String);

fn rows(page: &Page, id: &str) -> Vec<Vec<Cell>> {
    page.value(&format!(
        "Array.from(document.querySelectorAll('#{id} tbody tr'), (row) => \
         Array.from(row.cells, (cell) => [cell.dataset.value ?? null, cell.textContent.trim()]))"
    ))
}

/// What a column is in order by; nothing for what is not known.
fn key(cell: &Cell, is_number: bool) -> Option<(i128, String)> {
    match (&cell.0, cell.1.as_str()) {
        (Some(value), _) => Some((value.parse().unwrap(), String::new())),
        (None, "\u{2013}") => None,
        (None, _) if is_number => None,
        (None, text) => Some((0, text.to_lowercase())),
    }
}

#[test]
fn tables_are_sorted_and_searched() {
    let Some(chromium) = Chromium::start("no table of a report was sorted") else { return };
    let folder = Folder::new("report");
    let file = folder.0.join("report.html");
    let capture = recorded("office.pcapng");
    netsniff(&["report", capture.to_str().unwrap(), "-o", file.to_str().unwrap()]);
    let url = format!("file://{}", file.display());
    let page = chromium.open(&url);
    page.shoot("report");
    let tables: Vec<(String, Vec<bool>)> = page.value(
        "Array.from(document.querySelectorAll('table[data-sort]'), (table) => \
         [table.id, Array.from(table.tHead.rows[0].cells, (cell) => cell.classList.contains('n'))])",
    );
    assert!(tables.len() > 5, "{tables:?}");
    // Tables of values behind pictures are folded away.
    page.value::<usize>(
        "Array.from(document.querySelectorAll('details'), (it) => it.open = true).length",
    );
    // By the mouse once; the other orders by what the mouse does.
    let (id, columns) = &tables[0];
    page.click(&format!("#{id} thead th:nth-child({}) button", columns.len()));
    let order: Option<String> =
        page.value(&format!("document.querySelector('#{id} thead th:last-child').ariaSort"));
    assert!(order.is_some(), "a click on {id} sorts nothing");
    let mut sorted = 0;
    for (id, columns) in &tables {
        let before = rows(&page, id);
        for (at, is_number) in columns.iter().enumerate() {
            for (now, order) in twice(&page, id, at) {
                check_order(&now, at, *is_number, &order, id);
                let (mut all, mut were) = (now, before.clone());
                all.sort();
                were.sort();
                assert_eq!(all, were, "{id} has lost or won rows");
                sorted += 1;
            }
        }
    }
    assert!(sorted > 40, "{sorted}");
    search(&page);
    page.is_clean(&url);
}

/// The rows and the order that the head of a column tells, after a click on it and after a second one.
fn twice(page: &Page, id: &str, at: usize) -> [(Vec<Vec<Cell>>, String); 2] {
    page.value(&format!(
        "(() => {{ const head = document.getElementById('{id}').tHead.rows[0].cells[{at}]; \
         const look = () => {{ head.querySelector('button').click(); return [Array.from( \
         document.querySelectorAll('#{id} tbody tr'), (row) => Array.from(row.cells, (cell) => \
         [cell.dataset.value ?? null, cell.textContent.trim()])), head.getAttribute('aria-sort')]; }}; \
         return [look(), look()]; }})()"
    ))
}

fn check_order(rows: &[Vec<Cell>], at: usize, is_number: bool, order: &str, id: &str) {
    let is_down = order == "descending";
    let keys: Vec<_> = rows.iter().map(|row| key(&row[at], is_number)).collect();
    let mut wanted = keys.clone();
    // What is not known comes last, whichever way.
    wanted.sort_by(|one, other| match (one, other) {
        (Some(one), Some(other)) if is_down => other.cmp(one),
        (Some(one), Some(other)) => one.cmp(other),
        _ => one.is_none().cmp(&other.is_none()),
    });
    assert_eq!(keys, wanted, "{id}, column {at}, {order}");
}

fn search(page: &Page) {
    let ids: Vec<String> = page
        .value("Array.from(document.querySelectorAll('table[data-search]'), (table) => table.id)");
    assert!(!ids.is_empty());
    for id in &ids {
        let all: Vec<String> = page.value(&format!(
            "Array.from(document.querySelectorAll('#{id} tbody tr'), (row) => row.textContent.toLowerCase())"
        ));
        let words = &all[0].split_whitespace().next().unwrap()[..3];
        let found = all.iter().filter(|text| text.contains(words)).count();
        page.value::<()>(&format!(
            "(document.getElementById('{id}').parentElement.previousElementSibling\
             .querySelector('input').id = 'search-{id}', null)"
        ));
        page.type_into(&format!("#search-{id}"), words);
        let (shown, told): (usize, String) = page.value(&format!(
            "[Array.from(document.querySelectorAll('#{id} tbody tr')).filter((row) => row.checkVisibility()).length, \
             document.querySelector('#search-{id} + output').textContent]"
        ));
        assert_eq!(shown, found, "{id}: {words}");
        assert_eq!(told, format!("{found} of {} rows", all.len()));
    }
}
