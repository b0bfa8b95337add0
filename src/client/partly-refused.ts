import { BatonError } from "../domain/errors.ts";
import type { Receipt } from "./receipt.ts";

/** Some of the items of a `submitMany` were refused. The others are accepted: do not submit those again. */
export class PartlyRefused extends BatonError {
  /** In the order of submission: a receipt, or why it was refused. */
  readonly results: readonly (Receipt | BatonError)[];

  constructor(queue: string, results: readonly (Receipt | BatonError)[]) {
    const errors = results.filter((result) => result instanceof BatonError);
    super(
      "PARTLY_REFUSED",
      `${errors.length} of ${results.length} items for queue ${queue} were refused; the others are accepted. ` +
        `The first refusal: ${errors[0]?.message ?? "unknown"} See \`results\` for each.`,
    );
    this.results = results;
  }
}
