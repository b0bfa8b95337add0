import { formatDuration } from "../../domain/duration.ts";
import { HandlerTimeout, InvalidInput, Stopping } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import type { Former } from "../cloudevents/form.ts";
import type { RelayContext } from "../context.ts";
import type { HeldKey, KeyKeeper } from "../keys/key-keeper.ts";
import { keyOf } from "../keys/key-of.ts";
import { type Outcome, shorten } from "../outcome.ts";
import type { Processor } from "../processors/processor.ts";
import type { KeyOrigin, KeySettings, RelayMessage } from "../settings.ts";
import type { Slots } from "../slots.ts";
import type { SourceMessage } from "../source.ts";
import type { Content, Transform } from "../transform.ts";
import { carryOut, type Ended, type Origin } from "./ending.ts";
import { Upkeep } from "./upkeep.ts";
import { judge } from "./verdict.ts";

/** What all deliveries of a route share. */
export interface DeliveryParts {
  readonly context: RelayContext;
  readonly slots: Slots;
  readonly transforms: readonly Transform[];
  readonly key: KeyOrigin | undefined;
  readonly form: Former;
  readonly processor: Processor;
  readonly timeoutMs: number;
  readonly keys: { readonly keeper: KeyKeeper; readonly settings: KeySettings } | undefined;
}

/** Ready for its processor, or ended before it came there; with its key, if it holds one. */
interface Prepared {
  readonly held: HeldKey | undefined;
  readonly next: RelayMessage | Outcome;
}

/**
 * After its signal fired, a processor has so long to come to an end; a command gets 5 s between SIGTERM and SIGKILL.
 */
const ABORT_WAIT_MS = 6_000;
/** A source that takes longer to hear how a message ended keeps neither its slot nor its key from others. */
const SETTLE_IN_SLOT_MS = 1_000;

/**
 * One message in this process's hands, from its receipt to its end:
 *
 *   received ─▶ transformed ─▶ (waits for its key, outside of a slot) ─▶ in work ─▶ told to its source
 *      └──────────── the hold on it, or on its key, is lost: nothing is told, somebody else has it ───▶ lost
 *
 * Begins with a slot, and gives it back in every case.
 */
export class Delivery {
  readonly #parts: DeliveryParts;
  readonly #origin: Origin;
  readonly #message: SourceMessage;
  readonly #attempt: number;
  readonly #began: number;
  /** Fires when the work is to end, with the reason. */
  readonly #controller = new AbortController();
  /** Fires when the source need not be told any more, or there is no time for it. */
  readonly #over = new AbortController();
  #key: string | undefined;
  #lost: string | undefined;
  #inSlot = true;
  #waiting = false;
  #mayWait = true;
  #returned = false;

  constructor(parts: DeliveryParts, origin: Origin, message: SourceMessage) {
    this.#parts = parts;
    this.#origin = origin;
    this.#message = message;
    this.#attempt = origin.attempts.of(message);
    this.#began = parts.context.clock.monotonic();
    this.#key = message.key;
  }

  /** It waits for its key. */
  get isWaiting(): boolean {
    return this.#waiting;
  }

  /** It went back as if it had not been received. */
  get returned(): boolean {
    return this.#returned;
  }

