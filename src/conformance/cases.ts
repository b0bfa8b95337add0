import type { ConformanceCase } from "./case.ts";
import { bounded } from "./cases/bounded.ts";
import { deletedQueues } from "./cases/deleted.ts";
import { durable } from "./cases/durable.ts";
import { exact } from "./cases/exact.ts";
import { exclusive } from "./cases/exclusive.ts";
import { fenced } from "./cases/fenced.ts";
import { held } from "./cases/held.ts";
import { honest } from "./cases/honest.ts";
import { idempotent } from "./cases/idempotent.ts";
import { independent } from "./cases/independent.ts";
import { inspected } from "./cases/inspected.ts";
import { accounted } from "./cases/accounted.ts";
import { next } from "./cases/next.ts";
import { ordered } from "./cases/ordered.ts";
import { prompt } from "./cases/prompt.ts";
import { retried } from "./cases/retried.ts";
import { runs } from "./cases/runs.ts";
import { tried } from "./cases/tried.ts";
import { urgent } from "./cases/urgent.ts";

/** All of it. An engine passes every case, or says in its documentation which one it leaves out, and why. */
export const cases: readonly ConformanceCase[] = [
  ...exclusive,
  ...held,
  ...fenced,
  ...durable,
  ...accounted,
  ...inspected,
  ...deletedQueues,
  ...ordered,
  ...retried,
  ...runs,
  ...next,
  ...independent,
  ...prompt,
  ...urgent,
  ...idempotent,
  ...bounded,
  ...exact,
  ...honest,
  ...tried,
];
