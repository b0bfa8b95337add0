import { printableJson } from "../printable.ts";
import { openScreen } from "./screen.ts";

/** About twice a second: fast enough to follow, slow enough not to be felt by the store. */
const LOOK_MS = 500;

/** The same thing for programs and for people; people's times go on by themselves, so they are made anew each time. */
export interface View {
  readonly json: unknown;
  readonly lines: () => readonly string[];
}

/** Shows what `look` sees until somebody has seen enough. */
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
  while (!leave.signal.aborted) {
    const view = await look();
    screen.draw([...view.lines(), "", "q leaves"]);
    await pause(leave.signal);
  }
}

/** For a log or another program: a line when something has changed. */
async function watchAsLines(look: () => Promise<View>, json: boolean, signal: AbortSignal): Promise<void> {
  let last = "";
  while (!signal.aborted) {
    const view = await look();
    const state = printableJson(view.json);
    if (state !== last)
      process.stdout.write(json ? `${state}\n` : `${new Date().toISOString()}\n${view.lines().join("\n")}\n`);
    last = state;
    await pause(signal);
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
