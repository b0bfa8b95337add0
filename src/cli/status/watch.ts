import { BatonError } from "../../index.ts";
import { printWarning } from "../output.ts";
import { printableJson, summary } from "../printable.ts";
import { roughly } from "../times.ts";
import { openScreen } from "./screen.ts";

/** About twice a second: fast enough to follow, slow enough not to be felt by the store. */
const LOOK_MS = 500;
/** A store that has not answered for so long is said to be silent. Engines give up a call after about five seconds. */
const SILENT_MS = 2_000;

/** The same thing for programs and for people; people's times go on by themselves, so they are made anew each time. */
export interface View {
  readonly json: unknown;
  readonly lines: () => readonly string[];
}

/** Shows what `look` sees until somebody has seen enough. A store that is away is waited for. */
export async function watch(look: () => Promise<View>, json: boolean): Promise<void> {
  const leave = new AbortController();
  const onSignal = (): void => leave.abort();
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  try {
    if (process.stdout.isTTY && !json) await watchOnScreen(look, leave);
    else await watchAsLines(look, json, leave.signal);
  } finally {
    process.off("SIGINT", onSignal);
    process.off("SIGTERM", onSignal);
  }
}

async function watchOnScreen(look: () => Promise<View>, leave: AbortController): Promise<void> {
  using screen = openScreen(() => leave.abort());
  let last: View | undefined;
  let away: Away | undefined;
  const draw = (trouble: readonly string[]): void =>
    screen.draw([...(last?.lines() ?? []), ...trouble, "", "q leaves"]);
  while (!leave.signal.aborted) {
    const begun = Date.now();
    const silent = setInterval(() => {
      if (Date.now() - begun >= SILENT_MS)
        draw(away?.lines() ?? ["", `no answer from the store for ${roughly(Date.now() - begun)}`]);
    }, LOOK_MS);
    try {
      last = (await unlessLeft(look(), leave.signal)) ?? last;
      away = undefined;
    } catch (error) {
      away = Away.after(away, error);
      if (away === undefined) throw error;
    } finally {
      clearInterval(silent);
    }
    draw(away?.lines() ?? []);
    await pause(leave.signal);
  }
}

/** For a log or another program: a line when something has changed. What is said of an outage goes to standard error. */
async function watchAsLines(look: () => Promise<View>, json: boolean, signal: AbortSignal): Promise<void> {
  let last = "";
  let away: Away | undefined;
  const tell = (now: Away): void => {
    if (away === undefined)
      printWarning(`${now.message} What was shown last may be old. Looking again until the store answers.`);
    away = now;
  };
  while (!signal.aborted) {
    const begun = Date.now();
    // An engine may be more patient with a store that does not answer than whoever watches it.
    const silent = setTimeout(() => tell(Away.silent(begun)), SILENT_MS);
    try {
      const view = await unlessLeft(look(), signal);
      if (view === undefined) return;
      if (away !== undefined) printWarning(`the store is there again, after ${away.length()}`);
      away = undefined;
      const state = printableJson(view.json);
      if (state !== last)
        process.stdout.write(json ? `${state}\n` : `${new Date().toISOString()}\n${view.lines().join("\n")}\n`);
      last = state;
    } catch (error) {
      const now = Away.after(away, error);
      if (now === undefined) throw error;
      tell(now);
    } finally {
      clearTimeout(silent);
    }
    await pause(signal);
  }
}

/** The store does not answer. Looked for again until it does; whatever else fails ends the watch. */
class Away {
  readonly #since: number;
  readonly message: string;

  private constructor(since: number, message: string) {
    this.#since = since;
    this.message = message;
  }

  /** Undefined: the error is another one. */
  static after(before: Away | undefined, error: unknown): Away | undefined {
    if (!(error instanceof BatonError && isAway(error))) return undefined;
    return new Away(before === undefined ? Date.now() : before.#since, error.message);
  }

  /** A look has had no answer for a while. */
  static silent(since: number): Away {
    return new Away(since, `The store has not answered for ${roughly(Date.now() - since)}.`);
  }

  length(): string {
    return roughly(Date.now() - this.#since);
  }

  lines(): readonly string[] {
    return ["", `the store has been away for ${this.length()}; what stands above is old`, summary(this.message)];
  }
}

function isAway({ code }: BatonError): boolean {
  return code === "STORE_UNAVAILABLE" || code === "OUTCOME_UNKNOWN";
}

/** A look may take as long as an engine is patient; whoever leaves does not wait for it. Undefined: somebody has left. */
async function unlessLeft<T>(looking: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: left, resolve } = Promise.withResolvers<undefined>();
  const leave = (): void => resolve(undefined);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  // Its failure comes too late to matter then.
  looking.catch(() => undefined);
  try {
    return await Promise.race([looking, left]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, LOOK_MS);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
