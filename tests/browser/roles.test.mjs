// Two people in one workspace with different roles, and one who is not in it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PASSWORD, deliver, makeMailbox, openPage, plain, signUp, startBrowser, startService } from "./lib.mjs";

let service;
let browser;
before(async () => { [service, browser] = [await startService(), await startBrowser()]; });
after(async () => { await browser?.close(); await service?.stop(); });

// rules: CONSOLE-1, CONSOLE-9
test("an admin invites, a member reads, a stranger sees nothing", async () => {
  const ada = await openPage(browser, service);
  await signUp(ada.page, service, "ada@people.test");
  const mailbox = await makeMailbox(ada.page, service, "Shared");
  await deliver(service, mailbox.address, plain({ subject: "For both of us", text: "Hello" }));
  await ada.page.goto(`${service.base}/console/members`);
  await ada.page.getByRole("button", { name: "Invite member" }).click();
  await ada.page.getByLabel("Email").fill("bob@people.test");
  await ada.page.getByRole("dialog").getByRole("button", { name: "Send invite" }).click();
  const link = (await ada.page.locator(".code code").first().textContent()).trim();

  const bob = await openPage(browser, service);
  await bob.page.goto(link);
  assert.equal(new URL(bob.page.url()).hash, "", "the token does not stay in the address");
  await bob.page.getByLabel("Your name").fill("Bob");
  await bob.page.getByLabel("Password").fill(PASSWORD);
  await bob.page.getByRole("button", { name: "Create account and join" }).click();
  await bob.page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(await bob.page.getByRole("link", { name: "API keys" }).count(), 0);
  assert.equal(await bob.page.getByRole("link", { name: "Server" }).count(), 0);
  await bob.page.getByRole("link", { name: "Shared" }).first().click();
  await bob.page.getByText("For both of us").click();
  await bob.page.locator(".msg-plain").getByText("Hello").waitFor();
  await bob.page.goto(`${service.base}/console/keys`);
  await bob.page.getByRole("heading", { name: "Not allowed" }).waitFor();

  // A member who is removed is out at once.
  await ada.page.goto(`${service.base}/console/members`);
  await ada.page.getByRole("button", { name: "Remove Bob" }).click();
  await ada.page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await ada.page.getByText("Member removed.").waitFor();
  const gone = await bob.page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`);
  assert.equal(gone.status(), 404);

  const eve = await openPage(browser, service);
  await signUp(eve.page, service, "eve@people.test", "Elsewhere", "Eve");
  assert.equal((await eve.page.goto(`${service.base}/console/m/${mailbox.id}/f/inbox`)).status(), 404);
  assert.equal((await eve.page.goto(`${service.base}/console/operator`)).status(), 404);
  assert.deepEqual(ada.troubles, []);
});

// rules: CONSOLE-16
test("an account logs in to accept an invite, and another one is told that it is not meant", async () => {
  const owner = await openPage(browser, service);
  await signUp(owner.page, service, "olga@people.test", "Inviting", "Olga");
  const carol = await openPage(browser, service);
  await signUp(carol.page, service, "carol@people.test", "Invited", "Carol");
  await owner.page.goto(`${service.base}/console/members`);
  await owner.page.getByRole("button", { name: "Invite member" }).click();
  await owner.page.getByLabel("Email").fill("carol@people.test");
  await owner.page.getByRole("dialog").getByRole("button", { name: "Send invite" }).click();
  const link = (await owner.page.locator(".code code").first().textContent()).trim();

  // The wrong account is logged in; the page says so and leads to the login.
  await owner.page.goto(link);
  await owner.page.getByText("olga@people.test").waitFor();
  await owner.page.getByRole("button", { name: "Join workspace" }).click();
  await owner.page.getByText("for another address").waitFor();
  await owner.page.getByRole("button", { name: "Use another account" }).click();
  await owner.page.getByRole("heading", { name: "Log in" }).waitFor();

  // Nobody is logged in: by the login and back, the code comes along.
  const fresh = await openPage(browser, service);
  await fresh.page.goto(link);
  await fresh.page.getByRole("button", { name: "Log in with an existing account" }).click();
  await fresh.page.getByLabel("Email").fill("carol@people.test");
  await fresh.page.getByLabel("Password").fill(PASSWORD);
  await fresh.page.getByRole("button", { name: "Log in" }).click();
  await fresh.page.getByText("carol@people.test").waitFor();
  await fresh.page.getByRole("button", { name: "Join workspace" }).click();
  await fresh.page.getByRole("heading", { name: "Overview" }).waitFor();
  await fresh.page.getByText("Inviting").first().waitFor();
  assert.deepEqual(fresh.troubles, []);
});

test("whoever is logged out elsewhere is led to the login and back", async () => {
  const { page } = await openPage(browser, service);
  await page.goto(`${service.base}/console/usage?days=7`);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await page.getByLabel("Email").fill("ada@people.test");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Usage" }).waitFor();
  assert.ok(page.url().endsWith("/console/usage?days=7"));
  await page.goto(`${service.base}/console/account`);
  await page.getByRole("button", { name: "Log out everywhere" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Log out everywhere" }).click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await page.goto(`${service.base}/console`);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
});
