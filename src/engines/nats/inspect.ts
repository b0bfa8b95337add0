/** What can be seen from outside: queues, keys, items, dead letters. */
import { soFar, withAttempts } from "../../engine/attempts.ts";
import type * as port from "../../engine/port.ts";
import type { Stored } from "./api-replies.ts";
import { asError } from "./as-error.ts";
import { Behind, keyOfLater } from "./behind.ts";
import { decodeState } from "./codec.ts";
import { Damaged, readable } from "./damage.ts";
import type { Counts } from "./counts.ts";
import type { KeyStore } from "./key-store.ts";
import { textOf, tokenOf } from "./key-token.ts";
import { locate } from "./locate.ts";
import { type DeadLetter, type Due, itemId } from "./receipts.ts";
import { choose, NO_HEADS } from "./rules.ts";
import { type KeyItem, type KeyState, NOTHING, type Seen, type StateLease, type Todo } from "./state.ts";
import { lastToken } from "./subjects.ts";

/** Up to so many subjects a queue is counted key by key, exactly; beyond, by what the server counts itself. */
const EXACT_SUBJECTS = 4_000;
const COUNTER_IDLE_NS = 300 * 1e9;
/** Keys that are looked at together. */
const READ_AT_ONCE = 1_000;

type SignOf = (session: string) => Promise<number | undefined>;

export class Inspector {
  readonly #store: KeyStore;
  readonly #queue: string;
  readonly #levels: readonly string[];
  readonly #shared: string;
  readonly #counts: () => Counts;

  constructor(store: KeyStore, queue: string, levels: readonly string[], shared: string, counts: () => Counts) {
    this.#store = store;
    this.#queue = queue;
    this.#levels = levels;
    this.#shared = shared;
    this.#counts = counts;
  }

