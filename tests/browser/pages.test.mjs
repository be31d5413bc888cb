// The pages about the workspace: without a script, on a phone, and the code that a new key comes with.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";

let service;
let browser;
before(async () => {
  [service, browser] = [await startService({ AGENT_MAILBOX__WEBHOOKS__ALLOW_PRIVATE: "true" }), await startBrowser()];
});
after(async () => { await browser?.close(); await service?.stop(); });

// rules: CONSOLE-18
test("without a script every dialog is a page, and nothing is destroyed unasked", async () => {
  const { page, context, troubles } = await openPage(browser, service, { javaScriptEnabled: false });
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  await signUp(page, service, "plain@people.test", "Plain");
  await page.goto(`${service.base}/console/mailboxes/new`);
  await page.getByLabel("Name", { exact: true }).fill("Support");
  await press("Create mailbox");
  await page.waitForURL(/\/f\/inbox$/);
  const settings = page.url().replace(/f\/inbox$/, "settings");

  // Two keys and the choice of code work on a server of one's own.
  for (const name of ["First", "Second"]) {
    await page.goto(`${service.base}/console/keys`);
    await press("New API key");
    await page.getByLabel("Name", { exact: true }).fill(name);
    assert.equal(await page.getByLabel("Role").inputValue(), "member");
    assert.equal(await page.getByLabel("Expires").inputValue(), "90");
    await press("Create API key");
    await page.locator("#fresh-key").waitFor();
  }
  assert.ok(await page.locator(".code-panel.curl").isVisible());
  await page.getByLabel("MCP").check({ force: true });
  assert.ok(await page.locator(".code-panel.mcp").isVisible() && !await page.locator(".code-panel.curl").isVisible());
  await press("Revoke First");
  await page.getByRole("heading", { name: "Revoke API key “First”?" }).waitFor();
  await page.getByRole("link", { name: "Cancel" }).click();
  await press("Revoke First");
  await press("Revoke key");
  await page.getByText("API key revoked.").waitFor();
  await page.getByRole("button", { name: "Revoke Second" }).waitFor();
  assert.equal(await page.getByText("First", { exact: true }).count(), 0);

  for (const [list, button, heading] of [["members", "Invite member", "Invite a member"], ["domains", "Add domain", "Add a domain"],
    ["webhooks", "New webhook", "New webhook"], ["integrations", "New connection", "New connection"],
    ["knowledge", "Add document", "Add a document"], ["knowledge", "Add memory", "Add a memory"]]) {
    await page.goto(`${service.base}/console/${list}`);
    await press(button);
    await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
    await press("Cancel");
    await page.waitForURL(`${service.base}/console/${list}`);
  }

  // A rule with a mistake is told at its field, with what was typed; a mailbox is deleted by its address.
  await page.goto(settings);
  await page.getByPlaceholder("New label").fill("Bank");
  await page.getByLabel("Rule", { exact: true }).fill('from contains "@bank.test"');
  await press("Add label");
  await page.getByText("Column 1: write from:\"@bank.test\" here").waitFor();
  assert.equal(await page.getByPlaceholder("New label").inputValue(), "Bank");
  await press("Delete mailbox");
  const address = await page.locator("label strong").textContent();
  await page.getByLabel("to confirm").fill("Support");
  await press("Delete mailbox");
  await page.getByText("What you typed does not match.").waitFor();
  await page.getByLabel("to confirm").fill(address);
  await press("Delete mailbox");
  await page.getByText("Mailbox deleted.").waitFor();
  assert.deepEqual(troubles, []);
  await context.close();
});

// rules: CONSOLE-11
test("on a phone tables are cards with their actions, and charts can be read", async () => {
  const { page, context } = await openPage(browser, service, { viewport: { width: 390, height: 844 } });
  const press = (name) => page.getByRole("button", { name, exact: true }).click();
  await signUp(page, service, "phone@people.test", "Phone");
  const mailbox = await makeMailbox(page, service, "Support");
  await deliver(service, mailbox.address, plain({ subject: "Hello", text: "Hi" }));
  await page.goto(`${service.base}/console/keys`);
  await press("New API key");
  await page.getByLabel("Name", { exact: true }).fill("A key with a rather long name for a small screen");
  await press("Create API key");
  await page.locator("#fresh-key").waitFor();
  await page.goto(`${service.base}/console/webhooks`);
  await press("New webhook");
  await page.getByLabel("URL").fill("http://127.0.0.1:1/a/long/path/that/does/not/fit/on/one/line");
  await press("Create webhook");
  await page.getByRole("heading", { name: "Signing secret" }).waitFor();
  const hook = await page.getByRole("link", { name: /^Show deliveries/ }).getAttribute("href");
  await page.goto(service.base + hook);
  await press("Send test event");
  await page.locator("td.mono", { hasText: "webhook.test" }).waitFor();
  for (const [place, action] of [["keys", /^Revoke/], ["members", /^Remove/], ["webhooks", /^Show deliveries/], ["events", null],
    [hook.slice("/console/".length), /^Send again/], ["", /^Copy address/], ["operator/workspaces", null]]) {
    const answer = await page.goto(`${service.base}/console/${place}`);
    if (answer.status() === 404) continue;
    const wide = await page.evaluate(() => [...document.querySelectorAll("main, .table-wrap")]
      .map((one) => one.scrollWidth - one.clientWidth).filter((more) => more > 0));
    assert.deepEqual(wide, [], `${place} must not be scrolled sideways`);
    if (!action) continue;
    const box = await page.locator(".stacked .actions").getByText(action).first().boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 390, `${place}: ${JSON.stringify(box)}`);
  }
  await page.goto(`${service.base}/console/usage`);
  const texts = await page.locator(".chart.narrow text").evaluateAll((all) => all.map((one) => [one.getBoundingClientRect().height, one.textContent]));
  assert.ok(texts.length > 0 && texts.every(([height]) => height >= 10), JSON.stringify(texts));
  assert.equal(await page.locator(".chart.wide").first().isVisible(), false);
  assert.ok(texts.every(([, text]) => /^[\d\u202f]+$|^\d\d-\d\d$/.test(text)), JSON.stringify(texts));
  await context.close();
});

test("the code that comes with a key runs as printed", async () => {
  const { page, context } = await openPage(browser, service);
  await signUp(page, service, "code@people.test", "Code");
  const mailbox = await makeMailbox(page, service, "Support");
  await page.goto(`${service.base}/console/keys`);
  await page.getByRole("button", { name: "New API key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Robot");
  await page.getByRole("button", { name: "Create API key" }).click();
  const code = (kind) => page.locator(`.code-panel.${kind} code`).textContent();
  const run = (program, ...options) => execFileSync(program, options, { encoding: "utf8", timeout: 60_000 });
  assert.ok(run("sh", "-c", `${await code("curl")} --silent`).includes(mailbox.address));
  assert.equal(run("python3", "-c", await code("python")).trim(), mailbox.address);
  assert.equal(run(process.execPath, "--input-type=module", "-e", await code("javascript")).trim(), mailbox.address);
  const client = JSON.parse(await code("mcp")).mcpServers["agent-mailbox"];
  const body = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } } };
  const headers = { ...client.headers, "content-type": "application/json", accept: "application/json, text/event-stream" };
  const answer = await fetch(client.url, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, await answer.text());
  await context.close();
});
