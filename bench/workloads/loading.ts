import type { Line } from "../item.ts";
import type { Scene } from "../scene.ts";

export const BULK = 500;
/** For what has to be there before anything can be measured. */
const PATIENCE_MS = 60_000;

/** The whole line, submitted in bulk, and the server at rest after it. */
export async function loadAll(scene: Scene, line: Line): Promise<void> {
  const { total } = line;
  const { count } = await scene.producer.call("load", { line, bulk: BULK, count: total, boxMs: PATIENCE_MS });
  if (count < total) throw new Error(`only ${count} of ${total} items could be submitted`);
  await scene.rest();
}
