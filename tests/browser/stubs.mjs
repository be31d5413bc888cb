// What the service asks of others, played here: a language model and a tool server.

import http from "node:http";

const listen = (answer) => new Promise((done) => {
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    await answer(request, text, response);
  });
  server.listen(0, "127.0.0.1", () => {
    const stop = () => new Promise((ended) => { server.close(ended); server.closeAllConnections(); });
    done({ base: `http://127.0.0.1:${server.address().port}`, stop });
  });
});

const json = (response, status, body) => {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
};

const word = (said, about) => (typeof said === "function" ? said(about) : said);

/** What a triager is told about a mail: whatever its tasks ask for, in the words of `say`. */
function look(question, say) {
  const task = word(say.task, question.mail);
  const named = new Set(question.triagers.flatMap((one) => one.tasks.map((task) => task.kind)));
  return {
    category: "customer_support",
    is_urgent: false,
    labels: [],
    triagers: question.triagers.map((one) => ({
      id: one.id,
      summary: word(say.summary, question.mail),
      reply: named.has("draft_response") ? word(say.reply, question.mail) : null,
      tasks: named.has("extract_tasks") && task ? [{ title: task, due_at: null, priority: "high" }] : [],
      labels: [],
      notify: null,
    })),
  };
}

/**
 * A language model with OpenAI's interface. A question of triage gets what `say` says, in words or as a function; a message of a person that asks for a
 * draft or names a tool has that tool called; anything else is answered in words.
 */
export async function startModel(say = {}) {
  const words = { summary: "Asks for help.", reply: "Thank you, I look into it.", task: "Look into the logs", answer: "There is one mail.",
    anew: "Dear Ann,\n\nthank you <b>very</b> much.",
    ...say };
  const state = { fails: false, pause: 0 };
  const reply = (asked) => {
    const last = asked.messages.at(-1);
    const question = asked.messages.find((one) => one.role === "user")?.content || "";
    if (question.startsWith("{") && question.includes('"triagers"')) return { content: JSON.stringify(look(JSON.parse(question), words)) };
    if (asked.messages[0].content.includes("You rewrite the text")) return { content: word(words.anew, question) };
    const asks = asked.messages.findLast((one) => one.role === "user").content;
    if (last.role === "tool") return { content: word(words.answer, asks) };
    const tool = asked.tools?.find((one) => last.content.includes(one.function.name))?.function.name
      || (/draft/i.test(last.content) ? "save_draft" : null);
    if (!tool) return { content: word(words.answer, asks) };
    const given = last.content.match(/\{.*\}/s)?.[0];
    const draft = { to: ["grace@remote.test"], subject: "Re: A question", body: "Thank you.", ...words.draft };
    return { content: null, tool_calls: [{ id: "c1", type: "function", function: { name: tool, arguments: given || JSON.stringify(draft) } }] };
  };
  const server = await listen(async (request, text, response) => {
    if (state.fails) return json(response, 500, { error: { message: "out of order" } });
    const asked = JSON.parse(text);
    const message = { role: "assistant", ...reply(asked) };
    if (!asked.stream) return json(response, 200, { choices: [{ index: 0, message, finish_reason: "stop" }] });
    response.writeHead(200, { "content-type": "text/event-stream" });
    const tell = (choice) => response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
    for (const piece of (message.content || "").split(/(?<= )/)) {
      if (piece) tell({ delta: { content: piece } });
      if (state.pause) await new Promise((later) => { setTimeout(later, state.pause); });
    }
    if (message.tool_calls) tell({ delta: { tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) } });
    tell({ delta: {}, finish_reason: message.tool_calls ? "tool_calls" : "stop" });
    response.end("data: [DONE]\n\n");
  });
  const settings = { AGENT_MAILBOX__AI__BASE_URL: `${server.base}/v1`, AGENT_MAILBOX__AI__MODEL: "played" };
  return { ...server, settings, state };
}

/** A server of the Model Context Protocol with plain JSON answers: each tool tells its name and what it was given. */
export async function startTools(tools = ["legs", "feed"]) {
  const described = tools.map((name) => ({
    name,
    description: `Tells about ${name}.`,
    inputSchema: { type: "object", properties: { animal: { type: "string" } } },
    annotations: { readOnlyHint: name !== "feed" },
  }));
  const results = {
    initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "Zoo", version: "1" } }),
    "tools/list": () => ({ tools: described }),
    "tools/call": (params) => ({ content: [{ type: "text", text: `${params.name}: ${JSON.stringify(params.arguments)}` }] }),
  };
  const server = await listen((request, text, response) => {
    if (request.method !== "POST") return json(response, 405, {});
    const asked = JSON.parse(text);
    if (asked.id === undefined) { response.writeHead(202); return response.end(); }
    const result = results[asked.method]?.(asked.params || {});
    return json(response, 200, { jsonrpc: "2.0", id: asked.id, result: result || {} });
  });
  return { ...server, url: `${server.base}/mcp` };
}

/** Telegram's Bot API, as far as a bot needs it, with a chat that writes to the bot. */
export async function startBot() {
  const token = "1:browser";
  const updates = [];
  const said = [];
  const results = {
    getMe: () => ({ id: 7, is_bot: true, first_name: "Bot", username: "agent_test_bot" }),
    getUpdates: (asked) => updates.filter((one) => one.update_id >= (asked.offset || 0)),
    sendMessage: (asked) => { said.push(asked.text); return { message_id: said.length, chat: { id: asked.chat_id } }; },
  };
  const server = await listen(async (request, text, response) => {
    const asked = text ? JSON.parse(text) : {};
    const method = request.url.split("/").at(-1);
    const result = results[method]?.(asked) ?? true;
    // A bot asks for news again at once; this one is not asked a thousand times.
    if (method === "getUpdates" && result.length === 0) await new Promise((later) => { setTimeout(later, 200); });
    return json(response, 200, { ok: true, result });
  });
  const write = (words, name = "Ada L") => {
    const chat = { id: 5, type: "private", first_name: name };
    updates.push({ update_id: updates.length + 1, message: { message_id: 1, from: { id: 5, first_name: name }, chat, text: words } });
  };
  return { ...server, write, said, settings: { AGENT_MAILBOX__TELEGRAM__BOT_TOKEN: token, AGENT_MAILBOX__TELEGRAM__API_BASE: server.base } };
}

/** The three together, with the settings that a service needs to ask them. */
export async function startOthers({ says, tools: names } = {}) {
  const [model, tools, bot] = [await startModel(says), await startTools(names), await startBot()];
  const settings = { ...model.settings, ...bot.settings, AGENT_MAILBOX__WEBHOOKS__ALLOW_PRIVATE: "true" };
  const stop = async () => { for (const one of [model, tools, bot]) await one.stop(); };
  return { model, tools, bot, settings, stop };
}
