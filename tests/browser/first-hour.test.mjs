// The first hour of somebody new, from signing up to revoking a key.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";

let service;
let browser;
before(async () => { [service, browser] = [await startService(), await startBrowser()]; });
after(async () => { await browser?.close(); await service?.stop(); });

// rules: CONSOLE-1, CONSOLE-2, CONSOLE-8, CONSOLE-9
test("sign up, mailbox, key, mail, reply, schedule, search, revoke", async () => {
  const { page, troubles, context } = await openPage(browser, service);
  await signUp(page, service, "ada@people.test");
  await page.getByRole("heading", { name: "First steps" }).waitFor();

  const mailbox = await makeMailbox(page, service, "Support");
  await page.getByText("is ready to receive mail").waitFor();

  await page.goto(`${service.base}/console/keys`);
  await page.getByRole("button", { name: "New API key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Robot");
  await page.getByRole("button", { name: "Create API key" }).click();
  const key = await page.locator("#fresh-key").textContent();
  await page.getByRole("button", { name: "Copy key" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  const call = () => fetch(`${service.base}/api/v1/mailboxes`, { headers: { "x-api-key": key } });
  assert.equal((await call()).status, 200);

  // The overview waits for the first mail, and shows it without a reload.
  await page.goto(`${service.base}/console`);
  await page.getByText(mailbox.address).first().waitFor();
  await deliver(service, mailbox.address, plain({ subject: "Is anybody there?", text: "Hello!\n\nPlease answer.", id: "one" }));
  await page.getByRole("heading", { name: "First steps" }).waitFor({ state: "detached" });

  // So does the inbox.
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.getByText("Is anybody there?").waitFor();
  await page.evaluate(() => { window.stays = true; });
  await deliver(service, mailbox.address, plain({ from: "Alan <alan@remote.test>", subject: "A second mail", text: "Later" }));
  await page.locator(".threads").getByText("A second mail").waitFor();
  assert.equal(await page.evaluate(() => window.stays), true, "the page was not loaded again");

  await page.getByText("Is anybody there?").click();
  await page.locator(".msg-plain").getByText("Please answer.").waitFor();
  await page.locator("li.unread").getByText("Is anybody there?").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Agent view" }).click();
  await page.locator(".agent-text").getByText("Please answer.").waitFor();

  await page.getByRole("link", { name: "Reply", exact: true }).first().click();
  assert.equal(await page.getByLabel("Subject").inputValue(), "Re: Is anybody there?");
  await page.getByRole("textbox", { name: "Message" }).click();
  await page.keyboard.type("Yes, somebody is.");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator(".toast", { hasText: "on its way" }).waitFor();
  await page.locator(".msg").getByText("Sandboxed").waitFor();

  await page.goto(`${service.base}/console/m/${mailbox.id}/compose`);
  await page.getByLabel("To", { exact: true }).fill("bob@elsewhere.test");
  await page.getByLabel("Subject").fill("For tomorrow");
  await page.getByRole("textbox", { name: "Message" }).click();
  await page.keyboard.type("Good morning.");
  await page.getByText("Draft saved").waitFor({ timeout: 15000 });
  await page.locator("summary", { hasText: "Send later" }).click();
  await page.getByRole("button", { name: /Tomorrow morning/ }).click();
  await page.getByRole("button", { name: "Schedule send", exact: true }).click();
  await page.getByRole("cell", { name: "For tomorrow", exact: true }).waitFor();

  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.getByRole("searchbox").fill("from:alan second");
  await page.keyboard.press("Enter");
  await page.waitForURL(/search\?q=/);
  assert.equal(await page.locator(".threads > li").count(), 1);
  await page.locator(".threads .subject").getByText("A second mail").waitFor();

  await page.goto(`${service.base}/console/keys`);
  await page.getByRole("button", { name: "Revoke Robot" }).click();
  await page.getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("No API keys yet").waitFor();
  assert.equal((await call()).status, 401);

  assert.deepEqual(troubles, []);
  await context.close();
});

test("files and pictures go along", async () => {
  const { page, troubles, context } = await openPage(browser, service);
  await signUp(page, service, "carol@people.test", "Files");
  const mailbox = await makeMailbox(page, service, "Files");
  await page.goto(`${service.base}/console/m/${mailbox.id}/compose`);
  await page.getByLabel("To", { exact: true }).fill(mailbox.address);
  await page.getByLabel("Subject").fill("With files");
  await page.getByLabel("Attach files").setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") });
  await page.locator(".compose-files").getByText("notes.txt").waitFor();
  const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC";
  await page.getByRole("textbox", { name: "Message" }).click();
  await page.keyboard.type("See this: ");
  await page.getByLabel("Insert an image").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: Buffer.from(pixel, "base64") });
  await page.locator(".editor img").waitFor();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.locator(".threads").getByText("With files").click();
  await page.locator(".files").getByText("notes.txt").first().waitFor();
  const frame = page.frameLocator("iframe.frame >> nth=0");
  await frame.locator("img[src^='data:image/png']").waitFor();
  assert.deepEqual(troubles, []);
  await context.close();
});