  async report(paused: boolean): Promise<port.QueueReport> {
    const { js, subjects } = this.#store;
    const info = await js.streamInfo(subjects.stream);
    const exact = (info?.state.num_subjects ?? 0) <= EXACT_SUBJECTS;
    // In the order in which an item moves: whoever deletes a queue that looks empty must have missed none.
    const delayed = await js.subjects(this.#shared, subjects.allLater);
    const due = await this.#allDue();
    const [{ perLevel: there, running, damaged }, dead] = await Promise.all([
      exact ? this.#countKeys() : this.#countMany(),
      js.subjects(this.#shared, subjects.allDead),
    ]);
    const perLevel = [...there];
    for (const { item } of due) add(perLevel, item.level, 1);
    return {
      queue: this.#queue,
      paused,
      levels: this.#levels.map((level, index) => ({ level, waiting: perLevel[index] ?? 0 })),
      waiting: perLevel.reduce((sum, count) => sum + count, 0),
      delayed: delayed.size,
      running,
      dead: dead.size,
      ...(damaged.size === 0 ? {} : { damage: damageOf(damaged) }),
    };
  }

  /** Waiting and delayed. */
  async total(): Promise<number> {
    const { waiting, delayed } = await this.report(false);
    return waiting + delayed;
  }

  async keys({ after, limit, leased }: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    const { js, subjects } = this.#store;
    const [states, lines, later, due] = await Promise.all([
      js.subjects(subjects.stream, leased === true ? subjects.allRecords : subjects.allStates),
      leased === true ? new Map<string, number>() : js.subjects(subjects.stream, subjects.allWaiting),
      leased === true ? new Map<string, number>() : js.subjects(this.#shared, subjects.allLater),
      leased === true ? [] : this.#allDue(),
    ]);
    const tokens = new Set<string>();
    for (const subject of states.keys()) tokens.add(lastToken(subject));
    for (const subject of lines.keys()) tokens.add(lastToken(subject));
    for (const subject of later.keys()) tokens.add(keyOfLater(subject));
    for (const { key } of due) tokens.add(key);
    const from = after === undefined ? "" : tokenOf(after);
    const sorted = [...tokens].filter((token) => token > from).toSorted();
    // What was listed for all keys is not asked for again, key by key.
    const behind = leased === true ? undefined : new Behind(lines, later, due);
    const signs = this.#signs();
    const reports: port.KeyReport[] = [];
    for (let at = 0; at < sorted.length && reports.length < limit; at += limit) {
      const page = await Promise.all(
        sorted.slice(at, at + limit).map((token) => this.#keyReport(token, behind, signs)),
      );
      reports.push(
        ...page
          .filter((report) => report !== undefined && (leased !== true || report.running !== undefined))
          .filter((report) => report !== undefined),
      );
    }
    return reports.slice(0, limit);
  }

  async find(id: string): Promise<port.ItemReport | undefined> {
    const place = await locate(this.#store, id);
    switch (place.type) {
      case "nowhere":
        return undefined;
      case "dead":
        return this.#deadItem(place.letter);
      case "ended": {
        const { key, level, at } = place.found.receipt;
        const { state, attempt, attempts = [] } = place.outcome;
        const report = { id, key, level, state, attempt, submittedAt: at, ...withAttempts(attempts) };
        return { ...report, outcome: place.outcome };
      }
      case "leaving":
        return this.#leaving(id, place.key, place.todo);
      case "delayed":
        return { ...this.#living(id, place.key, place.item), state: "delayed", dueAt: place.dueAt };
      case "due":
        return { ...this.#living(id, place.key, place.item), state: "waiting" };
      case "line":
        return { ...this.#living(id, place.key, place.waiting.item), state: "waiting" };
      case "state": {
        const { key, seen } = place;
        const { state } = seen;
        const common = this.#living(id, key, place.item);
        if (state.kind === "running" && place.index === 0)
          return { ...common, state: "running", ...(await runningOf(state, key, this.#signs())) };
        const { dueAt } = place.item;
        return dueAt !== undefined && dueAt > this.#store.clock.wall()
          ? { ...common, state: "waiting", dueAt }
          : { ...common, state: "waiting" };
      }
    }
  }

  async dead({ after, limit }: port.PageRequest): Promise<readonly port.DeadReport[]> {
    const last = after === undefined ? undefined : await this.#store.receipts.letter(after);
    const letters = await this.#store.receipts.letters(last?.sequence ?? 0, limit);
    return letters.map((letter) => this.#deadReport(letter));
  }

  async #allDue(): Promise<readonly Due[]> {
    const due: Due[] = [];
    for await (const one of this.#store.receipts.due(this.#store.subjects.allDue)) due.push(one);
    return due;
  }

  /** Every key, one by one. */
  async #countKeys(): Promise<Counted> {
    const { js, subjects } = this.#store;
    const [stored, lines] = await Promise.all([
      js.lastOfEach(subjects.stream, subjects.allStates),
      js.subjects(subjects.stream, subjects.allWaiting),
    ]);
    const latest = new Map<string, Stored>();
    for (const one of stored) {
      const key = lastToken(one.subject);
      if ((latest.get(key)?.sequence ?? 0) < one.sequence) latest.set(key, one);
    }
    const current = new Map<string, Seen>();
    const damaged = new Set<string>();
    for (const [key, { sequence, data }] of latest) {
      const [state] = readable([data], () => decodeState(data, sequence));
      if (state === undefined) damaged.add(key);
      else current.set(key, { sequence, state });
    }
    const perLevel = this.#levels.map(() => 0);
    for (const [subject, count] of lines) add(perLevel, Number(subject.split(".").at(-2)), count);
    let running = 0;
    for (const [key, { state }] of current) {
      const waiting = state.kind === "running" ? state.items.slice(1) : state.items;
      if (state.kind === "running") running += 1;
      for (const { level } of waiting) add(perLevel, level, 1);
      await this.#subtractTaken(perLevel, key, state, lines);
    }
    return { perLevel, running, damaged };
  }

  /** What the consumers know, and every key that is not simply ready. */
  async #countMany(): Promise<Counted> {
    const { js, subjects } = this.#store;
    const perLevel = await Promise.all(
      this.#levels.map(async (_, level) => {
        const ready = await js.consumerInfo(subjects.stream, subjects.readyConsumer(level));
        const line = await js.createConsumer(subjects.stream, {
          durable_name: subjects.waitingConsumer(level),
          filter_subject: subjects.waitingAt(level),
          ack_policy: "explicit",
          ack_wait: 30 * 1e9,
          max_deliver: -1,
          max_ack_pending: 1,
          max_waiting: 1,
          inactive_threshold: COUNTER_IDLE_NS,
        });
        return (ready?.num_pending ?? 0) + (ready?.num_ack_pending ?? 0) + (line?.num_pending ?? 0);
      }),
    );
    let running = 0;
    const { found, damaged } = await this.#withRecords();
    for (const [key, { state }] of found) {
      if (state.kind === "running") running += 1;
      for (const { level } of state.kind === "running" ? state.items.slice(1) : state.items) add(perLevel, level, 1);
      // Its consumer knows a ready key by one message, at the level of its most urgent item.
      if (state.kind === "ready") add(perLevel, Math.min(...state.items.map(({ level }) => level)), -1);
      if (state.takenLeft === 0) continue;
      const lines = await js.subjects(subjects.stream, subjects.waitingOf(key));
      await this.#subtractTaken(perLevel, key, state, lines);
    }
    return { perLevel, running, damaged };
  }

  /** Keys with a record, which may have become ready since, as they stand: they can carry several items. Others are ready, with an item each. */
  async #withRecords(): Promise<{ readonly found: ReadonlyMap<string, Seen>; readonly damaged: ReadonlySet<string> }> {
    const { js, subjects } = this.#store;
    const names = await js.subjects(subjects.stream, subjects.allRecords);
    const keys = [...new Set(Array.from(names.keys(), lastToken))];
    const found = new Map<string, Seen>();
    const damaged = new Set<string>();
    for (let at = 0; at < keys.length; at += READ_AT_ONCE) {
      const page = keys.slice(at, at + READ_AT_ONCE);
      const seen = await Promise.all(page.map((key) => this.#store.read(key).catch(asDamage)));
      for (const [index, one] of seen.entries()) {
        if (one instanceof Damaged) damaged.add(page[index] ?? "");
        else if (one.sequence > 0) found.set(page[index] ?? "", one);
      }
    }
    return { found, damaged };
  }

  async #subtractTaken(
    perLevel: number[],
    key: string,
    state: KeyState,
    lines: ReadonlyMap<string, number>,
  ): Promise<void> {
    for (const [level, sequence] of state.taken.entries()) {
      if (sequence === 0) continue;
      const only = state.taken.map((one, at) => (at === level ? one : 0));
      add(perLevel, level, -(await this.#counts().takenLeft(key, only, lines)));
    }
  }

  async #keyReport(key: string, behind: Behind | undefined, signs: SignOf): Promise<port.KeyReport | undefined> {
    const counts = this.#counts();
    const seen = await this.#store.read(key).catch(asDamage);
    const state = seen instanceof Damaged ? NOTHING : seen.state;
    const [there, due, delayed, running] = await Promise.all([
      counts.waiting(key, state, behind?.lineOf(key)),
      behind?.due(key) ?? counts.due(key),
      behind?.delayed(key) ?? counts.delayed(key),
      runningOf(state, key, signs),
    ]);
    const waiting = there + due;
    if (seen instanceof Damaged)
      return { key: textOf(key), state: "blocked", paused: false, waiting, delayed, damage: seen.message };
    if (state.kind === "idle" && waiting === 0 && delayed === 0) return undefined;
    return {
      key: textOf(key),
      state: await this.#keyState(key, state, due),
      paused: state.paused,
      waiting,
      delayed,
      ...running,
    };
  }

  /** @param due items that have come due, and that nobody has brought to the key yet */
  async #keyState(key: string, state: KeyState, due: number): Promise<port.KeyReport["state"]> {
    const { kind, items, paused, more } = state;
    if (kind === "parked" && !paused) return items.length === 0 ? "idle" : "blocked";
    if (kind !== "parked" && kind !== "idle") return kind;
    // What was submitted while the key was paused stands in its line, where nobody has looked yet.
    const heads = kind === "idle" || more === false ? NO_HEADS : await this.#store.heads(key, state, items);
    const choice = choose(items, heads, this.#store.levels, this.#store.clock.wall());
    if (choice.type === "blocked") return "blocked";
    return choice.type === "item" || due > 0 ? "ready" : "idle";
  }

  /** When sessions gave their last sign of life, by the server's clock; each is asked about once. */
  #signs(): SignOf {
    const { js, subjects } = this.#store;
    const asked = new Map<string, Promise<number | undefined>>();
    return (session) => {
      const known = asked.get(session);
      if (known !== undefined) return known;
      const sign = js.last(this.#shared, subjects.session(session)).then((last) => last?.at);
      asked.set(session, sign);
      return sign;
    };
  }

  #common(
    id: string,
    key: string,
    item: KeyItem,
  ): Pick<port.ItemReport, "id" | "key" | "level" | "attempt" | "submittedAt"> {
    return {
      id,
      key: textOf(key),
      level: this.#levels[item.level] ?? "",
      attempt: item.attempts,
      submittedAt: item.submittedAt,
    };
  }

  #living(id: string, key: string, item: KeyItem): Omit<port.ItemReport, "state"> {
    return { ...this.#common(id, key, item), ...soFar(item.tried ?? []) };
  }

  #leaving(id: string, key: string, todo: Exclude<Todo, { readonly type: "wake" }>): port.ItemReport {
    const common = this.#common(id, key, todo.item);
    switch (todo.type) {
      case "ended":
        return {
          ...common,
          state: todo.outcome.state,
          ...withAttempts(todo.outcome.attempts ?? []),
          outcome: todo.outcome,
        };
      case "dead":
        return deadItem(common, todo);
      case "later":
        return { ...this.#living(id, key, todo.item), state: "delayed", dueAt: todo.dueAt };
    }
  }

  #deadItem({ id, key, at, failure, item }: DeadLetter): port.ItemReport {
    return deadItem(this.#common(id, tokenOf(key), item), { at, failure, item });
  }

  #deadReport({ id, key, at, failure, item }: DeadLetter): port.DeadReport {
    const tried = withAttempts(item.tried ?? []);
    return { ...this.#common(id, tokenOf(key), item), at, failure, ...tried, payload: item.payload };
  }
}

function deadItem(
  common: Omit<port.ItemReport, "state">,
  { at, failure, item }: Pick<DeadLetter, "at" | "failure" | "item">,
): port.ItemReport {
  const tried = withAttempts(item.tried ?? []);
  const outcome: port.Outcome = { state: "dead", at, attempt: item.attempts, failure, ...tried };
  return { ...common, state: "dead", ...tried, outcome };
}

interface Counted {
  readonly perLevel: readonly number[];
  readonly running: number;
  /** Keys of which it is not known how they stand. */
  readonly damaged: ReadonlySet<string>;
}

/** Damage to one key stays with that key. */
function asDamage(error: unknown): Damaged {
  if (error instanceof Damaged) return error;
  throw asError(error);
}

function damageOf(damaged: ReadonlySet<string>): string {
  const [first = ""] = damaged;
  const which = `key ${JSON.stringify(textOf(first))}${damaged.size === 1 ? " is" : ` and ${damaged.size - 1} more are`}`;
  return `${which} damaged, and nobody can work on ${damaged.size === 1 ? "it" : "them"}: see baton doctor.`;
}

function add(counts: number[], level: number, by: number): void {
  counts[level] = (counts[level] ?? 0) + by;
}

async function runningOf(
  state: KeyState,
  key: string,
  signOf: SignOf,
): Promise<{ readonly running?: port.RunningReport }> {
  const { lease, items, kind } = state;
  if (lease === undefined) return {};
  const item = kind === "running" ? items[0] : undefined;
  return { running: runningReport(lease, item, key, await signOf(lease.session)) };
}

/**
 * A renewal is a sign of life of the session, and does not change the record.
 *
 * @param sign undefined: the session is gone, and the key will be taken over in a moment
 */
function runningReport(
  lease: StateLease,
  item: KeyItem | undefined,
  key: string,
  sign: number | undefined,
): port.RunningReport {
  const { worker, fence, since, leaseMs, progress } = lease;
  return {
    worker,
    fence,
    since,
    deadline: (sign ?? since) + leaseMs,
    attempt: item?.attempts ?? 0,
    ...(progress === undefined ? {} : { progress }),
    ...(item === undefined ? {} : { id: itemId(item, key) }),
  };
}
