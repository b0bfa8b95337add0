import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Recorder } from "../history/recorder.ts";
import { isAnswer, type Question } from "./protocol.ts";

/** How a worker reaches the registers, and writes down what it asked and what it was told. */
export class RegisterClient {
  readonly #worker: string;
  readonly #record: Recorder;
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (accepted: boolean) => void>();
  #asked = 0;

  constructor(path: string, worker: string, record: Recorder) {
    this.#worker = worker;
    this.#record = record;
    this.#socket = connect(path);
    // The registers outlive the workers; a worker without them is of no use.
    this.#socket.on("error", (error) => {
      throw error;
    });
    createInterface({ input: this.#socket }).on("line", (line) => {
      const answer: unknown = JSON.parse(line);
      if (!isAnswer(answer)) throw new Error(`The registers answered: ${line}`);
      this.#waiting.get(answer.number)?.(answer.accepted);
      this.#waiting.delete(answer.number);
    });
  }

  /** Whether it was accepted. */
  async apply(effect: Pick<Question, "item" | "key" | "fence" | "step">): Promise<boolean> {
    this.#asked += 1;
    const number = this.#asked;
    this.#record({ type: "effect-sent", ...effect });
    const answered = new Promise<boolean>((resolve) => this.#waiting.set(number, resolve));
    this.#socket.write(`${JSON.stringify({ number, worker: this.#worker, ...effect } satisfies Question)}\n`);
    const accepted = await answered;
    this.#record({ type: "effect", ...effect, outcome: accepted ? "ok" : "fail" });
    return accepted;
  }

  close(): void {
    this.#socket.destroy();
  }
}
