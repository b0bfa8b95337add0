/** Settings with defaults for tests. */
import type { TestContext } from "node:test";
import {
  createRelay,
  DEFAULT_HTTP,
  type HttpSettings,
  type ProcessorSettings,
  type Relay,
  type RelayEvent,
  type RelayHandler,
  type RelaySettings,
  type RouteSettings,
  type Source,
  type SourceSettings,
} from "../../../src/relay/index.ts";

export function fromSource(source: Source, more: Partial<SourceSettings> = {}): SourceSettings {
  return {
    name: source.name,
    weight: 1,
    retry: { attempts: 3, backoffMs: 1, maxBackoffMs: 10 },
    deadLetter: { to: "source" },
    open: () => Promise.resolve(source),
    ...more,
  };
}

export function toFunction(run: RelayHandler, timeoutMs = 10_000): ProcessorSettings {
  return { type: "function", run, timeoutMs };
}

export function toUrl(url: string, more: Partial<HttpSettings> = {}): HttpSettings {
  return { ...DEFAULT_HTTP, target: { type: "url", url }, timeoutMs: 10_000, ...more };
}

export function route(
  sources: readonly (Source | SourceSettings)[],
  processor: ProcessorSettings,
  more: Partial<RouteSettings> = {},
): RouteSettings {
  return {
    name: "main",
    sources: sources.map((source) => ("receive" in source ? fromSource(source) : source)),
    choice: "strict",
    concurrency: 2,
    transforms: [],
    key: undefined,
    form: { type: "raw" },
    processor,
    ...more,
  };
}

export function settingsOf(
  routes: RouteSettings | readonly RouteSettings[],
  more: Partial<RelaySettings> = {},
): RelaySettings {
  const list = "name" in routes ? [routes] : routes;
  return { routes: list, keys: undefined, admin: undefined, graceMs: 2_000, ...more };
}

export interface Played {
  readonly relay: Relay;
  readonly events: RelayEvent[];
}

/** A running relay that ends with the test. */
export async function play(test: TestContext, settings: RelaySettings): Promise<Played> {
  const events: RelayEvent[] = [];
  const relay = await createRelay(settings, { onEvent: (event) => events.push(event) });
  test.after(() => relay.stop({ graceMs: 0 }));
  return { relay, events };
}
