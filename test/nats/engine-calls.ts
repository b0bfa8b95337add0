/** What tests of the engine itself ask of it, in the same words. */
import assert from "node:assert/strict";
import type { ClaimRequest, Engine, Grant, Submission } from "../../src/engine/port.ts";
import { claim, entry } from "../cars.ts";

const WITHIN_MS = 45_000;

export function car(more: Partial<Submission>): Submission {
  return { ...entry, keyLimit: 10_000, queueLimit: 10_000, key: "car", ...more };
}

export async function submit(engine: Engine, ...cars: readonly Partial<Submission>[]): Promise<void> {
  const results = await engine.submit(cars.map(car));
  assert.ok(results.every(({ ok }) => ok));
}

export function take(engine: Engine, more: Partial<ClaimRequest> = {}): Promise<readonly Grant[]> {
  return engine.claim({ ...claim, signal: AbortSignal.timeout(WITHIN_MS), ...more });
}

export async function done(engine: Engine, grants: readonly Grant[]): Promise<void> {
  const results = await engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } })));
  assert.ok(results.every((result) => result === "settled"));
}
