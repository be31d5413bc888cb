"""A mail API as somebody would make it at home: FastAPI, SQLite, a key check. A yardstick of `scripts/bench reads`."""

import hashlib
import os
import sqlite3

import orjson
import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Response

LISTED = "message.id, thread_id, folder, date, message.subject, message.sender, recipient, read, starred, snippet"


def rows(cursor):
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor]


database = sqlite3.connect(os.environ["PLAIN_FILE"], check_same_thread=False)
database.execute("PRAGMA mmap_size = 1073741824")


def answer(found):
    return Response(orjson.dumps(found), media_type="application/json")


async def check_key(x_api_key: str = Header("")):
    digest = hashlib.sha256(x_api_key.encode()).hexdigest()
    if database.execute("SELECT workspace FROM plain_key WHERE hash = ?", (digest,)).fetchone() is None:
        raise HTTPException(401, "unknown key")


app = FastAPI(dependencies=[Depends(check_key)])
BASE = "/api/v1/mailboxes/{mailbox}"


@app.get(BASE + "/folders")
async def folders(mailbox: str):
    sql = "SELECT id, name, unread, total, system FROM plain_folder WHERE mailbox = ?"
    return answer(rows(database.execute(sql, (mailbox,))))


@app.get(BASE + "/emails")
async def emails(mailbox: str, limit: int):
    sql = f"SELECT {LISTED} FROM message WHERE mailbox = ? ORDER BY date DESC LIMIT ?"
    return answer(rows(database.execute(sql, (mailbox, limit))))


@app.get(BASE + "/emails/{email}")
async def email(mailbox: str, email: str):
    sql = f"SELECT {LISTED}, headers, body FROM message WHERE id = ? AND mailbox = ?"
    return answer(rows(database.execute(sql, (email, mailbox)))[0])


@app.get(BASE + "/threads/{thread}")
async def thread(mailbox: str, thread: str):
    sql = f"SELECT {LISTED}, headers, body FROM message WHERE mailbox = ? AND thread_id = ? ORDER BY date"
    return answer(rows(database.execute(sql, (mailbox, thread))))


def matches(columns, mailbox, query, limit):
    sql = f"""SELECT {columns} FROM message_text JOIN message ON message.number = message_text.rowid
        WHERE message_text MATCH ? AND mailbox = ? ORDER BY message_text.rowid DESC LIMIT ?"""
    return answer(rows(database.execute(sql, (query, mailbox, limit))))


@app.get(BASE + "/search")
async def search(mailbox: str, query: str, limit: int):
    return matches(LISTED, mailbox, query, limit)


@app.get(BASE + "/passages")
async def passages(mailbox: str, query: str, limit: int):
    return matches(f"{LISTED}, snippet(message_text, 2, '**', '**', '…', 24) AS passage", mailbox, query, limit)


if __name__ == "__main__":
    port, workers = int(os.environ["PORT"]), int(os.environ["WORKERS"])
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    uvicorn.run("server:app", host="127.0.0.1", port=port, workers=workers, log_level="warning", access_log=False)
