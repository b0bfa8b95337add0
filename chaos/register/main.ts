/**
 * The process of the registers: a line of JSON is an effect, a line of JSON is the answer. It is never hurt: it stands for
 * the world that work has its effects in, and writes down what really happened, in order.
 */
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { recorder } from "../history/recorder.ts";
import { isQuestion, type Answer } from "./protocol.ts";
import { Registers } from "./register.ts";

const [folder = "", path = ""] = process.argv.slice(2);
const record = recorder(folder, "register");
const registers = new Registers();

const server = createServer((socket) => {
  socket.on("error", () => undefined);
  const lines = createInterface({ input: socket });
  // A worker that is killed may leave an answer unread.
  lines.on("error", () => undefined);
  lines.on("line", (line) => {
    const question: unknown = JSON.parse(line);
    if (!isQuestion(question)) throw new Error(`This is no effect: ${line}`);
    const { number, ...effect } = question;
    const { accepted, highest } = registers.judge(effect.key, effect.fence);
    record({ type: "judged", ...effect, accepted, highest });
    if (socket.writable) socket.write(`${JSON.stringify({ number, accepted } satisfies Answer)}\n`);
  });
});
server.listen(path, () => process.send?.("ready"));
process.once("disconnect", () => process.exit());
