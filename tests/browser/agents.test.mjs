// The pages about agents: what they know, what they look through, what they are asked, and the tools they get.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";
import { linkChat } from "./furnish.mjs";
import { startOthers } from "./stubs.mjs";

let others;
let service;
let browser;
before(async () => {
  [others, browser] = [await startOthers(), await startBrowser()];
  service = await startService(others.settings);
});
after(async () => {
  await browser?.close();
  await service?.stop();
  await others?.stop();
});

const told = (page, text) => page.locator(".toast", { hasText: text }).waitFor();

// rules: CONSOLE-1
test("a document is added, read, recalled, checked and deleted; a text is remembered and forgotten", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "ada@people.test", "Knowledge");
  const mailbox = await makeMailbox(page, service, "Support");
  await deliver(service, mailbox.address, plain({ subject: "The printer", text: "The printer on the third floor eats paper." }));
  await page.goto(`${service.base}/console/knowledge`);
  await page.getByText("No documents yet").waitFor();
  await page.getByRole("button", { name: "Add document", exact: true }).click();
  const words = Array.from({ length: 60 }, (_, number) => `Rule ${number}. Room ${number * 7} is for ${number} people.`);
  const text = `Towels lie in the blue cupboard.\n\n${words.join("\n\n")}`;
  await page.getByLabel("File").setInputFiles({ name: "house rules.md", mimeType: "text/markdown", buffer: Buffer.from(text) });
  await page.getByRole("button", { name: "Upload document" }).click();
  await told(page, "“house rules.md” uploaded.");
  // The list follows without a reload, keeps the focus, and stops asking when it is done.
  await page.getByRole("link", { name: "Download house rules.md" }).focus();
  await page.locator(".badge.ok", { hasText: /ready, \d+ passages/ }).waitFor({ timeout: 120_000 });
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Download house rules.md");
  assert.equal(await page.locator("#documents[hx-get]").count(), 0);

  await page.getByRole("button", { name: "Add memory" }).click();
  await page.getByLabel("Text", { exact: true }).fill("The office is closed on Mondays.");
  await page.getByRole("button", { name: "Save memory" }).click();
  await told(page, "Memory saved.");
  await page.getByLabel("Question").fill("Where are the towels?");
  await page.keyboard.press("Enter");
  await page.locator(".found > li").first().getByText("blue cupboard").waitFor();
  await page.getByLabel("Memories").check();
  await page.getByLabel("Question").fill("When is the office closed?");
  await page.getByRole("button", { name: "Search knowledge" }).click();
  await page.locator(".found > li").getByText("closed on Mondays").waitFor();
  assert.equal(await page.locator(".found > li").count(), 1);
  assert.ok(await page.getByLabel("Memories").isChecked(), "what was chosen stays chosen");
  await page.getByRole("button", { name: /^Forget/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Forget", exact: true }).click();
  await told(page, "Forgotten.");

  // A mail is found by meaning, and leads to itself.
  await page.getByLabel("Mail", { exact: true }).check();
  await page.getByLabel("Question").fill("office machine is broken");
  await page.getByRole("button", { name: "Search knowledge" }).click();
  await page.locator(".found a").click();
  await page.locator(".msg-plain").getByText("eats paper").waitFor();

  await page.goto(`${service.base}/console/knowledge`);
  await page.getByRole("button", { name: "Verify house rules.md" }).click();
  await told(page, "Document verified");
  await page.getByRole("button", { name: "Test memory" }).click();
  await told(page, "Memory works");
  await page.getByRole("button", { name: "Add document", exact: true }).click();
  await page.getByLabel("File").setInputFiles({ name: "song.mp3", mimeType: "audio/mpeg", buffer: Buffer.from("x") });
  await page.getByRole("button", { name: "Upload document" }).click();
  await page.getByRole("alert").getByText("File: Choose a text, Markdown, HTML, PDF or EML file").waitFor();
  assert.equal(await page.getByLabel("File").getAttribute("aria-invalid"), "true");
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Delete house rules.md" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete document" }).click();
  await told(page, "Document deleted.");
  await page.getByText("No documents yet").waitFor();
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-1, CONSOLE-8
test("a triager is made, finds a task in arriving mail, is changed, switched off, made default and deleted", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "bob@people.test", "Triage");
  const mailbox = await makeMailbox(page, service, "Support");
  await page.goto(`${service.base}/console/m/${mailbox.id}/triage`);
  await page.getByText("No runs yet").waitFor();
  await page.getByLabel("Let triagers run in this mailbox").check();
  await page.getByLabel("Draft replies to new mail").check();
  await page.getByRole("button", { name: "Save settings" }).click();
  await told(page, "Settings saved.");
  assert.ok(await page.getByLabel("Draft replies to new mail").isChecked());

  await page.getByRole("link", { name: "New triager" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Deadlines");
  await page.getByLabel("Instructions", { exact: true }).fill("A date is a task.");
  const first = page.getByRole("group", { name: "Trigger 1" });
  await first.getByLabel("Only mail matching").fill("subject:(");
  const tasks = page.getByRole("group", { name: "find tasks" });
  assert.equal(await tasks.getByLabel("Instructions for this task").isVisible(), false, "what does not matter is not shown");
  await tasks.getByRole("checkbox").check();
  await tasks.getByLabel("Instructions for this task").fill("Only mine");
  await tasks.getByLabel("Maximum tasks per email").fill("3");
  await page.getByRole("button", { name: "Save triager" }).click();
  // A filter that cannot be read is told, and nothing that was written is lost.
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Deadlines");
  assert.equal(await tasks.getByLabel("Instructions for this task").inputValue(), "Only mine");
  await first.getByLabel("Only mail matching").fill("");
  await page.getByRole("button", { name: "Save triager" }).click();
  await told(page, "Triager “Deadlines” created.");

  // What a run finds shows up on the open page.
  await deliver(service, mailbox.address, plain({ to: mailbox.address, subject: "The logs", text: "Can you look into the logs until Friday?" }));
  await page.locator("#found").getByRole("link", { name: "Look into the logs" }).waitFor({ timeout: 30_000 });
  const rows = page.getByRole("region", { name: "Recent runs" });
  await rows.getByRole("cell", { name: "Deadlines" }).waitFor({ timeout: 30_000 });
  await rows.getByRole("link", { name: "Open draft" }).waitFor({ timeout: 30_000 });
  await rows.getByRole("link", { name: "Open draft" }).click();
  const text = page.getByRole("textbox", { name: "Message" });
  await text.getByText("Thank you, I look into it.").waitFor();
  // The model writes it again, and what it says is text, whatever it says.
  await page.locator("summary", { hasText: "Rewrite with AI" }).click();
  await page.getByLabel("Instructions").fill("Warmer");
  await page.getByRole("button", { name: "Show preview" }).click();
  await page.getByRole("region", { name: "Preview" }).getByText(/thank you .*very.* much\./).waitFor();
  await page.getByRole("button", { name: "Accept rewrite" }).click();
  await page.locator("[data-editor]", { hasText: /thank you .*very.* much\./ }).waitFor();
  assert.equal(await page.locator("[data-editor] b").count(), 0);
  await page.getByRole("button", { name: "Save draft" }).click();
  await told(page, "Draft saved.");
  await page.goto(`${service.base}/console/m/${mailbox.id}/triage`);
  await page.locator("#found").getByRole("link", { name: "Look into the logs" }).click();
  await page.locator(".msg-plain").getByText("until Friday").waitFor();
  // The draft stands in the conversation, from where it is written on.
  await page.getByRole("link", { name: "Edit draft" }).click();
  await page.locator("[data-editor]", { hasText: /thank you .*very.* much\./ }).waitFor();
  await page.goto(`${service.base}/console/m/${mailbox.id}/triage`);
  await page.getByRole("button", { name: /^Mark as done.*Look into the logs$/ }).click();
  await told(page, "Task marked as done.");
  await page.getByText("No open tasks").waitFor();
  await page.getByRole("link", { name: "Done", exact: true }).click();
  await page.getByRole("button", { name: "Reopen Look into the logs" }).click();
  await told(page, "Task reopened.");
  await page.getByRole("button", { name: "Dismiss Look into the logs" }).click();
  await told(page, "Task dismissed.");
  await page.getByText("No open tasks").waitFor();

  await page.getByRole("link", { name: "Deadlines" }).click();
  assert.equal(await tasks.getByLabel("Maximum tasks per email").inputValue(), "3");
  await page.getByRole("button", { name: "Discuss with the agent" }).click();
  await page.getByText("No messages yet.").waitFor();
  await page.getByLabel("Message").fill("What did you find?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("#talk time").nth(1).waitFor();
  await page.goto(`${service.base}/console/m/${mailbox.id}/triage`);
  await page.getByRole("link", { name: "Deadlines" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Dates");
  await page.getByRole("button", { name: "Save triager" }).click();
  await told(page, "Triager “Dates” saved.");
  await page.getByRole("button", { name: "Turn off Dates" }).click();
  await told(page, "Triager turned off.");
  await page.getByRole("button", { name: "Turn on Dates" }).click();
  await told(page, "Triager turned on.");
  await page.getByRole("button", { name: "Make default Dates" }).click();
  await told(page, "is now the default triager");
  assert.equal(await page.getByRole("button", { name: "Delete Dates" }).count(), 0, "the default one is protected");
  await page.getByRole("button", { name: "Make default E-mail response" }).click();
  await page.getByRole("button", { name: "Delete Dates" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete triager" }).click();
  await told(page, "Triager deleted.");
  assert.deepEqual(troubles, []);
});

// rules: CONSOLE-1
test("a tool server is connected, and the agent answers, saves a draft, uses the tool, and says when it cannot", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "carol@people.test", "Agent");
  const mailbox = await makeMailbox(page, service, "Support");
  await page.goto(`${service.base}/console/integrations`);
  await page.getByText("No connections yet").waitFor();
  await page.getByRole("button", { name: "New connection" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("Zoo");
  await dialog.getByLabel("URL").fill("ftp://zoo.test/mcp");
  await dialog.getByRole("button", { name: "Connect server" }).click();
  // What is refused comes back on a page of its own, with what was written and the mistake at its field.
  await page.getByRole("alert").waitFor();
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Zoo");
  assert.equal(await page.evaluate(() => document.activeElement.name), "url");
  await page.getByLabel("URL").fill(others.tools.url);
  await page.getByLabel("Headers").fill("Authorization: Bearer hush");
  await page.getByRole("button", { name: "Connect server", exact: true }).click();
  await told(page, "Zoo is connected.");
  assert.ok(await page.getByLabel("legs").isChecked(), "what only reads is allowed at first");
  assert.equal(await page.getByLabel("feed").isChecked(), false);
  await page.getByLabel("feed").check();
  await page.getByRole("button", { name: "Save tools of Zoo" }).click();
  await told(page, "Tools saved.");
  await page.getByText("(2 of 2)").waitFor();
  await page.getByRole("button", { name: "Refresh tools of Zoo" }).click();
  await told(page, "Zoo has 2 tools.");

  await page.goto(`${service.base}/console/m/${mailbox.id}/agent`);
  await page.getByLabel("Message").fill("What is new?");
  others.model.state.pause = 300;
  await page.keyboard.press("Control+Enter");
  await page.locator(".bubble.waiting", { hasText: "There is" }).waitFor();
  assert.equal(await page.getByLabel("Message").inputValue(), "", "the field is free for the next one");
  await page.waitForURL(/\/agent\/[^/]+#end$/);
  others.model.state.pause = 0;
  await page.getByRole("heading", { name: "What is new?" }).waitFor();
  await page.getByLabel("Message").fill("Please save_draft {\"to\":[\"grace@remote.test\"],\"subject\":\"Hello\",\"body\":\"Hello Grace\"}");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("link", { name: "save draft" }).waitFor();
  assert.equal(await page.locator(".bubble").count(), 4);
  await page.getByLabel("Allow Zoo").check();
  await page.getByLabel("Message").fill("Use zoo1__legs {\"animal\":\"zebra\"}");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".bubble .badge", { hasText: "zoo1 legs" }).waitFor();

  others.model.state.fails = true;
  await page.getByLabel("Message").fill("And now?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".ask .note", { hasText: "No language model is available." }).waitFor({ timeout: 60_000 });
  assert.equal(await page.getByLabel("Message").inputValue(), "And now?", "what was not answered is not lost");
  assert.equal(await page.locator(".bubble").count(), 6);
  others.model.state.fails = false;

  await page.getByRole("link", { name: "save draft" }).click();
  await page.getByText("Hello Grace").first().waitFor();
  assert.equal(await page.getByLabel("Subject").inputValue(), "Hello");
  await page.goto(`${service.base}/console/m/${mailbox.id}/agent`);
  await page.getByRole("link", { name: "What is new?" }).click();
  await page.locator("summary", { hasText: "Rename conversation" }).click();
  await page.getByLabel("Name", { exact: true }).fill("News");
  await page.getByRole("button", { name: "Save name" }).click();
  await page.getByRole("heading", { name: "News" }).waitFor();
  await page.getByRole("button", { name: "Delete conversation" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete conversation" }).click();
  await told(page, "Conversation deleted.");

  await page.goto(`${service.base}/console/integrations`);
  await page.getByRole("button", { name: "Remove Zoo" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove connection" }).click();
  await page.getByText("No connections yet").waitFor();
  // A refusal by the server is part of this; a browser notes it.
  assert.deepEqual(troubles.filter((one) => !one.includes("503")), []);
});

// rules: CONSOLE-1, TELE-1, TELE-2
test("a Telegram chat is linked with a code, which the page notices, and is unlinked", async () => {
  const { page, troubles } = await openPage(browser, service);
  await signUp(page, service, "dora@people.test", "Telegram");
  const mailbox = await makeMailbox(page, service, "Support");
  await linkChat(page, service, mailbox, others.bot, "Ada L");
  await page.getByRole("heading", { name: "Ada L" }).waitFor();
  assert.equal(await page.locator("#link[hx-get]").count(), 0, "it stops asking");
  await page.goto(`${service.base}/console/m/${mailbox.id}/telegram`);
  await page.getByText("Active").waitFor();
  await page.getByRole("button", { name: "Unlink chat" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unlink chat" }).click();
  await page.getByRole("heading", { name: "No chat linked" }).waitFor();
  assert.deepEqual(troubles, []);
});
