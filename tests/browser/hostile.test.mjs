// Hostile mail and hostile names in every field that is shown: nothing runs, nothing is asked of others.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { addDocument, connect, linkChat, makeTriager, recordPayout, remember, talk, waitForRuns } from "./furnish.mjs";
import { deliver, logIn, makeMailbox, openPage, plain, rich, signUp, startBrowser, startService } from "./lib.mjs";
import { startOthers } from "./stubs.mjs";

const RUNS = "window.parent.hacked=1;window.hacked=1;alert(1)";
const PAYLOADS = [
  `<script>${RUNS}</script>`,
  `<img src=x onerror=${RUNS}>`,
  `'><svg/onload=${RUNS}>`,
  `</textarea></title><iframe srcdoc='<script>${RUNS}</script>'>`,
  `{{7*7}}<math><mtext><table><mglyph><style><img src=x onerror=${RUNS}>`,
  `<a href=javascript:${RUNS}>x</a>`,
];

const HTML = `<p id=seen>Seen</p>${PAYLOADS.join("")}<img src="https://track.remote.test/p.gif">
<link rel=stylesheet href=https://track.remote.test/x.css><style>@import url(https://track.remote.test/y.css)</style>
<div style="background:url(https://track.remote.test/z.png);position:fixed;inset:0">over</div>
<meta http-equiv=refresh content="0;url=https://track.remote.test/">
<form action=/console/logout method=post><input type=submit value=Go></form>
<object data=https://track.remote.test/o></object><embed src=https://track.remote.test/e><video src=https://track.remote.test/v autoplay>`;

let others;
let service;
let browser;
before(async () => {
  // The model, the tool server and the chat say the same as the mails.
  const evil = PAYLOADS.join(" ");
  const says = { summary: evil, reply: evil, task: PAYLOADS[1], answer: evil, anew: evil };
  others = await startOthers({ says, tools: ["legs", PAYLOADS[1].replace(/[^a-z]/g, "_")] });
  browser = await startBrowser();
  service = await startService(others.settings);
});
after(async () => {
  await browser?.close();
  await service?.stop();
  await others?.stop();
});

// rules: CONSOLE-3, CONSOLE-4, CONSOLE-5
test("nothing that others write runs or loads", async () => {
  const { page, troubles, context } = await openPage(browser, service);
  const name = PAYLOADS[1].slice(0, 60);
  await signUp(page, service, "ada@people.test", name, name);
  const mailbox = await makeMailbox(page, service, name);
  await page.goto(`${service.base}/console/m/${mailbox.id}/settings`);
  await page.getByPlaceholder("New label").fill(name);
  await page.locator("form[action$='/labels'] button").click();
  await page.getByPlaceholder("New folder").fill(name);
  await page.locator("form[action$='/folders'] button").click();
  for (const payload of PAYLOADS) {
    const from = `"${payload.replaceAll('"', "")}" <eve@remote.test>`;
    await deliver(service, mailbox.address, plain({ from, subject: payload, text: `${payload}\nhttps://x.test/"${payload}` }));
  }
  await deliver(service, mailbox.address, `From: eve@remote.test\nSubject: file\nMessage-ID: <f@remote.test>\nMIME-Version: 1.0\n`
    + `Content-Type: multipart/mixed; boundary=cut\n\n--cut\nContent-Type: text/plain\n\nsee\n--cut\nContent-Type: text/html\n`
    + `Content-Disposition: attachment; filename="${PAYLOADS[1]}.html"\n\n<script>${RUNS}</script>\n--cut--\n`);
  await deliver(service, mailbox.address, rich({ subject: "Page", text: "Seen", html: HTML }));

  const inbox = `${service.base}/console/m/${mailbox.id}/f/inbox`;
  await page.goto(inbox);
  const count = await page.locator(".threads > li").count();
  assert.equal(count, PAYLOADS.length + 2);
  for (let index = 0; index < count; index += 1) {
    await page.goto(inbox);
    await page.locator(".threads > li a.thread").nth(index).click();
    await page.locator(".reader .msg").first().waitFor();
    for (const button of ["Agent view", "Details", "Source", "Message"]) {
      await page.getByRole("button", { name: button, exact: true }).last().click();
      await page.waitForTimeout(150);
    }
  }
  for (const place of ["/console", "/console/keys", "/console/members", "/console/settings", "/console/audit", "/console/events", "/console/account",
    "/console/sandbox", "/console/operator/workspaces", `/console/m/${mailbox.id}/settings`,
    `/console/m/${mailbox.id}/search?q=${encodeURIComponent(PAYLOADS[0])}`,
    `/console/m/${mailbox.id}/compose?to=${encodeURIComponent(PAYLOADS[0])}`]) {
    await page.goto(service.base + place);
    assert.equal(await page.evaluate(() => window.hacked), undefined, place);
  }
  // Source of flagged mail is withheld, which the page says; everything else would be a fault.
  assert.deepEqual(troubles.filter((one) => !one.includes("403")), []);
  await context.close();
});

