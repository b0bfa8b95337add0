import { PartlyRefused } from "../../src/client/partly-refused.ts";
import { Receipt } from "../../src/client/receipt.ts";
import { BatonError, OutcomeUnknown } from "../../src/domain/errors.ts";
import type { SubmitAnswer } from "./history.ts";
import type { SubmissionPlan } from "./plans.ts";
import type { Numbers } from "./recording-engine.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** What a submitter knows after one call. */
export interface Submitted {
  readonly plan: SubmissionPlan;
  /** Undefined: the reply was lost, or the call was never made. */
  readonly result: Receipt | BatonError | undefined;
}

/** One call of `submit` or `submitMany`, written down with what came back. */
export async function submitOnce(
  process: SimulatedProcess,
  plans: readonly SubmissionPlan[],
  numbers: Numbers,
): Promise<readonly Submitted[]> {
  const call = numbers.next();
  for (const { token, id, key, level } of plans) process.log({ type: "submit", call, token, id, key, level });
  const results = await send(process, plans);
  const submitted = plans.map((plan, index): Submitted => ({ plan, result: results?.[index] }));
  for (const { plan, result } of submitted) {
    const { token } = plan;
    if (result === undefined) process.log({ type: "submit-unknown", call, token });
    else process.log({ type: "submitted", call, token, answer: answerOf(result) });
  }
  return submitted;
}

async function send(
  process: SimulatedProcess,
  plans: readonly SubmissionPlan[],
): Promise<readonly (Receipt | BatonError)[] | undefined> {
  const [first, ...others] = plans;
  if (first === undefined) return [];
  try {
    if (others.length === 0) return [await process.queue.submit(first.key, first.token, options(first))];
    return await process.queue.submitMany(
      plans.map((plan) => ({ key: plan.key, payload: plan.token, ...options(plan) })),
    );
  } catch (error) {
    if (error instanceof OutcomeUnknown) return undefined;
    if (error instanceof PartlyRefused) return error.results;
    if (error instanceof BatonError) return [error];
    throw error;
  }
}

function options(plan: SubmissionPlan): Parameters<SimulatedProcess["queue"]["submit"]>[2] {
  const { id, level, delayMs, mode } = plan;
  return {
    level,
    delay: delayMs,
    ...(id === undefined ? {} : { id }),
    ...(mode === undefined ? {} : { mode }),
  };
}

function answerOf(result: Receipt | BatonError): SubmitAnswer {
  if (!(result instanceof Receipt)) return { ok: false, code: result.code };
  const { id, key, level, at: acceptedAt, duplicate, replaced } = result;
  return { ok: true, id, key, level, acceptedAt, duplicate, replaced };
}
