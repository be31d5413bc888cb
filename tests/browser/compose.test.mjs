// Writing: the reply below a conversation, Rewrite with AI, what is asked before sending; with a script, on a phone, and
// without a script.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";
import { startModel } from "./stubs.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let model;
let service;
let browser;
before(async () => {
  [model, browser] = [await startModel({ anew: "Dear Grace,\n\nwith <b>pleasure</b>." }), await startBrowser()];
  service = await startService(model.settings);
});
after(async () => {
  await browser?.close();
  await service?.stop();
  await model?.stop();
});

const told = (page, text) => page.locator(".toast", { hasText: text }).waitFor();
const editor = (page) => page.getByRole("textbox", { name: "Message" });

/** What axe finds, in light and dark. */
async function judge(page) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe);
  const faults = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], preload: false }));
    faults.push(...violations.map((one) => `${colorScheme} ${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`));
  }
  await page.emulateMedia({ colorScheme: "light" });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (wide > 0) faults.push(`${wide} pixels too wide`);
  return faults;
}

// rules: CONSOLE-1, CONSOLE-11
test("a reply is written below its conversation, by keyboard, also on a phone", async () => {
  const { page, troubles } = await openPage(browser, service, { reducedMotion: "reduce" });
  await signUp(page, service, "ada@people.test", "Replies");
  const mailbox = await makeMailbox(page, service, "Desk");
  await deliver(service, mailbox.address, plain({ to: mailbox.address, subject: "Lunch", text: "Shall we?\nI attached the menu.", id: "l1" }));
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.locator(".threads .subject", { hasText: "Lunch" }).click();
  await page.locator(".msg-plain").getByText("Shall we?").waitFor();
  await page.keyboard.press("r");
  await page.locator("#reply-form [data-editor]:focus").waitFor();
  assert.equal(await page.getByLabel("Cc", { exact: true }).isVisible(), false, "Cc and Bcc are folded");
  await page.locator("summary", { hasText: "Cc Bcc" }).click();
  await page.getByLabel("Bcc", { exact: true }).waitFor();
  await page.locator("summary", { hasText: "Cc Bcc" }).click();
  await editor(page).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("Not ready yet.");
  await page.locator("[data-saved]", { hasText: "Draft saved" }).waitFor({ timeout: 15_000 });
  assert.deepEqual(await judge(page), []);
  await page.setViewportSize({ width: 390, height: 844 });
  assert.deepEqual(await judge(page), []);
  await page.setViewportSize({ width: 1360, height: 850 });
  await page.getByRole("button", { name: "Close" }).click();
  await page.locator(".reply-start").getByRole("link", { name: "Reply", exact: true }).waitFor();

  // With the draft in the thread, a reply still answers what was received.
  await page.reload();
  await page.locator(".msg", { hasText: "Not ready yet." }).waitFor();
  await page.keyboard.press("r");
  await page.locator("#reply-form [data-editor]:focus").waitFor();
  assert.equal(await page.getByLabel("To", { exact: true }).inputValue(), "Grace Hopper <grace@remote.test>");
  // What is wrong is said at its field.
  await page.getByLabel("To", { exact: true }).fill("foo");
  await editor(page).focus();
  await page.getByText("To: “foo” is not an email address.").waitFor({ timeout: 15_000 });
  assert.equal(await page.getByLabel("To", { exact: true }).getAttribute("aria-describedby"), "e-to");
  await page.getByLabel("To", { exact: true }).fill("grace@remote.test");
  await editor(page).focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("My calendar is attached.");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("dialog").getByText("nothing is attached").waitFor();
  await page.keyboard.press("Escape");
  await editor(page).focus();
  await page.keyboard.press("Control+Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Send anyway" }).click();
  await page.locator(".msg", { hasText: "My calendar is attached." }).first().waitFor();
  assert.match(page.url(), /\/f\/inbox\//);
  assert.deepEqual(troubles.filter((one) => !one.includes("400")), []);
});

