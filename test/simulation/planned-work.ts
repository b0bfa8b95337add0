import { Receipt } from "../../src/client/receipt.ts";
import type { Cast } from "./cast.ts";
import { holdForAWhile } from "./holding.ts";
import { drawItemPlan, drawSubmission, inLine, type ItemPlan, type SubmissionPlan } from "./plans.ts";
import type { RunParts } from "./run-parts.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import { submitOnce } from "./submitting.ts";

/** What users do in a run: submit, and submit again when no answer came; wait, cancel, hold, pause and resume. */
export class PlannedWork {
  /** Those that the store must know at the end, if it accepted them. */
  readonly ids: string[] = [];
  readonly #parts: RunParts;
  readonly #itemPlans = new Map<number, ItemPlan>();

  constructor(parts: RunParts) {
    this.#parts = parts;
  }

  planOf(token: number): ItemPlan {
    const plan = this.#itemPlans.get(token);
    if (plan === undefined) throw new Error(`A handler got token ${token}, which nobody submitted.`);
    return plan;
  }

  plan(cast: Cast): void {
    const { settings } = this.#parts;
    const random = this.#parts.random.fork();
    const sometime = (deed: Parameters<Cast["sometime"]>[2]): void =>
      cast.sometime(random, settings.troubleMs * 0.9, deed);
    let token = 0;
    while (token < settings.submissions) {
      const batch: SubmissionPlan[] = [];
      const isLine = settings.quick > 0 && random.chance(0.4);
      const most = isLine ? 16 : 4;
      for (let left = isLine || random.chance(0.15) ? random.between(2, most) : 1; left > 0; left -= 1) {
        token += 1;
        batch.push(drawSubmission(random, settings, token));
        this.#itemPlans.set(token, drawItemPlan(random, settings));
      }
      const plans = isLine ? inLine(random, settings, batch) : batch;
      sometime((process) => this.#submit(cast, process, plans));
    }
    for (let count = random.between(0, settings.quick > 0 ? 8 : 3); count > 0; count -= 1) {
      sometime(async (process) => {
        // The newest are those that wait.
        const ids = settings.quick > 0 && random.chance(0.7) ? this.ids.slice(-10) : this.ids;
        if (ids.length > 0) await process.queue.cancel(random.pick(ids));
      });
    }
    for (let count = random.between(-1, 3); count > 0; count -= 1) {
      const key = random.pick(settings.keys);
      sometime((process) => holdForAWhile(process, key));
    }
    for (let count = random.between(-1, 2); count > 0; count -= 1) {
      const key = random.chance(0.7) ? random.pick(settings.keys) : undefined;
      sometime((process) => process.queue.pause(key));
      sometime((process) => process.queue.resume(key));
    }
  }

  async #submit(cast: Cast, process: SimulatedProcess, plans: readonly SubmissionPlan[]): Promise<void> {
    const { numbers, random, settings, time } = this.#parts;
    for (const { id } of plans) if (id !== undefined) this.ids.push(id);
    const what = `submission ${numbers.next()}`;
    const submitted = await cast.untilDone(what, process, submitOnce(process, plans, numbers));
    const unknown: SubmissionPlan[] = [];
    for (const { plan, result } of submitted) {
      if (result === undefined && plan.id !== undefined) unknown.push(plan);
      if (!(result instanceof Receipt)) continue;
      if (plan.id === undefined && settings.historyMs > 0) this.ids.push(result.id);
      if (plan.id !== undefined && random.chance(0.2)) cast.begin(awaitOutcome(process, result));
    }
    if (unknown.length === 0) return;
    // With an id it is safe to submit again, from here or from elsewhere.
    time.after(random.next() * settings.leaseMs, () => {
      const next = process.working && random.chance(0.5) ? process : cast.working[0];
      if (next !== undefined) cast.begin(this.#submit(cast, next, unknown));
    });
  }
}

async function awaitOutcome(process: SimulatedProcess, receipt: Receipt): Promise<void> {
  const { state } = await receipt.outcome();
  process.log({ type: "outcome", id: receipt.id, state });
}
