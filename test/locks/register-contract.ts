/** What every register must do, whatever keeps it. Run by the tests of each store. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cell, Register } from "../../src/locks/register.ts";

export interface RegisterTarget {
  /** One more handle on the same store, as another process would have. Closed when the test is over. */
  open(context: TestContext): Promise<Register>;
  /** The store goes away and comes back. */
  restart?(): Promise<void>;
  /** Handles that were open before a restart live on. */
  readonly outlived: boolean;
  /** How much longer than its time a cell may be there. */
  readonly lateMs: number;
}

/** Nothing in here takes so long unless it is not going to happen. */
const PATIENCE_MS = 20_000;
const TTL_MS = 1_200;
const LOOK_MS = 20;
const RACERS = 24;

export function testRegister(target: RegisterTarget): void {
  const add = (name: string, body: (context: TestContext) => Promise<void>): void => {
    test(name, { timeout: PATIENCE_MS * 3 }, body);
  };
  for (const [name, body] of Object.entries(cases(target))) add(name, body);
  for (const [name, body] of Object.entries(restartCases(target))) {
    if (target.restart === undefined) test(name, { skip: "the store does not outlive its process" }, () => undefined);
    else add(name, body);
  }
  const name = "who watches hears of what happened while the store was away";
  if (target.outlived) add(name, heardAfterwards(target));
  else test(name, { skip: "the store is in the process that watches" }, () => undefined);
}

type Body = (context: TestContext) => Promise<void>;

