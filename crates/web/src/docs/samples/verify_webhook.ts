import { createHmac, timingSafeEqual } from "node:crypto";

/** Throws unless the delivery is signed with the secret, and recent. */
export function verify(secret, headers, body) {
  const sentAt = headers["webhook-timestamp"];
  if (Math.abs(Date.now() / 1000 - Number(sentAt)) > 300) throw new Error("too old");
  const key = Buffer.from(secret.replace("whsec_", ""), "base64");
  const signed = `${headers["webhook-id"]}.${sentAt}.${body}`;
  const expected = Buffer.from(`v1,${createHmac("sha256", key).update(signed).digest("base64")}`);
  const isExpected = (one) => one.length === expected.length && timingSafeEqual(Buffer.from(one), expected);
  if (!headers["webhook-signature"].split(" ").some(isExpected)) throw new Error("wrong signature");
}
