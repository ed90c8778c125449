//! The picture of one connection as a page:
//!
//! ```sh
//! netsniff extract day.pcapng --uid UID -w - | cargo run -p netsniff-desk --example sequence -- UID > page.html
//! ```

use std::io::{self, Write as _};

use netsniff_desk::sequence::{Limits, STYLE, of};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uid = std::env::args().nth(1).unwrap_or_default();
    let sequence = of(io::stdin().lock(), &uid, Limits::default())?;
    let page = "--page:#fff;--text:#1a1f26;--line:#d6dce3";
    let dark = "--page:#101317;--text:#e7ebef;--line:#343c46";
    writeln!(
        io::stdout(),
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Connection {}</title>\
         <style>:root{{{page}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}\
         body{{background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:auto}}\
         .n{{text-align:right}}td,th{{padding:2px 12px;text-align:left}}{STYLE}</style><body>{}</body></html>",
        sequence.uid,
        sequence.html()?
    )?;
    Ok(())
}
