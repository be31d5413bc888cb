// The command palette: every page, mailbox and action by a few letters of its name. Its entries are the links of the navigation.

const dialog = document.getElementById("palette");
const input = document.getElementById("palette-input");
const list = document.getElementById("palette-list");
let shown = [];
let chosen = 0;

/** The words of an element that people see, without what is only said. */
function wordsOf(element) {
  const copy = element.cloneNode(true);
  for (const one of copy.querySelectorAll(".sr, .count, kbd, svg, small")) one.remove();
  return copy.textContent.trim();
}

/** Links of the navigation with the group that they are in. */
function places() {
  const nav = [...document.querySelectorAll(".side-nav a[href]")].map((link) => {
    const group = link.closest("details")?.querySelector("summary");
    const box = link.querySelector(".box small")?.textContent;
    const inside = !box && link.closest("#side-mailboxes") ? document.querySelector(".open-box .box > span")?.textContent : "";
    return { name: wordsOf(link), note: box || inside || (group ? wordsOf(group) : ""), run: () => { location.href = link.href; } };
  });
  const account = [...document.querySelectorAll(".account-menu a[href]")]
    .map((link) => ({ name: wordsOf(link), note: "Account", run: () => { location.href = link.href; } }));
  return [...nav, ...account];
}

function actions() {
  const mailbox = document.body.dataset.writing;
  const press = (selector) => () => document.querySelector(selector)?.click();
  const all = [
    { name: "Toggle dark mode", note: "Action", run: press("[data-theme-toggle]") },
    { name: "Keyboard shortcuts", note: "Action", run: press("[data-help]") },
  ];
  if (mailbox) all.unshift({ name: "Compose", note: "Action", run: () => { location.href = `/console/m/${mailbox}/compose`; } });
  return all;
}

/** The entries that have every word of what was typed, those whose name begins with it first. */
function matching(typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = ({ name, note }) => words.every((word) => `${name} ${note}`.toLowerCase().includes(word));
  const begins = ({ name }) => Number(!name.toLowerCase().startsWith(words[0] || ""));
  const found = [...actions(), ...places()].filter(fits).sort((one, other) => begins(one) - begins(other)).slice(0, 40);
  const mailbox = document.body.dataset.writing;
  if (typed && mailbox) {
    found.push({
      name: `Search mail for “${typed}”`, note: "Search",
      run: () => { location.href = `/console/m/${mailbox}/search?q=${encodeURIComponent(typed)}`; },
    });
  }
  return found;
}

function choose(index) {
  chosen = Math.max(0, Math.min(index, shown.length - 1));
  [...list.children].forEach((row, at) => row.setAttribute("aria-selected", String(at === chosen)));
  const row = list.children[chosen];
  input.setAttribute("aria-activedescendant", row?.id || "");
  row?.scrollIntoView({ block: "nearest" });
}

function show() {
  shown = matching(input.value.trim());
  list.replaceChildren(...shown.map(({ name, note }, at) => {
    const row = document.createElement("li");
    row.id = `palette-${at}`;
    row.setAttribute("role", "option");
    const [words, hint] = [document.createElement("span"), document.createElement("small")];
    words.textContent = name;
    hint.textContent = note;
    row.append(words, hint);
    return row;
  }));
  input.setAttribute("aria-expanded", String(shown.length > 0));
  choose(0);
}

function run(index) {
  const entry = shown[index];
  if (!entry) return;
  dialog.close();
  entry.run();
}

function open() {
  if (document.querySelector("dialog[open]")) return;
  input.value = "";
  dialog.showModal();
  input.focus();
  show();
}

if (dialog) {
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open();
  });
  document.addEventListener("click", (event) => { if (event.target.closest("[data-palette]")) open(); });
  dialog.addEventListener("click", (event) => {
    const row = event.target.closest("[role=option]");
    if (row) run([...list.children].indexOf(row));
    else if (event.target === dialog) dialog.close();
  });
  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + 8, PageUp: chosen - 8 };
    if (event.key in steps) choose(steps[event.key]);
    else if (event.key === "Enter") run(chosen);
    else return;
    event.preventDefault();
  });
  for (const key of document.querySelectorAll(".palette-open kbd")) {
    if (/Mac|iP/.test(navigator.platform)) key.textContent = "⌘ K";
  }
}
