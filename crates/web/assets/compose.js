// Writing mail: an editor in place of the plain field, files, and drafts that save themselves.

import { toast } from "./toast.js";

const form = document.querySelector("[data-compose]");
if (form) start(form);

function start(form) {
  const editor = form.querySelector("[data-editor]");
  const text = form.querySelector("[data-text]");
  const field = form.querySelector("[data-html]");
  const files = form.querySelector("[data-files]");
  const saved = document.querySelector("[data-saved]");
  let dirty = false;
  let timer = null;
  let saving = Promise.resolve();
  let leaving = false;
  let saidAsHtml = false;

  editor.hidden = false;
  editor.contentEditable = "true";
  text.hidden = true;
  text.disabled = true;
  for (const one of form.querySelectorAll("[data-rich]")) one.hidden = false;
  document.execCommand("styleWithCSS", false, false);
  if (form.dataset.mode === "reply") {
    editor.focus();
    getSelection().setPosition(editor, 0);
  }

  const changed = () => {
    dirty = true;
    clearTimeout(timer);
    timer = setTimeout(() => autosave(), 2500);
  };
  form.addEventListener("input", (event) => { if (!event.target.matches("[type=file]")) changed(); });
  form.addEventListener("submit", () => {
    leaving = true;
    clearTimeout(timer);
    field.value = editor.innerHTML;
  });
  addEventListener("beforeunload", (event) => { if (dirty && !leaving) event.preventDefault(); });

  form.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      form.requestSubmit(form.querySelector("[value=send]"));
    }
  });

  form.querySelector("[data-tools]").addEventListener("click", (event) => {
    const command = event.target.closest("[data-do]")?.dataset.do;
    if (!command) return;
    editor.focus();
    if (command === "createLink") {
      const target = prompt("Address of the link", "https://");
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
    if (!/^image\/(png|jpeg|gif|webp)$/.test(picture.type)) return toast("Pictures are PNG, JPEG, GIF or WebP.", "failed");
    if (picture.size > 2_000_000) return toast("A picture in the text has at most 2 MB. Add it as a file.", "failed");
    const reader = new FileReader();
    reader.onload = () => {
      editor.focus();
      const image = document.createElement("img");
      image.src = reader.result;
      image.alt = picture.name || "Picture";
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


  function show(file) {
    const item = document.createElement("li");
    item.className = "file";
    if (file.id) {
      const keep = Object.assign(document.createElement("input"), { type: "hidden", name: "keep", value: file.id });
      item.append(keep);
    }
    const name = Object.assign(document.createElement("span"), { className: "cut", textContent: file.name });
    const size = Object.assign(document.createElement("small"), { textContent: file.size });
    item.append(name, size);
    if (file.id) {
      const drop = Object.assign(document.createElement("button"), { type: "button", className: "btn ghost sm", textContent: "✕" });
      drop.dataset.dropFile = "";
      drop.setAttribute("aria-label", `Remove ${file.name}`);
      item.append(drop);
    }
    files.append(item);
    return item;
  }

  function autosave() {
    clearTimeout(timer);
    saving = saving.then(save, save);
    return saving;
  }

  async function save() {
    field.value = editor.innerHTML;
    const data = new FormData(form);
    data.set("action", "autosave");
    data.delete("at");
    saved.textContent = "Saving …";
    try {
      const response = await fetch(form.getAttribute("action"), { method: "POST", body: data, headers: { accept: "application/json" } });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      form.querySelector("[name=draft_id]").value = answer.draft_id;
      saidAsHtml = answer.html;
      // A mail that is passed on has become a draft, which holds the original and its files.
      const passedOn = answer.below && data.get("mode") === "forward";
      if (passedOn) {
        form.querySelector("[name=mode]").value = "new";
        form.querySelector("[name=below]").value = "1";
        form.querySelector("[data-follows]")?.remove();
      }
      if (passedOn || data.getAll("file").some((file) => file.size > 0 || file.name)) {
        input.value = "";
        files.replaceChildren();
        answer.files.forEach(show);
      }
      dirty = false;
      saved.textContent = `Draft saved ${answer.saved}`;
    } catch (error) {
      saved.textContent = "";
      toast(error.message || "The draft could not be saved.", "failed");
    }
  }

  /** The words of HTML, line by line; nothing of it gets into the page. */
  function lines(html) {
    const page = new DOMParser().parseFromString(html.replace(/<br\s*\/?>/gi, "\n").replace(/<\/(p|div)>/gi, "\n$&"), "text/html");
    return page.body.textContent.trim().split("\n");
  }

  // The language model writes the text again; what it says comes as text, whatever it says.
  const wish = document.querySelector("[data-anew]");
  wish?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = wish.querySelector("button.primary");
    if (button.classList.contains("busy")) return;
    button.classList.add("busy");
    try {
      await autosave();
      const asked = { draftId: form.querySelector("[name=draft_id]").value, prompt: wish.querySelector("textarea").value, body: editor.innerText };
      const response = await fetch(wish.dataset.anew, {
        method: "POST", credentials: "same-origin", headers: { "content-type": "application/json" }, body: JSON.stringify(asked),
      });
      const told = await response.json();
      if (!response.ok) throw new Error([told.error, told.fix].filter(Boolean).join(" "));
      const words = saidAsHtml ? lines(told.body) : told.body.trim().split("\n");
      editor.replaceChildren(...words.flatMap((line, index) => (index ? [document.createElement("br"), line] : [line])));
      wish.closest("dialog").close();
      changed();
      editor.focus();
    } catch (error) {
      toast(error.message || "That did not work. Please try again.", "failed");
    } finally {
      button.classList.remove("busy");
    }
  });

  for (const button of form.querySelectorAll("[data-at]")) {
    button.addEventListener("click", () => { form.querySelector("#f-at").value = button.dataset.at; });
  }
}
