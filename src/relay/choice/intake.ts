import type { Timer } from "../../domain/clock.ts";
import { InvalidInput } from "../../domain/errors.ts";
import type { RelayContext } from "../context.ts";
import type { Source, SourceMessage } from "../source.ts";
import type { Choice } from "./choice.ts";

/** Whoever has the slots. */
export interface Desk {
  /** Messages that could be begun now. */
  room(): number;
  /** Begins one; there is room for it. */
  begin(source: number, message: SourceMessage): void;
  /** One came for which there is no room: it goes back as it was. */
  turnAway(source: number, message: SourceMessage): void;
}

interface Asked {
  readonly source: Source;
  readonly place: number;
  /** A receive that waits: the source was empty when it was begun. */
  watch: AbortController | undefined;
  /** Its last try has not answered for so long that the others go on without it. */
  slow: boolean;
  /** Asked again when this has passed: it failed. */
  pause: Timer | undefined;
  pauseMs: number;
  failing: boolean;
}

/** A signal that has fired makes a receive a try. */
const NOW = AbortSignal.abort();
/** First pause after a source failed; doubles up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/**
 * A source has so long to say that it is empty before less urgent ones are asked; a far cloud answers in a tenth of it.
 */
const SLOW_MS = 1_000;

/**
 * Takes messages from sources as there is room for them, in the order of the choice, and never more.
 *
 * Sources that may have something are tried, the most urgent first, each with as much room as there is. One that is
 * empty is watched: a receive for one message waits there, so that an arrival anywhere is begun at once, and a wait on
 * one source keeps no other waiting. When the room is used up, the watches are called off. Two of them may bring a
 * message at the same moment, for one slot: the more urgent is begun, the other goes back.
 */
export class Intake {
  readonly #context: RelayContext;
  readonly #sources: readonly Asked[];
  readonly #choice: Choice;
  readonly #desk: Desk;
  readonly #pending = new Set<Promise<unknown>>();
  /** Brought by watches while a round of tries was under way. */
  #arrivals: { readonly source: number; readonly message: SourceMessage }[] = [];
  #inRound = false;
  #again = false;
  /** The try under way, and the room that it may use up. */
  #trial: { readonly place: number; readonly max: number } | undefined;
  #stopped = false;

