// Lets undici make refused calls with late bodies, each followed by one that must work, on connections that are kept.
//
// Takes the server's address, the path of the call that works and how many calls to make; the keys are in GOOD_KEY and
// SPENT_KEY, and the calls in the file that CALLS names. Fails at the first call that is not answered as it should be.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, H2CClient } from "undici";

const [url, next, count] = process.argv.slice(2);
const calls = JSON.parse(readFileSync(process.env.CALLS, "utf8"));
const keys = { good: process.env.GOOD_KEY, spent: process.env.SPENT_KEY };
const { version } = createRequire(import.meta.url)("undici/package.json");

// Comes in pieces, the first of them when the refusal is ready.
async function* late(body) {
  await sleep(1);
  yield body.slice(0, 5);
  yield body.slice(5);
}

async function* broken() {
  yield "{";
  throw new Error("given up");
}

function headers(key) {
  const json = { "content-type": "application/json" };
  return key ? { ...json, "x-api-key": key } : json;
}

async function request(client, method, path, key, body) {
  const answer = await client.request({ method, path, headers: headers(key), body });
  await answer.body.dump();
  return answer.statusCode;
}

async function following(client, number) {
  const status = await request(client, "POST", next, keys.good, calls.next.body);
  assert.equal(status, calls.next.status, `after call ${number}`);
}

async function run(client) {
  for (let number = 0; number < Number(count); number += 1) {
    const call = calls.refused[number % calls.refused.length];
    const body = number % 2 ? late(calls.body) : calls.body;
    const status = await request(client, call.method, call.path, keys[call.key], body);
    assert.equal(status, call.status, `call ${number}: ${call.method} ${call.path}`);
    await following(client, number);
    if (number % 50 === 24) {
      await assert.rejects(request(client, "POST", "/api/v1/mailboxes", undefined, broken()));
      await following(client, number);
    }
  }
}

for (const [name, Kind] of [["HTTP/1.1", Client], ["HTTP/2", H2CClient]]) {
  const begun = performance.now();
  const client = new Kind(url);
  await run(client);
  await client.close();
  console.log(`undici ${version}, ${name}: ${count} refused, ${((performance.now() - begun) / 1000).toFixed(1)} s`);
}
