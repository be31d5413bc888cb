// Every page as an automatic judge of accessibility sees it, in light and dark, on a screen and on a phone; and how much
// of it a browser has to load.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { addDocument, connect, holdMessages, linkChat, makeTriager, recordPayout, remember, talk, waitForRuns } from "./furnish.mjs";
import { deliver, makeMailbox, openPage, plain, rich, signUp, startBrowser, startService } from "./lib.mjs";
import { startOthers } from "./stubs.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

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

const sizes = [{ width: 1360, height: 850 }, { width: 390, height: 844 }];

/** What axe finds wrong with a page as it stands: in the light everything, in the dark what depends on colours. */
async function judge(page, place) {
  const faults = [];
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe);
  for (const [colorScheme, choice] of [["light", {}], ["dark", { runOnly: ["color-contrast", "link-in-text-block"] }]]) {
    await page.emulateMedia({ colorScheme });
    // What is being loaded is pale on purpose, for as long as that takes.
    await page.waitForFunction(() => !document.querySelector(".htmx-request"));
    const { violations } = await page.evaluate((rules) => window.axe.run(document, { resultTypes: ["violations"], preload: false, ...rules }), choice);
    faults.push(...violations.map((one) =>
      `${colorScheme} ${place}: ${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 5).join(", ")}`));
  }
  return faults;
}

/** The same on a screen and on a phone; nothing may stick out of either. */
async function judgeSizes(page, place) {
  const faults = [];
  for (const size of sizes) {
    await page.setViewportSize(size);
    faults.push(...await judge(page, `${size.width} ${place}`));
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) faults.push(`${size.width} ${place} is ${wide} pixels too wide`);
  }
  return faults;
}

