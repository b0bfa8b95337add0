import { inspect } from "node:util";
import { KeyBusy, KeyFull, QueueFull } from "../../src/domain/errors.ts";
import type { Lease, SubmitResult } from "../../src/engine/port.ts";
import { decodeState, decodeItem } from "../../src/engines/nats/codec.ts";
import { textOf } from "../../src/engines/nats/key-token.ts";
import { CALM_SERVER, randomServer, type Passing, type Way } from "../jetstream/faults.ts";
import { deleteConsumer } from "../jetstream/consumer-api.ts";
import { SimulatedServer } from "../jetstream/server.ts";
import type { Stream } from "../jetstream/stream.ts";
import { Random } from "../kit/random.ts";
import { ShiftedClock } from "../simulation/shifted-clock.ts";
import { VirtualTime } from "../simulation/virtual-time.ts";
import { History, type FaultKind, type LastWords, type What } from "./history.ts";
import { CALM_RATES, randomLine } from "./line.ts";
import { type Deed, type Fault, isDirect, type ItemPlan, type Plan } from "./plan.ts";
import type { Plant } from "./planted.ts";
import { LEVELS, NatsProcess, QUEUE } from "./process.ts";
import type { Stage } from "./stage.ts";
import { mustBeUnknown, settleOnce, SimulatedWorker } from "./worker.ts";

/** Virtual time after the last fault in which everything must have come to its end. */
const DRAIN_LIMIT_MS = 60_000;
/** Virtual time after that in which nothing may be left of it. */
const CLEAN_LIMIT_MS = 2_000;
const LOOK_EVERY_MS = 250;
const MOST_EVENTS = 60_000;
const MOST_PROCESSES = 8;
/** More than a key carries. */
const BIG = 33_000;
const STREAM = `baton-${QUEUE}`;

/**
 * One run of a plan.
 *
 *   trouble ──troubleMs──▶ calm (no more faults; a fresh worker) ──nothing left──▶ over
 */
export class World implements Stage {
  readonly plan: Plan;
  readonly history: History = new History();
  readonly time: VirtualTime = new VirtualTime();
  readonly #server: SimulatedServer;
  readonly #random: Random;
  readonly #plant: Plant | undefined;
  readonly #processes: NatsProcess[] = [];
  readonly #items = new Map<number, ItemPlan>();
  /** Ids of what was accepted, with their keys. */
  readonly #ids: { readonly id: string; readonly key: string }[] = [];
  readonly #keeping = new Set<string>();
  readonly #open = new Map<number, NatsProcess>();
  readonly #surprises: string[] = [];
  readonly #outcomes = new Map<string, string>();
  #phase: "trouble" | "calm" | "over" = "trouble";
  #events = 0;
  #calls = 0;
  #leases = 0;
  #tokens = 0;
  #interfered = 0;
  #drained = false;
  #drainMs = 0;
  #left: readonly string[] = [];
  #doneAt: number | undefined;

