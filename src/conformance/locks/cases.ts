import type { LockCase } from "./case.ts";
import { asked } from "./cases/asked.ts";
import { bounded } from "./cases/bounded.ts";
import { delayed } from "./cases/delayed.ts";
import { durable } from "./cases/durable.ts";
import { exclusive } from "./cases/exclusive.ts";
import { fenced } from "./cases/fenced.ts";
import { honest } from "./cases/honest.ts";
import { lost } from "./cases/lost.ts";
import { prompt } from "./cases/prompt.ts";
import { released } from "./cases/released.ts";
import { retired } from "./cases/retired.ts";
import { sessions } from "./cases/sessions.ts";
import { shown } from "./cases/shown.ts";

/** All of it. Locks pass every case, or say in their documentation which one they leave out, and why. */
export const lockCases: readonly LockCase[] = [
  ...exclusive,
  ...fenced,
  ...asked,
  ...prompt,
  ...released,
  ...sessions,
  ...lost,
  ...delayed,
  ...retired,
  ...shown,
  ...bounded,
  ...honest,
  ...durable,
];
