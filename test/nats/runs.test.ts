/** Runs as this store keeps them: what they cost, what becomes of them when replies are lost, and how far they reach. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndedItem, SettleResult, Grant, Submission } from "../../src/engine/port.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { claim, entry } from "../cars.ts";
import type { Connection } from "../jetstream/connection.ts";
import { CALM_LINE, type Passing } from "../jetstream/faults.ts";
import { virtualServer } from "../jetstream/virtual-server.ts";
import { untilQuiet } from "../simulation/turns.ts";

const STEP_MS = 5;
/** Longer than a lost reply is waited for. */
const WITHIN_MS = 20_000;
/** What the state of a key carries of small items, and what is taken out of a line at once. */
const CARRIED = 64;
const OUT_OF_LINE = 32;

const DONE = { type: "done" } as const;
const plain: Submission = { ...entry, key: "a", keyLimit: 5_000, queueLimit: 5_000 };
const named = (id: string): Submission => ({ ...plain, id, keepMs: 60_000 });

test("many items begin with one write, and end with one", async () => {
  const stage = await Stage.open();
  await stage.submit(Array.from({ length: CARRIED }, () => plain));
  const begun = await stage.counted(() => stage.claim(CARRIED));
  assert.equal(stage.idsOf(begun.value).length, CARRIED);
  assert.deepEqual(begun.writes, ["baton.q.cars.s.run.0.NF"]);
  const ended = await stage.counted(() => stage.finish(begun.value, CARRIED - 1));
  assert.deepEqual(ended.value, ["settled"]);
  assert.deepEqual(ended.writes, ["baton.q.cars.s.run.0.NF"]);
  assert.equal((await stage.report())?.waiting, 0);
});

test("items in line come with later runs, all in order", async () => {
  const stage = await Stage.open();
  const ids = await stage.submit(Array.from({ length: CARRIED + OUT_OF_LINE + 4 }, () => plain));
  const lengths: number[] = [];
  for (let at = 0; at < ids.length;) {
    const run = await stage.claim(ids.length);
    const got = stage.idsOf(run);
    assert.deepEqual(got, ids.slice(at, at + got.length));
    lengths.push(got.length);
    at += got.length;
    assert.deepEqual(await stage.finish(run, got.length - 1), ["settled"]);
  }
  assert.deepEqual(lengths, [CARRIED, OUT_OF_LINE, 4]);
});

test("a settlement whose reply is lost has ended its run, once", async () => {
  const stage = await Stage.open();
  const [first = "", second = ""] = await stage.submit([named("x"), named("y"), named("z")]);
  const run = await stage.claim(3);
  stage.loseReply((subject) => subject.includes(".s."));
  assert.deepEqual(await stage.finish(run, 1), ["settled"]);
  assert.deepEqual([await stage.stateOf(first), await stage.stateOf(second)], ["done", "done"]);
  assert.deepEqual(await stage.finish(run, 1), ["lost"]);
  assert.deepEqual(stage.idsOf(await stage.claim(3)), ["z"]);
});

test("what a renewal ended is remembered when the rest has ended, too", async () => {
  const stage = await Stage.open();
  await stage.submit([named("x"), named("y")]);
  const { lease } = await stage.claim(2);
  const ended: EndedItem[] = [{ id: "x", ending: DONE }];
  await stage.played(stage.engine.renew([{ lease, leaseMs: claim.leaseMs, ended }]));
  await stage.played(stage.engine.settle([{ lease, ended, ending: DONE }]));
  assert.deepEqual([await stage.stateOf("x"), await stage.stateOf("y")], ["done", "done"]);
});

test("a renewal whose reply is lost has ended what ran before, once", async () => {
  const stage = await Stage.open();
  await stage.submit([named("x"), named("y"), named("z")]);
  const { lease } = await stage.claim(3);
  const ended: EndedItem[] = [{ id: "x", ending: DONE }];
  stage.loseReply((subject) => subject.includes(".s."));
  const [renewed] = await stage.played(stage.engine.renew([{ lease, leaseMs: claim.leaseMs, ended }]));
  assert.equal(renewed?.ok, true);
  assert.deepEqual([await stage.stateOf("x"), await stage.stateOf("y")], ["done", "running"]);
  assert.deepEqual(await stage.played(stage.engine.settle([{ lease, ended, ending: DONE }])), ["settled"]);
  assert.deepEqual(stage.idsOf(await stage.claim(3)), ["z"]);
});

test("what a run ended is told although its worker dies before it could say so", async () => {
  const stage = await Stage.open();
  await stage.submit([named("x"), named("y"), named("z")]);
  const { lease } = await stage.claim(3, 1_000);
  // The record is written, and nothing after it.
  stage.cutAfter((subject) => subject.includes(".s.run."));
  const ended: EndedItem[] = [{ id: "x", ending: DONE }];
  stage.engine.renew([{ lease, leaseMs: 1_000, ended }]).catch(() => undefined);
  const other = await stage.join();
  const run = await other.claim(3);
  assert.deepEqual([run.item.id, run.item.attempt, run.item.losses, run.behind], ["y", 2, 1, undefined]);
  assert.equal(await other.stateOf("x"), "done");
});

