/** What the main process can ask of a child. */
import type { Client } from "../subject.ts";
import { knock, latencyAlone, type LatencyTask, listen, type Listener } from "./latency.ts";
import { load, type LoadTask, submit, type SubmitTask, type Submitted } from "./submitting.ts";
import { work, type WorkResult, type WorkTask } from "./working.ts";

let stopListening: Listener["stop"] | undefined;

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
  knock: (client: Client, task: LatencyTask): Promise<number> => knock(client, task),

  async listen(client: Client): Promise<void> {
    ({ stop: stopListening } = await listen(client));
  },

  /** How long each took, once so many have come. */
  async heard(_: Client, items: number): Promise<readonly number[]> {
    return (await stopListening?.(items)) ?? [];
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
