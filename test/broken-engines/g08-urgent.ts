import { defaultLevel } from "../../src/domain/level.ts";
import type {
  ClaimRequest,
  DeclareRequest,
  Grant,
  QueueDeclaration,
  Submission,
  SubmitResult,
} from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Takes every level for the same. */
class IgnoresLevels extends PassThrough {
  readonly #levels = new Map<string, readonly string[]>();

  override async declare(request: DeclareRequest): Promise<QueueDeclaration> {
    const declaration = await super.declare(request);
    this.#levels.set(request.queue, declaration.levels);
    return declaration;
  }

  override submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    return super.submit(
      submissions.map((submission) => {
        const levels = this.#levels.get(submission.queue);
        return levels === undefined ? submission : Object.assign({}, submission, { level: defaultLevel(levels) });
      }),
    );
  }
}

/** Urgent work always goes first, and the rest may wait for ever. */
class Starves extends PassThrough {
  override claim(request: ClaimRequest): Promise<readonly Grant[]> {
    return super.claim({ ...request, patienceMs: Number.MAX_SAFE_INTEGER });
  }
}

export const ignoresLevels: BrokenEngine = brokenEngine(
  "G8",
  "ignores levels",
  () => (inner) => new IgnoresLevels(inner),
);
export const starves: BrokenEngine = brokenEngine(
  "G8",
  "lets less urgent work starve",
  () => (inner) => new Starves(inner),
);
