import { type AdminServer, checkToken, openAdmin } from "./admin/server.ts";
import { Metrics } from "./admin/metrics.ts";
import { checkSettings } from "./check-settings.ts";
import { checkRelayOptions, contextOf, type RelayContext, type RelayOptions } from "./context.ts";
import { parseDuration } from "../domain/duration.ts";
import { checkOptions, type OptionNames } from "../domain/options.ts";
import { Generation } from "./generation.ts";
import { type RelayReport, type RelayStop, sum } from "./relay-report.ts";
import type { AdminSettings, RelaySettings } from "./settings.ts";

/** Any long time will do: the timer only keeps the process alive. */
const KEEP_ALIVE_MS = 2 ** 30;

export interface RelayStopOptions {
  /** Instead of the settings'. */
  readonly graceMs?: number | undefined;
}

const STOP_OPTIONS: OptionNames<RelayStopOptions> = { graceMs: true };

/** Opens all that the settings name, and begins. Rejects, with nothing left open, when something cannot be opened. */
export async function createRelay(settings: RelaySettings, options: RelayOptions = {}): Promise<Relay> {
  return await Relay.open(checkSettings(settings), checkRelayOptions(options));
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
  /** Fires when the grace period of a stop is over. */
  readonly #over = new AbortController();
  /** Those that were replaced and are coming to their end. */
  readonly #ending = new Set<Promise<RelayStop>>();
  readonly #alive: NodeJS.Timeout = setInterval(() => undefined, KEEP_ALIVE_MS);
  #generation: Generation | undefined;
  #admin: AdminServer | undefined;
  #stop: Promise<RelayStop> | undefined;
  /** The last of those that were asked for. They happen one after the other. */
  #reloading: Promise<void> = Promise.resolve();
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
      relay.#admin = await relay.#adminFor(settings.admin);
    } catch (error) {
      clearInterval(relay.#alive);
      await relay.#generation?.stop(AbortSignal.abort());
      throw error;
    }
    relay.#warn(settings);
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
   * as it was. What was begun comes to its end under the old settings, however long that takes. A relay that is stopped
   * meanwhile stays so.
   */
  async reload(settings: RelaySettings): Promise<void> {
    checkSettings(settings);
    const reloaded = this.#reloading.then(() => this.#replace(settings));
    this.#reloading = reloaded.catch(() => undefined);
    await reloaded;
  }

  /**
   * Takes nothing new, lets deliveries finish within the grace period, then gives their messages back. A second call
   * ends the grace.
   */
  stop(options: RelayStopOptions = {}): Promise<RelayStop> {
    const { graceMs: given } = checkOptions(options, STOP_OPTIONS);
    const graceMs = given === undefined ? undefined : parseDuration(given, "graceMs");
    if (this.#stop !== undefined || graceMs === 0) this.#over.abort();
    this.#stop ??= this.#end(graceMs);
    return this.#stop;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #replace(settings: RelaySettings): Promise<void> {
    if (!this.#isRunning()) return;
    await using opened = new AsyncDisposableStack();
    const next = await Generation.open(this.#context, settings);
    opened.defer(() => next.stop(AbortSignal.abort()).then(() => undefined));
    const admin = await this.#adminFor(settings.admin);
    if (admin !== this.#admin) opened.defer(async () => await admin?.close());
    // Opening takes its time, and whoever stopped the relay in it must not see it start again.
    if (!this.#isRunning()) return;
    opened.move();
    const [old, oldAdmin] = [this.#generation, this.#admin];
    this.#generation = next;
    this.#admin = admin;
    if (admin === oldAdmin) admin?.useToken(settings.admin?.token);
    else void oldAdmin?.close();
    this.#warn(settings);
    next.start();
    if (old !== undefined) {
      const ending = old.stop(AbortSignal.any([this.#over.signal]));
      this.#ending.add(ending);
      void ending.finally(() => this.#ending.delete(ending));
    }
    this.#context.tell({ type: "reloaded", sources: next.sourceNames });
  }

  #warn({ warnings = [] }: RelaySettings): void {
    for (const message of warnings) this.#context.tell({ type: "warning", message });
  }

  #isRunning(): boolean {
    return this.#state === "running";
  }

  async #end(graceMs: number | undefined): Promise<RelayStop> {
    this.#state = "draining";
    const generation = this.#generation;
    const grace = setTimeout(() => this.#over.abort(), graceMs ?? generation?.settings.graceMs ?? 0);
    const ends = [...this.#ending];
    if (generation !== undefined) ends.push(generation.stop(this.#over.signal));
    const report = sum(await Promise.all(ends));
    await this.#reloadingIsOver();
    clearTimeout(grace);
    this.#state = "stopped";
    await this.#admin?.close();
    clearInterval(this.#alive);
    this.#context.tell({ type: "stopped", ...report });
    return report;
  }

  /** It puts away what it has opened by itself; one that hangs does so when nobody waits any more. */
  async #reloadingIsOver(): Promise<void> {
    const { signal } = this.#over;
    const over = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => over.resolve(), { once: true });
    if (signal.aborted) over.resolve();
    await Promise.race([this.#reloading, over.promise]);
  }

  /** One that listens already where the settings say is kept: nobody else could listen there. */
  async #adminFor(settings: AdminSettings | undefined): Promise<AdminServer | undefined> {
    if (settings === undefined) return undefined;
    checkToken(settings);
    if (this.#admin?.isAt(settings) === true) return this.#admin;
    return await openAdmin(settings, { report: () => this.report(), metrics: () => this.#metrics.text(this.report()) });
  }
}
