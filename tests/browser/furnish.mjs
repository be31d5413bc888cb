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

/** Calls the API as the person of the page. */
function call(page, method, path, body) {
  return page.evaluate(async ([verb, place, content]) => {
    const answer = await fetch(`/api/v1${place}`, {
      method: verb, headers: { "content-type": "application/json" }, body: content ? JSON.stringify(content) : undefined,
    });
    if (!answer.ok) throw new Error(`${place}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }, [method, path, body]);
}

/** An agent of the workspace with a key of its own, which can call the API. */
export async function makeAgent(page, service, name) {
  const { workspaces: [{ id: workspace }] } = await call(page, "GET", "/workspaces");
  const { key } = await call(page, "POST", `/workspaces/${workspace}/api-keys`, { name, role: "member", scopes: ["read", "draft", "send"] });
  return async (method, path, body) => {
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const answer = await fetch(`${service.base}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
}

/** Lets a person decide about messages to new recipients, or about all. */
export async function askForReviews(page, service, mode) {
  await page.goto(`${service.base}/console/send-policy`);
  if (mode === "all") await page.getByLabel("A person decides about").selectOption("all");
  else await page.getByLabel("A message to a new recipient").selectOption("review");
  await page.getByRole("button", { name: "Save send policy" }).click();
  await page.locator(".toast", { hasText: "Send policy saved." }).waitFor();
}

/** Messages of an agent that wait for a decision; the id of the newest one's review. */
export async function holdMessages(page, service, mailbox) {
  await askForReviews(page, service, "new");
  const agent = await makeAgent(page, service, "Desk agent");
  const send = async (message) => (await agent("POST", `/mailboxes/${mailbox.id}/emails`, message)).review_id;
  await send({ to: "Accounts <accounts@cloudhost.test>", subject: "Payment of invoice 2026-1108", text: "Hello,\n\nwe have paid the invoice today.\n\nAda",
    attachments: [{ filename: "receipt.txt", type: "text/plain", content: btoa("Paid 184.20 EUR") }] });
  await send({ to: "hello@looms.test", subject: "Our offer", text: "Hello,\n\nplease find our offer below.", html: "<h2>Our offer</h2><p>Hello,</p><p>for <b>three months</b> we would share the costs equally.</p>" });
  const { emails } = await agent("GET", `/mailboxes/${mailbox.id}/emails?limit=100`);
  const asked = emails.find((one) => one.subject.startsWith("Compiler logs"));
  const draft = await agent("POST", `/mailboxes/${mailbox.id}/drafts`, {
    to: ["Grace Hopper <grace@navy.test>"], subject: "Re: Compiler logs look odd after the upgrade", in_reply_to: asked?.message_id, thread_id: asked?.thread_id,
    body: "Hello Grace,\n\nyes, that is expected.\nClear the cache once and the warnings go away.\n\nAda",
  });
  return send({ source_draft_id: draft.id, text: "Hello Grace,\n\nyes, that is expected after an upgrade to 4.2.\nClear the cache once and the warnings go away.\nIf they come back, tell us the number of the build.\n\nAda" });
}
