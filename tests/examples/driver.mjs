// Runs TypeScript examples, which are plain JavaScript too, one after the other: a line of JSON in, a line of JSON out.
import { createInterface } from "node:readline";

let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  Object.assign(process.env, job.env);
  const [log, printed] = [console.log, []];
  console.log = (...values) => printed.push(values.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join(" "));
  let error = null;
  try {
    // The number keeps equal code from being run only once.
    await import(`data:text/javascript;charset=utf-8,${encodeURIComponent(`${job.code}\n// ${job.id} ${count++}`)}`);
  } catch (failure) {
    error = String(failure?.stack ?? failure);
  }
  console.log = log;
  process.stdout.write(`${JSON.stringify({ printed: printed.join("\n"), error })}\n`);
}
