// Short notes at the bottom of the page.

const place = () => document.getElementById("toasts");

/** Shows a note; `action` is an optional { label, href } or { label, run }. */
export function toast(text, kind = "done", action = null) {
  const note = document.createElement("div");
  note.className = `toast ${kind === "failed" ? "failed" : ""}`;
  note.setAttribute("role", kind === "failed" ? "alert" : "status");
  // A hundred new mails are told once.
  const same = [...(place()?.children ?? [])].find((one) => one.firstElementChild?.textContent === text);
  same?.remove();
  const words = document.createElement("span");
  words.textContent = text;
  note.append(words);
  if (action) {
    const link = document.createElement(action.href ? "a" : "button");
    link.textContent = action.label;
    if (action.href) link.href = action.href;
    else link.addEventListener("click", () => { note.remove(); action.run(); });
    note.append(link);
  }
  place()?.append(note);
  setTimeout(() => note.remove(), kind === "failed" ? 9000 : 5000);
}
