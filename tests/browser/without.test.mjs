// The pages that need something the operator has not set up, the operator's own pages, and mail passed on later.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";

let service;
let browser;
before(async () => { [service, browser] = [await startService(), await startBrowser()]; });
after(async () => { await browser?.close(); await service?.stop(); });

const told = (page, text) => page.locator(".toast", { hasText: text }).waitFor();

// rules: CONSOLE-1, CONSOLE-15
test("the operator sees what is kept and paid, and records a payout", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "root@people.test", "Operators");
  await page.locator("[data-group=operator] > summary").click();
  await page.getByRole("link", { name: "Storage" }).click();
  await page.getByRole("heading", { name: "Storage" }).waitFor();
  const workspace = await page.locator("td code").first().textContent();
  await page.getByRole("link", { name: "Payments" }).click();
  await page.getByText("No payments yet").waitFor();
  await page.getByLabel("Status").selectOption("failed");
  await page.getByRole("button", { name: "Filter payments" }).click();
  await page.getByText("No matching payments").waitFor();
  await page.getByRole("link", { name: "Payouts" }).click();
  await page.getByText("No payouts yet").waitFor();
  await page.getByLabel("Workspace").fill(workspace);
  await page.getByLabel("Reference").fill("wire 7");
  await page.getByLabel("Amount").fill("a lot");
  await page.getByLabel("From").fill("2026-06-01");
  await page.getByLabel("Until").fill("2026-07-01");
  await page.getByLabel("Status").selectOption("paid");
  await page.getByRole("button", { name: "Record payout" }).click();
  await page.getByRole("alert").getByText("Amount: Expected an amount").waitFor();
  assert.equal(await page.getByLabel("Amount").getAttribute("aria-invalid"), "true");
  assert.equal(await page.getByLabel("Reference").inputValue(), "wire 7", "what was filled in is still there");
  assert.equal(await page.getByLabel("Status").inputValue(), "paid");
  await page.getByLabel("Amount").fill("12.5");
  await page.getByRole("button", { name: "Record payout" }).click();
  await told(page, "Payout of 12.50 USD recorded.");
  await page.getByRole("cell", { name: "wire 7" }).waitFor();
  assert.deepEqual(troubles, []);
});

test("without a model and a bot the pages say so, and what to do", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "ada@people.test", "Without");
  const mailbox = await makeMailbox(page, service, "Support");
  await page.keyboard.press("g");
  await page.keyboard.press("m");
  await page.getByRole("heading", { name: "No language model" }).waitFor();
  await page.getByText("ai.base_url").waitFor();
  assert.equal(await page.getByLabel("Message").count(), 0);
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("alert").getByText("ai.base_url").waitFor();
  await page.goto(`${service.base}/console/m/${mailbox.id}/telegram`);
  await page.getByRole("heading", { name: "No chat linked" }).waitFor();
  await page.getByText("telegram.bot_token").waitFor();
  assert.equal(await page.getByRole("button", { name: "Link a chat" }).count(), 0);
  await page.keyboard.press("g");
  await page.keyboard.press("n");
  await page.getByRole("heading", { name: "Knowledge" }).waitFor();
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-1
test("a mail is passed on by way of a draft, with its files", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "bob@people.test", "Forward");
  const mailbox = await makeMailbox(page, service, "Support");
  await deliver(service, mailbox.address, `From: Ann <ann@remote.test>\nSubject: Numbers\nMessage-ID: <n@remote.test>\nMIME-Version: 1.0\n`
    + `Content-Type: multipart/mixed; boundary=cut\n\n--cut\nContent-Type: text/html\n\n<p style="color:red">The numbers</p>\n--cut\n`
    + `Content-Type: text/plain\nContent-Disposition: attachment; filename="numbers.txt"\n\n1,2,3\n--cut--\n`);
  const inbox = `${service.base}/console/m/${mailbox.id}/f/inbox`;
  await page.goto(inbox);
  await page.locator(".threads .subject", { hasText: "Numbers" }).click();
  await page.locator(".reader .msg").first().waitFor();
  await page.keyboard.press("f");
  await page.getByText("with its 1 attachment").waitFor();
  await page.getByText("The original message follows").click();
  await page.frameLocator(".below iframe").getByText("The numbers").waitFor();
  await page.getByText("The original message follows").click();
  await page.getByLabel("To", { exact: true }).fill("carl@remote.test");
  await page.getByRole("textbox", { name: "Message" }).fill("Look at these.");
  // It saves itself, and what follows it becomes part of the draft.
  await page.locator("[data-saved]", { hasText: "Draft saved" }).waitFor();
  await page.locator(".compose-files").getByText("numbers.txt").waitFor();
  await page.getByLabel("Attach files").setInputFiles({ name: "mine.txt", mimeType: "text/plain", buffer: Buffer.from("mine") });
  await page.locator(".compose-files").getByText("mine.txt").waitFor();
  await page.getByRole("button", { name: "Save draft" }).click();
  await told(page, "Draft saved.");
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/draft`);
  await page.locator(".threads .subject", { hasText: "Fwd: Numbers" }).click();
  await page.getByRole("heading", { name: "Draft" }).waitFor();
  await page.getByText("Look at these.").first().waitFor();
  await page.getByText("The original message follows").click();
  await page.frameLocator(".below iframe").getByText("The numbers").waitFor();
  await page.getByText("The original message follows").click();
  assert.equal(await page.locator(".compose-files li").count(), 2);
  await page.getByRole("button", { name: "Remove mine.txt" }).click();
  await page.getByRole("textbox", { name: "Message" }).fill("Look at them.");
  await page.keyboard.press("Control+Enter");
  await told(page, "on its way");
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/sent`);
  await page.locator(".threads .subject", { hasText: "Numbers" }).click();
  const sent = page.locator(".reader .msg").last();
  await sent.locator(".file", { hasText: "numbers.txt" }).waitFor();
  assert.equal(await sent.locator(".file").count(), 1);
  const frame = sent.frameLocator("iframe.frame");
  await frame.getByText("Look at them.").waitFor();
  await frame.getByText("The numbers").waitFor();
  assert.deepEqual(troubles, []);
});
