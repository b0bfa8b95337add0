import type { Payload } from "../../src/index.ts";

/** The run's own name of an item, which travels in its payload: the store cannot mix it up. */
export function itemOf({ body }: Payload): string {
  const job: unknown = JSON.parse(typeof body === "string" ? body : Buffer.from(body).toString());
  if (typeof job === "object" && job !== null && "item" in job && typeof job.item === "string") return job.item;
  throw new Error("A payload came that no process of this run made.");
}
