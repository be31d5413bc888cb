// New mail without a reload: the event log as a stream, open while the page is seen.

import { toast } from "./toast.js";

let source = null;
// What happened while the page was on its way is told too.
let last = document.body.dataset.after;
let pending = null;

function news() {
  clearTimeout(pending);
  pending = setTimeout(() => document.body.dispatchEvent(new CustomEvent("mail-news")), 150);
}

function heard(event) {
  last = event.lastEventId;
  const told = JSON.parse(event.data);
  document.body.dispatchEvent(new CustomEvent("console-event", { detail: told }));
  if (told.type === "message.received") {
    const here = document.body.dataset.mailbox === told.mailbox_id;
    const open = document.querySelector("[data-mail]");
    if (!here || !open) {
      toast("New message received.", "done", { label: "Open inbox", href: `/console/m/${told.mailbox_id}/f/inbox` });
    }
  }
  news();
}

function listen() {
  if (source || document.hidden || !document.body.classList.contains("app")) return;
  source = new EventSource(`/console/live?after=${last}`);
  for (const type of document.body.dataset.eventTypes.split(" ")) source.addEventListener(type, heard);
  source.addEventListener("open", () => document.querySelectorAll(".live-dot").forEach((dot) => dot.classList.add("on")));
  source.addEventListener("error", () => document.querySelectorAll(".live-dot").forEach((dot) => dot.classList.remove("on")));
}

// A browser opens few connections to a server; pages that nobody looks at keep none.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    source?.close();
    source = null;
  } else {
    listen();
    news();
  }
});
addEventListener("pagehide", () => { source?.close(); source = null; });
addEventListener("pageshow", listen);
listen();
