// Mail and the frame around it: the command palette, undo, the list of mailboxes, and all of it without JavaScript.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let service;
let browser;
before(async () => {
  service = await startService({ AGENT_MAILBOX__CONSOLE__UNDO_SEND_SECONDS: "30", AGENT_MAILBOX__PLANS__FREE__MAILBOXES: "20" });
  browser = await startBrowser();
});
after(async () => { await browser?.close(); await service?.stop(); });

const told = (page, text) => page.locator(".toast", { hasText: text }).waitFor();

/** What axe finds wrong, in light and dark. */
async function judge(page) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe);
  const faults = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], preload: false }));
    faults.push(...violations.map((one) => `${colorScheme} ${one.id}: ${one.nodes.map((node) => node.target.join(" ")).join(", ")}`));
  }
  await page.emulateMedia({ colorScheme: "light" });
  return faults;
}

// rules: CONSOLE-11
test("the command palette goes anywhere by a few letters", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "ada@people.test", "Palette");
  const mailbox = await makeMailbox(page, service, "Support");
  const input = page.getByRole("combobox", { name: "Search or go to" });
  const chosen = () => page.locator("#palette [aria-selected=true] span").textContent();
  await page.keyboard.press("Control+k");
  assert.ok(await input.evaluate((one) => one === document.activeElement));
  await page.keyboard.type("member");
  assert.equal(await chosen(), "Members");
  assert.deepEqual(await judge(page), []);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/console\/members$/);
  // A mailbox by its address; arrows move, and Escape closes.
  await page.getByRole("button", { name: /Search or go to/ }).click();
  await input.fill(mailbox.address);
  assert.equal(await chosen(), "Support");
  await page.keyboard.press("ArrowDown");
  assert.equal(await chosen(), `Search mail for “${mailbox.address}”`);
  const active = await input.getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`#${active}`).getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/f\/inbox$/);
  await page.keyboard.press("Control+k");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  // Also from inside a field, for what is not a page.
  await page.getByRole("searchbox", { name: "Search mail" }).focus();
  await page.keyboard.press("Control+k");
  await input.fill("Re: nothing");
  await page.keyboard.press("Enter");
  await page.waitForURL(/search\?q=Re%3A%20nothing$/);
  await page.getByRole("heading", { name: "No results" }).waitFor();
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-19
test("a send is undone from its note, and the draft opens again", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "bob@people.test", "Undo");
  const mailbox = await makeMailbox(page, service, "Support");
  await page.goto(`${service.base}/console/m/${mailbox.id}/compose?to=carl@remote.test`);
  await page.getByLabel("Subject").fill("Too early");
  await page.locator("[contenteditable=true]").fill("Not finished");
  await page.keyboard.press("Control+Enter");
  await told(page, "on its way");
  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await page.waitForURL(/compose\?draft=/);
  await told(page, "Sending undone");
  assert.equal(await page.getByLabel("Subject").inputValue(), "Too early");
  assert.equal(await page.locator("[contenteditable=true]").innerText(), "Not finished");
  assert.deepEqual(troubles, []);
});

