/**
 * A ready key as the text that was sent, when this process made it ready and has only added items since. More items are added to it
 * without reading it: to go through everything that a key carries, object by object, costs more than the rest of a submission.
 */
import { decodeState, encodeFirst, lineOf } from "./codec.ts";
import { canCarry, sizeOf } from "./rules.ts";
import type { KeyItem, Seen } from "./state.ts";

export interface Sent {
  /** 0: it is on its way. Set when that is over, because a copy of each would be felt. */
  sequence: number;
  readonly data: string;
  /** Where in the text the lines of its items begin and end. */
  readonly from: number;
  readonly to: number;
  /** Where the lines begin of those that this very message brought: they do not name their place yet. */
  readonly newFrom: number;
  /** The message by which consumers know the key. 0: this one. */
  readonly announced: number;
  /** Of its first item. */
  readonly level: number;
  readonly count: number;
  readonly bytes: number;
}

const LINES_END = "]}\n";

/** Undefined: not all of it is text. */
export function firstSent(item: KeyItem): Sent | undefined {
  const data = encodeFirst(item);
  if (typeof data !== "string") return undefined;
  const from = data.indexOf("[") + 1;
  const to = data.indexOf("\n") - LINES_END.length + 1;
  const bytes = sizeOf(item);
  return { sequence: 0, data, from, to, newFrom: from, announced: 0, level: item.level, count: 1, bytes };
}

/** As `join` of the rules decides for a ready key without a line. Undefined: this takes more than adding its text. */
export function addTo(sent: Sent, items: readonly KeyItem[], nonce: string): Sent | undefined {
  const lines: string[] = [];
  const bodies: string[] = [];
  let { bytes } = sent;
  for (const item of items) {
    const line = lineOf(item);
    const { body } = item.payload;
    bytes += sizeOf(item);
    if (line === undefined || typeof body !== "string" || item.level < sent.level) return undefined;
    if (!canCarry(sent.count + lines.length, bytes)) return undefined;
    lines.push(line);
    bodies.push(body.isWellFormed() ? body : body.toWellFormed());
  }
  const announced = sent.announced === 0 ? sent.sequence : sent.announced;
  const head = `{"k":"ready","n":"${nonce}","an":${announced},"i":[`;
  const before = `${sent.data.slice(sent.from, sent.newFrom)}${withPlaces(sent)},`;
  const newFrom = head.length + before.length;
  const added = lines.join(",");
  // Put together at once: a text that grows by `+` would be a tree of all that was ever added to it.
  const data = [head, before, added, LINES_END, sent.data.slice(sent.to + LINES_END.length), ...bodies].join("");
  const to = newFrom + added.length;
  const count = sent.count + items.length;
  return { sequence: 0, data, from: head.length, to, newFrom, announced, level: sent.level, count, bytes };
}

/** How the key stands by it, as whoever reads it will see it. */
export function seenOf({ sequence, data }: Sent): Seen {
  return { sequence, state: decodeState(Buffer.from(data), sequence) };
}

/** What a message brought has its place there. */
function withPlaces({ data, newFrom, to, sequence, announced }: Sent): string {
  const place = `,"o":${sequence}}`;
  const lines = data.slice(newFrom, to - 1);
  // The first message brought one item, of any kind. Those that were added are bare: nothing in them looks like the gap between two.
  return `${announced === 0 ? lines : lines.replaceAll("},{", `${place},{`)}${place}`;
}