// rules: CONSOLE-1
test("Rewrite with AI shows a preview, keeps the quote, and can be undone", async () => {
  const { page, troubles } = await openPage(browser, service, { reducedMotion: "reduce" });
  await signUp(page, service, "bob@people.test", "Rewriting");
  const mailbox = await makeMailbox(page, service, "Desk");
  await deliver(service, mailbox.address, plain({ to: mailbox.address, subject: "Dinner", text: "Shall we eat?" }));
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.locator(".threads .subject", { hasText: "Dinner" }).click();
  await page.locator(".reply-start").getByRole("link", { name: "Reply", exact: true }).click();
  await page.locator("#reply-form [data-editor]:focus").waitFor();
  await page.keyboard.type("ok");
  await page.locator("summary", { hasText: "Rewrite with AI" }).click();
  await page.getByRole("button", { name: "Show preview" }).click();
  await page.getByText("Instructions: say what to change.").waitFor();
  await page.getByLabel("Instructions").fill("friendlier");
  await page.keyboard.press("Control+Enter");
  const preview = page.getByRole("region", { name: "Preview" });
  await preview.getByText("pleasure").waitFor();
  assert.match(await editor(page).innerText(), /^ok/, "nothing changes before it is accepted");
  assert.deepEqual(await judge(page), []);
  await preview.getByRole("button", { name: "Discard rewrite" }).click();
  await preview.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Show preview" }).click();
  await preview.getByRole("button", { name: "Accept rewrite" }).click();
  await editor(page).getByText("Dear Grace,").waitFor();
  assert.match(await editor(page).locator("blockquote").innerText(), /Shall we eat\?/);
  assert.equal(await editor(page).locator("b").count(), 0, "what the model says is text");
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await editor(page).getByText("Dear Grace,").waitFor({ state: "detached" });
  assert.match(await editor(page).innerText(), /^ok[^]*Shall we eat\?/);
  assert.deepEqual(troubles.filter((one) => !one.includes("400")), []);
});

// rules: CONSOLE-1
test("without JavaScript everything about writing has a form or a page", async () => {
  const { page, context } = await openPage(browser, service, { javaScriptEnabled: false });
  await signUp(page, service, "carol@people.test", "Plain");
  const mailbox = await makeMailbox(page, service, "Desk");
  await deliver(service, mailbox.address, plain({ to: mailbox.address, subject: "Tea", text: "Shall we drink?" }));
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.locator(".threads a.thread").click();
  await page.locator(".reply-start").getByRole("link", { name: "Reply", exact: true }).click();
  await page.waitForURL(/compose\?reply=/);
  const text = await editor(page).inputValue();
  assert.match(text, /> Shall we drink\?/);
  await editor(page).fill(`ok, see the attachment${text}`);
  await page.locator("summary", { hasText: "Rewrite with AI" }).click();
  await page.getByLabel("Instructions").fill("friendlier");
  await page.getByRole("button", { name: "Show preview" }).click();
  await page.getByRole("region", { name: "Preview" }).getByText("pleasure").waitFor();
  await page.getByRole("button", { name: "Accept rewrite" }).click();
  assert.match(await editor(page).inputValue(), /^Dear Grace,[^]*> Shall we drink\?/);
  await page.getByRole("button", { name: "Undo rewrite" }).click();
  assert.match(await editor(page).inputValue(), /^ok, see the attachment/);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("Nothing is attached.").waitFor();
  await page.getByLabel("Attach files").setInputFiles({ name: "tea.txt", mimeType: "text/plain", buffer: Buffer.from("green") });
  await page.locator("summary", { hasText: "Send later" }).click();
  await page.getByRole("button", { name: "Schedule send", exact: true }).click();
  await page.getByText("Date and time: choose a date and a time.").waitFor();
  assert.ok(await page.getByLabel("Keep tea.txt").isChecked(), "the file is kept");
  await page.getByLabel("Date and time").fill("2027-03-01T09:00");
  await page.getByRole("button", { name: "Schedule send", exact: true }).click();
  await page.getByRole("cell", { name: "Re: Tea", exact: true }).waitFor();
  await page.locator("summary", { hasText: "Reschedule" }).click();
  await page.getByLabel(/Date and time/).fill("2027-03-02T09:00");
  await page.getByRole("button", { name: "Save time" }).click();
  await page.getByRole("cell", { name: /2 Mar 2027/ }).waitFor();
  await page.getByRole("button", { name: "Cancel send" }).click();
  await page.getByRole("heading", { name: "Cancel this send?" }).waitFor();
  await page.getByRole("button", { name: "Cancel send" }).click();
  await page.getByText("Nothing is scheduled").waitFor();
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/draft`);
  await page.locator(".threads a.thread").first().click();
  await page.getByRole("button", { name: "Delete draft" }).click();
  await page.getByRole("heading", { name: "Delete this draft?" }).waitFor();
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Delete draft" }).click();
  await page.getByRole("button", { name: "Delete draft" }).click();
  await page.getByText("Draft deleted.").waitFor();
  await context.close();
});

test("a server without a way out says so before anybody writes", async () => {
  const local = await startService({ AGENT_MAILBOX__OUTBOUND__MODE: "local" });
  try {
    const { page, troubles } = await openPage(browser, local, { reducedMotion: "reduce" });
    await signUp(page, local, "dora@people.test", "Local");
    const mailbox = await makeMailbox(page, local, "Desk");
    await page.goto(`${local.base}/console/m/${mailbox.id}/compose`);
    await page.getByText("Outbound mail is not set up on this server").waitFor();
    assert.deepEqual(await judge(page), []);
    await page.getByRole("link", { name: "How to set up outbound mail" }).click();
    await page.getByRole("heading", { name: "Outbound mail" }).waitFor();
    assert.deepEqual(troubles, []);
  } finally {
    await local.stop();
  }
});
