// The first hour as people differ: with the keyboard alone, on a phone, and without JavaScript.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PASSWORD, openPage, startBrowser, startService } from "./lib.mjs";

let service;
let browser;
before(async () => { [service, browser] = [await startService(), await startBrowser()]; });
after(async () => { await browser?.close(); await service?.stop(); });

/** Someone who fills in fields and presses buttons with a pointer or a finger. */
function byPointer(page) {
  return {
    fill: (label, text) => page.getByLabel(label, { exact: true }).filter({ visible: true }).first().fill(text),
    press: async (role, name) => {
      const found = page.getByRole(role, { name, exact: typeof name === "string" }).filter({ visible: true }).first();
      await found.scrollIntoViewIfNeeded();
      await found.click();
    },
  };
}

/** Someone who has only a keyboard: what cannot be reached with Tab is not there. */
function byKeyboard(page) {
  const focusedName = () => page.evaluate(() => {
    const one = document.activeElement;
    if (!one || one === document.body) return { name: "", role: "" };
    const label = one.getAttribute("aria-label") || one.labels?.[0]?.textContent || one.textContent || "";
    const tag = one.tagName.toLowerCase();
    const role = one.getAttribute("role") || { a: "link", button: "button", summary: "button", textarea: "textbox" }[tag] || tag;
    return { name: label.replace(/\s+/g, " ").trim(), role };
  });
  const matches = (name, wanted) => (typeof wanted === "string" ? name === wanted : wanted.test(name));
  const tabTo = async (wanted, role = null) => {
    const seen = [];
    for (let tabs = 0; tabs < 150; tabs += 1) {
      await page.keyboard.press("Tab");
      const focused = await focusedName();
      seen.push(focused.name.slice(0, 30));
      if (matches(focused.name, wanted) && (!role || focused.role === role)) return;
    }
    throw new Error(`Tab does not reach ${wanted}, only ${seen.join(" | ")}`);
  };
  return {
    fill: async (label, text) => {
      await tabTo(label);
      await page.keyboard.press("Control+A");
      await page.keyboard.type(text);
    },
    press: async (role, name) => {
      await tabTo(name, role);
      await page.keyboard.press("Enter");
    },
  };
}

/** From nothing to an answered message and a key that is revoked again. */
async function firstHour(page, person, email) {
  await page.goto(service.base);
  await person.press("link", /^Console/);
  await page.waitForURL(/\/console\/login/);
  await person.press("link", "Create account");
  await page.waitForURL(/sign-up/);
  await person.fill("Your name", "Ada Byron");
  await person.fill("Email", email);
  await person.fill("Password", PASSWORD);
  await person.press("button", "Create account");
  await page.getByRole("heading", { name: "Overview" }).waitFor();

  await person.press("link", "Create a mailbox");
  await page.waitForURL(/mailboxes\/new/);
  await person.fill("Name", "Support");
  await person.press("button", "Create mailbox");
  await page.waitForURL(/\/f\/inbox/);
  await person.press("button", "Send me a test message");
  await page.locator(".threads .subject").first().waitFor();
  await person.press("link", /test message|welcome/i);
  await page.locator(".msg").first().waitFor();

  await person.press("link", "Reply");
  await page.getByLabel("Message", { exact: true }).filter({ visible: true }).first().waitFor();
  await person.fill("Message", "It works.");
  await person.press("button", "Send");
  await page.getByText(/Message sent|on its way|Sending/).first().waitFor();

  await page.goto(`${service.base}/console/keys`);
  await person.press("button", "New API key");
  await page.getByLabel("Name", { exact: true }).filter({ visible: true }).first().waitFor();
  await person.fill("Name", "Robot");
  await person.press("button", "Create API key");
  const key = await page.locator("#fresh-key").textContent();
  const call = () => fetch(`${service.base}/api/v1/mailboxes`, { headers: { "x-api-key": key } }).then((answer) => answer.status);
  assert.equal(await call(), 200);
  await page.goto(`${service.base}/console/keys`);
  await person.press("button", "Revoke Robot");
  await page.getByRole("button", { name: "Revoke key", exact: true }).filter({ visible: true }).first().waitFor();
  await person.press("button", "Revoke key");
  await page.getByRole("heading", { name: "No API keys yet" }).waitFor();
  assert.equal(await call(), 401);
}

test("with the keyboard alone", async () => {
  const { page, troubles, context } = await openPage(browser, service);
  await firstHour(page, byKeyboard(page), "keys@people.test");
  assert.deepEqual(troubles, []);
  await context.close();
});

test("on a phone", async () => {
  const { page, troubles, context } = await openPage(browser, service, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await firstHour(page, byPointer(page), "phone@people.test");
  assert.deepEqual(troubles, []);
  await context.close();
});

test("without JavaScript", async () => {
  const { page, troubles, context } = await openPage(browser, service, { javaScriptEnabled: false });
  await firstHour(page, byPointer(page), "plain@people.test");
  assert.deepEqual(troubles, []);
  await context.close();
});
