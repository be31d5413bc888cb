"""Pays and reads with the Python client of x402, against a running server: `python pay.py BASE_URL`."""

import sys

import requests
from eth_account import Account
from x402 import x402ClientSync
from x402.http.clients.requests import wrapRequestsWithPayment
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client

origin = sys.argv[1]
base = origin + "/api/agent/v1"


def session():
    """A session with a new wallet, and its address."""
    account = Account.create()
    client = x402ClientSync()
    register_exact_evm_client(client, EthAccountSigner(account))
    return wrapRequestsWithPayment(requests.Session(), client), account.address


def check(response, status):
    assert response.status_code == status, (response.status_code, response.text)
    return response.json()


# rules: PAY-3, PAY-6, PAY-12, PAY-15
check(requests.get(base + "/mailboxes", timeout=30), 402)
wallet, address = session()
assert check(wallet.get(origin + "/api", timeout=30), 200) == {"agent_api_base_url": base, "wallet": address}
made = wallet.post(base + "/mailboxes", json={"name": "Python"}, timeout=30)
mailbox = check(made, 201)
assert made.headers["PAYMENT-RESPONSE"]
assert len(check(wallet.get(base + "/mailboxes", timeout=30), 200)) == 1
inside = base + "/mailboxes/" + mailbox["public_id"]
mail = {"to": mailbox["email"], "subject": "From Python", "text": "Sent by a real client."}
check(wallet.post(inside + "/emails", json=mail, timeout=30), 202)
mails = check(wallet.get(inside + "/emails?folder=inbox", timeout=30), 200)
assert [one["subject"] for one in mails["emails"]] == ["From Python"], mails

# rules: PAY-7
stranger, _ = session()
check(stranger.get(inside, timeout=30), 404)
print("Python client: all calls went well.")
