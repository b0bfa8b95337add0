import { formatDuration } from "../domain/duration.ts";
import { strictChoice, weightedChoice } from "./choice/choice.ts";
import { Intake } from "./choice/intake.ts";
import { openForm } from "./cloudevents/form.ts";
import type { RelayContext } from "./context.ts";
import { openDeadLetters } from "./dead-letters/dead-letters.ts";
import { Attempts } from "./delivery/attempts.ts";
import { Delivery, type DeliveryParts } from "./delivery/delivery.ts";
import type { Origin } from "./delivery/ending.ts";
import { Refused } from "./delivery/refused.ts";
import type { KeyKeeper } from "./keys/key-keeper.ts";
import { openProcessor } from "./processors/open-processor.ts";
import type { RelayStop, RouteReport } from "./relay-report.ts";
import type { KeySettings, RouteSettings, SourceSettings } from "./settings.ts";
import { Slots } from "./slots.ts";
import type { Source, SourceMessage } from "./source.ts";

/** After deliveries were told to end, they have so long: a second more than a delivery waits for its processor. */
const ABORT_WAIT_MS = 7_000;
/** A source that takes longer to end a receive that was called off is not waited for once the grace is over. */
const LATE_RECEIVE_MS = 1_000;

/**
 * Messages from some sources to one processor, with slots of their own.
 *
 *   open ──start()──▶ running ──stop()──▶ draining ──grace is over──▶ aborting ──▶ closed
 */
export class Route {
  readonly #context: RelayContext;
  readonly #settings: RouteSettings;
  readonly #origins: readonly Origin[];
  readonly #parts: DeliveryParts;
  readonly #intake: Intake;
  readonly #deliveries = new Set<Delivery>();
  /** Messages on their way back for which there was no room. */
  readonly #returning = new Set<Promise<void>>();
  #quiet: (() => void) | undefined;
  #finished = 0;
  #givenBack = 0;
  #running = false;

