/** Submitters for a store that can be away. */
import type { Random } from "../simulation/random.ts";
import type { Child, NatsDesk } from "./desk.ts";

export function startSubmitters(desk: NatsDesk, count: number, random: Random, pauseMs: number): readonly Child[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = String(random.between(1, 1e9));
    const name = `submitter${index + 1}`;
    return desk.start("../../nats/children/submitter", desk.url, desk.folder, name, seed, String(pauseMs));
  });
}