test("many mailboxes are filtered by name and address, and groups stay as they were left", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "carol@people.test", "Many");
  const names = ["Sales", "Support", "Billing", "Press", "Jobs", "Legal", "Travel"];
  for (const name of names) await makeMailbox(page, service, name);
  assert.equal(await page.getByRole("searchbox", { name: "Filter mailboxes" }).count(), 0);
  const last = await makeMailbox(page, service, "Robots");
  const rows = page.locator("#side-mailboxes > li:visible");
  await page.getByRole("searchbox", { name: "Filter mailboxes" }).fill("s");
  await page.getByRole("searchbox", { name: "Filter mailboxes" }).fill(last.address);
  assert.equal(await rows.count(), 1);
  // News bring the list anew, filtered as it was.
  await deliver(service, last.address, plain({ subject: "Hello", text: "Hello" }));
  await page.locator("#side-mailboxes .count", { hasText: "1" }).waitFor();
  assert.equal(await rows.count(), 1);
  const group = page.locator("details[data-group=developers]");
  await group.locator("summary").click();
  await page.goto(`${service.base}/console`);
  assert.equal(await group.getAttribute("open"), null);
  await page.goto(`${service.base}/console/keys`);
  assert.equal(await group.getAttribute("open"), "", "the group with the page is open");
  assert.equal(await page.getByRole("link", { name: "Telegram" }).count(), 0, "there is no bot");
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-18, CONSOLE-19, SEARCH-8
test("without JavaScript mail is read, moved, moved back, searched and deleted, and nothing is deleted unasked", async () => {
  const { page, troubles } = await openPage(browser, service, { javaScriptEnabled: false });
  await signUp(page, service, "dora@people.test", "Plain");
  const mailbox = await makeMailbox(page, service, "Support");
  const at = (rest) => `${service.base}/console/m/${mailbox.id}/${rest}`;
  assert.equal(await page.getByRole("button", { name: /Search or go to/ }).isVisible(), false);
  await page.getByRole("heading", { name: "Your inbox is empty" }).waitFor();
  await page.getByRole("button", { name: "Send me a test message" }).click();
  await page.getByText("Test message delivered.").waitFor();
  await page.getByRole("link", { name: /Your mailbox works/ }).click();
  await page.getByText("receives mail.").first().waitFor();
  await page.getByRole("button", { name: "Trash" }).click();
  await page.getByText("Conversation moved to Trash.").waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Moved back.").waitFor();
  await page.getByRole("link", { name: /Your mailbox works/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
  // The tools of the list come with the first selected conversation.
  await page.getByRole("checkbox", { name: /Select: Your mailbox works/ }).check();
  await page.getByRole("button", { name: "Trash" }).click();
  await page.getByText("Conversation moved to Trash.").waitFor();
  await page.goto(at("f/trash"));
  await page.getByRole("checkbox", { name: /Select: Your mailbox works/ }).check();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByRole("heading", { name: "Delete this conversation?" }).waitFor();
  await page.getByRole("link", { name: "Cancel" }).click();
  await page.getByRole("link", { name: /Your mailbox works/ }).waitFor();
  await page.getByRole("button", { name: "Empty Trash" }).click();
  await page.getByRole("heading", { name: "Empty Trash?" }).waitFor();
  await page.getByRole("button", { name: "Empty Trash" }).click();
  await page.getByText("1 message deleted.").waitFor();
  await page.getByRole("heading", { name: "Trash is empty" }).waitFor();
  await page.getByRole("searchbox", { name: "Search mail" }).fill("before:soon");
  await page.keyboard.press("Enter");
  await page.getByText("This search has an error. Character 8: expected a date").waitFor();
  assert.equal(await page.getByRole("searchbox", { name: "Search mail" }).inputValue(), "before:soon");
  // A send can be undone here too.
  await page.goto(at("compose?to=carl@remote.test"));
  await page.getByLabel("Subject").fill("Too early");
  await page.locator("textarea").first().fill("Not finished");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Sending undone").waitFor();
  assert.equal(await page.getByLabel("Subject").inputValue(), "Too early");
  assert.deepEqual(troubles, []);
});

test("a conversation is deleted after a question that counts", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "erin@people.test", "Counting");
  const mailbox = await makeMailbox(page, service, "Support");
  for (const subject of ["One", "Two", "Three"]) await deliver(service, mailbox.address, plain({ subject, text: "Hello" }));
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.getByText("3 conversations").waitFor();
  await page.getByRole("checkbox", { name: "Select all" }).check();
  await page.getByRole("button", { name: "Trash" }).click();
  await told(page, "3 conversations moved to Trash.");
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/trash`);
  for (const subject of ["One", "Two"]) await page.getByRole("checkbox", { name: `Select: ${subject}` }).check();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "Delete 2 conversations?" }).waitFor();
  assert.deepEqual(await judge(page), []);
  await dialog.getByRole("button", { name: "Delete conversations" }).click();
  await told(page, "2 conversations deleted.");
  await page.getByText("1 conversation", { exact: true }).waitFor();
  await page.locator(".threads a.thread").click();
  await page.locator(".reader .msg").waitFor();
  await page.locator(".reader-bar").getByRole("button", { name: "Delete" }).click();
  await dialog.getByRole("heading", { name: "Delete this conversation?" }).waitFor();
  await dialog.getByRole("button", { name: "Delete conversation", exact: true }).click();
  await page.getByRole("heading", { name: "Trash is empty" }).waitFor();
  assert.deepEqual(troubles, []);
});
