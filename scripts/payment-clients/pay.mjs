// Pays and reads with the clients that agents really use, against a running server: `node pay.mjs BASE_URL`.
// Each step fails loudly; nothing here knows how the server works.
import assert from 'node:assert/strict'
import { x402Client, wrapFetchWithPayment, decodePaymentResponseHeader } from '@x402/fetch'
import { registerExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithSIWx, createSIWxClientExtension } from '@x402/extensions/sign-in-with-x'
import { Mppx } from 'mppx/client'
import { assets } from 'mppx/evm'
import { evm } from 'mppx/evm/client'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

const origin = process.argv[2]
const base = `${origin}/api/agent/v1`
const account = privateKeyToAccount(generatePrivateKey())

// Notes the sizes of headers that pass, in both directions.
let largest = 0
const proofs = ['payment-required', 'payment-signature', 'x-payment', 'authorization', 'sign-in-with-x', 'www-authenticate']
const measure = (headers) => {
  for (const name of proofs) largest = Math.max(largest, (headers.get(name) ?? '').length)
}
const watched = async (input, init) => {
  const request = new Request(input, init)
  measure(request.headers)
  const response = await fetch(request)
  measure(response.headers)
  return response
}

const client = () => registerExactEvmScheme(new x402Client(), { signer: account })
const x402 = wrapFetchWithPayment(watched, client())

// A client that knows version 1 only reads the body: what version 2 says is taken away from it.
const bodyOnly = async (input, init) => {
  const response = await watched(input, init)
  if (response.status !== 402) return response
  const headers = new Headers(response.headers)
  headers.delete('payment-required')
  headers.delete('www-authenticate')
  return new Response(await response.text(), { status: 402, headers })
}
const x402v1 = wrapFetchWithPayment(bodyOnly, client())
const mpp = Mppx.create({ methods: [evm.charge({ account, currencies: [assets.baseSepolia.USDC] })], polyfill: false, fetch: watched })
const siwx = wrapFetchWithSIWx(watched, account)

const json = async (response, status) => {
  const text = await response.text()
  assert.equal(response.status, status, `${response.url}: ${text}`)
  return JSON.parse(text)
}
const post = (body) => ({ method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

// Everybody is asked, at every price.
for (const path of ['/api', '/api/agent/v1/mailboxes']) {
  await json(await watched(`${origin}${path}`), 402)
}

// rules: PAY-15
const hello = await json(await x402(`${origin}/api`), 200)
assert.deepEqual(hello, { agent_api_base_url: base, wallet: account.address })
const asked = await json(await siwx(`${origin}/api`), 200)
assert.equal(asked.wallet, account.address)

// rules: PAY-3, PAY-4, PAY-12
const response = await x402(`${base}/mailboxes`, post({ name: 'x402 version 2' }))
const settled = decodePaymentResponseHeader(response.headers.get('PAYMENT-RESPONSE'))
assert.equal(settled.success, true)
assert.equal(settled.payer, account.address)
const first = await json(response, 201)
const old = await x402v1(`${base}/mailboxes`, post({ name: 'x402 version 1' }))
assert.equal(decodePaymentResponseHeader(old.headers.get('X-PAYMENT-RESPONSE')).network, 'base-sepolia')
const second = await json(old, 201)
const paid = await mpp.fetch(`${base}/mailboxes`, post({ name: 'MPP' }))
assert.ok(paid.headers.get('payment-receipt'))
const third = await json(paid, 201)
assert.equal(new Set([first, second, third].map((one) => one.workspace_id)).size, 1)

// rules: PAY-6
for (const read of [x402, x402v1, siwx]) {
  const all = await json(await read(`${base}/mailboxes`), 200)
  assert.equal(all.length, 3)
}
// A client that does both signs in and does not pay.
const both = wrapFetchWithPayment(watched, client().registerExtension(createSIWxClientExtension({ signers: [account] })))
const listed = await both(`${base}/mailboxes/${first.public_id}/emails?limit=5`)
assert.equal(listed.headers.get('PAYMENT-RESPONSE'), null)
assert.equal((await json(listed, 200)).totalCount, 0)

// rules: PAY-14
const sends = [[x402, 'one'], [x402v1, 'two'], [mpp.fetch, 'three']]
for (const [send, subject] of sends) {
  const mail = { to: second.email, subject, text: 'Sent by a real client.' }
  const sent = await json(await send(`${base}/mailboxes/${first.public_id}/emails`, post(mail)), 202)
  assert.equal(sent.status, 'sent')
}
const mails = await json(await siwx(`${base}/mailboxes/${second.public_id}/emails`), 200)
assert.deepEqual(mails.emails.map((one) => one.subject).sort(), ['one', 'three', 'two'])
const context = `${base}/mailboxes/${second.public_id}/emails/${mails.emails[0].id}/context`
assert.equal((await json(await x402(context), 200)).email.agent_safe_content, true)

// rules: PAY-7
const stranger = privateKeyToAccount(generatePrivateKey())
const foreign = wrapFetchWithPayment(watched, registerExactEvmScheme(new x402Client(), { signer: stranger }))
await json(await foreign(`${base}/mailboxes/${first.public_id}`), 404)
await json(await wrapFetchWithSIWx(watched, stranger)(`${base}/mailboxes/${first.public_id}`), 404)

// rules: PAY-9
await json(await x402(`${base}/mailboxes`, post({ nam: 'misspelt' })), 400)

console.log(`Node clients: all calls went well; the largest proof header had ${largest} bytes.`)
assert.ok(largest < 4096, 'proof headers stay under 4 KB')