function cases(target: RegisterTarget): Readonly<Record<string, Body>> {
  return {
    "a cell that is not there is created once": async (context) => {
      const [one, other] = await both(target, context);
      const name = newName();
      assert.equal(await one.read(name), undefined);
      const version = written(await one.write({ name, expected: 0, value: "a" }));
      assert.equal(await other.write({ name, expected: 0, value: "b" }), undefined);
      isCell(await other.read(name), { name, version, value: "a" });
    },

    "a cell changes only for who saw it last": async (context) => {
      const [one, other] = await both(target, context);
      const name = newName();
      const first = written(await one.write({ name, expected: 0, value: "a" }));
      const second = written(await other.write({ name, expected: first, value: "b" }));
      assert.ok(second > first);
      assert.equal(await one.write({ name, expected: first, value: "c" }), undefined);
      assert.equal(await one.write({ name, expected: first, value: undefined }), undefined);
      assert.equal((await one.read(name))?.value, "b");
    },

    "a cell that is written with the value that it has gets a new version": async (context) => {
      const [one, other] = await both(target, context);
      const name = newName();
      const first = written(await one.write({ name, expected: 0, value: "a" }));
      const second = written(await one.write({ name, expected: first, value: "a" }));
      assert.ok(second > first);
      // Whoever decided before that write has not seen the last one.
      assert.equal(await other.write({ name, expected: first, value: "b" }), undefined);
      isCell(await other.read(name), { name, version: second, value: "a" });
    },

    "a cell that was removed is not there, and can be made anew": async (context) => {
      const [one, other] = await both(target, context);
      const name = newName();
      let last = 0;
      for (let round = 0; round < 5; round += 1) {
        const [maker, remover] = round % 2 === 0 ? [one, other] : [other, one];
        const made = written(await maker.write({ name, expected: 0, value: `${round}` }));
        assert.ok(made > last, `version ${made} after ${last}`);
        const removed = written(await remover.write({ name, expected: made, value: undefined }));
        assert.ok(removed > made);
        assert.equal(await one.read(name), undefined);
        assert.equal(await other.read(name), undefined);
        assert.equal(await remover.write({ name, expected: made, value: "x" }), undefined);
        last = removed;
      }
    },

    "of many who want one cell, one at a time gets it": async (context) => {
      const handles = await Promise.all(Array.from({ length: 4 }, () => target.open(context)));
      const name = newName();
      const racers = Array.from({ length: RACERS }, (_, at) => handles[at % handles.length] ?? fail());
      const created = await Promise.all(
        racers.map((handle, at) => handle.write({ name, expected: 0, value: `${at}` })),
      );
      assert.equal(created.filter((version) => version !== undefined).length, 1);
      await Promise.all(racers.map((handle) => addOne(handle, name)));
      const end = await handles[0]?.read(name);
      assert.equal(Number(end?.value) - created.findIndex((version) => version !== undefined), RACERS);
    },

    "versions rise over all cells": async (context) => {
      const [one, other] = await both(target, context);
      let last = 0;
      for (let round = 0; round < 10; round += 1) {
        const handle = round % 2 === 0 ? one : other;
        const version = written(await handle.write({ name: newName(), expected: 0, value: "v" }));
        assert.ok(version > last);
        last = version;
      }
    },

    "values and names come back as they were": async (context) => {
      const [one, other] = await both(target, context);
      const base = newName();
      for (const rest of ["*", ">", "a.b c/d", "’🚗", "x\ny", "%"]) {
        for (const [at, value] of ["", "{}", "line\nline\n", "🚗", "x".repeat(20_000)].entries()) {
          const name = `${base}${rest}${at}`;
          const version = written(await one.write({ name, expected: 0, value }));
          isCell(await other.read(name), { name, version, value });
        }
      }
    },

    "cells are listed by their prefix, in order": async (context) => {
      const [one, other] = await both(target, context);
      const base = newName();
      for (const rest of ["/b", "/a", "/c", "x"]) await one.write({ name: base + rest, expected: 0, value: rest });
      const c = written((await one.read(`${base}/c`))?.version);
      await one.write({ name: `${base}/c`, expected: c, value: undefined });
      const listed = await other.list(`${base}/`);
      assert.deepEqual(
        listed.map(({ name, value }) => [name, value]),
        [
          [`${base}/a`, "/a"],
          [`${base}/b`, "/b"],
        ],
      );
      assert.deepEqual(await other.list(`${base}/nothing`), []);
    },

    "a cell is there for all of its time, and then not": async (context) => {
      const [one, other] = await both(target, context);
      const name = newName();
      const from = performance.now();
      const version = written(await one.write({ name, expected: 0, value: "a", ttlMs: TTL_MS }));
      const since = performance.now();
      await inTime("the cell is gone", since + TTL_MS + target.lateMs, async () => {
        const before = performance.now();
        const cell = await other.read(name);
        if (cell === undefined) assert.ok(performance.now() - from >= TTL_MS, "It was gone early.");
        else assert.ok(before - since <= TTL_MS + target.lateMs, "It was there for too long.");
        return cell === undefined;
      });
      assert.deepEqual(await one.list(name), []);
      assert.equal(await one.write({ name, expected: version, value: "late" }), undefined);
      assert.ok(written(await other.write({ name, expected: 0, value: "b" })) > version);
    },

    "each write gives a cell its time anew, or none": async (context) => {
      const register = await target.open(context);
      const [kept, renewed, short] = [newName(), newName(), newName()];
      const versions = await Promise.all(
        [kept, renewed, short].map((name) => register.write({ name, expected: 0, value: "a", ttlMs: TTL_MS })),
      );
      written(await register.write({ name: kept, expected: written(versions[0]), value: "b" }));
      let version = written(versions[1]);
      let since = performance.now();
      await inTime("the one that is not written is gone", since + TTL_MS + target.lateMs, async () => {
        if (performance.now() - since > TTL_MS / 4) {
          const from = performance.now();
          version = written(await register.write({ name: renewed, expected: version, value: "b", ttlMs: TTL_MS }));
          since = from;
        }
        return (await register.read(short)) === undefined;
      });
      assert.equal((await register.read(renewed))?.version, version);
      // Nothing older comes to light when a newer one's time is up.
      await inTime("the renewed one is gone", since + TTL_MS + target.lateMs, async () => {
        const cell = await register.read(renewed);
        if (cell !== undefined) assert.equal(cell.version, version);
        return cell === undefined;
      });
      assert.equal((await register.read(kept))?.value, "b");
    },

    "a removed cell does not come to light again": async (context) => {
      const register = await target.open(context);
      const name = newName();
      const first = written(await register.write({ name, expected: 0, value: "a" }));
      const second = written(await register.write({ name, expected: first, value: "b" }));
      written(await register.write({ name, expected: second, value: undefined }));
      const since = performance.now();
      await inTime("a while has passed", since + PATIENCE_MS, async () => {
        assert.equal(await register.read(name), undefined);
        return performance.now() - since > 1_000 + target.lateMs;
      });
    },

    "who watches a cell hears of every kind of change": async (context) => {
      const [one, other] = await both(target, context);
      const name = newName();
      const seen = await observe(one, name);
      const made = written(await other.write({ name, expected: 0, value: "a" }));
      await seen.is("a");
      const changed = written(await other.write({ name, expected: made, value: "b" }));
      await seen.is("b");
      const own = written(await one.write({ name, expected: changed, value: "c" }));
      await seen.is("c");
      written(await other.write({ name, expected: own, value: undefined }));
      await seen.is(undefined);
      seen.stop();
      const heard = seen.count;
      const again = await observe(one, name);
      await other.write({ name, expected: 0, value: "d" });
      await again.is("d");
      assert.equal(seen.count, heard, "A watch that was stopped is silent");
      again.stop();
    },

    "who begins to watch in the moment of a change hears of it": async (context) => {
      const [one, other] = await both(target, context);
      for (let round = 0; round < 50; round += 1) {
        const name = newName();
        const [seen] = await Promise.all([observe(one, name), other.write({ name, expected: 0, value: "a" })]);
        await seen.is("a");
        seen.stop();
      }
    },

    "who listens hears of a write that tells it, and can read it then": async (context) => {
      const [one, other] = await both(target, context);
      const [name, ear] = [newName(), newName()];
      const told = await observe(one, name, (changed) => one.listen(ear, changed));
      let version = 0;
      for (const value of ["a", "b", "c"]) {
        version = written(await other.write({ name, expected: version, value, tell: [newName(), ear] }));
        await told.is(value);
      }
      written(await one.write({ name, expected: version, value: "own", tell: [ear] }));
      await told.is("own");
      assert.equal(await one.read(ear).then((cell) => cell?.value ?? ""), "", "Nothing is kept under the name");
      told.stop();
    },

    "who begins to listen, and then reads, misses nothing": async (context) => {
      const [one, other] = await both(target, context);
      for (let round = 0; round < 50; round += 1) {
        const [name, ear] = [newName(), newName()];
        const writing = other.write({ name, expected: 0, value: "a", tell: [ear] });
        const [told] = await Promise.all([observe(one, name, (changed) => one.listen(ear, changed)), writing]);
        await told.is("a");
        told.stop();
      }
    },

    "a change is heard soon": async (context) => {
      const [one, other] = await both(target, context);
      const name = newName();
      const seen = await observe(one, name);
      let version = 0;
      const took: number[] = [];
      for (let round = 0; round < 20; round += 1) {
        const from = performance.now();
        version = written(await other.write({ name, expected: version, value: `${round}` }));
        await seen.is(`${round}`);
        took.push(performance.now() - from);
      }
      seen.stop();
      const median = took.toSorted((a, b) => a - b)[took.length / 2] ?? Number.NaN;
      context.diagnostic(`write to read elsewhere: median ${median.toFixed(1)} ms`);
      assert.ok(median < 100, `It took ${median.toFixed(0)} ms.`);
    },
  };
}

