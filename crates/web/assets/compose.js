// Writing a message, on its page or below a conversation: an editor in place of the plain field, attachments, drafts
// that save themselves, and the steps of Rewrite with AI.

import { toast } from "./toast.js";
import { confirmed } from "./ui.js";

/** The form that is open, for what happens to the page around it. */
let open = null;

function startAll() {
  const form = document.querySelector("[data-compose]:not([data-ready])");
  if (!form) return;
  form.dataset.ready = "1";
  open = start(form);
}

startAll();
document.body.addEventListener("htmx:afterSwap", startAll);
// The conversation, and the reply below it, is about to be replaced.
document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (open && detail.target?.contains(open.form)) open.leave();
});
addEventListener("beforeunload", (event) => { if (open?.isUnsaved()) event.preventDefault(); });

function start(form) {
  const editor = form.querySelector("[data-editor]");
  const text = form.querySelector("[data-text]");
  const field = form.querySelector("[data-html]");
  const files = form.querySelector("[data-files]");
  const saved = form.querySelector("[data-saved]");
  let dirty = false;
  let timer = null;
  let saving = Promise.resolve();
  let leaving = false;

  editor.hidden = false;
  editor.contentEditable = "true";
  text.hidden = true;
  text.disabled = true;
  for (const one of form.querySelectorAll("[data-rich]")) one.hidden = false;
  document.execCommand("styleWithCSS", false, false);
  if (form.dataset.mode === "reply" && !form.querySelector("[aria-invalid]")) {
    editor.focus();
    getSelection().setPosition(editor, 0);
  } else if (form.matches(".inline")) {
    form.querySelector("[name=to]").focus();
  }
  if (form.matches(".inline")) form.scrollIntoView({ block: "nearest" });

  const changed = () => {
    dirty = true;
    clearTimeout(timer);
    timer = setTimeout(() => autosave(), 2500);
  };
  form.addEventListener("input", (event) => {
    if (event.target.matches("[type=file], [name=instructions]")) return;
    const error = form.querySelector(`#e-${event.target.name}`);
    if (error) {
      error.hidden = true;
      event.target.removeAttribute("aria-invalid");
    }
    changed();
  });

  form.addEventListener("submit", (event) => {
    const action = event.submitter?.value;
    if (steps[action]?.()) {
      event.preventDefault();
      return;
    }
    field.value = editor.innerHTML;
    if ((action === "send" || action === "schedule") && mentionsMissingAttachment()) {
      event.preventDefault();
      remind(action);
      return;
    }
    leaving = true;
    clearTimeout(timer);
  });

  form.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      const panel = event.target.closest("[data-rewrite]");
      form.requestSubmit(form.querySelector(panel ? "[value=rewrite]" : "[value=send]"));
    }
  });

  form.querySelector("[data-tools]").addEventListener("click", (event) => {
    const command = event.target.closest("[data-do]")?.dataset.do;
    if (!command) return;
    editor.focus();
    if (command === "createLink") {
      const target = prompt("Link address", "https://");
      if (target && /^https?:\/\//i.test(target)) document.execCommand(command, false, target);
    } else document.execCommand(command, false, null);
    changed();
  });

  editor.addEventListener("paste", (event) => {
    const picture = [...event.clipboardData.files].find((file) => file.type.startsWith("image/"));
    event.preventDefault();
    if (picture) insertPicture(picture);
    else document.execCommand("insertText", false, event.clipboardData.getData("text/plain"));
  });

  form.querySelector("[data-picture]").addEventListener("change", (event) => {
    for (const picture of event.target.files) insertPicture(picture);
    event.target.value = "";
  });

  function insertPicture(picture) {
    if (!/^image\/(png|jpeg|gif|webp)$/.test(picture.type)) return toast("Images must be PNG, JPEG, GIF or WebP.", "failed");
    if (picture.size > 2_000_000) return toast("Images in the text can be up to 2 MB. Attach this one as a file instead.", "failed");
    const reader = new FileReader();
    reader.onload = () => {
      editor.focus();
      const image = document.createElement("img");
      image.src = reader.result;
      image.alt = picture.name || "Image";
      const selection = getSelection();
      const range = selection.rangeCount && editor.contains(selection.anchorNode) ? selection.getRangeAt(0) : null;
      if (range) { range.deleteContents(); range.insertNode(image); range.collapse(false); } else editor.append(image);
      changed();
    };
    reader.readAsDataURL(picture);
  }

  // Files go up at once into the draft, and are named by their ids from then on.
  const upload = () => autosave();
  const input = form.querySelector("[data-file]");
  input.addEventListener("change", upload);
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("dropping"); });
  form.addEventListener("dragleave", () => form.classList.remove("dropping"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("dropping");
    input.files = event.dataTransfer.files;
    upload();
  });
  files.addEventListener("click", (event) => {
    const item = event.target.closest("[data-drop-file]")?.closest("li");
    if (item) { item.remove(); changed(); }
  });

  function showFile(file) {
    const item = document.createElement("li");
    item.className = "file";
    const keep = Object.assign(document.createElement("input"), { type: "hidden", name: "keep", value: file.id });
    const name = Object.assign(document.createElement("span"), { className: "cut", textContent: file.name });
    const size = Object.assign(document.createElement("small"), { textContent: file.size });
    const drop = Object.assign(document.createElement("button"), { type: "button", className: "btn ghost sm", textContent: "✕" });
    drop.dataset.dropFile = "";
    drop.setAttribute("aria-label", `Remove ${file.name}`);
    item.append(keep, name, size, drop);
    files.append(item);
  }

  function autosave() {
    clearTimeout(timer);
    saving = saving.then(save, save);
    return saving;
  }

  /** Posts the form for an answer in JSON. An error is shown at its fields, as far as they are to blame. */
  async function post(action) {
    field.value = editor.innerHTML;
    const data = new FormData(form);
    data.set("action", action);
    data.delete("at");
    const response = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: { accept: "application/json" } });
    const answer = await response.json();
    if (!response.ok) throw Object.assign(new Error(answer.error), { fields: answer.fields || {} });
    keepSaved(answer, data);
    return answer;
  }

  /** Notes what a saved draft is called, and which files it has. */
  function keepSaved(answer, data) {
    form.querySelector("[name=draft_id]").value = answer.draft_id;
    // A message that is forwarded has become a draft, which holds the original and its files.
    const forwarded = answer.below && data.get("mode") === "forward";
    if (forwarded) {
      form.querySelector("[name=mode]").value = "new";
      form.querySelector("[name=below]").value = "1";
      form.querySelector("[data-follows]")?.remove();
    }
    if (forwarded || data.getAll("file").some((file) => file.size > 0 || file.name)) {
      input.value = "";
      files.replaceChildren();
      answer.files.forEach(showFile);
    }
    dirty = false;
    saved.textContent = `Draft saved ${answer.saved}`;
  }

  /** Shows what is wrong at its field; tells whether there was one. */
  function complain(error) {
    let shown = false;
    for (const [name, message] of Object.entries(error.fields || {})) {
      const place = form.querySelector(`#e-${name}`);
      if (!message || !place) continue;
      place.textContent = message;
      place.hidden = false;
      place.closest("details")?.setAttribute("open", "");
      const wrong = form.querySelector(`[name="${name}"]`);
      wrong?.setAttribute("aria-invalid", "true");
      wrong?.setAttribute("aria-describedby", place.id);
      shown = true;
    }
    return shown;
  }

  async function save() {
    saved.textContent = "Saving …";
    try {
      await post("autosave");
    } catch (error) {
      saved.textContent = "Draft not saved";
      if (!complain(error)) toast(error.message || "The draft could not be saved. Check your connection.", "failed");
    }
  }

  /** Whether the author's own text mentions an attachment, and there is none. */
  function mentionsMissingAttachment() {
    const attached = files.children.length > 0 || input.files.length > 0 || form.querySelector(".below") || editor.querySelector("img");
    if (attached) return false;
    const own = editor.cloneNode(true);
    for (const quote of own.querySelectorAll("blockquote")) quote.remove();
    for (const end of own.querySelectorAll("br, div, p, li")) end.append("\n");
    for (const end of own.querySelectorAll("br")) end.replaceWith("\n");
    const lines = own.textContent.split("\n").filter((line) => !line.startsWith(">"));
    const words = new Set(form.dataset.attachmentWords.split(" "));
    return lines.some((line) => line.toLowerCase().split(/[^\p{L}-]+/u).some((word) => words.has(word)));
  }

  async function remind(action) {
    const button = action === "send" ? "Send anyway" : "Schedule anyway";
    const question = { title: `${button}?`, text: "Your message mentions an attachment, but nothing is attached.", button };
    if (await confirmed(question) === null) return;
    const anyway = Object.assign(document.createElement("button"), { type: "submit", name: "action", value: `${action}-anyway`, hidden: true });
    form.append(anyway);
    form.requestSubmit(anyway);
  }

  // Rewrite with AI: the server writes a preview; accepting and undoing it happen here.
  const panel = form.querySelector("[data-rewrite]");
  const preview = panel?.querySelector("[data-preview]");
  const undoButton = panel?.querySelector("[data-undo]");
  let offered = null;
  let previous = null;
  const steps = {
    rewrite: () => { rewrite(); return true; },
    "rewrite-accept": () => offered && accept(),
    "rewrite-discard": () => offered && discard(),
    "rewrite-undo": () => previous !== null && undo(),
  };

  async function rewrite() {
    const button = panel.querySelector("[value=rewrite]");
    if (button.classList.contains("busy")) return;
    button.classList.add("busy");
    try {
      clearTimeout(timer);
      await saving;
      offered = await post("rewrite");
      form.querySelector("#e-instructions").hidden = true;
      preview.querySelector("[data-preview-text]").textContent = offered.rewritten;
      preview.hidden = false;
      preview.focus();
    } catch (error) {
      if (!complain(error)) toast(error.message || "The text could not be rewritten. Please try again.", "failed");
    } finally {
      button.classList.remove("busy");
    }
  }

  function accept() {
    previous = editor.innerHTML;
    // Made and cleaned by the server: the model's words as text, with what is quoted.
    editor.innerHTML = offered.body;
    discard();
    undoButton.hidden = false;
    changed();
    toast("Your text was rewritten.", "done", { label: "Undo", run: undo });
    return true;
  }

  function discard() {
    offered = null;
    preview.hidden = true;
    editor.focus();
    return true;
  }

  function undo() {
    if (previous === null) return true;
    editor.innerHTML = previous;
    previous = null;
    undoButton.hidden = true;
    editor.focus();
    changed();
    return true;
  }

  for (const button of form.querySelectorAll("[data-at]")) {
    button.addEventListener("click", () => { form.querySelector("#f-at").value = button.dataset.at; });
  }

  form.querySelector("[data-reply-close]")?.addEventListener("click", () => {
    leave();
    form.parentElement.replaceChildren();
    document.querySelector(".reply-start a")?.focus();
  });

  /** Saves what is not saved yet; the form is about to go. */
  function leave() {
    if (dirty && !leaving) autosave();
    clearTimeout(timer);
  }

  return { form, leave, isUnsaved: () => dirty && !leaving && form.isConnected };
}
