/** What can be seen from outside: queues, keys, items, dead letters. */
import type * as port from "../../engine/port.ts";
import { Behind, keyOfLater } from "./behind.ts";
import { decodeState } from "./codec.ts";
import type { Counts } from "./counts.ts";
import type { KeyStore } from "./key-store.ts";
import { textOf, tokenOf } from "./key-token.ts";
import { keyOfItem, locate } from "./operate.ts";
import { type DeadLetter, itemId } from "./receipts.ts";
import type { KeyItem, KeyState, Seen, StateLease, Todo } from "./state.ts";
import { lastToken } from "./subjects.ts";

/** Up to so many subjects a queue is counted key by key, exactly; beyond, by what the server counts itself. */
const EXACT_SUBJECTS = 4_000;
const COUNTER_IDLE_NS = 300 * 1e9;
/** Keys that are looked at together. */
const READ_AT_ONCE = 1_000;

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
    const [{ perLevel, running }, delayed, dead] = await Promise.all([
      exact ? this.#countKeys() : this.#countMany(),
      js.subjects(this.#shared, subjects.allLater),
      js.subjects(this.#shared, subjects.allDead),
    ]);
    return {
      queue: this.#queue,
      paused,
      levels: this.#levels.map((level, index) => ({ level, waiting: perLevel[index] ?? 0 })),
      waiting: perLevel.reduce((sum, count) => sum + count, 0),
      delayed: delayed.size,
      running,
      dead: dead.size,
    };
  }

  /** Waiting and delayed. */
  async total(): Promise<number> {
    const { waiting, delayed } = await this.report(false);
    return waiting + delayed;
  }

  async keys({ after, limit, leased }: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    const { js, subjects } = this.#store;
    const [states, lines, later] = await Promise.all([
      js.subjects(subjects.stream, leased === true ? subjects.allRecords : subjects.allStates),
      leased === true ? new Map<string, number>() : js.subjects(subjects.stream, subjects.allWaiting),
      leased === true ? new Map<string, number>() : js.subjects(this.#shared, subjects.allLater),
    ]);
    const tokens = new Set<string>();
    for (const subject of states.keys()) tokens.add(lastToken(subject));
    for (const subject of lines.keys()) tokens.add(lastToken(subject));
    for (const subject of later.keys()) tokens.add(keyOfLater(subject));
    const from = after === undefined ? "" : tokenOf(after);
    const sorted = [...tokens].filter((token) => token > from).toSorted();
    // What was listed for all keys is not asked for again, key by key.
    const behind = leased === true ? undefined : new Behind(lines, later);
    const reports: port.KeyReport[] = [];
    for (let at = 0; at < sorted.length && reports.length < limit; at += limit) {
      const page = await Promise.all(sorted.slice(at, at + limit).map((token) => this.#keyReport(token, behind)));
      reports.push(
        ...page
          .filter((report) => report !== undefined && (leased !== true || report.running !== undefined))
          .filter((report) => report !== undefined),
      );
    }
    return reports.slice(0, limit);
  }

  async find(id: string): Promise<port.ItemReport | undefined> {
    const letter = await this.#store.receipts.letter(id);
    if (letter !== undefined) return this.#deadItem(letter);
    const found = await this.#store.receipts.find(id);
    if (found?.outcome !== undefined) {
      const { key, level, at } = found.receipt;
      const { state, attempt } = found.outcome;
      return { id, key, level, state, attempt, submittedAt: at, outcome: found.outcome };
    }
    const key = await keyOfItem(this.#store, id);
    if (key === undefined) return undefined;
    const place = await locate(this.#store, key, id);
    switch (place.type) {
      case "nowhere": {
        const since = await this.#store.receipts.find(id);
        return since?.outcome === undefined ? undefined : await this.find(id);
      }
      case "leaving":
        return this.#leaving(id, key, place.todo);
      case "delayed":
        return { ...this.#common(id, key, place.item), state: "delayed", dueAt: place.dueAt };
      case "line":
        return { ...this.#common(id, key, place.waiting.item), state: "waiting" };
      case "state": {
        const { state } = place.seen;
        const common = this.#common(id, key, place.item);
        if (state.kind === "running" && place.index === 0)
          return { ...common, state: "running", ...runningOf(state, key) };
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

  /** Every key, one by one. */
  async #countKeys(): Promise<{ readonly perLevel: readonly number[]; readonly running: number }> {
    const { js, subjects } = this.#store;
    const [stored, lines] = await Promise.all([
      js.lastOfEach(subjects.stream, subjects.allStates),
      js.subjects(subjects.stream, subjects.allWaiting),
    ]);
    const current = new Map<string, Seen>();
    const sequences = new Set(stored.map(({ sequence }) => sequence));
    for (const { subject, sequence, data } of stored) {
      const key = lastToken(subject);
      if ((current.get(key)?.sequence ?? 0) < sequence)
        current.set(key, { sequence, state: decodeState(data, sequence) });
    }
    const perLevel = this.#levels.map(() => 0);
    for (const [subject, count] of lines) add(perLevel, Number(subject.split(".").at(-2)), count);
    let running = 0;
    for (const [key, { state }] of current) {
      // Its item is done.
      if (state.brief !== 0 && !sequences.has(state.brief)) continue;
      const waiting = state.kind === "running" ? state.items.slice(1) : state.items;
      if (state.kind === "running") running += 1;
      for (const { level } of waiting) add(perLevel, level, 1);
      await this.#subtractTaken(perLevel, key, state, lines);
    }
    return { perLevel, running };
  }

  /** What the consumers know, and every key that is not simply ready. */
  async #countMany(): Promise<{ readonly perLevel: readonly number[]; readonly running: number }> {
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
    for (const [key, { state }] of await this.#withRecords()) {
      if (state.kind === "running") running += 1;
      for (const { level } of state.kind === "running" ? state.items.slice(1) : state.items) add(perLevel, level, 1);
      // Its consumer knows a ready key by one message, at the level of its most urgent item.
      // So it does one that runs for a moment only.
      if (state.kind === "ready" || (state.kind === "running" && state.brief !== 0))
        add(perLevel, Math.min(...state.items.map(({ level }) => level)), -1);
      if (state.takenLeft === 0) continue;
      const lines = await js.subjects(subjects.stream, subjects.waitingOf(key));
      await this.#subtractTaken(perLevel, key, state, lines);
    }
    return { perLevel, running };
  }

  /** Keys with a record, which may have become ready since, as they stand: they can carry several items. Others are ready, with an item each. */
  async #withRecords(): Promise<ReadonlyMap<string, Seen>> {
    const { js, subjects } = this.#store;
    const names = await js.subjects(subjects.stream, subjects.allRecords);
    const keys = [...new Set(Array.from(names.keys(), lastToken))];
    const found = new Map<string, Seen>();
    for (let at = 0; at < keys.length; at += READ_AT_ONCE) {
      const page = keys.slice(at, at + READ_AT_ONCE);
      const seen = await Promise.all(page.map((key) => this.#store.peek(key)));
      for (const [index, one] of seen.entries()) if (one.sequence > 0) found.set(page[index] ?? "", one);
    }
    return found;
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

  async #keyReport(key: string, behind: Behind | undefined): Promise<port.KeyReport | undefined> {
    const counts = this.#counts();
    const { state } = await this.#store.peek(key);
    const [waiting, delayed] = await Promise.all([
      counts.waiting(key, state, behind?.lineOf(key)),
      behind?.delayed(key) ?? counts.delayed(key),
    ]);
    if (state.kind === "idle" && waiting === 0 && delayed === 0) return undefined;
    return {
      key: textOf(key),
      state: keyState(state),
      paused: state.paused,
      waiting,
      delayed,
      ...runningOf(state, key),
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

  #leaving(id: string, key: string, todo: Exclude<Todo, { readonly type: "wake" }>): port.ItemReport {
    const common = this.#common(id, key, todo.item);
    switch (todo.type) {
      case "ended":
        return { ...common, state: todo.outcome.state, outcome: todo.outcome };
      case "dead": {
        const { at, failure, item } = todo;
        return { ...common, state: "dead", outcome: { state: "dead", at, attempt: item.attempts, failure } };
      }
      case "later":
        return { ...common, state: "delayed", dueAt: todo.dueAt };
    }
  }

  #deadItem({ id, key, at, failure, item }: DeadLetter): port.ItemReport {
    const outcome: port.Outcome = { state: "dead", at, attempt: item.attempts, failure };
    return { ...this.#common(id, tokenOf(key), item), state: "dead", outcome };
  }

  #deadReport({ id, key, at, failure, item }: DeadLetter): port.DeadReport {
    return { ...this.#common(id, tokenOf(key), item), at, failure, payload: item.payload };
  }
}

function add(counts: number[], level: number, by: number): void {
  counts[level] = (counts[level] ?? 0) + by;
}

function keyState({ kind, items, paused }: KeyState): port.KeyReport["state"] {
  switch (kind) {
    case "parked":
      if (items.length === 0) return "idle";
      return paused && items[0]?.dueAt === undefined ? "ready" : "blocked";
    case "idle":
      return "idle";
    default:
      return kind;
  }
}

function runningOf(state: KeyState, key: string): { readonly running?: port.RunningReport } {
  const { lease, items, kind } = state;
  if (lease === undefined) return {};
  const item = kind === "running" ? items[0] : undefined;
  return { running: runningReport(lease, item, key) };
}

function runningReport(lease: StateLease, item: KeyItem | undefined, key: string): port.RunningReport {
  const { worker, fence, since, leaseMs, progress } = lease;
  return {
    worker,
    fence,
    since,
    deadline: since + leaseMs,
    attempt: item?.attempts ?? 0,
    ...(progress === undefined ? {} : { progress }),
    ...(item === undefined ? {} : { id: itemId(item, key) }),
  };
}
