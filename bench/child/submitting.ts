import { ItemSource, type Line, now } from "../item.ts";
import type { Client } from "../subject.ts";

export interface SubmitTask {
  readonly line: Line;
  /** One by one: 1. */
  readonly inFlight: number;
  readonly count: number;
  readonly boxMs: number;
}

export interface Submitted {
  readonly count: number;
  readonly ms: number;
}

/** The lines this process has begun: a later task goes on where an earlier one stopped. */
const sources = new Map<string, ItemSource>();

function sourceOf(line: Line): ItemSource {
  const name = JSON.stringify(line);
  const source = sources.get(name) ?? new ItemSource(line);
  sources.set(name, source);
  return source;
}

/** Each of `inFlight` lanes submits its next item when its last is accepted. */
export async function submit(client: Client, { line, inFlight, count, boxMs }: SubmitTask): Promise<Submitted> {
  const source = sourceOf(line);
  const began = now();
  let started = 0;
  let accepted = 0;
  const lane = async (): Promise<void> => {
    while (started < count && now() - began < boxMs) {
      started += 1;
      await client.submit(source.next());
      accepted += 1;
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
  return { count: accepted, ms: now() - began };
}

export interface LoadTask {
  readonly line: Line;
  /** How many per call. */
  readonly bulk: number;
  /** How many calls at a time. Default 1: call after call, so that the order is the line's. */
  readonly calls?: number;
  readonly count: number;
  readonly boxMs: number;
}

export async function load(client: Client, { line, bulk, calls = 1, count, boxMs }: LoadTask): Promise<Submitted> {
  const source = sourceOf(line);
  const began = now();
  let started = 0;
  let accepted = 0;
  const lane = async (): Promise<void> => {
    while (started < count && now() - began < boxMs) {
      const items = source.take(Math.min(bulk, count - started));
      started += items.length;
      await client.submitMany(items);
      accepted += items.length;
    }
  };
  await Promise.all(Array.from({ length: calls }, lane));
  return { count: accepted, ms: now() - began };
}
