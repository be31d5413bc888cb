// Pieces that every page uses: confirmations, copying, the drawer, the theme, tokens behind the # of a link.

import { toast, undoing } from "./toast.js";

/** What a form or its button asks before it is sent: { title, text, button, typed }, or null. */
function questionOf(form, submitter) {
  const field = (name) => form.querySelector(`input[name=${name}]`)?.value || "";
  const from = submitter?.dataset.confirm ? submitter : form;
  if (from.dataset.confirm) {
    const { confirm, confirmText, confirmButton, confirmTyped } = from.dataset;
    // One text alone says what happens; with two, the first is verb and object.
    return confirmText ? { title: confirm, text: confirmText, button: confirmButton, typed: confirmTyped }
      : { title: "Are you sure?", text: confirm, button: confirmButton, typed: confirmTyped };
  }
  const title = field("confirm_title");
  return title ? { title, text: field("confirm_text"), button: field("confirm_button"), typed: form.dataset.confirmTyped } : null;
}

/** Asks before something is done for good; resolves to null, or to what was typed. */
export function confirmed({ title, text, button, typed = "" }) {
  const dialog = document.getElementById("confirm");
  if (!dialog) return Promise.resolve(window.confirm(`${title} ${text}`) ? typed : null);
  const [yes, input] = [dialog.querySelector("#confirm-yes"), dialog.querySelector("#confirm-typed")];
  dialog.querySelector("#confirm-title").textContent = title;
  dialog.querySelector("#confirm-text").textContent = text;
  yes.textContent = button || "Delete";
  dialog.querySelector("#confirm-typing").hidden = !typed;
  dialog.querySelector("#confirm-typing strong").textContent = typed;
  input.value = "";
  input.oninput = () => { yes.disabled = input.value.trim() !== typed; };
  input.oninput();
  // Enter would press the first button, which is Cancel.
  input.onkeydown = (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    yes.click();
  };
  dialog.returnValue = "no";
  dialog.showModal();
  if (typed) input.focus();
  return new Promise((done) => dialog.addEventListener("close", () => done(dialog.returnValue === "yes" ? input.value : null), { once: true }));
}

/** Sends a form with fields that it does not show. */
function sendWith(form, submitter, fields) {
  const added = Object.entries(fields).map(([name, value]) => Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  form.append(...added);
  form.dataset.sure = "1";
  form.requestSubmit(submitter || undefined);
  delete form.dataset.sure;
  for (const one of added) one.remove();
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  const question = form.dataset.sure ? null : questionOf(form, event.submitter);
  if (!question) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const typed = await confirmed(question);
  if (typed === null) return;
  // A list may have been replaced while the question was open.
  const same = form.isConnected ? form : document.querySelector(`form[action="${CSS.escape(form.getAttribute("action"))}"]`);
  if (same) sendWith(same, same === form ? event.submitter : null, { confirmed: "1", typed });
}, true);

// A form that is on its way says so, and is not sent twice.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || form.matches("[hx-post]")) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  event.submitter?.classList.add("busy");
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  for (const button of document.querySelectorAll(".btn.busy")) button.classList.remove("busy");
});

document.body.addEventListener("toast", ({ detail }) => toast(detail.text, detail.kind, undoing(detail.undo)));
document.body.addEventListener("htmx:sendError", () => toast("The server cannot be reached. Check your connection and try again.", "failed"));
document.body.addEventListener("htmx:responseError", () => toast("That did not work. Please try again.", "failed"));

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    try {
      await navigator.clipboard.writeText(copy.dataset.copy);
      toast("Copied.");
    } catch {
      toast("Your browser blocked copying. Select the text and copy it yourself.", "failed");
    }
  }
  if (event.target.closest("[data-help]")) document.getElementById("help")?.showModal();
  if (event.target.closest("[data-theme-toggle]")) switchTheme();
  if (event.target.closest("[data-drawer]")) drawer(true);
  else if (event.target.closest("[data-drawer-close]")) drawer(false);
  // Links with a dialog lead to a page of their own where no script runs; what closes it leads back.
  const closes = event.target.closest("[data-dialog-close]")?.closest("dialog");
  if (closes) {
    event.preventDefault();
    closes.close();
  }
  const opens = document.getElementById(event.target.closest("[data-dialog]")?.dataset.dialog);
  if (opens) {
    event.preventDefault();
    opens.showModal();
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// A part of the page that comes anew while somebody is on it with the keyboard: the focus stays on what it was on.
let held = null;
const isLike = (element) => [element.tagName, element.id, element.name, element.value, element.getAttribute("href") || element.textContent].join(" ");
document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const on = document.activeElement;
  held = on && on !== detail.target && detail.target?.contains(on) ? { like: isLike(on), within: detail.target.id } : null;
});
document.body.addEventListener("htmx:afterSwap", () => {
  if (!held || document.activeElement !== document.body) return;
  const part = document.getElementById(held.within) || document;
  const same = [...part.querySelectorAll("a, button, summary, input, select")].find((one) => isLike(one) === held.like);
  same?.focus({ preventScroll: true });
});

