import type { ClaimRequest } from "../../engine/port.ts";

/** Whoever asks for runs gets those, and nothing ahead of them. */
export function asksForRuns({ items = 1 }: ClaimRequest): boolean {
  return items > 1;
}
