import { constants, existsSync } from "node:fs";
import { access } from "node:fs/promises";
import { dirname } from "node:path";
import { type Baton, connect } from "../../index.ts";
import { sqliteFile } from "./sqlite-file.ts";

/** Looks for a queue, and makes neither it nor its store. Resolves with what the relay will make when it starts. */
export async function lookForQueue(store: string | Baton, queue: string): Promise<string | undefined> {
  if (typeof store !== "string") return await lookIn(store, queue);
  const file = sqliteFile(store);
  if (file !== undefined && !existsSync(file)) {
    await access(dirname(file), constants.W_OK);
    return `there is no store ${file} yet; the relay makes it`;
  }
  await using baton = await connect(store);
  return await lookIn(baton, queue);
}

async function lookIn(baton: Baton, queue: string): Promise<string | undefined> {
  const reports = await baton.queues();
  const others = reports.map((report) => report.queue);
  if (others.includes(queue)) return undefined;
  const found = others.length === 0 ? "none" : others.slice(0, MOST_NAMED).join(", ");
  return `there is no queue ${queue} yet, and the relay makes it; the store has ${found}`;
}

/** Of the queues that a store has, for somebody who misspelt one. */
const MOST_NAMED = 10;