  private constructor(
    context: RelayContext,
    settings: RouteSettings,
    origins: readonly Origin[],
    parts: Omit<DeliveryParts, "slots">,
  ) {
    this.#context = context;
    this.#settings = settings;
    this.#origins = origins;
    this.#parts = {
      ...parts,
      slots: new Slots(Math.min(settings.concurrency, parts.processor.most), () => this.refresh()),
    };
    const choice =
      settings.choice === "strict" ? strictChoice() : weightedChoice(settings.sources.map(({ weight }) => weight));
    this.#intake = new Intake(
      context,
      origins.map(({ source }) => source),
      choice,
      {
        room: () => this.#room(),
        begin: (place, message) => this.#begin(place, message),
        turnAway: (place, message) => this.#turnAway(place, message),
      },
    );
  }

  static async open(
    context: RelayContext,
    settings: RouteSettings,
    keys: { readonly keeper: KeyKeeper; readonly settings: KeySettings } | undefined,
  ): Promise<Route> {
    await using opened = new AsyncDisposableStack();
    const form = await openForm(settings.form);
    const opening: { route?: Route } = {};
    const processor = await openProcessor(context, settings, () => opening.route?.refresh());
    opened.defer(() => processor.close());
    const origins: Origin[] = [];
    for (const [rank, one] of settings.sources.entries()) {
      const source = await one.open();
      opened.defer(() => source.close());
      const deadLetters = await openDeadLetters(one.deadLetter);
      opened.defer(async () => await deadLetters?.close());
      const keepsKeys = (await keys?.keeper.isSame(source.batonQueue)) ?? false;
      origins.push({
        rank,
        settings: one,
        source,
        keepsKeys,
        attempts: new Attempts(),
        refused: new Refused(),
        deadLetters,
      });
      warnOfDeadLetters(context, one, source);
    }
    const { transforms, key } = settings;
    const { timeoutMs } = settings.processor;
    const route = new Route(context, settings, origins, { context, transforms, key, form, processor, timeoutMs, keys });
    opening.route = route;
    opened.move();
    return route;
  }

  get sourceNames(): readonly string[] {
    return this.#origins.map(({ source }) => source.name);
  }

  start(): void {
    this.#running = true;
    this.#intake.refresh();
  }

  /** There may be more room now, or less. */
  refresh(): void {
    if (this.#running) this.#intake.refresh();
  }

  report(): RouteReport {
    return {
      name: this.#settings.name,
      slots: this.#parts.slots.size,
      inWork: this.#parts.slots.used,
      waitingForKey: [...this.#deliveries].filter(({ isWaiting }) => isWaiting).length,
      failing: this.#intake.failing,
      openCircuits: this.#parts.processor.openCircuits,
      unreachable: this.#parts.processor.unreachable,
    };
  }

  /**
   * Takes nothing new, lets deliveries finish until the grace period is over, then breaks them off and gives their
   * messages back.
   */
  async stop(grace: AbortSignal): Promise<RelayStop> {
    this.#running = false;
    const finishedBefore = this.#finished;
    const givenBackBefore = this.#givenBack;
    for (const delivery of this.#deliveries) delivery.stopWaiting();
    await this.#intake.stop(grace);
    await this.#untilQuiet(grace);
    for (const delivery of this.#deliveries) delivery.abort();
    // What was on its way when the grace was over still comes, and goes back, before its source is closed.
    await this.#intake.stop(AbortSignal.timeout(LATE_RECEIVE_MS));
    await this.#untilQuiet(AbortSignal.timeout(ABORT_WAIT_MS));
    const abandoned = this.#deliveries.size;
    await this.#close();
    const givenBack = this.#givenBack - givenBackBefore;
    return { finished: this.#finished - finishedBefore - givenBack, givenBack, abandoned };
  }

  async #close(): Promise<void> {
    const closing = [this.#parts.processor.close()];
    for (const { source, deadLetters } of this.#origins) {
      closing.push(source.close());
      if (deadLetters !== undefined) closing.push(deadLetters.close());
    }
    for (const result of await Promise.allSettled(closing)) {
      if (result.status === "rejected")
        this.#context.tell({ type: "trouble", doing: "closing a route", error: result.reason });
    }
  }

  #room(): number {
    const { slots, processor, keys } = this.#parts;
    if (!this.#running || keys?.keeper.isWell === false) return 0;
    return Math.max(0, Math.min(slots.free, processor.room));
  }

  #begin(place: number, message: SourceMessage): void {
    const origin = this.#origins[place];
    if (origin === undefined) return;
    this.#parts.slots.take();
    const delivery = new Delivery(this.#parts, origin, message);
    this.#deliveries.add(delivery);
    void delivery.run().finally(() => {
      this.#deliveries.delete(delivery);
      this.#finished += 1;
      if (delivery.returned) this.#givenBack += 1;
      this.#quiet?.();
    });
  }

  #turnAway(place: number, message: SourceMessage): void {
    const origin = this.#origins[place];
    if (origin === undefined) return;
    origin.attempts.note(message, origin.attempts.of(message), false);
    const source = origin.source.name;
    const returning = message.giveBack({ delayMs: 0, countAttempt: false }).catch((error: unknown) => {
      this.#context.tell({ type: "source-trouble", source, doing: "giving a message back", error });
    });
    this.#returning.add(returning);
    void returning.finally(() => {
      this.#returning.delete(returning);
      this.#quiet?.();
    });
  }

  /** Resolves when nothing is left in hand, or when the signal fires. */
  async #untilQuiet(over: AbortSignal): Promise<void> {
    const quiet = Promise.withResolvers<void>();
    this.#quiet = () => {
      if (this.#deliveries.size === 0 && this.#returning.size === 0) quiet.resolve();
    };
    over.addEventListener("abort", () => quiet.resolve(), { once: true });
    if (over.aborted) quiet.resolve();
    this.#quiet();
    await quiet.promise;
    this.#quiet = undefined;
  }
}

/** Nobody should find out only when the first message is given up. */
function warnOfDeadLetters(context: RelayContext, { name, deadLetter, retry }: SourceSettings, source: Source): void {
  if (deadLetter.to !== "source" || source.hasDeadLetters !== false) return;
  context.tell({
    type: "warning",
    source: name,
    message:
      `Source ${name} has no dead letters of its own. Messages that are given up stay in it, and come back after ${formatDuration(retry.maxBackoffMs)}, ` +
      "then less and less often, until the queue itself lets go of them. Give the queue a place for dead letters, or say dead_letter in the source.",
  });
}