  constructor(context: RelayContext, sources: readonly Source[], choice: Choice, desk: Desk) {
    this.#context = context;
    this.#choice = choice;
    this.#desk = desk;
    this.#sources = sources.map((source, place) => ({
      source,
      place,
      watch: undefined,
      slow: false,
      pause: undefined,
      pauseMs: FIRST_PAUSE_MS,
      failing: false,
    }));
  }

  /** Sources that did not answer, or refused, when they were last asked. */
  get failing(): readonly string[] {
    return this.#sources.filter(({ failing }) => failing).map(({ source }) => source.name);
  }

  /** The room has changed, either way. */
  refresh(): void {
    this.#again = true;
    // At once: a message that goes back because its receiver is away must not come straight to a watch of ours again.
    if (this.#desk.room() === 0) this.#callOffWatches();
    if (this.#inRound || this.#stopped) return;
    this.#inRound = true;
    this.#track(this.#rounds());
  }

  /** Asks for nothing more. Resolves when no message can come any more, or when the signal fires. */
  async stop(hurry: AbortSignal): Promise<void> {
    this.#stopped = true;
    for (const asked of this.#sources) {
      asked.pause?.cancel();
      asked.watch?.abort();
    }
    const enough = new Promise<void>((resolve) => {
      if (hurry.aborted) resolve();
      else hurry.addEventListener("abort", () => resolve(), { once: true });
    });
    while (this.#pending.size > 0 && !hurry.aborted) await Promise.race([Promise.allSettled(this.#pending), enough]);
  }

  async #rounds(): Promise<void> {
    // What happened within one turn of the event loop is answered by one round: several slots come free together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    do {
      this.#again = false;
      await this.#fill();
      this.#seatArrivals(() => true);
    } while (this.#again && !this.#stopped);
    this.#inRound = false;
    if (this.#desk.room() === 0) this.#callOffWatches();
  }

  async #fill(): Promise<void> {
    while (!this.#stopped) {
      const room = this.#desk.room() - this.#arrivals.length;
      const candidates = this.#sources.filter(isCandidate).map(({ place }) => place);
      if (room <= 0 || candidates.length === 0) return;
      for (const { source: place, max } of this.#choice.plan(candidates, room)) {
        const asked = this.#sources[place];
        // Stopped while another source took its time: this one may be closed by now.
        if (asked !== undefined && !this.#stopped) await this.#try(asked, max);
        this.#trial = undefined;
      }
    }
  }

  /** Resolves when the source has answered, or is slow to: then its answer is an arrival like any other. */
  async #try(asked: Asked, max: number): Promise<void> {
    const late = Promise.withResolvers<void>();
    this.#trial = { place: asked.place, max };
    const timer = this.#context.clock.setTimer(SLOW_MS, () => {
      asked.slow = true;
      late.resolve();
    });
    const answered = this.#ask(asked, max, NOW).then((messages) => {
      timer.cancel();
      const wasSlow = asked.slow;
      asked.slow = false;
      if (messages === undefined) return;
      if (wasSlow) this.#arrive(asked, messages);
      else this.#seat(asked, messages);
      if (messages.length === 0) this.#watch(asked);
    });
    this.#track(answered);
    await Promise.race([answered, late.promise]);
  }

  #watch(asked: Asked): void {
    if (this.#stopped || asked.watch !== undefined || this.#desk.room() === 0) return;
    const watch = new AbortController();
    asked.watch = watch;
    const answered = this.#ask(asked, 1, watch.signal).then((messages) => {
      if (asked.watch === watch) asked.watch = undefined;
      if (messages !== undefined) this.#arrive(asked, messages);
    });
    this.#track(answered);
  }

  #arrive({ place }: Asked, messages: readonly SourceMessage[]): void {
    for (const message of messages) this.#arrivals.push({ source: place, message });
    // A try under way may use the room that it was given, unless this is more urgent.
    const trial = this.#trial;
    this.#seatArrivals(
      (source) => trial === undefined || source < trial.place || this.#desk.room() > trial.max || this.#stopped,
    );
    this.refresh();
  }

  /** Undefined: it failed, and is asked again after a pause. */
  async #ask(asked: Asked, max: number, signal: AbortSignal): Promise<readonly SourceMessage[] | undefined> {
    const { source } = asked;
    try {
      const messages: unknown = await source.receive({ max, signal });
      // A source may be anybody's module, and not in TypeScript.
      if (!isList(messages))
        throw new InvalidInput(`What source ${source.name} received`, messages, "a list of messages");
      asked.pauseMs = FIRST_PAUSE_MS;
      if (asked.failing) this.#context.tell({ type: "source-well", source: source.name });
      asked.failing = false;
      return messages;
    } catch (error) {
      if (!this.#stopped) this.#pause(asked, error);
      return undefined;
    }
  }

  #pause(asked: Asked, error: unknown): void {
    const { clock, random, tell } = this.#context;
    asked.failing = true;
    tell({ type: "source-trouble", source: asked.source.name, doing: "receiving", error });
    asked.pause?.cancel();
    asked.pause = clock.setTimer(asked.pauseMs * (0.5 + random() / 2), () => {
      asked.pause = undefined;
      this.refresh();
    });
    asked.pauseMs = Math.min(asked.pauseMs * 2, LONGEST_PAUSE_MS);
  }

  #seatArrivals(mayBegin: (source: number) => boolean): void {
    const arrivals = this.#arrivals.toSorted((one, other) => one.source - other.source);
    this.#arrivals = [];
    for (const arrival of arrivals) {
      const asked = this.#sources[arrival.source];
      if (asked === undefined) continue;
      if (mayBegin(arrival.source)) this.#seat(asked, [arrival.message]);
      else this.#arrivals.push(arrival);
    }
  }

  #seat({ place }: Asked, messages: readonly SourceMessage[]): void {
    for (const message of messages) {
      if (this.#stopped || this.#desk.room() === 0) {
        this.#desk.turnAway(place, message);
        continue;
      }
      this.#choice.took(place, 1);
      this.#desk.begin(place, message);
    }
    if (messages.length > 0) this.#again = true;
    if (this.#desk.room() === 0) this.#callOffWatches();
  }

  #track(work: Promise<void>): void {
    this.#pending.add(work);
    work
      .catch((error: unknown) => this.#context.tell({ type: "trouble", doing: "asking the sources", error }))
      .finally(() => this.#pending.delete(work));
  }

  #callOffWatches(): void {
    for (const asked of this.#sources) {
      asked.watch?.abort();
      asked.watch = undefined;
    }
  }
}

function isList(received: unknown): received is readonly SourceMessage[] {
  return Array.isArray(received);
}

/** Those that are watched are empty as far as anybody knows. */
function isCandidate({ watch, slow, pause }: Asked): boolean {
  return watch === undefined && !slow && pause === undefined;
}
