// The mailbox agent: answers are shown while they are written. Without this module the form does the same, later.

const form = document.querySelector("[data-agent]");
const fault = form?.querySelector("[data-ask-fault]");

function bubble(mine, text) {
  const article = document.createElement("article");
  article.className = mine ? "bubble mine" : "bubble waiting";
  const name = document.createElement("h2");
  name.className = "sr";
  name.textContent = mine ? "You" : "Agent";
  const words = document.createElement("div");
  words.className = "bubble-text";
  words.textContent = text;
  const foot = document.createElement("div");
  foot.className = "bubble-foot";
  article.append(name, words, foot);
  const talk = document.querySelector("[data-talk]");
  talk.querySelector("[data-silence]")?.remove();
  talk.hidden = false;
  talk.append(article);
  article.scrollIntoView({ block: "nearest" });
  return { article, words, foot };
}

function badge(foot, tool) {
  const mark = document.createElement("span");
  mark.className = tool.outcome === "failed" ? "badge warn" : "badge";
  // As in the templates, so that the text starts with a capital.
  mark.append(document.createElement("span"));
  mark.firstChild.textContent = tool.name.replaceAll("_", " ");
  foot.append(mark);
}

async function refused(response) {
  const told = await response.json().catch(() => null);
  return new Error(told ? [told.error, told.fix].filter(Boolean).join(" ") : "That did not work. Please try again.");
}

async function post(url, body, accept) {
  const headers = { "content-type": "application/json", accept };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body), credentials: "same-origin" });
  if (!response.ok) throw await refused(response);
  return response;
}

/** The events of a stream, one by one. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}

async function listen(url, message) {
  const said = bubble(true, message.content);
  const answer = bubble(false, "");
  try {
    for await (const event of events(await post(url, message, "text/event-stream"))) {
      if (event.type === "delta") answer.words.textContent += event.text;
      if (event.type === "tool") {
        answer.words.textContent = "";
        badge(answer.foot, event);
      }
      if (event.type === "error") throw new Error([event.error, event.fix].filter(Boolean).join(" "));
      if (event.type === "message") {
        answer.words.textContent = event.reply.content;
        answer.article.classList.remove("waiting");
        return true;
      }
    }
    throw new Error("The connection was lost. Reload the page to see whether the answer was saved.");
  } catch (broken) {
    said.article.remove();
    answer.article.remove();
    throw broken;
  }
}

/** What a fault says stays on the page, with the message in its field, until the next one. */
function complain(text) {
  fault.replaceChildren();
  if (!text) return;
  const note = Object.assign(document.createElement("div"), { className: "note failed" });
  note.append(Object.assign(document.createElement("p"), { textContent: text }));
  fault.append(note);
}

async function send(message) {
  const fresh = !form.dataset.agent.endsWith("/messages");
  if (fresh) {
    const title = message.content.trim().split("\n")[0].slice(0, 60).trim();
    const made = await (await post(form.dataset.agent, { title }, "application/json")).json();
    form.dataset.agent = `${form.dataset.agent}/${made.id}/messages`;
    form.dataset.page = `${form.getAttribute("action")}/${made.id}`;
  }
  await listen(form.dataset.agent, message);
  // A new conversation gets a page of its own; in one, the answer comes as the server shows it, with links to drafts.
  if (form.dataset.page) location.assign(`${form.dataset.page}#end`);
  else await window.htmx.ajax("GET", form.getAttribute("action"), { target: "#talk", select: "#talk", swap: "outerHTML" });
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button.primary");
  if (button.disabled) return;
  const fields = new FormData(form);
  const message = { content: fields.get("content"), approve: fields.has("approve"), connections: fields.getAll("connection") };
  const words = form.querySelector("textarea");
  complain("");
  button.disabled = true;
  button.classList.add("busy");
  words.value = "";
  try {
    await send(message);
    // What was allowed was allowed for this message; what was written meanwhile stays.
    for (const box of form.querySelectorAll("[type=checkbox]")) box.checked = false;
  } catch (broken) {
    complain(broken.message);
    if (!words.value) words.value = message.content;
  } finally {
    button.disabled = false;
    button.classList.remove("busy");
    words.focus();
  }
});

form?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit();
});