// A form in a dialog that was refused comes back open.
document.querySelector("dialog[data-open]")?.showModal();

// A link that acts like a button is pressed with the space bar, too.
document.addEventListener("keydown", (event) => {
  if (event.key !== " " || !event.target.matches?.("a[role=button]")) return;
  event.preventDefault();
  event.target.click();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  drawer(false);
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

function drawer(open) {
  const side = document.getElementById("side");
  if (!side || side.classList.contains("drawn") === open) return;
  side.classList.toggle("drawn", open);
  document.querySelector(".side-shade")?.classList.toggle("drawn", open);
  const button = document.querySelector("[data-drawer]");
  button?.setAttribute("aria-expanded", String(open));
  if (open) side.querySelector("a, summary")?.focus();
  else if (getComputedStyle(button).display !== "none") button.focus();
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
}

// The token of an invite or a new password stands behind the # sign, where no server log sees it.
const tokens = document.querySelector("[data-token-form]");
if (tokens) {
  const field = tokens.querySelector("[name=token]");
  if (location.hash.length > 1) {
    field.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
  }
  if (field.value) tokens.querySelector("[data-token-field]").hidden = true;
}

// What the last page left to tell becomes a toast, with its button.
const flash = document.querySelector("[data-flash=done]");
if (flash) {
  const undo = flash.querySelector("form.undo");
  toast(flash.querySelector(".note").textContent.trim(), "done",
    undoing(undo && { action: undo.getAttribute("action"), data: undo.elements.data.value }));
  flash.remove();
}

// What opens to be filled in takes the focus.
document.addEventListener("toggle", (event) => {
  if (event.target.open) event.target.querySelector(":scope > form [data-focus]")?.focus();
}, true);

// Groups of the navigation stay as they were left; a cookie, so that the next page comes that way.
document.addEventListener("toggle", (event) => {
  const group = event.target.dataset?.group;
  if (!group) return;
  const chosen = new Map((document.cookie.match(/(?:^|; )nav=([^;]*)/)?.[1] || "").split(".").filter(Boolean).map((one) => one.split(":")));
  if (chosen.get(group) === String(Number(event.target.open))) return;
  chosen.set(group, Number(event.target.open));
  document.cookie = `nav=${[...chosen].map((one) => one.join(":")).join(".")}; path=/console; max-age=31536000; samesite=lax`;
}, true);

// Lists that can be filtered, also after they were swapped in.
function filter(input) {
  const wanted = input.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(`${input.dataset.filter} > [data-filtered]`)) {
    row.hidden = !row.dataset.filtered.toLowerCase().includes(wanted);
  }
}
document.addEventListener("input", (event) => { if (event.target.matches("[data-filter]")) filter(event.target); });
document.body.addEventListener("htmx:afterSwap", () => document.querySelectorAll("[data-filter]").forEach(filter));

// "5 min ago" moves on while the page is open; a day later it is the full time.
function moveTimes() {
  for (const time of document.querySelectorAll("time[data-moving]")) {
    const minutes = Math.floor((Date.now() - Date.parse(time.dateTime)) / 60_000);
    if (minutes < 0) continue;
    if (minutes < 1) time.textContent = "Just now";
    else if (minutes < 60) time.textContent = `${minutes} min ago`;
    else if (minutes < 24 * 60) time.textContent = `${Math.floor(minutes / 60)} h ago`;
    else time.textContent = time.title;
  }
}
setInterval(() => { if (!document.hidden) moveTimes(); }, 30_000);