  constructor(plan: Plan, makePlant?: (random: Random) => Plant) {
    const random = new Random(plan.seed ^ 0x5eed);
    this.plan = plan;
    this.#random = random;
    this.#plant = makePlant?.(random.fork());
    const clock = new ShiftedClock(this.time, 5_000_000, 0, (callback) => callback());
    const rates = { stale: this.#plant?.stale ?? plan.stale, mostChangesBehind: 5, latestMs: plan.lateMs };
    const facts = { name: "server", alone: isDirect(plan) };
    this.#server = new SimulatedServer({ clock, faults: randomServer(random.fork(), rates), facts });
    this.#tapStreams();
    for (const slots of plan.processes) this.#start(slots);
    for (const { at, process, what } of plan.deeds) this.time.after(at + 5, () => this.#do(process, what));
    for (const { at, process, what } of plan.faults) this.time.after(at + 5, () => this.#suffer(process, what));
    this.time.after(plan.troubleMs + 10, () => this.#calmDown());
  }

  get over(): boolean {
    return this.#phase === "over";
  }

  get calm(): boolean {
    return this.#phase !== "trouble";
  }

  get events(): number {
    return this.#events;
  }

  /** How many messages the interference of this plan could have chosen. */
  get interfered(): number {
    return this.#interfered;
  }

  /** One event. What follows from it happens before the next call. */
  step(): void {
    this.#events += 1;
    if (this.time.step() && this.#events <= MOST_EVENTS) return;
    this.#surprises.push(`The run needed more than ${MOST_EVENTS} events, or stood still.`);
    this.#left = this.#whatIsLeft();
    this.#phase = "over";
  }

  lastWords(): LastWords {
    return {
      drained: this.#drained,
      left: this.#left,
      drainMs: this.#drainMs,
      outcomes: this.#outcomes,
      surprises: this.#surprises,
    };
  }

  log(what: What): void {
    this.history.add(this.time.now, what);
  }

  nextCall(): number {
    this.#calls += 1;
    return this.#calls;
  }

  planOf(token: number): ItemPlan {
    const plan = this.#items.get(token);
    if (plan === undefined) throw new Error(`Nobody submitted ${token}.`);
    return plan;
  }

  granted(
    process: NatsProcess,
    { key, fence, since }: Lease,
    item?: { readonly token: number; readonly id: string; readonly attempt: number },
  ): number {
    this.#leases += 1;
    const from = process.trueTime(since.monotonic);
    const { leaseMs } = this.plan;
    this.log({ type: "grant", process: process.name, lease: this.#leases, key, fence, since: from, leaseMs, ...item });
    return this.#leases;
  }

  begin(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.#surprises.push(inspect(error)));
  }

  #start(slots: number): NatsProcess {
    const name = `p${this.#processes.length + 1}`;
    const random = this.#random.fork();
    const rates = (): Plan["rates"] => (this.calm ? CALM_RATES : this.plan.rates);
    const faults = randomLine(
      random.fork(),
      rates,
      (way, passing) => this.#interfere(name, way, passing),
      (kind, subject) => this.#fault(kind, subject, name),
    );
    const process: NatsProcess = new NatsProcess({
      name,
      time: this.time,
      server: this.#server,
      random,
      faults,
      replicas: this.plan.replicas,
      together: this.plan.together,
      wallShiftMs: this.plan.wallShiftMs === 0 ? 0 : random.between(-this.plan.wallShiftMs, this.plan.wallShiftMs),
      plant: this.#plant,
    });
    this.#processes.push(process);
    this.begin(this.#live(process, slots));
    return process;
  }

  async #live(process: NatsProcess, slots: number): Promise<void> {
    await this.#declare(process);
    if (slots > 0) await new SimulatedWorker(this, process, slots).run();
  }

  readonly #declared = new Map<NatsProcess, Promise<void>>();

  #declare(process: NatsProcess): Promise<void> {
    let declared = this.#declared.get(process);
    if (declared === undefined) {
      declared = this.#declareUntilHeard(process);
      this.#declared.set(process, declared);
    }
    return declared;
  }

  async #declareUntilHeard(process: NatsProcess): Promise<void> {
    for (;;) {
      try {
        await process.engine.declare({ queue: QUEUE, levels: LEVELS });
        return;
      } catch (error) {
        mustBeUnknown(error);
      }
    }
  }

  #pick(number: number): NatsProcess | undefined {
    const living = this.#processes.filter((process) => !process.dead);
    return living[number % Math.max(1, living.length)];
  }

  #do(number: number, deed: Deed): void {
    const process = this.#pick(number);
    // One that is stopped does nothing.
    if (process === undefined || process.stopped) return;
    this.begin(this.#perform(process, deed));
  }

  async #perform(process: NatsProcess, deed: Deed): Promise<void> {
    await this.#declare(process);
    if (process.dead) return;
    switch (deed.type) {
      case "submit":
        return await this.#submit(process, deed.items);
      case "cancel":
        return await this.#cancel(process, deed.pick);
      case "hold":
        return await this.#hold(process, deed.key, deed.waitMs, deed.forMs);
      case "pause":
        await this.#pause(process, deed.key, true);
        await process.sleep(deed.forMs);
        return await this.#pause(process, deed.key, false);
    }
  }

  async #submit(process: NatsProcess, items: readonly ItemPlan[]): Promise<void> {
    const calls = items.map((item) => {
      const call = this.nextCall();
      this.#tokens += 1;
      this.#items.set(this.#tokens, item);
      const { key, level, id, mode, delayMs, keeps } = item;
      this.log({
        type: "submit",
        process: process.name,
        call,
        token: this.#tokens,
        key,
        level,
        id,
        mode,
        delayMs,
        keeps,
      });
      return { call, token: this.#tokens, item };
    });
    let results: readonly SubmitResult[] = [];
    let unknown = false;
    for (const { call } of calls) this.#open.set(call, process);
    try {
      results = await process.engine.submit(
        calls.map(({ token, item: { key, id, level, delayMs, mode, keeps, big } }) => ({
          queue: QUEUE,
          key,
          ...(id === undefined ? {} : { id }),
          level: LEVELS[level] ?? "",
          payload: { type: "text/plain", body: big ? String(token).padEnd(BIG) : String(token) },
          delayMs,
          mode,
          keyLimit: 1_000_000,
          queueLimit: 10_000_000,
          keepMs: keeps ? 3_600_000 : 0,
        })),
      );
    } catch (error) {
      unknown = true;
      mustBeUnknown(error);
    } finally {
      for (const [at, { call, item }] of calls.entries()) {
        this.#open.delete(call);
        this.#noteSubmitted(call, item, unknown ? undefined : results[at]);
      }
    }
    // Whoever chose an id asks again until it knows.
    if (unknown && items.every(({ id }) => id !== undefined)) await this.#submit(process, items);
  }

  #noteSubmitted(call: number, { key, keeps }: ItemPlan, result: SubmitResult | undefined): void {
    if (result === undefined) {
      this.log({ type: "submitted", call, key, result: "unknown" });
    } else if (result.ok) {
      const { id, duplicate, replaced } = result.accepted;
      this.log({ type: "submitted", call, key, result: duplicate ? "duplicate" : "accepted", id, replaced });
      this.#ids.push({ id, key });
      if (keeps) this.#keeping.add(id);
    } else {
      const { error } = result;
      this.log({ type: "submitted", call, key, result: "refused", why: error.code });
      if (!(error instanceof KeyBusy || error instanceof KeyFull || error instanceof QueueFull))
        this.#surprises.push(inspect(error));
    }
  }

  async #cancel(process: NatsProcess, pick: number): Promise<void> {
    const chosen = this.#ids[Math.floor(pick * this.#ids.length)];
    if (chosen === undefined) return;
    const { id, key } = chosen;
    const call = this.nextCall();
    this.log({ type: "cancel", call, process: process.name, key, id });
    this.#open.set(call, process);
    try {
      const result = await process.engine.cancel({ queue: QUEUE, id });
      this.log({ type: "cancelled", call, key, id, result });
    } catch (error) {
      this.log({ type: "cancelled", call, key, id, result: "unknown" });
      mustBeUnknown(error);
    }
    this.#open.delete(call);
  }

