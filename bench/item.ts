/** What is submitted, and for which keys in which order. The same for every subject. */

import { randomNumbers } from "./random.ts";

/** As the workloads have it: 200 bytes of JSON. */
const PAYLOAD_BYTES = 200;

export interface Item {
  /** Counts up over the whole workload, from 0. */
  readonly number: number;
  readonly key: string;
  /** Its place in the line of its key, from 0: what the order is checked by. */
  readonly place: number;
  /** When its submission began, by the machine's monotonic clock. */
  readonly at: number;
  readonly fill: string;
}

/** `distinct`: a key per item. `clustered`: all items of a key in a row. `skewed`: 80 % of the items on 20 % of the keys. */
export type Order = "distinct" | "round-robin" | "random" | "clustered" | "skewed";

const BLANK = JSON.stringify({ number: 0, key: "", place: 0, at: 0, fill: "" }).length - 3;

export function makeItem(number: number, key: string, place: number, at: number = now()): Item {
  const used = BLANK + `${number}${key}${place}${at}`.length;
  return { number, key, place, at, fill: "x".repeat(Math.max(0, PAYLOAD_BYTES - used)) };
}

/** Milliseconds of a clock that all processes of the machine share. */
export function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}

export interface Line {
  readonly order: Order;
  readonly keys: number;
  /** How many items a clustered order has in all: it decides how many of a key follow each other. */
  readonly total: number;
  /** Put before the keys' numbers, so that two lines share no key. */
  readonly prefix?: string;
  /** The number of its first item, so that two lines share no number. Default 0. */
  readonly from?: number;
}

/** Makes the items of a line one after the other, and knows each key's next place. */
export class ItemSource {
  readonly #line: Line;
  readonly #places: Uint32Array;
  /** The same sequence in every run: subjects and rounds get the same keys. */
  readonly #random = randomNumbers(42);
  #number: number;

  constructor(line: Line) {
    this.#line = line;
    this.#places = new Uint32Array(line.order === "distinct" ? 0 : line.keys);
    this.#number = line.from ?? 0;
  }

  next(): Item {
    const number = this.#number;
    this.#number += 1;
    const { order, prefix = "key-", from = 0 } = this.#line;
    if (order === "distinct") return makeItem(number, `${prefix}${number}`, 0);
    const key = this.#keyOf(number - from, order);
    const place = this.#places[key] ?? 0;
    this.#places[key] = place + 1;
    return makeItem(number, `${prefix}${key}`, place);
  }

  take(count: number): Item[] {
    return Array.from({ length: count }, () => this.next());
  }

  #keyOf(number: number, order: Exclude<Order, "distinct">): number {
    const { keys, total } = this.#line;
    switch (order) {
      case "round-robin":
        return number % keys;
      case "random":
        return Math.floor(this.#random() * keys);
      case "clustered":
        return Math.floor(number / Math.ceil(total / keys)) % keys;
      case "skewed": {
        const busy = Math.floor(keys / 5);
        return this.#random() < 0.8
          ? Math.floor(this.#random() * busy)
          : busy + Math.floor(this.#random() * (keys - busy));
      }
    }
  }
}
