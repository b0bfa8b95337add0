/** What the main process can ask of a child. */
import type { Client } from "../subject.ts";
import {
  greet,
  knock,
  type Knocked,
  latencyAlone,
  type LatencyTask,
  listen,
  type Listener,
  stream,
  type Streamed,
  type StreamTask,
} from "./latency.ts";
import { load, type LoadTask, submit, type SubmitTask, type Submitted } from "./submitting.ts";
import { work, type WorkResult, type WorkTask } from "./working.ts";

let listener: Listener | undefined;

export interface HoldTask {
  readonly concurrency: number;
  readonly settleMs: number;
}

export const tasks = {
  prepare: (client: Client): Promise<void> => client.prepare(),
  submit: (client: Client, task: SubmitTask): Promise<Submitted> => submit(client, task),
  load: (client: Client, task: LoadTask): Promise<Submitted> => load(client, task),
  work: (client: Client, task: WorkTask): Promise<WorkResult> => work(client, task),
  latencyAlone: (client: Client, task: LatencyTask): Promise<readonly number[]> => latencyAlone(client, task),
  knock: (client: Client, task: LatencyTask): Promise<Knocked> => knock(client, task),
  stream: (client: Client, task: StreamTask): Promise<Streamed> => stream(client, task),

  async listen(client: Client, concurrency: number | undefined): Promise<void> {
    listener = await listen(client, concurrency);
  },

  greet: (client: Client): Promise<void> => greet(client),

  async up(): Promise<void> {
    await listener?.up;
  },

  /** How long each took, once so many have come. */
  async heard(_: Client, { items, skip }: Knocked): Promise<readonly number[]> {
    return (await listener?.stop(items, skip)) ?? [];
  },

  /** Works with handlers that never end, and tells what this process then holds, in MiB. The process is of no use after it. */
  async hold(client: Client, { concurrency, settleMs }: HoldTask): Promise<number> {
    await client.work({ concurrency, expect: "backlog" }, () => new Promise<void>(() => undefined));
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    return process.memoryUsage.rss() / 2 ** 20;
  },

  close: (client: Client): Promise<void> => client.close(),
} as const;

export type Tasks = typeof tasks;
export type TaskName = keyof Tasks;
export type TaskInput<Name extends TaskName> = Parameters<Tasks[Name]>[1];
export type TaskResult<Name extends TaskName> = Awaited<ReturnType<Tasks[Name]>>;

export interface Call {
  readonly task: TaskName;
  readonly input: unknown;
}

export type Reply = { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly message: string };
