// Short notes at the bottom of the page, some with a button that takes the last action back.

const place = () => document.getElementById("toasts");

/** Shows a note; `action` is an optional { label, href } or { label, run }. */
export function toast(text, kind = "done", action = null) {
  const note = document.createElement("div");
  note.className = `toast ${kind === "failed" ? "failed" : ""}`;
  note.setAttribute("role", kind === "failed" ? "alert" : "status");
  // A hundred new messages are reported once.
  const same = [...(place()?.children ?? [])].find((one) => one.firstElementChild?.textContent === text);
  same?.remove();
  const words = document.createElement("span");
  words.textContent = text;
  note.append(words);
  if (action) {
    const link = document.createElement(action.href ? "a" : "button");
    link.textContent = action.label;
    if (action.href) link.href = action.href;
    else {
      link.type = "button";
      link.addEventListener("click", () => { note.remove(); action.run(); });
    }
    note.append(link);
  }
  place()?.append(note);
  const seconds = kind === "failed" || action ? 10 : 5;
  let timer = setTimeout(() => note.remove(), seconds * 1000);
  // The reader has time to read it and to press its button.
  for (const [enter, leave] of [["mouseenter", "mouseleave"], ["focusin", "focusout"]]) {
    note.addEventListener(enter, () => clearTimeout(timer));
    note.addEventListener(leave, () => { timer = setTimeout(() => note.remove(), 3000); });
  }
}

/** The button that takes an action back: { action, data } says how. */
export function undoing(undo) {
  if (!undo) return null;
  const values = { data: undo.data, back: location.pathname };
  return { label: "Undo", run: () => window.htmx.ajax("POST", undo.action, { values, swap: "none" }) };
}

/** Presses the newest button of that kind. */
export function undoLast() {
  const buttons = [...document.querySelectorAll("#toasts button")];
  buttons.findLast((one) => one.textContent === "Undo")?.click();
}
