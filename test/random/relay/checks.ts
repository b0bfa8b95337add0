/** What a relay promises, held against what it does. Every promise that is broken becomes a sentence. */
import type { RelayEvent, RelayMessage, RelayReport, RelayStop, Source } from "../../../src/relay/index.ts";
import type { ModelQueue, Stored } from "./model-queue.ts";
import type { Heard } from "./model-source.ts";
import { type Behaviour, isHarsh, type Plan, type SourcePlan, type Step } from "./plan.ts";

export interface Run {
  readonly id: string;
  readonly number: number;
  readonly route: number;
  readonly signal: AbortSignal;
}

/** One message, and what became of it. */
interface Known {
  readonly id: string;
  readonly source: SourcePlan;
  readonly key: string | undefined;
  readonly stored: Stored;
  runs: number;
  /** Since the relay was last started: deliveries that failed by the message's own fault. */
  failures: number;
  allFailures: number;
  successes: number;
  isRefused: boolean;
  lost: number;
  /** Ends that the relay told. */
  told: string[];
  /** How the last delivery failed, until its retry was told. */
  lastFailed: Behaviour["does"] | "timeout" | undefined;
  failedAt: number;
  failedAttempt: number;
  /** What the handler asked for. */
  laterMs: number | undefined;
  isKept: boolean;
}

/** A delivery that does not end when it is told to is given up after this. */
const ABANDON_MS = 8_000;

export class Checks {
  readonly problems: string[] = [];
  readonly #plan: Plan;
  readonly #queues: ReadonlyMap<string, ModelQueue>;
  readonly #known = new Map<string, Known>();
  readonly #unfinished = new Set<Known>();
  readonly #running = new Set<Run>();
  readonly #fences = new Map<string, number>();
  readonly #elsewhere = new Set<string>();
  /** Nothing has happened yet after which counts may be too high. */
  #isStrict = true;
  #hadFaults = false;
  readonly #harsh = new Set<string>();
  #restarts = 0;
  #isStopping = false;
  /** Of old settings and new ones together, while both have work. */
  #concurrency: number;
  #newest: number;
  #graceMs = 0;
  #graceUntil = 0;
  /** Something was in work when the last stop began. */
  #isBusy = false;

  constructor(plan: Plan, queues: ReadonlyMap<string, ModelQueue>) {
    this.#plan = plan;
    this.#queues = queues;
    this.#concurrency = plan.concurrency;
    this.#newest = plan.concurrency;
  }

  fail(problem: string): void {
    this.problems.push(problem);
  }

  put(source: string, stored: Stored): void {
    const plan = this.#plan.sources.find(({ name }) => name === source);
    if (plan === undefined) return;
    const { id, key } = stored;
    const known: Known = {
      id,
      source: plan,
      key,
      stored,
      runs: 0,
      failures: 0,
      allFailures: 0,
      successes: 0,
      isRefused: false,
      lost: 0,
      told: [],
      lastFailed: undefined,
      failedAt: 0,
      failedAttempt: 0,
      laterMs: undefined,
      isKept: false,
    };
    this.#known.set(id, known);
    this.#unfinished.add(known);
  }

  fault(step: Extract<Step, { readonly step: "fault" }>): void {
    this.#isStrict = false;
    this.#hadFaults = true;
    if (isHarsh(step)) this.#harsh.add(step.source);
  }

  /** A key that is lost sends its message back uncounted, at any moment. */
  keysAway(): void {
    this.#isStrict = false;
  }

