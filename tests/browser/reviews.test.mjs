// Deciding about messages before they leave: the queue with the keyboard, several at once, the counter, the link in a mail.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askForReviews, makeAgent } from "./furnish.mjs";
import { makeMailbox, openPage, signUp, startBrowser, startService } from "./lib.mjs";

let service;
let browser;
before(async () => {
  [service, browser] = [await startService({ AGENT_MAILBOX__SEND_POLICY__UNDO_SECONDS: "60" }), await startBrowser()];
});
after(async () => { await browser?.close(); await service?.stop(); });

/** A message of an agent to an address that nobody has written to. */
async function ask(agent, mailbox, subject, more = {}) {
  const message = { to: "Grace Hopper <grace@remote.test>", subject, text: `Dear Grace,\n\n${subject} is done.\n`, ...more };
  const sent = await agent("POST", `/mailboxes/${mailbox.id}/emails`, message);
  assert.equal(sent.status, "in_review");
  return sent.review_id;
}

// rules: CONSOLE-21, CONSOLE-8, CONSOLE-11
test("a queue with the keyboard: approving, editing, rejecting, undoing", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "ada@people.test");
  const mailbox = await makeMailbox(page, service, "Support");
  await askForReviews(page, service, "new");
  const agent = await makeAgent(page, service, "Support agent");
  await page.goto(`${service.base}/console/reviews`);
  await page.getByRole("heading", { name: "Nothing to review" }).waitFor();
  // What is asked for while the page is open is counted and listed at once.
  for (const subject of ["First", "Second", "Third"]) await ask(agent, mailbox, subject);
  const counter = page.locator(".side-nav .reviews-count");
  await counter.getByText("3", { exact: false }).waitFor();
  const row = (subject) => page.locator(".threads > li", { hasText: subject });
  await row("Third").waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Third", level: 1 }).waitFor();
  await page.locator(".review-people .new", { hasText: "New recipient" }).waitFor();
  await page.keyboard.press("a");
  const approved = page.locator(".toast", { hasText: "Approved. It leaves" });
  await approved.waitFor();
  // The next one is open, and the approval can be undone.
  await page.getByRole("heading", { name: "Second", level: 1 }).waitFor();
  await approved.getByRole("button", { name: "Undo" }).click();
  await page.locator(".toast", { hasText: "in review again" }).waitFor();
  await page.getByRole("heading", { name: "Third", level: 1 }).waitFor();

  await page.keyboard.press("e");
  await page.locator("#f-text:focus").waitFor();
  await page.getByLabel("Subject").fill("Third, corrected");
  await page.getByRole("button", { name: "Approve with changes" }).click();
  await page.locator(".toast", { hasText: "Approved." }).waitFor();
  await page.getByRole("heading", { name: "Second", level: 1 }).waitFor();
  await page.keyboard.press("r");
  await page.locator("#f-reason:focus").waitFor();
  await page.keyboard.type("Rather not");
  await page.keyboard.press("Enter");
  await page.locator(".toast", { hasText: "Rejected. The message is a draft again." }).waitFor();
  await page.getByRole("heading", { name: "First", level: 1 }).waitFor();
  assert.equal((await counter.textContent()).replace(/\D/g, ""), "1");

  await page.getByRole("link", { name: "Decided" }).click();
  await row("Third, corrected").getByText("Approved").waitFor();
  await row("Second").click();
  await page.getByText("Rather not").waitFor();
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-21
test("several at once", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "bob@people.test", "Many");
  const mailbox = await makeMailbox(page, service, "Sales");
  await askForReviews(page, service, "all");
  const agent = await makeAgent(page, service, "Sales agent");
  for (let number = 1; number <= 4; number += 1) await ask(agent, mailbox, `Offer ${number}`, { html: `<p>Offer <b>${number}</b></p>` });
  await page.goto(`${service.base}/console/reviews`);
  assert.equal(await page.getByRole("button", { name: "Approve selected" }).isVisible(), false);
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.keyboard.press("a");
  await page.getByRole("heading", { name: "Approve 2 messages?" }).waitFor();
  await page.getByRole("button", { name: "Approve messages" }).click();
  await page.locator(".toast", { hasText: "2 messages approved." }).waitFor();
  assert.equal(await page.locator(".threads > li").count(), 2);
  await page.getByLabel("Select all").check();
  await page.getByRole("button", { name: "Reject selected" }).click();
  await page.getByRole("button", { name: "Reject messages" }).click();
  await page.locator(".toast", { hasText: "2 messages rejected." }).waitFor();
  await page.getByRole("heading", { name: "Nothing to review" }).waitFor();
  assert.equal(await page.locator(".side-nav .reviews-count").textContent(), "");
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-18, CONSOLE-21, CONSOLE-24
test("without a script, and from the folder of messages in review", async () => {
  const { page, troubles, context } = await openPage(browser, service);
  await signUp(page, service, "carol@people.test", "Plain");
  const mailbox = await makeMailbox(page, service, "Support");
  await askForReviews(page, service, "all");
  const agent = await makeAgent(page, service, "Agent");
  await ask(agent, mailbox, "Held");
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.locator("#side-mailboxes").getByRole("link", { name: "In review" }).click();
  await page.locator(".threads a.thread", { hasText: "Held" }).click();
  await page.getByText("A person decides about this message").waitFor();
  await page.getByRole("link", { name: "Open review" }).click();
  await page.waitForURL(/\/console\/reviews\/rev_/);
  const place = page.url();
  const plainPage = await openPage(browser, service, { javaScriptEnabled: false, storageState: await context.storageState() });
  await plainPage.page.goto(place);
  await plainPage.page.getByRole("link", { name: "Edit" }).click();
  await plainPage.page.getByLabel("Text", { exact: true }).fill("Dear Grace,\n\nall is well.\n");
  await plainPage.page.getByRole("button", { name: "Approve with changes" }).click();
  await plainPage.page.getByText("Approved. It leaves").waitFor();
  await plainPage.page.getByRole("button", { name: "Undo" }).click();
  await plainPage.page.getByText("The message is in review again.").waitFor();
  await plainPage.page.getByText("all is well.").first().waitFor();
  assert.deepEqual([...troubles, ...plainPage.troubles], []);
});
