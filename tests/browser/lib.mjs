// A service of its own for each file of tests, somebody's browser, and mail that arrives over SMTP.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const program = process.env.AGENT_MAILBOX_PROGRAM
  || path.join(process.env.CARGO_TARGET_DIR || path.join(root, "target"), "debug/agent-mailbox");

export const PASSWORD = "correct horse battery";

/** Starts the service on an empty folder. */
export async function startService(settings = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), "agent-mailbox-browser-"));
  const child = spawn(program, ["--data-dir", folder, "serve"], {
    env: {
      ...process.env,
      AGENT_MAILBOX__HTTP__LISTEN: "127.0.0.1:0",
      AGENT_MAILBOX__SMTP__LISTEN: "127.0.0.1:0",
      AGENT_MAILBOX__OUTBOUND__MODE: "sandbox",
      AGENT_MAILBOX__HTTP__ANONYMOUS_RPM: "10000",
      // What is sent leaves at once, unless a test is about undoing that.
      AGENT_MAILBOX__CONSOLE__UNDO_SEND_SECONDS: "0",
      ...settings,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  child.stdout.on("data", (text) => { log += text; });
  child.stderr.on("data", (text) => { log += text; });
  // It takes ports that are free and tells which; one chosen here could be taken before it starts.
  let base;
  let smtp;
  for (let attempt = 0; ; attempt += 1) {
    base = log.match(/Console\s+(http:\/\/127\.0\.0\.1:\d+)\//)?.[1];
    smtp = Number(log.match(/Mail\s+127\.0\.0\.1:(\d+)\s/)?.[1]);
    if (base && smtp && await fetch(`${base}/readyz`).then((answer) => answer.ok, () => false)) break;
    if (child.exitCode !== null || attempt > 300) throw new Error(`the service did not start:\n${log}`);
    await new Promise((later) => setTimeout(later, 50));
  }
  const stop = async () => {
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { base, smtp, stop };
}

/** The browser of Debian, preferably without the parts that only a screen needs, and without anything it would do by itself. */
export function startBrowser() {
  const places = [process.env.CHROMIUM, "/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome"];
  const executablePath = places.find((place) => place && existsSync(place));
  assert.ok(executablePath, "no Chromium: install the package chromium-headless-shell, or name it in CHROMIUM");
  return chromium.launch({
    executablePath,
    // Without a graphics card it would be imitated, which nobody looks at.
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
      "--no-first-run", "--disable-default-apps", "--disable-domain-reliability"],
  });
}

/** A page whose troubles end up in a list: errors, refusals by the policy, dialogs, requests to others. */
export async function openPage(browser, service, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: service.base });
  const page = await context.newPage();
  const troubles = [];
  const forms = new Set();
  page.on("console", (message) => {
    // A refused form is shown again with the status of the mistake, which the browser notes.
    const isRefusedForm = forms.has(message.location().url) && /status of 4\d\d/.test(message.text());
    if (message.type() === "error" && !isRefusedForm) troubles.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => troubles.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { troubles.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    const url = request.url();
    if (request.isNavigationRequest() && request.method() === "POST") forms.add(url);
    if (!url.startsWith(service.base) && !url.startsWith("data:") && !url.startsWith("about:")) troubles.push(`asked ${url}`);
  });
  return { context, page, troubles };
}

/** Signs somebody up with the form. */
export async function signUp(page, service, email, workspace = "Analytical Engines", name = "Ada Byron") {
  await page.goto(`${service.base}/console/sign-up`);
  await page.getByLabel("Your name").fill(name);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByLabel("Workspace name").fill(workspace);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

/** Logs somebody in with the form. */
export async function logIn(page, service, email) {
  await page.goto(`${service.base}/console/login`);
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
}

/** Makes a mailbox with the form, and tells its id and address. */
export async function makeMailbox(page, service, name) {
  await page.goto(`${service.base}/console/mailboxes/new`);
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "Create mailbox" }).click();
  await page.waitForURL(/\/f\/inbox$/);
  const id = page.url().split("/m/")[1].split("/")[0];
  const address = await page.locator(`#side-mailboxes a[href*="${id}"]`).first().getAttribute("title");
  return { id, address };
}

/** Brings a message to an address over SMTP. */
export function deliver(service, to, message, from = "sender@remote.test") {
  const lines = message.replace(/\r?\n/g, "\r\n").replace(/^\./gm, "..");
  const steps = [null, "EHLO tests.remote.test", `MAIL FROM:<${from}>`, `RCPT TO:<${to}>`, "DATA", `${lines}\r\n.`, "QUIT"];
  return new Promise((done, fail) => {
    const socket = net.connect(service.smtp, "127.0.0.1");
    let step = 0;
    let text = "";
    socket.on("error", fail);
    socket.on("data", (bytes) => {
      text += bytes;
      if (!/^\d{3} .*\r\n$/m.test(text)) return;
      const code = Number(text.slice(0, 3));
      if (code >= 400) { socket.destroy(); fail(new Error(`SMTP: ${text}`)); return; }
      text = "";
      step += 1;
      if (step < steps.length) socket.write(`${steps[step]}\r\n`);
      if (step === steps.length) { socket.end(); done(); }
    });
  });
}

/** A plain message. */
export function plain({ from = "Grace Hopper <grace@remote.test>", to = "me@agents.test", subject, text, id }) {
  return `From: ${from}\nTo: ${to}\nSubject: ${subject}\nMessage-ID: <${id || Math.random().toString(36).slice(2)}@remote.test>\n`
    + `Date: ${new Date().toUTCString().replace("GMT", "+0000")}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n${text}\n`;
}

/** A message of HTML and text. */
export function rich({ from = "Reports <reports@remote.test>", subject, text, html }) {
  return `From: ${from}\nTo: me@agents.test\nSubject: ${subject}\nMessage-ID: <${Math.random().toString(36).slice(2)}@remote.test>\n`
    + `Date: ${new Date().toUTCString().replace("GMT", "+0000")}\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=cut\n\n`
    + `--cut\nContent-Type: text/plain; charset=utf-8\n\n${text}\n--cut\nContent-Type: text/html; charset=utf-8\n\n${html}\n--cut--\n`;
}
