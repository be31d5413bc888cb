// A mail API as somebody would make it at home: fastify, SQLite, a key check. A yardstick of `scripts/bench reads`.
import cluster from "node:cluster";
import { createHash } from "node:crypto";
import fastify from "fastify";
import Database from "libsql";

const workers = Number(process.env.WORKERS);
if (cluster.isPrimary && workers > 1) {
    for (let index = 0; index < workers; index += 1) cluster.fork();
} else {
    const database = new Database(process.env.PLAIN_FILE, { readonly: true });
    database.pragma("mmap_size = 1073741824");
    const listed = "message.id, thread_id, folder, date, message.subject, message.sender, recipient, read, starred, snippet";
    const key = database.prepare("SELECT workspace FROM plain_key WHERE hash = ?");
    const folders = database.prepare("SELECT id, name, unread, total, system FROM plain_folder WHERE mailbox = ?");
    const list = database.prepare(`SELECT ${listed} FROM message WHERE mailbox = ? ORDER BY date DESC LIMIT ?`);
    const one = database.prepare(`SELECT ${listed}, headers, body FROM message WHERE id = ? AND mailbox = ?`);
    const thread = database.prepare(
        `SELECT ${listed}, headers, body FROM message WHERE mailbox = ? AND thread_id = ? ORDER BY date`,
    );
    const search = database.prepare(
        `SELECT ${listed} FROM message_text JOIN message ON message.number = message_text.rowid
         WHERE message_text MATCH ? AND mailbox = ? ORDER BY message_text.rowid DESC LIMIT ?`,
    );
    const passages = database.prepare(
        `SELECT ${listed}, snippet(message_text, 2, '**', '**', '…', 24) AS passage
         FROM message_text JOIN message ON message.number = message_text.rowid
         WHERE message_text MATCH ? AND mailbox = ? ORDER BY message_text.rowid DESC LIMIT ?`,
    );
    const app = fastify();
    app.addHook("onRequest", async (request, reply) => {
        const hash = createHash("sha256").update(request.headers["x-api-key"] ?? "").digest("hex");
        if (!key.get(hash)) return reply.code(401).send({ error: "unknown key" });
    });
    const base = "/api/v1/mailboxes/:mailbox";
    app.get(`${base}/folders`, async (request) => folders.all(request.params.mailbox));
    app.get(`${base}/emails`, async (request) => list.all(request.params.mailbox, Number(request.query.limit)));
    app.get(`${base}/emails/:email`, async (request) => one.get(request.params.email, request.params.mailbox));
    app.get(`${base}/threads/:thread`, async (request) => thread.all(request.params.mailbox, request.params.thread));
    const found = (statement) => async (request) =>
        statement.all(request.query.query, request.params.mailbox, Number(request.query.limit));
    app.get(`${base}/search`, found(search));
    app.get(`${base}/passages`, found(passages));
    await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT) });
}
