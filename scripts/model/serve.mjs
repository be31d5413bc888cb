// An OpenAI-compatible endpoint over a small model on this machine: chat completions, plain and streamed. It is far too small
// for tools, so those are left out; what it shows is the whole way of a message, with a real model at its end.
import http from "node:http";
import { LlamaChatSession, getLlama } from "node-llama-cpp";

const [file, port] = process.argv.slice(2);
const llama = await getLlama({ build: "never", gpu: false });
const model = await llama.loadModel({ modelPath: file });
// One thread: on a busy machine several wait for each other.
const context = await model.createContext({ contextSize: 4096, threads: 1 });

/** Answers a conversation, piece by piece. */
async function answer(messages, most, piece) {
  const session = new LlamaChatSession({ contextSequence: context.getSequence() });
  try {
    const history = messages.slice(0, -1).map(({ role, content }) => {
      if (role === "assistant") return { type: "model", response: [content ?? ""] };
      return { type: role === "system" ? "system" : "user", text: content ?? "" };
    });
    session.setChatHistory(history);
    return await session.prompt(messages.at(-1).content, { maxTokens: most, onTextChunk: piece, temperature: 0 });
  } finally {
    session.dispose({ disposeSequence: true });
  }
}

let turn = Promise.resolve();
http.createServer(async (request, response) => {
  let text = "";
  for await (const chunk of request) text += chunk;
  const asked = JSON.parse(text);
  // One after the other: there is one context.
  const before = turn;
  let free;
  turn = new Promise((done) => { free = done; });
  await before;
  try {
    const most = Math.min(asked.max_tokens ?? 120, 120);
    if (asked.stream) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const tell = (choice) => response.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`);
      await answer(asked.messages, most, (piece) => tell({ index: 0, delta: { content: piece } }));
      tell({ index: 0, delta: {}, finish_reason: "stop" });
      response.end("data: [DONE]\n\n");
    } else {
      const content = await answer(asked.messages, most, () => {});
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }] }));
    }
  } catch (fault) {
    console.error(fault);
    response.destroy();
  } finally {
    free();
  }
}).listen(Number(port), "127.0.0.1", () => console.log("ready"));
