import type { Submission, SubmitResult } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Accepts without end. */
class IgnoresLimits extends PassThrough {
  override submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    return super.submit(
      submissions.map((submission) => Object.assign({}, submission, { keyLimit: Infinity, queueLimit: Infinity })),
    );
  }
}

/** Stores keys in a form in which some of them are the same. */
class FoldsKeys extends PassThrough {
  override submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    return super.submit(
      submissions.map((submission) => Object.assign({}, submission, { key: submission.key.normalize().toLowerCase() })),
    );
  }
}

export const ignoresLimits: BrokenEngine = brokenEngine(
  "G10",
  "ignores limits",
  () => (inner) => new IgnoresLimits(inner),
);
export const foldsKeys: BrokenEngine = brokenEngine(
  "G10",
  "takes different keys for the same",
  () => (inner) => new FoldsKeys(inner),
);