// rules: CONSOLE-3, CONSOLE-4
test("nothing that agents, tools, documents and chats say runs or loads", async () => {
  const { page, troubles, context } = await openPage(browser, service);
  const name = PAYLOADS[1].slice(0, 60);
  await signUp(page, service, "carol@people.test", name, name);
  const mailbox = await makeMailbox(page, service, name);
  await addDocument(page, service, `${name.replaceAll("/", "")}.md`, PAYLOADS.join("\n\n"));
  await remember(page, service, PAYLOADS.join("\n"));
  await connect(page, service, name, others.tools.url);
  await connect(page, service, `${name} broken`, "http://127.0.0.1:9/mcp");
  await makeTriager(page, service, mailbox, name, PAYLOADS.join("\n"));
  await deliver(service, mailbox.address, plain({ to: mailbox.address, from: `"${name}" <eve@remote.test>`, subject: PAYLOADS[0], text: PAYLOADS.join("\n") }));
  await waitForRuns(page, service, mailbox, 2);
  const triager = await page.locator(".stacked a").nth(1).getAttribute("href");
  const draft = await page.getByRole("link", { name: "Open draft" }).first().getAttribute("href");
  const conversation = await talk(page, service, mailbox, PAYLOADS.join("\n"), `save_draft ${PAYLOADS[0]}`);
  await linkChat(page, service, mailbox, others.bot, name);
  const asked = encodeURIComponent(PAYLOADS[1]);
  for (const place of [`/console/knowledge?q=${asked}&source=${asked}`, `/console/knowledge?q=${asked}`, "/console/integrations",
    `/console/m/${mailbox.id}/agent`, conversation, `/console/m/${mailbox.id}/triage`, triager, draft, "/console/events",
    `/console/m/${mailbox.id}/triage?status=${asked}`, `/console/m/${mailbox.id}/telegram`, `/console/m/${mailbox.id}/f/draft`]) {
    await page.goto(service.base + place);
    await page.waitForTimeout(100);
    assert.equal(await page.evaluate(() => window.hacked), undefined, place);
    assert.equal(await page.locator("main script, main iframe[srcdoc], main img, main math, main [onload], main [onerror]").count(), 0, place);
  }
  // A form that is refused repeats what was written.
  await page.goto(`${service.base}/console/integrations`);
  await page.getByRole("button", { name: "New connection" }).click();
  await page.getByLabel("Name", { exact: true }).fill(PAYLOADS[3]);
  await page.getByLabel("URL").fill(`ftp://x/${PAYLOADS[2]}`);
  await page.getByRole("button", { name: "Connect server", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await page.goto(`${service.base}/console/m/${mailbox.id}/triage/new`);
  await page.getByLabel("Name", { exact: true }).fill(PAYLOADS[3].slice(0, 80));
  await page.getByLabel("Instructions", { exact: true }).fill(PAYLOADS.join("\n"));
  await page.getByRole("group", { name: "Trigger 1" }).getByLabel("Only mail matching").fill("subject:(");
  await page.getByRole("button", { name: "Save triager" }).click();
  await page.getByRole("alert").waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  // A search that is no search and a state that is none are refused with 400; everything else would be a fault.
  assert.deepEqual(troubles.filter((one) => !one.includes("400")), []);
  await context.close();

  // The operator's pages show names of workspaces and what was typed in.
  const { page: operator, troubles: faults } = await openPage(browser, service);
  await logIn(operator, service, "ada@people.test");
  await recordPayout(operator, service, PAYLOADS[1]);
  for (const place of ["storage", `payments?payer=${asked.slice(0, 40)}`, "payouts", "workspaces"]) {
    await operator.goto(`${service.base}/console/operator/${place}`);
    assert.equal(await operator.evaluate(() => window.hacked), undefined, place);
    assert.equal(await operator.locator("main script, main img, main [onerror]").count(), 0, place);
  }
  assert.deepEqual(faults, []);
});

// rules: CONSOLE-5
test("pictures of others are loaded when asked for, and links open apart", async () => {
  const { page, troubles, context } = await openPage(browser, service);
  await signUp(page, service, "bob@people.test", "Pictures");
  const mailbox = await makeMailbox(page, service, "Pictures");
  const html = '<p>Hello <a href="https://links.remote.test/a">link</a></p><img src="https://pictures.remote.test/a.png" alt="Logo">';
  await deliver(service, mailbox.address, rich({ subject: "Pictures", text: "Hello", html }));
  await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  await page.locator(".threads").getByText("Pictures").click();
  const frame = page.frameLocator("iframe.frame");
  await frame.getByText("Hello").waitFor();
  assert.equal(await page.locator("iframe.frame").getAttribute("sandbox"), "allow-popups allow-popups-to-escape-sandbox");
  assert.equal(await frame.getByText("link").getAttribute("rel"), "noopener noreferrer nofollow");
  assert.deepEqual(troubles, []);
  const asked = page.waitForRequest("https://pictures.remote.test/a.png");
  await page.getByRole("button", { name: "Show images" }).click();
  await asked;
  await context.close();
});