  async #hold(process: NatsProcess, key: string, waitMs: number, forMs: number): Promise<void> {
    const call = this.nextCall();
    this.#open.set(call, process);
    const impatience = new AbortController();
    if (waitMs === 0) impatience.abort();
    else void process.sleep(waitMs).then(() => impatience.abort());
    try {
      const lease = await process.engine.hold({
        queue: QUEUE,
        key,
        worker: "holder",
        leaseMs: this.plan.leaseMs,
        signal: impatience.signal,
      });
      if (lease === undefined) return;
      const number = this.granted(process, lease);
      await process.sleep(forMs);
      await settleOnce(this, process, number, lease, { ended: [], ending: { type: "release" } });
    } catch (error) {
      mustBeUnknown(error);
    } finally {
      this.#open.delete(call);
    }
  }

  async #pause(process: NatsProcess, key: string | undefined, paused: boolean): Promise<void> {
    const call = this.nextCall();
    this.#open.set(call, process);
    for (let tries = 5; tries > 0; tries -= 1) {
      this.log({ type: "pause", process: process.name, key, paused });
      try {
        await process.engine.pause({ queue: QUEUE, ...(key === undefined ? {} : { key }), paused });
        this.log({ type: "paused", key, paused, result: "done" });
        break;
      } catch (error) {
        this.log({ type: "paused", key, paused, result: "unknown" });
        mustBeUnknown(error);
      }
    }
    this.#open.delete(call);
  }

  #fault(kind: FaultKind, says: string, process?: string, ms?: number): void {
    const rest = { ...(process === undefined ? {} : { process }), ...(ms === undefined ? {} : { ms }) };
    this.log({ type: "fault", kind, says, ...rest });
  }

  #deleteConsumer(number: number): void {
    const isDue = number === LEVELS.length;
    const name = isDue ? `due-${QUEUE}` : `ready-${number}`;
    const stream = this.#server.streams.get(isDue ? "baton" : `baton-${QUEUE}`);
    if (stream !== undefined && deleteConsumer(stream, name)) this.#fault("consumer deleted", name);
  }

  #suffer(number: number, fault: Fault): void {
    const process = this.#pick(number);
    if (fault.type === "restart") {
      this.#fault("server restart", `down for ${fault.downMs} ms`);
      if (fault.forgetAcksMs > 0) this.#fault("acks forgotten", `of ${fault.forgetAcksMs} ms`);
      if (fault.inWrite) this.#server.restartInWrite(`baton-${QUEUE}`, fault);
      else this.#server.restart(fault);
      return;
    }
    if (fault.type === "delete") {
      this.#deleteConsumer(fault.consumer);
      return;
    }
    if (process === undefined || process.stopped) return;
    switch (fault.type) {
      case "crash":
        this.#crash(process, fault.sent, fault.serverNoticesMs);
        break;
      case "stop":
        this.#stop(process, fault.forMs);
        break;
      case "cut":
        this.#cut(process, fault.forMs, fault.clientNoticesMs, fault.serverNoticesMs);
        break;
      case "step":
        this.#fault("clock step", `${fault.byMs} ms`, process.name, fault.byMs);
        process.clock.step(fault.byMs);
        break;
    }
  }

  #crash(process: NatsProcess, sent: "lost" | "arrives", serverNoticesMs: number): void {
    this.#fault("crash", `sent: ${sent}`, process.name);
    process.kill(sent, serverNoticesMs);
    this.time.after(this.#random.next() * this.plan.leaseMs, () => {
      if (this.#processes.length < MOST_PROCESSES) this.#start(this.#random.between(1, 3));
    });
  }

  #stop(process: NatsProcess, forMs: number): void {
    this.#fault("stop", `for ${forMs} ms`, process.name);
    process.stop();
    this.time.after(forMs, () => {
      if (process.dead) return;
      this.#fault("go on", "", process.name);
      process.goOn();
    });
  }

  #cut(process: NatsProcess, forMs: number, clientNoticesMs: number, serverNoticesMs: number): void {
    this.#fault("cut", `for ${forMs} ms`, process.name);
    process.connection.cut({ clientNoticesMs, serverNoticesMs });
    this.time.after(forMs, () => {
      if (process.dead) return;
      this.#fault("restore", "", process.name);
      process.connection.restore();
    });
  }

  #interfere(name: string, way: Way, passing: Passing): "loses" | "passes" {
    const { interference, leaseMs } = this.plan;
    if (interference === undefined || interference.process !== name || interference.way !== way) return "passes";
    const process = this.#processes.find((one) => one.name === name);
    if (process?.dead !== false || !interference.counts(passing)) return "passes";
    this.#interfered += 1;
    if (this.#interfered === interference.number + 1 && interference.does === "kill after") return "loses";
    if (this.#interfered !== interference.number) return "passes";
    const { subject } = passing;
    switch (interference.does) {
      case "kill before":
        this.#fault("crash", `before ${subject}`, name);
        process.kill("arrives");
        return "loses";
      case "kill after":
        this.#fault("crash", `after ${subject}`, name);
        this.time.after(0, () => process.kill("arrives"));
        return "passes";
      case "lose":
        this.#fault(way === "to server" ? "request lost" : "reply lost", subject, name);
        return "loses";
      case "cut":
        this.#fault("cut", `at ${subject}`, name);
        this.time.after(0, () => this.#cut(process, leaseMs * 0.3, 0, 0));
        return "passes";
      case "stop":
        this.time.after(0, () => this.#stop(process, leaseMs * 2.5));
        return "passes";
    }
  }

  #calmDown(): void {
    this.log({ type: "calm" });
    this.#phase = "calm";
    const begun = this.time.now;
    this.#server.faults = this.#plant?.stale === undefined && this.plan.stale === 0 ? CALM_SERVER : this.#server.faults;
    for (const process of this.#processes) {
      if (process.dead) continue;
      process.goOn();
      process.connection.restore();
    }
    const process = this.#start(2);
    this.begin(this.#resumeAll(process));
    this.time.after(this.plan.leaseMs * 4, () => this.begin(this.#resumeAll(process)));
    this.time.after(this.plan.leaseMs * 5, () => this.#look(begun, process));
  }

  async #resumeAll(process: NatsProcess): Promise<void> {
    await this.#declare(process);
    await this.#pause(process, undefined, false);
    for (const key of this.plan.keys) await this.#pause(process, key, false);
  }

  #look(begun: number, process: NatsProcess): void {
    const { now } = this.time;
    const left = this.#whatIsLeft();
    const working = this.#processes.some((one) => !one.dead && (one.busy > 0 || one.stopped));
    const business = [...this.#open.values()].some((one) => !one.dead);
    if (left.length === 0 && !working && !business) {
      this.#drained = true;
      this.#drainMs = now - begun;
      this.begin(this.#conclude(process));
      return;
    }
    // Nothing but remains: they have their time, too.
    const done = !working && !business && left.every((one) => one.includes("idle"));
    if (!done) this.#doneAt = undefined;
    else this.#doneAt ??= now;
    if (now - begun > DRAIN_LIMIT_MS || (this.#doneAt !== undefined && now - this.#doneAt > CLEAN_LIMIT_MS)) {
      this.#left = [...left, ...(working ? ["somebody works"] : []), ...(business ? ["a call is not answered"] : [])];
      this.begin(this.#conclude(process));
      return;
    }
    this.time.after(LOOK_EVERY_MS, () => this.#look(begun, process));
  }

  async #conclude(process: NatsProcess): Promise<void> {
    const giveUp = this.time.after(30_000, () => {
      this.#surprises.push("The last look was not answered.");
      this.#phase = "over";
    });
    for (const id of this.#keeping) {
      const found = await process.engine.find({ queue: QUEUE, id });
      this.#outcomes.set(id, found?.state ?? "missing");
    }
    giveUp.cancel();
    this.#phase = "over";
  }

  #whatIsLeft(): readonly string[] {
    const own = this.#server.streams.get(STREAM);
    const shared = this.#server.streams.get("baton");
    const remains = shared?.messages.from(0).filter(({ subject }) => /\.(later|wake|due)\./.test(subject)) ?? [];
    return [...(own?.messages.from(0) ?? []), ...remains].map(
      ({ subject, data, sequence }) => `${sequence} ${subject} ${describe(subject, data, sequence)}`,
    );
  }

  #tapStreams(): void {
    const { streams } = this.#server;
    const set = streams.set.bind(streams);
    streams.set = (name: string, stream: Stream) => {
      if (!streams.has(name)) {
        if (name === STREAM) this.#tap(stream);
        else this.#tapSessions(stream);
        this.#plant?.stream?.(stream);
      }
      return set(name, stream);
    };
  }

  #tapSessions({ messages }: Stream): void {
    const add = messages.add.bind(messages);
    messages.add = (message) => {
      const { subject, data } = message;
      if (subject.includes(".session."))
        this.log({ type: "session", subject, says: () => Buffer.from(data).toString() });
      add(message);
    };
    const remove = messages.remove.bind(messages);
    messages.remove = (sequence) => {
      const removed = remove(sequence);
      if (removed?.subject.includes(".session.") === true && messages.last(removed.subject) === undefined)
        this.log({ type: "session", subject: removed.subject, says: () => "gone" });
      return removed;
    };
  }

  #tap({ messages }: Stream): void {
    const add = messages.add.bind(messages);
    messages.add = (message) => {
      const { subject, sequence, data } = message;
      const key = textOf(subject.slice(subject.lastIndexOf(".") + 1));
      this.log({ type: "write", key, sequence, subject, says: () => describe(subject, data, sequence) });
      add(message);
    };
    const remove = messages.remove.bind(messages);
    messages.remove = (sequence) => {
      const removed = remove(sequence);
      if (removed !== undefined) {
        const { subject } = removed;
        this.log({ type: "gone", key: textOf(subject.slice(subject.lastIndexOf(".") + 1)), sequence, subject });
      }
      return removed;
    };
  }
}

function describe(subject: string, data: Uint8Array, sequence: number): string {
  const [, , , kind] = subject.split(".");
  try {
    if (kind === "w") return `token ${String(decodeItem(data, sequence).payload.body).trim()}`;
    if (kind !== "s") return "";
    const {
      kind: stands,
      items,
      lease,
      alone,
      more,
      paused,
      below,
      todo,
      taken,
      takenLeft,
      announced,
    } = decodeState(data, sequence);
    const parts = [
      `${stands}${paused ? " paused" : ""}`,
      `items [${items.map(({ payload, attempts, dueAt }) => `${String(payload.body).trim()}${attempts > 0 ? `x${attempts}` : ""}${dueAt === undefined ? "" : " later"}`).join(", ")}]`,
      lease === undefined ? "" : `fence ${lease.fence} of ${lease.session} over ${lease.covered}`,
      alone === 0 ? "" : `alone ${alone}`,
      more === false ? "" : `more ${more}`,
      announced === 0 ? "" : `announced ${announced}`,
      below.length > 0 ? `below ${below.join(",")}` : "",
      todo.length > 0 ? `todo ${todo.map(({ type }) => type).join(",")}` : "",
      takenLeft > 0 ? `taken ${taken.join(",")} left ${takenLeft}` : "",
    ];
    return parts.filter((part) => part !== "").join("; ");
  } catch {
    return "?";
  }
}
