import { checkPackages } from "./check/packages.ts";
import type { RelayContext } from "./context.ts";
import { KeyKeeper } from "./keys/key-keeper.ts";
import { type RelayStop, type RouteReport, sum } from "./relay-report.ts";
import { Route } from "./route.ts";
import type { RelaySettings } from "./settings.ts";

/** Everything that was opened for one set of settings. */
export class Generation {
  readonly settings: RelaySettings;
  readonly #routes: readonly Route[];
  readonly #keeper: KeyKeeper | undefined;

  private constructor(settings: RelaySettings, routes: readonly Route[], keeper: KeyKeeper | undefined) {
    this.settings = settings;
    this.#routes = routes;
    this.#keeper = keeper;
  }

  static async open(context: RelayContext, settings: RelaySettings): Promise<Generation> {
    await checkPackages(settings);
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
      await generation.stop(AbortSignal.abort());
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

  /** Takes nothing new; what is in work goes on until the signal fires. */
  async stop(over: AbortSignal): Promise<RelayStop> {
    const report = sum(await Promise.all(this.#routes.map((route) => route.stop(over))));
    await this.#keeper?.close();
    return report;
  }
}