function restartCases(target: RegisterTarget): Readonly<Record<string, Body>> {
  const restart = async (): Promise<void> => await target.restart?.();
  return {
    "cells and versions survive a restart of the store": async (context) => {
      const before = await target.open(context);
      const name = newName();
      const version = written(await before.write({ name, expected: 0, value: "a" }));
      const gone = newName();
      const made = written(await before.write({ name: gone, expected: 0, value: "a" }));
      const last = written(await before.write({ name: gone, expected: made, value: undefined }));
      await restart();
      const after = await target.open(context);
      isCell(await after.read(name), { name, version, value: "a" });
      assert.equal(await after.read(gone), undefined);
      assert.ok(written(await after.write({ name: gone, expected: 0, value: "b" })) > last);
    },

    "versions rise when everything was removed before a restart": async (context) => {
      const before = await target.open(context);
      const name = newName();
      const made = written(await before.write({ name, expected: 0, value: "a", ttlMs: 1_000 }));
      const removed = written(await before.write({ name, expected: made, value: undefined }));
      const since = performance.now();
      await inTime("what was left of it is gone", since + PATIENCE_MS, () =>
        Promise.resolve(performance.now() - since > 1_000 + target.lateMs),
      );
      await restart();
      const after = await target.open(context);
      assert.ok(written(await after.write({ name, expected: 0, value: "b" })) > removed);
    },

    "time that has begun goes on over a restart": async (context) => {
      const before = await target.open(context);
      const name = newName();
      const from = performance.now();
      written(await before.write({ name, expected: 0, value: "a", ttlMs: 3_000 }));
      await restart();
      const after = await target.open(context);
      await inTime("the cell is gone", from + 3_000 + target.lateMs + PATIENCE_MS, async () => {
        const gone = (await after.read(name)) === undefined;
        if (gone) assert.ok(performance.now() - from >= 3_000, "It was gone early.");
        return gone;
      });
    },
  };
}

