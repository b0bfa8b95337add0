/** What locks are to do, when one thing is done after the other: lines of calls, and nothing of how a store keeps them. */
import { SLOTS } from "./script.ts";

export interface ModelCall {
  readonly call: number;
  readonly session: number;
  readonly lock: number;
  readonly data: string | undefined;
}

export interface ModelLock {
  readonly slots: number;
  holders: ModelCall[];
  waiters: ModelCall[];
  isRetired: boolean;
  lastData: string | undefined;
}

export type Answer = "granted" | "held" | "retired";

export class LockModel {
  readonly locks: readonly ModelLock[] = SLOTS.map((slots) => ({
    slots,
    holders: [],
    waiters: [],
    isRetired: false,
    lastData: undefined,
  }));

  lock(number: number): ModelLock {
    const lock = this.locks[number];
    if (lock === undefined) throw new Error(`The script names a lock ${number}, which there is not.`);
    return lock;
  }

  isFree(number: number): boolean {
    const { holders, waiters, slots, isRetired } = this.lock(number);
    return !isRetired && waiters.length === 0 && holders.length < slots;
  }

  /** Undefined: the call is not under way, or over. */
  holding(call: number): ModelCall | undefined {
    return this.locks.flatMap(({ holders }) => holders).find((one) => one.call === call);
  }

  waiting(call: number): ModelCall | undefined {
    return this.locks.flatMap(({ waiters }) => waiters).find((one) => one.call === call);
  }

  try(call: ModelCall): Answer {
    const lock = this.lock(call.lock);
    if (!this.isFree(call.lock)) return this.refusal(call.lock);
    lock.holders.push(call);
    lock.lastData = undefined;
    return "granted";
  }

  wait(call: ModelCall): void {
    this.lock(call.lock).waiters.push(call);
  }

  refusal(number: number): "held" | "retired" {
    return this.lock(number).isRetired ? "retired" : "held";
  }

  giveUp(call: ModelCall): void {
    const lock = this.lock(call.lock);
    lock.waiters = lock.waiters.filter((one) => one !== call);
  }

  /** What one has retired stays retired, whatever another one says. */
  release(call: ModelCall, isRetired: boolean): void {
    const lock = this.lock(call.lock);
    lock.holders = lock.holders.filter((one) => one !== call);
    lock.isRetired ||= isRetired;
  }

  /** What they hold, and where they wait. */
  of(session: number): { readonly held: readonly ModelCall[]; readonly waiting: readonly ModelCall[] } {
    const isIts = (one: ModelCall): boolean => one.session === session;
    return {
      held: this.locks.flatMap(({ holders }) => holders).filter(isIts),
      waiting: this.locks.flatMap(({ waiters }) => waiters).filter(isIts),
    };
  }

  takeAway(number: number): readonly ModelCall[] {
    const lock = this.lock(number);
    const lost = lock.holders;
    lock.holders = [];
    lock.isRetired = false;
    lock.lastData = undefined;
    return lost;
  }

  /** First come first, until the slots are taken. Those who hold now and did not before. */
  serve(): readonly ModelCall[] {
    const served: ModelCall[] = [];
    for (const lock of this.locks) {
      while (!lock.isRetired && lock.holders.length < lock.slots) {
        const next = lock.waiters.shift();
        if (next === undefined) break;
        lock.holders.push(next);
        lock.lastData = undefined;
        served.push(next);
      }
    }
    return served;
  }
}
