// Renews the parts of a page that change, as the server sends them. Text in them was escaped there.
const place = document.querySelector("[data-events]");
if (place) {
  let events = null;
  const button = document.createElement("button");
  button.type = "button";
  place.querySelector(".line").append(button);
  const state = document.createElement("p");
  state.className = "wrong";
  state.setAttribute("role", "status");
  state.hidden = true;
  place.querySelector(".line").after(state);
  let last = new Date();
  const begin = () => {
    events = new EventSource(place.dataset.events);
    events.addEventListener("open", () => (state.hidden = true));
    events.addEventListener("error", () => {
      // Where there was an answer that is no stream, nobody tries again.
      if (events.readyState === EventSource.CLOSED) setTimeout(() => events && begin(), 3000);
      state.hidden = false;
      state.textContent = "No connection to netsniff: what is shown is of " + last.toLocaleTimeString() + ".";
    });
    events.addEventListener("parts", (event) => {
      last = new Date();
      for (const [id, html] of Object.entries(JSON.parse(event.data))) {
        const part = document.getElementById(id);
        // Whoever stands on a link there would lose it.
        if (!part || part.contains(document.activeElement)) continue;
        // Read as the page was, or else the same would differ, and selections would go.
        const made = document.createElement("template");
        made.innerHTML = html;
        if (part.innerHTML !== made.innerHTML) part.replaceChildren(made.content);
      }
    });
    button.textContent = "Freeze";
    button.setAttribute("aria-pressed", "false");
  };
  const end = () => {
    events.close();
    events = null;
    state.hidden = true;
    button.textContent = "Go on";
    button.setAttribute("aria-pressed", "true");
  };
  button.addEventListener("click", () => (events ? end() : begin()));
  begin();
}
// Parts of a page that take a while: they read captures.
for (const part of document.querySelectorAll("[data-part]")) {
  const said = document.createElement("p");
  said.className = "note";
  said.setAttribute("role", "status");
  said.textContent = "Reading the packets…";
  part.append(said);
  fetch(part.dataset.part + "?part=1").then(async (answer) => {
    const text = await answer.text();
    if (answer.ok) part.innerHTML = text;
    else said.textContent = text;
  }, () => (said.textContent = "The picture could not be had."));
}
