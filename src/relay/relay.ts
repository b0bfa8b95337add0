import { type AdminServer, openAdmin } from "./admin/server.ts";
import { Metrics } from "./admin/metrics.ts";
import { contextOf, type RelayContext, type RelayOptions } from "./context.ts";
import { KeyKeeper } from "./keys/key-keeper.ts";
import type { RelayReport, RelayStop, RouteReport } from "./relay-report.ts";
import { Route } from "./route.ts";
import type { AdminSettings, RelaySettings } from "./settings.ts";

/** Any long time will do: the timer only keeps the process alive. */
const KEEP_ALIVE_MS = 2 ** 30;

/** Opens all that the settings name, and begins. Rejects, with nothing left open, when something cannot be opened. */
export async function createRelay(settings: RelaySettings, options: RelayOptions = {}): Promise<Relay> {
  return await Relay.open(settings, options);
}

/**
 * Messages from sources to processors, until it is stopped.
 *
 *   running ──stop()──▶ draining ──▶ stopped
 *      └─reload()─▶ running with other settings, while what was begun under the old ones comes to its end
 */
export class Relay implements AsyncDisposable {
  readonly #context: RelayContext;
  readonly #metrics: Metrics;
  readonly #hurry = new AbortController();
  /** Those that were replaced and are coming to their end. */
  readonly #ending = new Set<Promise<RelayStop>>();
  readonly #alive: NodeJS.Timeout = setInterval(() => undefined, KEEP_ALIVE_MS);
  #generation: Generation | undefined;
  #admin: AdminServer | undefined;
  #stop: Promise<RelayStop> | undefined;
  #state: RelayReport["state"] = "starting";

  private constructor(options: RelayOptions) {
    this.#metrics = new Metrics();
    this.#context = contextOf({
      ...options,
      onEvent: (event) => {
        this.#metrics.hear(event);
        options.onEvent?.(event);
      },
    });
  }

  static async open(settings: RelaySettings, options: RelayOptions): Promise<Relay> {
    const relay = new Relay(options);
    try {
      relay.#generation = await Generation.open(relay.#context, settings);
      await relay.#openAdmin(settings.admin);
    } catch (error) {
      clearInterval(relay.#alive);
      await relay.#generation?.stop(0, AbortSignal.abort());
      throw error;
    }
    relay.#generation.start();
    relay.#state = "running";
    relay.#context.tell({ type: "started", sources: relay.#generation.sourceNames });
    return relay;
  }

  /** Where the admin surface listens; undefined without one. */
  get adminUrl(): string | undefined {
    return this.#admin?.url;
  }

  report(): RelayReport {
    return { state: this.#state, routes: this.#generation?.report() ?? [] };
  }

  /**
   * Goes on with other settings. Everything they name is opened first: if that fails it rejects, and the relay goes on
   * as it was. What was begun comes to its end under the old settings, within the old grace period.
   */
  async reload(settings: RelaySettings): Promise<void> {
    if (this.#state !== "running") return;
    const next = await Generation.open(this.#context, settings);
    const old = this.#generation;
    try {
      await this.#openAdmin(settings.admin);
    } catch (error) {
      await next.stop(0, AbortSignal.abort());
      throw error;
    }
    this.#generation = next;
    next.start();
    if (old !== undefined) {
      const ending = old.stop(old.settings.graceMs, this.#hurry.signal);
      this.#ending.add(ending);
      void ending.finally(() => this.#ending.delete(ending));
    }
    this.#context.tell({ type: "reloaded", sources: next.sourceNames });
  }

  /**
   * Takes nothing new, lets deliveries finish within the grace period, then gives their messages back. A second call
   * ends the grace.
   */
  stop(options: { readonly graceMs?: number } = {}): Promise<RelayStop> {
    if (this.#stop !== undefined || options.graceMs === 0) this.#hurry.abort();
    this.#stop ??= this.#end(options.graceMs);
    return this.#stop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #end(graceMs: number | undefined): Promise<RelayStop> {
    this.#state = "draining";
    const generation = this.#generation;
    const ends = [...this.#ending];
    if (generation !== undefined)
      ends.push(generation.stop(graceMs ?? generation.settings.graceMs, this.#hurry.signal));
    const report = sum(await Promise.all(ends));
    this.#state = "stopped";
    await this.#admin?.close();
    clearInterval(this.#alive);
    this.#context.tell({ type: "stopped", ...report });
    return report;
  }

  /** One that listens already where the settings say is kept. */
  async #openAdmin(settings: AdminSettings | undefined): Promise<void> {
    if (JSON.stringify(settings) === JSON.stringify(this.#admin?.settings)) return;
    const old = this.#admin;
    const view = { report: () => this.report(), metrics: () => this.#metrics.text(this.report()) };
    this.#admin = settings === undefined ? undefined : await openAdmin(settings, view);
    await old?.close();
  }
}

/** Everything that was opened for one set of settings. */
class Generation {
  readonly settings: RelaySettings;
  readonly #routes: readonly Route[];
  readonly #keeper: KeyKeeper | undefined;

  private constructor(settings: RelaySettings, routes: readonly Route[], keeper: KeyKeeper | undefined) {
    this.settings = settings;
    this.#routes = routes;
    this.#keeper = keeper;
  }

  static async open(context: RelayContext, settings: RelaySettings): Promise<Generation> {
    const { keys } = settings;
    const keeper = keys === undefined ? undefined : await KeyKeeper.open(keys, context);
    const routes: Route[] = [];
    const generation = new Generation(settings, routes, keeper);
    try {
      const kept = keeper === undefined || keys === undefined ? undefined : { keeper, settings: keys };
      for (const route of settings.routes) routes.push(await Route.open(context, route, kept));
      if (keeper !== undefined) keeper.onChange = () => routes.forEach((route) => route.refresh());
      return generation;
    } catch (error) {
      await generation.stop(0, AbortSignal.abort());
      throw error;
    }
  }

  get sourceNames(): readonly string[] {
    return this.#routes.flatMap(({ sourceNames }) => sourceNames);
  }

  start(): void {
    for (const route of this.#routes) route.start();
  }

  report(): readonly RouteReport[] {
    return this.#routes.map((route) => route.report());
  }

  async stop(graceMs: number, hurry: AbortSignal): Promise<RelayStop> {
    const report = sum(await Promise.all(this.#routes.map((route) => route.stop(graceMs, hurry))));
    await this.#keeper?.close();
    return report;
  }
}

function sum(reports: readonly RelayStop[]): RelayStop {
  const total = { finished: 0, givenBack: 0, abandoned: 0 };
  for (const { finished, givenBack, abandoned } of reports) {
    total.finished += finished;
    total.givenBack += givenBack;
    total.abandoned += abandoned;
  }
  return total;
}
