import { BatonError, show } from "../../domain/errors.ts";

export function unanswered(name: string): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    `The store did not answer in time, so lock ${show(name)} was not acquired. Try again when the store can be reached.`,
  );
}
