//! Whoever has no mouse, or sees no picture: what can be used is reached by Tab, and parts of a page have names.

use crate::browser_bed::{Chromium, Folder, Server, netsniff, recorded};

/// All that Tab should stop at, in order: links, buttons, fields, and tables that scroll.
const REACHABLE: &str = "Array.from(document.querySelectorAll(\
    'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex=\"0\"]'))\
    .filter((it) => it.checkVisibility({ visibilityProperty: true }) && !it.disabled)";

#[test]
fn tab_reaches_everything_and_parts_have_names() {
    let Some(chromium) = Chromium::start("no key was pressed") else { return };
    let folder = Folder::new("keyboard");
    let capture = recorded("office.pcapng");
    netsniff(&[
        "analyze",
        "-q",
        "--notices",
        "--series",
        "1s",
        capture.to_str().unwrap(),
        "-o",
        folder.text(),
    ]);
    let server = Server::start(&[folder.text()]);
    let page = chromium.page();
    for path in ["/", "/connections?rows=4", "/health"] {
        page.go(&format!("{}{path}", server.url));
        let all: usize = page.value(&format!("(window.all = {REACHABLE}).length"));
        assert!(all > 6, "{path}: {all}");
        page.value::<()>(
            "(window.stops = [], document.addEventListener('focusin', (event) => \
             window.stops.push(window.all.indexOf(event.target))), null)",
        );
        for _ in 0..all {
            page.press("Tab");
        }
        let reached: Vec<i64> = page.value("window.stops");
        assert_eq!(reached, (0..all as i64).collect::<Vec<_>>(), "{path}");
        // What has the focus can be seen to have it.
        page.value::<()>("(window.all[0].blur(), null)");
        let outlined: String = page.value(
            "(window.all.at(-1).focus({ focusVisible: true }), getComputedStyle(document.activeElement).outlineStyle)",
        );
        assert_ne!(outlined, "none", "{path}");

        // The first stop leads past what all pages have.
        page.go(&format!("{}{path}", server.url));
        page.press("Tab");
        page.press("Enter");
        page.await_true("location.hash === '#main'");

        for (what, number) in [
            ("main", 1),
            ("body > header", 1),
            ("nav[aria-label]", 1),
            ("body > footer", 1),
            ("h1", 1),
            ("html[lang]", 1),
            ("table:not(:has(> caption))", 0),
            ("th:not([scope])", 0),
            ("nav:not([aria-label])", 0),
        ] {
            let found: usize = page.value(&format!("document.querySelectorAll('{what}').length"));
            assert_eq!(found, number, "{path}: {what}");
        }
        let nameless: Vec<String> = page.value(
            "Array.from(document.querySelectorAll('a[href], button, input:not([type=hidden])')).filter((it) => \
             !(it.textContent.trim() || it.getAttribute('aria-label') || it.labels?.length)).map((it) => it.outerHTML)",
        );
        assert!(nameless.is_empty(), "{path}: {nameless:?}");
        let levels: Vec<usize> = page.value(
            "Array.from(document.querySelectorAll('h1,h2,h3,h4'), (it) => Number(it.tagName[1]))",
        );
        assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{path}: {levels:?}");
        for width in [1280, 420] {
            page.look(width, 900, false);
            let wide: u32 = page.value("document.documentElement.scrollWidth");
            assert!(wide <= width, "{path} is {wide} wide in a window of {width}");
        }
        page.look(1280, 900, false);
        page.is_clean(&server.url);
    }
}
