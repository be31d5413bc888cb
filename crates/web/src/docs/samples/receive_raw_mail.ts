import { createHmac } from "node:crypto";

const { AGENT_MAILBOX_URL, INBOUND_SECRET = "", MAILBOX_ADDRESS = "" } = process.env;
const message = "From: Ada <ada@example.com>\r\nSubject: Your order\r\n\r\nThank you for writing.\r\n";
const sender = "ada@example.com";
const now = String(Math.floor(Date.now() / 1000));
// The time, then the four headers about the envelope and the client, then the message.
const signed = [now, sender, MAILBOX_ADDRESS, "", "", message].join("\n");
const signature = createHmac("sha256", INBOUND_SECRET).update(signed).digest("hex");
const response = await fetch(`${AGENT_MAILBOX_URL}/inbound/v1/raw`, {
  method: "POST",
  headers: {
    "x-signature-time": now,
    "x-signature": `sha256=${signature}`,
    "x-envelope-from": sender,
    "x-envelope-to": MAILBOX_ADDRESS,
    "content-type": "message/rfc822",
  },
  body: message,
});
if (!response.ok) throw new Error(await response.text());
console.log(await response.json());