function heardAfterwards(target: RegisterTarget): Body {
  return async (context) => {
    const watcher = await target.open(context);
    const name = newName();
    const seen = await observe(watcher, name);
    await target.restart?.();
    const other = await target.open(context);
    await other.write({ name, expected: 0, value: "a" });
    await seen.is("a");
    seen.stop();
  };
}

/** A watch that reads the cell whenever it hears of it, and tells when it stands as it is waited for. */
export async function observe(
  register: Register,
  name: string,
  watch = (changed: () => void): Promise<{ stop(): void }> => register.watch(name, changed),
): Promise<Observed> {
  const observed = new Observed(register, name);
  await observed.begin(watch);
  return observed;
}

class Observed {
  readonly #register: Register;
  readonly #name: string;
  #watch: { stop(): void } | undefined;
  #wake: () => void = () => undefined;
  count = 0;

  constructor(register: Register, name: string) {
    this.#register = register;
    this.#name = name;
  }

  async begin(watch: (changed: () => void) => Promise<{ stop(): void }>): Promise<void> {
    this.#watch = await watch(() => {
      this.count += 1;
      this.#wake();
    });
  }

  stop(): void {
    this.#watch?.stop();
  }

  /** Looks once, and then only when it was told to. */
  async is(value: string | undefined): Promise<void> {
    const late = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      let stirred = false;
      const hint = new Promise<void>((resolve, reject) => {
        this.#wake = () => {
          stirred = true;
          resolve();
        };
        late.addEventListener("abort", () => reject(new Error(`Nobody told that it is ${String(value)} now.`)));
      });
      hint.catch(() => undefined);
      if ((await this.#register.read(this.#name))?.value === value) return;
      if (!stirred) await hint;
    }
  }
}

async function addOne(register: Register, name: string): Promise<void> {
  for (;;) {
    const cell = await register.read(name);
    assert.ok(cell !== undefined);
    const value = `${Number(cell.value) + 1}`;
    if ((await register.write({ name, expected: cell.version, value })) !== undefined) return;
  }
}

async function both(target: RegisterTarget, context: TestContext): Promise<readonly [Register, Register]> {
  return [await target.open(context), await target.open(context)];
}

export function newName(): string {
  return `test/${randomUUID()}`;
}

export function written(version: number | undefined): number {
  assert.ok(version !== undefined, "The write was refused.");
  return version;
}

/** What else a store knows of it is its own affair. */
function isCell(found: Cell | undefined, { name, version, value }: Cell): void {
  assert.deepEqual([found?.name, found?.version, found?.value], [name, version, value]);
}

function fail(): never {
  throw new Error("There is no such handle.");
}

/** Looks until it is so, or it is too late: only time passes here, of which nobody tells. */
async function inTime(what: string, at: number, look: () => Promise<boolean>): Promise<void> {
  while (!(await look())) {
    if (performance.now() > at + LOOK_MS) throw new Error(`In time there was not: ${what}`);
    await sleep(LOOK_MS);
  }
}
