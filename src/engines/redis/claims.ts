import { OutcomeUnknown } from "../../domain/errors.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import type { Operation } from "./call.ts";
import { MOST_GRANTS } from "./desk.ts";
import { claimArguments } from "./operations.ts";
import { readGrants } from "./replies.ts";
import { type Waiter, Waiting } from "./waiting.ts";

type Claim = Waiter<ClaimRequest, readonly Grant[]>;

interface ClaimsParts {
  readonly levels: readonly string[];
  /** Something is to be sent, and those that wait here may go along. */
  readonly look: () => void;
  readonly granted: (request: ClaimRequest, grants: readonly Grant[]) => void;
}

/** Claims go along with whatever is sent. What one gets that was given up while it was with the server is not lost. */
export class Claims extends Waiting<ClaimRequest, readonly Grant[]> {
  readonly #parts: ClaimsParts;

  constructor(parts: ClaimsParts) {
    super();
    this.#parts = parts;
  }

  /** Those that wait here, to go along with a call. */
  take(): readonly Operation[] {
    return this.idle().map((claim) => this.#operation(claim));
  }

  protected ask(): void {
    this.#parts.look();
  }

  protected giveUp(claim: Claim): void {
    if (!claim.isAsked) claim.answer([]);
  }

  #operation(claim: Claim): Operation {
    const { levels, granted, look } = this.#parts;
    const { queue, max } = claim.request;
    this.asking(claim);
    return {
      what: "a claim",
      // More than a call should carry is taken by the claims after this one.
      args: claimArguments({ ...claim.request, max: Math.min(max, MOST_GRANTS) }),
      answer: (result, { since }) => {
        const grants = readGrants(result, queue, levels, since);
        claim.isAsked = false;
        if (grants.length > 0) granted(claim.request, grants);
        if (grants.length > 0 || this.isOver(claim)) claim.answer(grants);
        else if (claim.again) look();
      },
      fail: (error) => {
        claim.isAsked = false;
        if (this.isOver(claim)) return claim.answer([]);
        // What it may have got is lost with the reply, and comes back when its lease runs out. It still wants something.
        if (error instanceof OutcomeUnknown) return look();
        claim.fail(error);
      },
    };
  }
}