  reloaded(concurrency: number): void {
    this.#isStrict = false;
    this.#restarts += 1;
    this.#concurrency += concurrency;
    this.#newest = concurrency;
    for (const known of this.#known.values()) known.failures = 0;
  }

  stopping(graceMs: number): void {
    this.#isStrict = false;
    this.#isStopping = true;
    this.#graceMs = graceMs;
    this.#graceUntil = Date.now() + graceMs;
    this.#isBusy = this.#running.size > 0 || this.#hadFaults;
  }

  stopped(report: RelayStop, tookMs: number, state: RelayReport, sources: readonly (Source & Heard)[]): void {
    const graceMs = this.#graceMs;
    this.#isStopping = false;
    this.#concurrency = this.#newest;
    this.#restarts += 1;
    for (const known of this.#known.values()) {
      known.failures = 0;
      known.isRefused = false;
    }
    const left = [...this.#running].filter(({ signal }) => !signal.aborted);
    if (left.length > 0) this.fail(`After a stop these were still in work: ${left.map(({ id }) => id).join(", ")}`);
    // Its grace, then the time for what is broken off, then for open polls to be closed.
    if (tookMs > graceMs + ABANDON_MS + 5_000 && this.#harsh.size === 0)
      this.fail(`A stop with a grace of ${graceMs} ms took ${tookMs} ms.`);
    if (!this.#isBusy && tookMs > 4_000 && this.#harsh.size === 0)
      this.fail(`A stop with nothing in work took ${tookMs} ms.`);
    for (const { name, underWay } of sources) {
      if (underWay > 0 && report.abandoned === 0 && this.#harsh.size === 0)
        this.fail(`After a stop source ${name} was still being told how ${underWay} messages ended.`);
    }
    if (state.state !== "stopped") this.fail(`After a stop the relay is ${state.state}.`);
    if (report.finished < 0 || report.givenBack < 0) this.fail(`A stop reports ${JSON.stringify(report)}.`);
    if (report.abandoned === 0 && this.#harsh.size === 0) {
      for (const { inWork, waitingForKey, name } of state.routes)
        if (inWork + waitingForKey > 0)
          this.fail(`After a stop ${name} has ${inWork} in work, ${waitingForKey} waiting.`);
    }
  }

  idle(report: RelayReport): void {
    for (const { name, inWork, waitingForKey, failing } of report.routes) {
      if (inWork + waitingForKey > 0) this.fail(`At rest ${name} reports ${inWork} in work, ${waitingForKey} waiting.`);
      if (failing.length > 0) this.fail(`At rest ${name} reports failing sources: ${failing.join(", ")}.`);
    }
    for (const { id, successes, told, lost } of this.#known.values()) {
      const dones = told.filter((type) => type === "done").length;
      if (dones > successes) this.fail(`${id} was told done ${dones} times, and handled ${successes} times.`);
      if (told.length > 1 + lost + this.#restarts) this.fail(`${id} ended ${told.length} times: ${told.join(", ")}`);
    }
  }

  get unfinished(): readonly string[] {
    for (const known of this.#unfinished) if (isOver(known)) this.#unfinished.delete(known);
    return Array.from(this.#unfinished, ({ id }) => id);
  }

  /** Those that were given up, and are kept nowhere in their queue. */
  get dead(): readonly string[] {
    return [...this.#known.values()].flatMap(({ id, isKept, told }) => (told.includes("dead") && !isKept ? [id] : []));
  }

  placeOf(id: string): { readonly source: string | undefined; readonly key: string | undefined } {
    const known = this.#known.get(id);
    return { source: known?.source.name, key: known?.key };
  }

  wasHandled(id: string): boolean {
    return (this.#known.get(id)?.successes ?? 0) > 0;
  }

  hasEnded(id: string): boolean {
    const known = this.#known.get(id);
    return known !== undefined && isOver(known);
  }

  heldElsewhere(key: string, fence: number): void {
    this.#fence(key, fence);
    this.#elsewhere.add(key);
    for (const run of this.#running) {
      if (!run.signal.aborted && this.#known.get(run.id)?.key === key)
        this.fail(`Key ${key} was held by somebody else while ${run.id} was in work.`);
    }
  }

  leftElsewhere(key: string): void {
    this.#elsewhere.delete(key);
  }

  begin(message: RelayMessage): Run {
    const { id, key, signal, attempt, fence } = message;
    const known = this.#known.get(id);
    if (known === undefined) throw new Error(`Nobody has put ${id} anywhere.`);
    known.runs += 1;
    const run = { id, number: known.runs, route: known.source.route, signal };
    const others = [...this.#running].filter((other) => !other.signal.aborted);
    this.#running.add(run);
    if (this.#isStopping) this.#isBusy = true;
    // Its time is up: that is a failure, whatever becomes of the handler.
    signal.addEventListener("abort", () => {
      if (!this.#running.has(run)) return;
      if (codeOf(signal) === "HANDLER_TIMEOUT") this.#failed(known, attempt, "timeout");
      if (codeOf(signal) === "STOPPING" && Date.now() < this.#graceUntil)
        this.fail(`${id} was broken off ${this.#graceUntil - Date.now()} ms before the grace of a stop was over.`);
    });
    if (signal.aborted) this.fail(`${id} was begun after it had been told to end.`);
    if (key !== known.key) this.fail(`${id} came with key ${String(key)}, and not ${String(known.key)}.`);
    if (others.some((other) => other.id === id)) this.fail(`${id} was begun twice at a time.`);
    const route = others.filter((other) => other.route === run.route).length + 1;
    if (route > this.#concurrency) this.fail(`${route} in work at a time, for ${this.#concurrency} slots.`);
    this.#checkKey(known, others);
    this.#checkGroup(known);
    if (this.#plan.keys !== undefined && key !== undefined) this.#fence(key, fence);
    if (known.isRefused && !this.#isExcused(known))
      this.fail(`${id} was delivered again after it was refused for good.`);
    if (known.successes > 0 && !this.#isExcused(known)) this.fail(`${id} was delivered again after it was handled.`);
    this.#checkAttempt(known, attempt);
    return run;
  }

  end(run: Run, { signal, attempt }: RelayMessage, { does, ms }: Behaviour): void {
    this.#running.delete(run);
    const known = this.#known.get(run.id);
    if (known === undefined) return;
    if (signal.aborted) return;
    if (does === "fails" || does === "later") this.#failed(known, attempt, does, does === "later" ? ms : undefined);
    else if (does === "refuses") known.isRefused = true;
    else known.successes += 1;
  }

  #failed(known: Known, attempt: number, how: Known["lastFailed"], laterMs?: number): void {
    known.failedAt = Date.now();
    known.failedAttempt = attempt;
    known.laterMs = laterMs;
    known.failures += 1;
    known.allFailures += 1;
    known.lastFailed = how;
  }

  hear(event: RelayEvent): void {
    if (event.type === "trouble" && !/^(holding the key|letting go of a key|keeping a dead letter)/.test(event.doing)) {
      const { message = event.error } = event.error instanceof Error ? event.error : {};
      this.fail(`There was trouble ${event.doing}: ${String(message)}`);
    }
    if (!("id" in event)) return;
    const known = this.#known.get(event.id);
    if (known === undefined) return this.fail(`${event.type} was told of ${event.id}, which nobody has put anywhere.`);
    if (event.tookMs < 0) this.fail(`${event.id} took ${event.tookMs} ms.`);
    switch (event.type) {
      case "done":
        known.told.push("done");
        if (known.successes === 0) this.fail(`${event.id} was told done, and never handled.`);
        return;
      case "dead":
        return this.#heardDead(known, event.reason, event.to);
      case "retry":
        return this.#heardRetry(known, event.delayMs, event.attempt);
      case "lost":
        known.lost += 1;
        if (!this.#harsh.has(known.source.name))
          this.fail(`${event.id} was lost, and its source was well: ${event.reason}`);
        break;
      case "back":
      case "unreachable":
      case "drop":
    }
  }

  #heardDead(known: Known, reason: string, to: string): void {
    const { id, source, failures, isRefused } = known;
    const { attempts, maxAgeMs = Infinity } = source.retry;
    known.told.push("dead");
    const { isKept } = known;
    if (to.includes("has no dead letters of its own")) {
      known.isKept = true;
      known.told.pop();
    }
    if (reason.includes("older than")) {
      if (Date.now() - known.stored.sentAt < maxAgeMs) this.fail(`${id} was given up for its age, too soon.`);
    } else if (reason.startsWith("Given up after attempt")) {
      if (this.#isStrict && failures !== attempts && !isKept)
        this.fail(`${id} was given up after ${failures} failures of ${attempts}.`);
      if (known.allFailures === 0) this.fail(`${id} was given up, and never failed.`);
    } else if (reason.startsWith("Given up: all")) {
      if (source.counts !== "deliveries" || (this.#isStrict && !isKept))
        this.fail(`${id} was given up untried: ${reason}`);
    } else if (reason === "hopeless") {
      if (!isRefused && this.#restarts === 0) this.fail(`${id} was given up as hopeless, and never refused.`);
    } else if (reason === "bad data") {
      if (!id.includes("!")) this.fail(`${id} is not bad data.`);
    } else this.fail(`${id} was given up for no reason: ${reason}`);
  }

  #heardRetry(known: Known, delayMs: number, attempt: number): void {
    const { id, source, failures, lastFailed } = known;
    if (lastFailed === undefined) this.fail(`${id} is tried again, and did not fail.`);
    // It may have come again, and failed again, before its source's answer did.
    if (known.failedAttempt !== attempt) return;
    const { attempts, backoffMs, maxBackoffMs, delayMs: fixedMs, maxAgeMs = Infinity } = source.retry;
    if (this.#isStrict && failures >= attempts)
      this.fail(`${id} is tried again after ${failures} failures of ${attempts}.`);
    if (known.failedAt - known.stored.sentAt >= maxAgeMs) this.fail(`${id} is tried again, and is too old.`);
    if (known.laterMs !== undefined && delayMs !== known.laterMs)
      this.fail(`${id} stays away for ${delayMs} ms, and ${known.laterMs} were asked for.`);
    if (lastFailed === "later") return;
    const mostMs = fixedMs ?? Math.min(maxBackoffMs, backoffMs * 2 ** (attempt - 1));
    if (delayMs > mostMs || (fixedMs !== undefined && delayMs !== fixedMs))
      this.fail(`${id} stays away for ${delayMs} ms after attempt ${attempt}, and ${mostMs} ms at most are meant.`);
  }

  #checkKey({ id, key, source }: Known, others: readonly Run[]): void {
    if (key === undefined) return;
    const isKept = this.#plan.keys !== undefined;
    if (isKept && this.#elsewhere.has(key)) this.fail(`${id} was begun while somebody else held key ${key}.`);
    for (const other of others) {
      const known = this.#known.get(other.id);
      if (known?.key !== key) continue;
      if (isKept || (source.isFifo && known.source === source && this.#harsh.size === 0))
        this.fail(`${id} was begun while ${other.id} of key ${key} was in work.`);
    }
  }

  /** What is before it in its group has ended. */
  #checkGroup({ id, key, source }: Known): void {
    if (!source.isFifo || key === undefined || this.#harsh.has(source.name)) return;
    for (const one of this.#queues.get(source.name)?.stored ?? []) {
      if (one.id === id) return;
      if (one.key === key && one.end === undefined)
        this.fail(`${id} was begun before ${one.id} of its group had ended.`);
    }
  }

  #fence(key: string, fence: number | undefined): void {
    const before = this.#fences.get(key) ?? 0;
    if (fence === undefined || fence <= before)
      this.fail(`Key ${key} came with fence ${String(fence)} after ${before}.`);
    else this.#fences.set(key, fence);
  }

  /** It may come again after that all the same: it was not this relay's any more, or another relay knows nothing of it. */
  #isExcused({ source, lost, isKept, isRefused }: Known): boolean {
    // What its source keeps, for want of another place, is delivered again unless it was refused for good.
    return (isKept && !isRefused) || lost > 0 || this.#restarts > 0 || this.#isStopping || this.#harsh.has(source.name);
  }

  #checkAttempt(known: Known, attempt: number): void {
    const { id, source, failures, lost, isKept } = known;
    const { receives } = known.stored;
    if (this.#isStrict && attempt !== failures + 1 && !isKept)
      this.fail(`${id} came with attempt ${attempt} after ${failures} failures.`);
    if (source.counts !== "nothing" && source.counts !== "deliveries" && attempt > receives)
      this.fail(`${id} came with attempt ${attempt} after ${receives} receipts.`);
    if (attempt < failures + 1 - lost && !this.#harsh.has(source.name) && this.#restarts === 0)
      this.fail(`${id} came with attempt ${attempt} after ${failures} failures.`);
    if (failures >= source.retry.attempts + lost && !this.#isExcused(known))
      this.fail(`${id} was delivered again after ${failures} failures of ${source.retry.attempts}.`);
  }
}

function codeOf({ reason }: AbortSignal): unknown {
  return reason instanceof Error && "code" in reason ? reason.code : undefined;
}

function isOver({ stored, isKept }: Known): boolean {
  return stored.end !== undefined || isKept;
}