async function furnish(page) {
  await signUp(page, service, "ada@people.test");
  const mailbox = await makeMailbox(page, service, "Support");
  await page.goto(`${service.base}/console/m/${mailbox.id}/settings`);
  await page.getByPlaceholder("New label").fill("VIP");
  await page.locator("form[action$='/labels'] button").click();
  await deliver(service, mailbox.address, plain({ subject: "A question", text: "Hello?\n\n> quoted\n\nhttps://example.test/" }));
  await deliver(service, mailbox.address, rich({ subject: "A page", text: "Hello", html: "<p>Hello <b>you</b></p><img src=https://x.test/a.png>" }));
  await page.goto(`${service.base}/console/keys`);
  await page.getByRole("button", { name: "New API key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("Robot");
  await page.getByRole("button", { name: "Create API key" }).click();
  await page.locator("#fresh-key").waitFor();
  return { ...mailbox, key: await page.getByRole("link", { name: "Edit Robot" }).getAttribute("href") };
}

/** The pages about agents with something in them; those that are known by their ids only are told. */
async function furnishAgents(page, mailbox) {
  await addDocument(page, service, "rules.md", "# Rules\n\nA refund takes five days.");
  await remember(page, service, "The office is closed on Mondays.");
  await connect(page, service, "Zoo", others.tools.url);
  await connect(page, service, "Broken", "http://127.0.0.1:9/mcp");
  await makeTriager(page, service, mailbox, "Deadlines", "A date is a task.");
  await deliver(service, mailbox.address, plain({ to: mailbox.address, subject: "A deadline", text: "Can you look into the logs until Friday?" }));
  await waitForRuns(page, service, mailbox, 2);
  const triager = await page.getByRole("link", { name: "Deadlines" }).getAttribute("href");
  const conversation = await talk(page, service, mailbox, "What is new?", "Please save_draft for me");
  await recordPayout(page, service, "wire 7");
  await linkChat(page, service, mailbox, others.bot, "Ada L");
  return [triager, conversation, "/console/knowledge?q=refund", "/console/knowledge?q=refund&source=memory"];
}

// rules: CONSOLE-11
test("no page has a fault that axe finds, in light and dark, wide and narrow", async () => {
  const first = await openPage(browser, service);
  const mailbox = await furnish(first.page);
  const known = await furnishAgents(first.page, mailbox);
  const review = await holdMessages(first.page, service, mailbox);
  const state = await first.context.storageState();
  const inside = ["f/inbox", "f/sent", "f/draft", "f/trash", "search?q=hello", "search?q=nothing", "compose", "scheduled", "settings", "send-policy", "f/review",
    "agent", "triage", "triage?status=done", "triage/new", "telegram"];
  const places = ["/console", "/console/keys", "/console/domains", "/console/webhooks", "/console/events", "/console/sandbox",
    "/console/usage", "/console/audit", "/console/audit?routine=1", "/console/audit?since=2000-01-01&until=2000-01-01",
    "/console/members", "/console/settings", "/console/account", "/console/affiliate", "/console/mailboxes/new",
    "/console/operator", "/console/operator/nodes", "/console/operator/workspaces", "/console/operator/queue", "/console/operator/storage",
    "/console/operator/payments", "/console/operator/payments?state=failed", "/console/operator/payouts",
    "/console/reviews", `/console/reviews/${review}`, `/console/reviews/${review}?edit=1`, "/console/reviews?state=decided",
    "/console/send-policy", "/console/send-policy?address=a@remote.test",
    "/console/knowledge", "/console/integrations", mailbox.key, ...known,
    ...["keys/new", "members/invite", "domains/new", "webhooks/new", "integrations/new", "knowledge/new", "knowledge/remember"].map((rest) => `/console/${rest}`),
    ...inside.map((rest) => `/console/m/${mailbox.id}/${rest}`)];
  const open = ["/console/login", "/console/sign-up", "/console/invite", "/console/forgot", "/console/reset", "/console/verify", "/console/nowhere-at-all"];
  const faults = [];
  const { page, context } = await openPage(browser, service, { reducedMotion: "reduce", storageState: state });
  for (const place of places) {
    await page.goto(service.base + place);
    faults.push(...await judgeSizes(page, place));
  }
  // A message opens beside the list on a screen, and as a page on a phone.
  for (const size of sizes) {
    await page.setViewportSize(size);
    for (const subject of ["A question", "A page"]) {
      await page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
      await page.locator(".threads").getByText(subject).click();
      await page.locator(".msg").waitFor();
      faults.push(...await judge(page, `${size.width} ${subject}`));
      for (const [view, shown] of [["Agent view", ".beside"], ["Details", "dl.kv"], ["Source", "pre.source"]]) {
        await page.getByRole("button", { name: view, exact: true }).click();
        await page.locator(`.msg-view ${shown}`).waitFor();
        faults.push(...await judge(page, `${size.width} ${subject} ${view}`));
      }
    }
  }
  await context.close();
  const stranger = await openPage(browser, service, { reducedMotion: "reduce" });
  for (const place of open) {
    await stranger.page.goto(service.base + place);
    faults.push(...await judgeSizes(stranger.page, place));
  }
  assert.deepEqual(faults, []);
});

// rules: CONSOLE-11
test("pages without anything in them, and without a model or bot, have no fault that axe finds", async () => {
  const bare = await startService();
  const faults = [];
  try {
    const { page } = await openPage(browser, bare, { reducedMotion: "reduce" });
    await signUp(page, bare, "nobody@people.test", "Empty");
    const mailbox = await makeMailbox(page, bare, "Empty");
    const inside = ["agent", "triage", "telegram"].map((rest) => `/console/m/${mailbox.id}/${rest}`);
    for (const place of ["/console/knowledge", "/console/knowledge?q=nothing", "/console/integrations", ...inside]) {
      await page.goto(bare.base + place);
      faults.push(...await judge(page, place));
    }
    for (const [place, button] of [["knowledge", "Add document"], ["knowledge", "Add memory"], ["integrations", "New connection"]]) {
      await page.goto(`${bare.base}/console/${place}`);
      await page.getByRole("button", { name: button, exact: true }).click();
      faults.push(...await judge(page, button));
    }
  } finally {
    await bare.stop();
  }
  assert.deepEqual(faults, []);
});

test("a list is light, paints soon and does not jump", async (context) => {
  const { page } = await openPage(browser, service);
  await page.goto(`${service.base}/console/login`);
  await page.getByLabel("Email").fill("ada@people.test");
  await page.getByLabel("Password").fill("correct horse battery");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const link = await page.locator("#side-mailboxes a").first().getAttribute("href");
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  let bytes = 0;
  session.on("Network.loadingFinished", (event) => { bytes += event.encodedDataLength; });
  await page.addInitScript(() => {
    window.figures = { lcp: 0, cls: 0 };
    new PerformanceObserver((list) => { for (const one of list.getEntries()) window.figures.lcp = one.startTime; })
      .observe({ type: "largest-contentful-paint", buffered: true });
    new PerformanceObserver((list) => { for (const one of list.getEntries()) if (!one.hadRecentInput) window.figures.cls += one.value; })
      .observe({ type: "layout-shift", buffered: true });
  });
  await page.goto(service.base + link);
  await page.waitForTimeout(800);
  const { lcp, cls } = await page.evaluate(() => window.figures);
  context.diagnostic(`largest contentful paint ${Math.round(lcp)} ms, layout shift ${cls.toFixed(4)}, ${Math.round(bytes / 1024)} KiB over the wire`);
  assert.ok(bytes < 150 * 1024, `${bytes} bytes`);
  assert.ok(cls < 0.01, `layout shift ${cls}`);
});
