import hashlib
import hmac
import os
import time

import requests

env = os.environ
message = b"From: Ada <ada@example.com>\r\nSubject: Your order\r\n\r\nThank you for writing.\r\n"
sender, recipient, now = "ada@example.com", env["MAILBOX_ADDRESS"], str(int(time.time()))
# The time, then the four headers about the envelope and the client, then the message.
signed = "\n".join([now, sender, recipient, "", "", ""]).encode() + message
signature = hmac.new(env["INBOUND_SECRET"].encode(), signed, hashlib.sha256).hexdigest()
response = requests.post(
    f"{env['AGENT_MAILBOX_URL']}/inbound/v1/raw",
    headers={
        "x-signature-time": now,
        "x-signature": f"sha256={signature}",
        "x-envelope-from": sender,
        "x-envelope-to": recipient,
        "content-type": "message/rfc822",
    },
    data=message,
)
response.raise_for_status()
print(response.json())