test("another handle that has the lease ends the run", async () => {
  const stage = await Stage.open();
  await stage.submit([named("x"), named("y"), named("z")]);
  const run = await stage.claim(3);
  const other = await stage.join();
  assert.deepEqual(await other.finish({ ...run, lease: { ...run.lease, handle: undefined } }, 1), ["settled"]);
  assert.deepEqual([await other.stateOf("x"), await other.stateOf("y")], ["done", "done"]);
  assert.deepEqual(stage.idsOf(await stage.claim(3)), ["z"]);
});

test("a lease covers one item where nobody can say whether one behind it is to run", async () => {
  const stage = await Stage.open();
  await stage.submit([named("x"), named("y"), named("z")]);
  // It was the last that was submitted.
  const written = stage.subjects.findLast((subject) => subject.includes(".c.id."));
  assert.ok(written !== undefined);
  stage.connection.publish(written, "?");
  assert.deepEqual(stage.idsOf(await stage.claim(3)), ["x"]);
  assert.equal(await stage.played(stage.engine.cancel({ queue: "cars", id: "y" })), "cancelled");
});

class Stage {
  readonly connection: Connection;
  readonly engine: NatsEngine;
  /** Of all that was sent. */
  readonly subjects: string[] = [];
  readonly #world: ReturnType<typeof virtualServer>;
  #loses: ((passing: Passing) => boolean) | undefined;
  #cuts: ((subject: string) => boolean) | undefined;
  #isCut = false;

  static async open(): Promise<Stage> {
    const stage = new Stage(virtualServer(), "p");
    await stage.played(stage.engine.declare({ queue: "cars" }));
    return stage;
  }

  private constructor(world: ReturnType<typeof virtualServer>, name: string) {
    this.#world = world;
    this.connection = world.server.connect({
      faults: { ...CALM_LINE, loses: (way, passing) => this.#lose(way, passing) },
    });
    this.engine = new NatsEngine({ wire: this.connection, clock: world.clock, name, random: () => 0.5 });
  }

  /** One more process. */
  async join(): Promise<Stage> {
    const stage = new Stage(this.#world, "q");
    await stage.played(stage.engine.declare({ queue: "cars" }));
    return stage;
  }

  /** The reply to the next message on such a subject never comes. */
  loseReply(isMeant: (subject: string) => boolean): void {
    let reply: string | undefined;
    this.#loses = ({ subject, reply: to }) => {
      if (reply === undefined && isMeant(subject)) reply = to;
      else if (subject === reply) {
        this.#loses = undefined;
        return true;
      }
      return false;
    };
  }

  /** What is sent after the next message on such a subject never arrives. */
  cutAfter(isMeant: (subject: string) => boolean): void {
    this.#cuts = isMeant;
  }

  async submit(entries: readonly Submission[]): Promise<readonly string[]> {
    const results = await this.played(this.engine.submit(entries));
    return results.map((result) => (result.ok ? result.accepted.id : ""));
  }

  async claim(items: number, leaseMs: number = claim.leaseMs): Promise<Grant> {
    const signal = new AbortController().signal;
    const [grant] = await this.played(this.engine.claim({ ...claim, leaseMs, items, signal }));
    assert.ok(grant !== undefined);
    return grant;
  }

  /** All up to the one with this place is done. */
  finish(run: Grant, last: number): Promise<readonly SettleResult[]> {
    const ended = this.idsOf(run).slice(0, last);
    const before = ended.map((id): EndedItem => ({ id, ending: DONE }));
    return this.played(this.engine.settle([{ lease: run.lease, ended: before, ending: DONE }]));
  }

  idsOf({ item, behind = [] }: Grant): readonly string[] {
    return [item, ...behind].map(({ id }) => id);
  }

  async stateOf(id: string): Promise<string | undefined> {
    return (await this.played(this.engine.find({ queue: "cars", id })))?.state;
  }

  async report(): Promise<{ readonly waiting: number } | undefined> {
    return (await this.played(this.engine.queues({ queue: "cars" })))[0];
  }

  /** With the states of keys that it wrote. */
  async counted<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly writes: readonly string[] }> {
    const from = this.subjects.length;
    const value = await work();
    return { value, writes: this.subjects.slice(from).filter((subject) => subject.startsWith("baton.q.cars.s.")) };
  }

  async played<T>(work: Promise<T>): Promise<T> {
    let answer: { readonly value: T } | undefined;
    void work.then((value) => (answer = { value }));
    for (let ms = 0; ms < WITHIN_MS; ms += STEP_MS) {
      await untilQuiet();
      if (answer !== undefined) return answer.value;
      this.#world.pass(STEP_MS);
    }
    return await work;
  }

  #lose(way: "to server" | "from server", passing: Passing): boolean {
    if (this.#isCut) return true;
    if (way === "to server") this.subjects.push(passing.subject);
    if (way === "to server" && this.#cuts?.(passing.subject) === true) this.#isCut = true;
    return this.#loses?.(passing) === true;
  }
}
