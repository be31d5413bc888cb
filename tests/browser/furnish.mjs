// Fills the pages about agents with something to look at, by their own forms.

/** Adds a document and waits until it is read. */
export async function addDocument(page, service, name, text) {
  await page.goto(`${service.base}/console/knowledge`);
  await page.getByRole("button", { name: "Add document", exact: true }).click();
  await page.getByLabel("File").setInputFiles({ name, mimeType: "text/markdown", buffer: Buffer.from(text) });
  await page.getByRole("button", { name: "Upload document" }).click();
  await page.locator("tr", { hasText: name }).locator(".badge.ok").waitFor({ timeout: 120_000 });
}

/** Remembers a text. */
export async function remember(page, service, text) {
  await page.goto(`${service.base}/console/knowledge`);
  await page.getByRole("button", { name: "Add memory" }).click();
  await page.getByLabel("Text", { exact: true }).fill(text);
  await page.getByRole("button", { name: "Save memory" }).click();
  await page.locator(".toast", { hasText: "Memory saved." }).waitFor();
}

/** Connects a tool server. */
export async function connect(page, service, name, url) {
  await page.goto(`${service.base}/console/integrations`);
  await page.getByRole("button", { name: "New connection" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("URL").fill(url);
  await page.getByRole("button", { name: "Connect server", exact: true }).click();
  await page.getByText(name).first().waitFor();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
}

/** Makes a triager that finds tasks, and lets triagers run. */
export async function makeTriager(page, service, mailbox, name, instructions) {
  await page.goto(`${service.base}/console/m/${mailbox.id}/triage`);
  await page.getByLabel("Let triagers run in this mailbox").check();
  await page.getByLabel("Draft replies to new mail").check();
  await page.getByRole("button", { name: "Save settings" }).click();
  await page.locator(".toast", { hasText: "Settings saved." }).waitFor();
  await page.getByRole("link", { name: "New triager" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Instructions", { exact: true }).fill(instructions);
  await page.getByRole("group", { name: "find tasks" }).getByRole("checkbox").check();
  await page.getByRole("button", { name: "Save triager" }).click();
  await page.locator(".toast", { hasText: "created." }).waitFor();
}

/** Waits until something was found and drafted. */
export async function waitForRuns(page, service, mailbox, count) {
  await page.goto(`${service.base}/console/m/${mailbox.id}/triage`);
  const runs = page.getByRole("region", { name: "Recent runs" }).locator("tbody tr");
  await runs.nth(count - 1).waitFor({ timeout: 30_000 });
}

/** Asks the agent something in a new conversation, and tells its place. */
export async function talk(page, service, mailbox, ...messages) {
  await page.goto(`${service.base}/console/m/${mailbox.id}/agent`);
  for (const [index, message] of messages.entries()) {
    await page.getByLabel("Message").fill(message);
    await page.getByRole("button", { name: "Send" }).click();
    await page.waitForURL(/\/agent\/[^/]+#end$/);
    await page.locator("#talk .bubble").nth(index * 2 + 1).locator("time").waitFor();
  }
  return page.url().slice(service.base.length).split("#")[0];
}

/** Records a payout to the first workspace. */
export async function recordPayout(page, service, reference) {
  await page.goto(`${service.base}/console/operator/storage`);
  const workspace = await page.locator("td code").first().textContent();
  await page.goto(`${service.base}/console/operator/payouts`);
  await page.getByLabel("Workspace").fill(workspace);
  await page.getByLabel("Reference").fill(reference);
  await page.getByLabel("Amount").fill("184.20");
  await page.getByLabel("From").fill("2026-10-01");
  await page.getByLabel("Until").fill("2026-11-01");
  await page.getByLabel("Status").selectOption("paid");
  await page.getByRole("button", { name: "Record payout" }).click();
  await page.locator(".toast", { hasText: "recorded" }).waitFor();
}

/** Links a chat with a mailbox. */
export async function linkChat(page, service, mailbox, bot, name) {
  await page.goto(`${service.base}/console/m/${mailbox.id}/telegram`);
  await page.getByRole("button", { name: "Link a chat" }).click();
  const command = (await page.locator(".code code").textContent()).trim();
  bot.write(command, name);
  // The page notices by itself.
  await page.getByText("Linked since").waitFor({ timeout: 20_000 });
}