  /** The relay stops: a message whose key is busy goes back, now or when it comes to ask for its key. */
  stopWaiting(): void {
    this.#mayWait = false;
    if (this.#waiting) this.abort();
  }

  /** The relay stops, and has no more time for it. */
  abort(): void {
    this.#over.abort();
    this.#controller.abort(new Stopping());
  }

  /** Never rejects. */
  async run(): Promise<void> {
    const { context } = this.#parts;
    using _upkeep = new Upkeep(context, this.#origin.source.name, this.#message, (reason) => this.#lose(reason));
    let held: HeldKey | undefined;
    let outcome: Outcome;
    try {
      const prepared = await this.#prepare();
      held = prepared.held;
      outcome = "type" in prepared.next ? prepared.next : await this.#process(prepared.next);
    } catch (error) {
      // Nothing above should throw. If it does, that was an attempt, so that it does not go on for ever.
      context.tell({ type: "trouble", doing: `delivering message ${this.#message.id}`, error });
      outcome = { type: "retry", reason: reasonOf(error) };
    }
    let released: Promise<void> | undefined;
    const release = (): void => {
      this.#leaveSlot();
      released ??= this.#release(held);
    };
    const late = context.clock.setTimer(SETTLE_IN_SLOT_MS, release);
    try {
      await this.#end(outcome);
    } catch (error) {
      context.tell({ type: "trouble", doing: `ending message ${this.#message.id}`, error });
    }
    late.cancel();
    release();
    await released;
  }

  async #prepare(): Promise<Prepared> {
    const { settings, source, refused } = this.#origin;
    const reasonBefore = refused.reasonFor(this.#message.id);
    if (reasonBefore !== undefined) return { held: undefined, next: { type: "dead", reason: reasonBefore } };
    const { attempts } = settings.retry;
    // Where receipts are counted, none of them need have been a delivery: it is tried before it is given up.
    if (source.counts === "deliveries" && this.#attempt > attempts) {
      const reason = `Given up: all ${attempts} attempts ended without an answer; this would have been attempt ${this.#attempt}.`;
      return { held: undefined, next: { type: "dead", reason } };
    }
    const message = this.#message;
    // A plain object: a message may have its parts behind getters, which a transform that spreads it would lose.
    const { data, contentType, attributes: texts } = message;
    let content: Content = { data, contentType, attributes: texts };
    try {
      if (this.#parts.transforms.length > 0) content = await this.#transform(content);
      this.#key = keyOf(content, message.key, this.#parts.key);
    } catch (error) {
      return { held: undefined, next: this.#controller.signal.aborted ? this.#brokenOff() : badData(error) };
    }
    const taken = await this.#takeKey();
    if (taken !== undefined && "type" in taken) return { held: undefined, next: taken };
    try {
      const { id, sentAt } = message;
      const formed = this.#parts.form(content, { id, key: this.#key, sentAt });
      return { held: taken, next: this.#messageOf(formed, formed.headers, taken?.fence ?? message.fence) };
    } catch (error) {
      return { held: taken, next: badData(error) };
    }
  }

  /** A transform may be anybody's module, and may never end. */
  async #transform(content: Content): Promise<Content> {
    const { transforms } = this.#parts;
    const { signal } = this.#controller;
    using _timeout = this.#limitTime();
    const over = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => over.reject(new Error("It was broken off.")), { once: true });
    let found = content;
    for (const transform of transforms) found = await Promise.race([transform.apply(found), over.promise]);
    return found;
  }

  /** The message's key, held for it if need be; an outcome when it is not to be had. */
  async #takeKey(): Promise<HeldKey | Outcome | undefined> {
    const { keys, slots, context } = this.#parts;
    const { keepsKeys, rank } = this.#origin;
    const key = this.#key;
    if (keys === undefined || key === undefined) return undefined;
    const { keeper, settings } = keys;
    // A Baton queue that the relay drains holds its own keys.
    if (keepsKeys && key === this.#message.key) return undefined;
    // Those that go back do not come again all at the same moment.
    const delayMs = Math.round(settings.awayMs * (0.5 + context.random() / 2));
    const { signal } = this.#controller;
    try {
      let held = await keeper.tryHold(key);
      if (held === undefined) {
        if (!this.#mayWait) return STOPPING;
        if (!keeper.hasRoom)
          return { type: "back", reason: "Its key is busy, and as many messages wait here as may.", delayMs };
        // Others need the slot meanwhile.
        this.#leaveSlot();
        this.#waiting = true;
        held = await keeper.waitFor(key, rank, signal);
        if (held === undefined)
          return signal.aborted ? STOPPING : { type: "back", reason: "Its key is busy.", delayMs };
        this.#inSlot = await slots.wait(rank, signal);
        this.#waiting = false;
        if (!this.#inSlot) {
          await this.#release(held);
          return STOPPING;
        }
      }
      // The message is still ours when its key is not any more: it goes back, and waits for its turn anew.
      const lose = (): void => this.#controller.abort(new KeyLost());
      held.signal.addEventListener("abort", lose, { once: true });
      if (held.signal.aborted) lose();
      return held;
    } catch (error) {
      // A key that no store takes: it would come back for ever.
      if (error instanceof InvalidInput) return badData(error);
      context.tell({ type: "trouble", doing: "holding the key of a message", error });
      return { type: "back", reason: "The store that keeps the keys could not be asked.", delayMs };
    }
  }

  async #process(message: RelayMessage): Promise<Outcome> {
    const { context, processor } = this.#parts;
    const { signal } = this.#controller;
    // Lost, or told to stop, before it came to work: somebody else may be at it.
    if (this.#message.lost.aborted || signal.aborted) return this.#brokenOff();
    using _timeout = this.#limitTime();
    // A function may ignore its signal for ever. Its message goes on without it.
    const ignored = Promise.withResolvers<Outcome>();
    const giveUp = (): void => ignored.resolve({ type: "retry", reason: "It did not end when it was told to." });
    const wait = (): void => void context.clock.setTimer(ABORT_WAIT_MS, giveUp);
    signal.addEventListener("abort", wait, { once: true });
    const outcome = await Promise.race([processor.process(message), ignored.promise]);
    // What was handled was handled, also when it was told to end at the same moment.
    if (outcome.type === "done" || !signal.aborted) return outcome;
    // Its time ran out before the application was reached.
    const isOutOfTime = signal.reason instanceof HandlerTimeout;
    return outcome.type === "unreachable" && isOutOfTime ? outcome : this.#brokenOff();
  }

  /** Why the signal fired decides. */
  #brokenOff(): Outcome {
    const reason: unknown = this.#controller.signal.reason;
    if (reason instanceof HandlerTimeout) {
      const { timeoutMs } = this.#parts;
      return {
        type: "retry",
        reason: `The delivery took longer than ${formatDuration(timeoutMs)} and was broken off.`,
      };
    }
    return reason instanceof KeyLost ? { type: "back", reason: reason.message, delayMs: 0 } : STOPPING;
  }

  #limitTime(): Disposable {
    const { context, timeoutMs } = this.#parts;
    const timer = context.clock.setTimer(timeoutMs, () => this.#controller.abort(new HandlerTimeout(timeoutMs)));
    return { [Symbol.dispose]: () => timer.cancel() };
  }

  async #end(outcome: Outcome): Promise<void> {
    const { context } = this.#parts;
    const ended = this.#ended();
    const { message, key, attempt, tookMs, origin } = ended;
    if (this.#lost !== undefined) {
      const facts = { source: origin.source.name, id: message.id, key, attempt, tookMs };
      return context.tell({ type: "lost", ...facts, reason: this.#lost });
    }
    // Where the source itself puts it away, it is the source's to bring it again: somebody may have asked for that.
    const putsAway = origin.settings.deadLetter.to === "source" && message.bury !== undefined;
    if (outcome.type === "dead" && !putsAway) origin.refused.note(message.id, outcome.reason);
    const ageMs = message.sentAt === undefined ? undefined : context.clock.wall() - message.sentAt;
    const verdict = judge(outcome, attempt, origin.settings.retry, context.random, ageMs);
    this.#returned = verdict.type === "back" || verdict.type === "unreachable";
    await carryOut(ended, verdict);
  }

  #ended(): Ended {
    const { context } = this.#parts;
    return {
      context,
      origin: this.#origin,
      message: this.#message,
      key: this.#key,
      attempt: this.#attempt,
      tookMs: Math.round(context.clock.monotonic() - this.#began),
      over: this.#over.signal,
    };
  }

  #messageOf(content: Content, headers: RelayMessage["headers"], fence: number | undefined): RelayMessage {
    const { id, sentAt } = this.#message;
    const { data, contentType, attributes } = content;
    const facts = { id, source: this.#origin.source.name, key: this.#key, attempt: this.#attempt, fence, sentAt };
    return { ...facts, data, contentType, attributes, headers, signal: this.#controller.signal };
  }

  #lose(reason: string): void {
    this.#lost ??= reason;
    this.#over.abort();
    this.#controller.abort(new Error(reason));
  }

  #leaveSlot(): void {
    if (!this.#inSlot) return;
    this.#inSlot = false;
    this.#parts.slots.release();
  }

  async #release(held: HeldKey | undefined): Promise<void> {
    try {
      await held?.release();
    } catch (error) {
      this.#parts.context.tell({ type: "trouble", doing: "letting go of a key", error });
    }
  }
}

const STOPPING: Outcome = { type: "back", reason: "The relay is stopping.", delayMs: 0 };

class KeyLost extends Error {
  constructor() {
    super("The lease on its key was lost while it was in work.");
  }
}

function badData(error: unknown): Outcome {
  return { type: "dead", reason: reasonOf(error) };
}

function reasonOf(error: unknown): string {
  return shorten(isError(error) ? error.message : String(error));
}
