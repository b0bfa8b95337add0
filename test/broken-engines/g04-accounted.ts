import type {
  DeleteQueueRequest,
  ItemReport,
  ItemRequest,
  Outcome,
  OutcomeRequest,
  Submission,
  SubmitResult,
} from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Says yes to one submission in ten, and throws it away. */
class LosesSubmissions extends PassThrough {
  #count = 0;

  override async submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const results: SubmitResult[] = [];
    for (const submission of submissions) {
      this.#count += 1;
      if (this.#count % 10 === 0) results.push(lost(submission));
      else results.push(...(await super.submit([submission])));
    }
    return results;
  }
}

function lost({ id = "@lost", key, level }: Submission): SubmitResult {
  return { ok: true, accepted: { id, key, level, at: 0, duplicate: false, replaced: [] } };
}

/** Remembers what was done, and nothing of what was taken back. */
class ForgetsTheCancelled extends PassThrough {
  override async find(request: ItemRequest): Promise<ItemReport | undefined> {
    const report = await super.find(request);
    return report?.state === "cancelled" || report?.state === "replaced" ? undefined : report;
  }

  override async outcome(request: OutcomeRequest): Promise<Outcome | undefined> {
    const outcome = await super.outcome(request);
    return outcome?.state === "cancelled" || outcome?.state === "replaced" ? undefined : outcome;
  }
}

export const losesSubmissions: BrokenEngine = brokenEngine(
  "G4",
  "loses one submission in ten",
  () => (inner) => new LosesSubmissions(inner),
);
export const forgetsTheCancelled: BrokenEngine = brokenEngine(
  "G4",
  "forgets what was cancelled",
  () => (inner) => new ForgetsTheCancelled(inner),
);

/** Takes every deletion for one by force. */
class DeletesWhatIsNotEmpty extends PassThrough {
  override deleteQueue({ queue }: DeleteQueueRequest): Promise<boolean> {
    return super.deleteQueue({ queue, force: true });
  }
}

export const deletesWhatIsNotEmpty: BrokenEngine = brokenEngine(
  "G4",
  "deletes queues that are not empty",
  () => (inner) => new DeletesWhatIsNotEmpty(inner),
);
