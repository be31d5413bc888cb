// The keyboard: moving through conversations, acting on them, going places.

import { undoLast } from "./toast.js";

const rows = () => [...document.querySelectorAll(".threads > li")];
let waiting = null;

function current() {
  const all = rows();
  const marked = document.querySelector(".threads > li.cursor");
  if (marked) return all.indexOf(marked);
  return all.indexOf(document.querySelector(".threads > li.open"));
}

function moveTo(index) {
  const all = rows();
  if (all.length === 0) return;
  const row = all[Math.max(0, Math.min(index, all.length - 1))];
  all.forEach((one) => one.classList.toggle("cursor", one === row));
  const link = row.querySelector("a.thread");
  link.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

function reading() {
  return document.querySelector("[data-reader]");
}

/** Presses the button for an action: of the open conversation, or of the chosen rows. */
function act(action) {
  const open = reading();
  const form = open?.querySelector(`form [name=action][value="${action}"]`);
  const picked = document.querySelectorAll(".threads .pick input:checked").length > 0;
  const cursor = document.querySelector(".threads > li.cursor");
  if (form && !picked && (!cursor || cursor.classList.contains("open"))) {
    form.click();
    return;
  }
  if (!picked && cursor) cursor.querySelector(".pick input").checked = true;
  document.querySelector(`#picked [name=action][value="${action}"]`)?.click();
}

function go(key) {
  const mailbox = document.body.dataset.mailbox || document.body.dataset.writing;
  const folders = { i: "inbox", s: "sent", d: "draft", a: "archive", t: "trash" };
  const pages = { o: "/console", k: "/console/keys", n: "/console/knowledge", v: "/console/reviews" };
  const inside = { m: "agent", r: "triage" };
  if (pages[key]) location.href = pages[key];
  else if (inside[key] && mailbox) location.href = `/console/m/${mailbox}/${inside[key]}`;
  else if (folders[key] && mailbox) location.href = `/console/m/${mailbox}/f/${folders[key]}`;
}

/** Presses the button that a page of its own kind has for a key: of the selected rows, or of what is open. */
function pressOwn(key) {
  if (!document.querySelector("[data-own-keys]") || !"aer".includes(key)) return false;
  const picked = document.querySelector(".threads .pick input:checked");
  document.querySelector(`${picked ? "#picked" : "[data-reader]"} [data-key="${key}"]`)?.click();
  return true;
}

function press(event) {
  const key = event.key;
  if (waiting) {
    clearTimeout(waiting);
    waiting = null;
    go(key);
    return true;
  }
  if (pressOwn(key)) return true;
  switch (key) {
    case "j": moveTo(current() + 1); return true;
    case "k": moveTo(current() - 1); return true;
    case "o": document.querySelector(".threads > li.cursor a.thread")?.click(); return true;
    case "x": {
      const box = document.querySelector(".threads > li.cursor .pick input");
      if (box) { box.checked = !box.checked; updatePicked(); }
      return true;
    }
    case "e": act("archive"); return true;
    case "#": act("trash"); return true;
    case "z": undoLast(); return true;
    case "u": {
      const list = document.querySelector("[data-mail]")?.dataset.list;
      if (list && reading()) closeReader(reading().dataset.thread);
      return true;
    }
    case "r": case "a": case "f": reading()?.querySelector(`[data-key="${key}"]`)?.click(); return true;
    case "c": {
      const mailbox = document.body.dataset.writing;
      if (mailbox) location.href = `/console/m/${mailbox}/compose`;
      return true;
    }
    case "/": {
      const search = document.querySelector("[data-search]");
      if (search) { search.focus(); search.select(); }
      return Boolean(search);
    }
    case "?": document.getElementById("help")?.showModal(); return true;
    case "g": waiting = setTimeout(() => { waiting = null; }, 1500); return true;
    default: return false;
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable=true]")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (press(event)) event.preventDefault();
});

/** The question before something is done with what is selected says how many there are. */
function updatePicked() {
  const count = document.querySelectorAll(".threads .pick input:checked").length;
  for (const button of document.querySelectorAll("#picked [data-verb]")) {
    const { verb, noun } = button.dataset;
    button.dataset.confirm = count === 1 ? `${verb} this ${noun}?` : `${verb} ${count} ${noun}s?`;
    button.dataset.confirmButton = `${verb} ${noun}${count === 1 ? "" : "s"}`;
  }
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-pick-all]")) {
    for (const box of document.querySelectorAll(".threads .pick input:not(:disabled)")) box.checked = event.target.checked;
  }
  if (event.target.matches("[data-pick-all], .threads .pick input")) updatePicked();
});

/** Closes the reader and returns to the list, on the row of a conversation. */
function closeReader(thread) {
  const list = document.querySelector("[data-mail]").dataset.list;
  document.getElementById("reader").replaceChildren(document.getElementById("reader-empty").content.cloneNode(true));
  history.pushState({ htmx: true }, "", list);
  markOpen();
  moveTo(rows().findIndex((row) => row.dataset.thread === thread));
}

function markOpen() {
  const thread = reading()?.dataset.thread;
  document.querySelector("[data-mail]")?.classList.toggle("reading", Boolean(thread));
  for (const row of rows()) row.classList.toggle("open", Boolean(thread) && row.dataset.thread === thread);
}

// A list that was swapped in keeps the focus, the cursor and what was selected.
let kept = null;
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target?.id !== "rows") return;
  const focus = document.activeElement?.closest(".threads > li");
  kept = {
    focus: focus?.dataset.thread,
    place: rows().indexOf(focus),
    cursor: document.querySelector(".threads > li.cursor")?.dataset.thread,
    picked: [...document.querySelectorAll(".threads .pick input:checked")].map((box) => box.closest("li").dataset.thread),
  };
});
document.body.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target?.id === "rows" && kept) {
    for (const row of rows()) {
      const { thread } = row.dataset;
      if (thread === kept.focus) row.querySelector("a.thread").focus({ preventScroll: true });
      row.classList.toggle("cursor", thread === kept.cursor);
      const box = row.querySelector(".pick input");
      if (kept.picked.includes(thread)) box.checked = true;
    }
    // What had the focus has left the list: its neighbour takes over.
    if (kept.focus && !rows().some((row) => row.dataset.thread === kept.focus)) moveTo(kept.place);
    kept = null;
  }
  markOpen();
  updatePicked();
});
markOpen();

// What was open in the reader and left its folder: the list comes back, on the next row, and nothing else is opened or read.
document.body.addEventListener("htmx:afterRequest", (event) => {
  const button = event.detail.requestConfig?.triggeringEvent?.submitter;
  // A refusal comes with a note and status 200; what is done has no content.
  if (event.detail.xhr?.status !== 204 || !button) return;
  if (button.matches("[data-toggles]")) {
    const on = button.value === "star";
    button.value = on ? "unstar" : "star";
    button.setAttribute("aria-pressed", String(on));
  }
  if (button.closest("#picked")) {
    for (const box of document.querySelectorAll(".threads .pick input:checked, [data-pick-all]")) box.checked = false;
  }
  // The event comes once more when the form is gone.
  if (reading() && button.closest("[data-reader-act]") && button.matches("[data-leaves]")) {
    const open = document.querySelector(".threads > li.open");
    const next = button.value === "unread" ? open : open?.nextElementSibling || open?.previousElementSibling;
    closeReader(next?.dataset.thread);
  }
});
