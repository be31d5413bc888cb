// The console without a mouse.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";

let service;
let browser;
before(async () => { [service, browser] = [await startService(), await startBrowser()]; });
after(async () => { await browser?.close(); await service?.stop(); });

// rules: CONSOLE-11
test("moving, opening, archiving, deleting, answering, searching, going places", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "ada@people.test");
  const mailbox = await makeMailbox(page, service, "Keys");
  for (const subject of ["First", "Second", "Third", "Fourth"]) {
    await deliver(service, mailbox.address, plain({ subject, text: `Text of ${subject}` }));
  }
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  const focused = () => page.evaluate(() => document.activeElement.querySelector(".subject")?.textContent);
  await page.keyboard.press("j");
  assert.equal(await focused(), "Fourth");
  await page.keyboard.press("j");
  assert.equal(await focused(), "Third");
  await page.keyboard.press("k");
  assert.equal(await focused(), "Fourth");
  await page.keyboard.press("Enter");
  await page.locator(".msg-plain").getByText("Text of Fourth").waitFor();
  // What is archived or trashed makes room for the list; nothing else is opened or read.
  const unread = (subject) => page.locator(".threads > li.unread", { hasText: subject });
  await page.keyboard.press("e");
  await page.locator(".toast", { hasText: "archived" }).waitFor();
  await page.getByText("No conversation selected").waitFor();
  await page.waitForURL(/\/f\/inbox$/);
  await page.locator(".threads > li", { hasText: "Fourth" }).waitFor({ state: "detached" });
  await unread("Third").waitFor();
  assert.equal(await focused(), "Third");
  await page.keyboard.press("z");
  await page.locator(".toast", { hasText: "Moved back." }).waitFor();
  await page.locator(".threads > li", { hasText: "Fourth" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".msg-plain").getByText("Text of Third").waitFor();
  await page.keyboard.press("#");
  const trashed = page.locator(".toast", { hasText: "Conversation moved to Trash." });
  await trashed.waitFor();
  await page.locator(".threads > li", { hasText: "Third" }).waitFor({ state: "detached" });
  await unread("Second").waitFor();
  await trashed.getByRole("button", { name: "Undo" }).click();
  await page.locator(".threads > li", { hasText: "Third" }).waitFor();
  await page.locator(".threads > li a.thread", { hasText: "Second" }).focus();
  await page.keyboard.press("Enter");
  await page.locator(".msg-plain").getByText("Text of Second").waitFor();
  await page.keyboard.press("r");
  // The reply opens below the conversation, ready to be written.
  await page.locator("#reply-form [data-editor]:focus").waitFor();
  assert.equal(await page.getByLabel("Subject").inputValue(), "Re: Second");
  await page.keyboard.type("Written with keys only.");
  await page.keyboard.press("Control+Enter");
  await page.locator(".toast", { hasText: "on its way" }).waitFor();

  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  await page.keyboard.type("First");
  await page.keyboard.press("Enter");
  await page.waitForURL(/search\?q=First/);
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.waitForURL(/\/f\/inbox$/);
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByRole("button", { name: "Mark as unread" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keyboard shortcuts" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("c");
  await page.waitForURL(/compose$/);
  assert.equal(await page.evaluate(() => document.activeElement.name), "to");
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-8, CONSOLE-11
test("news do not take the focus away", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "carol@people.test", "News");
  const mailbox = await makeMailbox(page, service, "News");
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  for (const [place, link] of [[`/console/m/${mailbox.id}/settings`, page.locator("#side-mailboxes").getByRole("link", { name: "Spam" })],
    ["/console", page.locator("#overview").getByRole("link", { name: "News" })]]) {
    await page.goto(service.base + place);
    await link.focus();
    const before = await focused();
    const count = Number(await page.locator("#side-mailboxes .count").last().textContent({ timeout: 500 }).catch(() => "0").then((text) => text.replace(/\D/g, "")));
    await deliver(service, mailbox.address, plain({ subject: `Number ${count}`, text: "Hello" }));
    await page.locator("#side-mailboxes .count", { hasText: String(count + 1) }).waitFor();
    await page.waitForTimeout(300);
    assert.equal(await focused(), before, place);
  }
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-8
test("mail that arrives before the page listens is shown too", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "dora@people.test", "Early");
  const mailbox = await makeMailbox(page, service, "Early");
  let open;
  const opened = new Promise((resolve) => { open = resolve; });
  await page.route("**/console/live*", async (route) => {
    await opened;
    await route.continue();
  });
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await deliver(service, mailbox.address, plain({ subject: "Between two requests", text: "Hello" }));
  open();
  await page.locator(".threads > li", { hasText: "Between two requests" }).waitFor();
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-11
test("everything can be reached with Tab, and focus can be seen", async () => {
  const { page } = await openPage(browser, service);
  await page.goto(`${service.base}/console/login`);
  await page.keyboard.press("Tab");
  const reached = new Set();
  for (let index = 0; index < 12; index += 1) {
    const [name, seen] = await page.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      return [element.name || element.textContent.trim() || element.tagName,
        style.outlineStyle !== "none" || style.boxShadow !== "none" || element === document.body];
    });
    assert.ok(seen, `the focus on ${name} cannot be seen`);
    reached.add(name);
    await page.keyboard.press("Tab");
  }
  for (const name of ["email", "password", "Log in", "Create account"]) assert.ok(reached.has(name), `${name} in ${[...reached]}`);
});

test("dialogs ask first, and Escape means no", async () => {
  const { page } = await openPage(browser, service);
  await signUp(page, service, "bob@people.test", "Dialogs");
  await page.goto(`${service.base}/console/keys`);
  await page.getByRole("button", { name: "New API key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Robot");
  await page.keyboard.press("Enter");
  await page.locator("#fresh-key").waitFor();
  await page.getByRole("button", { name: "Revoke Robot" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Revoke Robot" }).waitFor();
});
