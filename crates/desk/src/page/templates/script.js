
"use strict";
// Tables are whole without this: it sorts and searches them.
for (const table of document.querySelectorAll("table[data-sort]")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isNumber = head.classList.contains("n");
      const was = head.getAttribute("aria-sort");
      const isDown = was ? was === "ascending" : isNumber;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const key = (row) => {
        const cell = row.cells[at];
        const value = cell.dataset.value;
        // Numbers may be longer than a double is exact for.
        if (value !== undefined) return BigInt(value);
        const text = cell.textContent.trim();
        return isNumber || text === "\u2013" ? null : text.toLowerCase();
      };
      const order = (one, other) => {
        const [a, b] = [one[0], other[0]];
        // What is not known comes last, whichever way.
        if (a === null || b === null) return (a === null) - (b === null);
        if (a === b) return 0;
        return (a < b ? -1 : 1) * (isDown ? -1 : 1);
      };
      const rows = Array.from(body.rows, (row) => [key(row), row]).sort(order);
      body.append(...rows.map((row) => row[1]));
    });
  });
}
for (const table of document.querySelectorAll("table[data-search]")) {
  const rows = Array.from(table.tBodies[0].rows, (row) => [row.textContent.toLowerCase(), row]);
  const label = document.createElement("label");
  const input = document.createElement("input");
  const output = document.createElement("output");
  label.className = "search";
  input.type = "search";
  input.placeholder = "words that a row must have";
  input.setAttribute("aria-label", "Search: " + table.caption.textContent);
  label.append(input, output);
  table.parentElement.before(label);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const [text, row] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    output.textContent = words.length ? shown + " of " + rows.length + " rows" : "";
  });
}
