// The mailbox agent: answers are shown while they are written. Without this module the form does the same, later.

import { toast } from "./toast.js";

const form = document.querySelector("[data-agent]");
const talk = document.querySelector("[data-talk]");

function bubble(mine, text) {
  const article = document.createElement("article");
  article.className = mine ? "bubble mine" : "bubble waiting";
  const name = document.createElement("h3");
  name.className = "sr";
  name.textContent = mine ? "You" : "Agent";
  const words = document.createElement("div");
  words.className = "bubble-text";
  words.textContent = text;
  const foot = document.createElement("div");
  foot.className = "bubble-foot";
  article.append(name, words, foot);
  talk.hidden = false;
  talk.append(article);
  article.scrollIntoView({ block: "nearest" });
  return { article, words, foot };
}

function badge(foot, tool) {
  const mark = document.createElement("span");
  mark.className = tool.outcome === "failed" ? "badge warn" : "badge";
  mark.textContent = tool.name.replaceAll("_", " ");
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
    throw new Error("The answer broke off. Reload the page to see whether it was kept.");
  } catch (fault) {
    said.article.remove();
    answer.article.remove();
    throw fault;
  }
}

async function send() {
  const fields = new FormData(form);
  const message = {
    content: fields.get("content"),
    approve: fields.has("approve"),
    connections: fields.getAll("connection"),
  };
  const fresh = !form.dataset.agent.endsWith("/messages");
  let url = form.dataset.agent;
  if (fresh) {
    const title = message.content.trim().split("\n")[0].slice(0, 60).trim();
    const made = await (await post(url, { title }, "application/json")).json();
    url = `${url}/${made.id}/messages`;
    form.dataset.agent = url;
    form.dataset.page = `${form.getAttribute("action")}/${made.id}`;
  }
  await listen(url, message);
  form.reset();
  // A page of its own for the new conversation, and links to drafts.
  location.assign(form.dataset.page || form.getAttribute("action"));
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button.primary");
  if (button.disabled) return;
  button.disabled = true;
  try {
    await send();
  } catch (fault) {
    toast(fault.message, "failed");
  } finally {
    button.disabled = false;
  }
});
