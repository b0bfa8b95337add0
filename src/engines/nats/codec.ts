/**
 * Messages as bytes: one line of JSON, and behind it the bodies of the payloads one after the other, so that a payload
 * is never turned into JSON. Absent means the usual, which keeps the line short.
 */
import type { Failure } from "../../domain/failure.ts";
import type { Payload } from "../../domain/payload.ts";
import type { Attempts } from "../../engine/attempts.ts";
import type { Outcome } from "../../engine/port.ts";
import { fenceOf } from "./fence-room.ts";
import { ownJson } from "./own-json.ts";
import { type KeyItem, type KeyState, type Kind, NOTHING, type StateLease, type Todo } from "./state.ts";

const LINE_END = 0x0a;
const NONE: readonly string[] = [];

interface ItemLine {
  u: string;
  i?: string;
  o?: number;
  l: number;
  a?: number;
  t: number;
  h?: Readonly<Record<string, string>>;
  k?: number;
  r?: 1;
  d?: number;
  f?: Attempts;
  x?: number;
  p: PayloadLine;
}

/** Type, number of bytes, and 1 for bytes that are not text. */
type PayloadLine = [string, number] | [string, number, 1];

interface LeaseLine {
  f?: number;
  s: string;
  w: string;
  t: number;
  l: number;
  n: string;
  g?: number;
  c?: 1;
  v?: number;
  x?: readonly string[];
}

interface TodoLine {
  type: Todo["type"];
  i?: ItemLine;
  at?: number;
  outcome?: Omit<Outcome, "result"> & { result?: PayloadLine };
  failure?: Failure;
}

interface StateLine {
  k: Kind;
  n?: string;
  i?: ItemLine[];
  t?: readonly number[];
  tl?: number;
  x?: readonly number[];
  an?: number;
  m?: 1 | 2;
  ll?: number;
  p?: 1;
  al?: number;
  c?: LeaseLine;
  wa?: LeaseLine[];
  b?: readonly number[];
  r?: 1;
  do?: TodoLine[];
}

class Bodies {
  readonly parts: Payload["body"][] = [];

  add({ type, body }: Payload): PayloadLine {
    this.parts.push(body);
    return typeof body === "string" ? [type, Buffer.byteLength(body)] : [type, body.length, 1];
  }
}

class BodyReader {
  readonly #data: Buffer;
  #at: number;

  constructor(data: Buffer, at: number) {
    this.#data = data;
    this.#at = at;
  }

  take([type, length, isBytes]: PayloadLine): Payload {
    const from = this.#at;
    this.#at += length;
    if (this.#at > this.#data.length) throw new TypeError("its payload is cut off");
    if (isBytes === 1) return { type, body: new Uint8Array(this.#data.subarray(from, this.#at)) };
    return { type, body: this.#data.toString("utf8", from, this.#at) };
  }
}

/** As text where all payloads are. By hand, as JSON would make it: each start and each end of an item is one of these. */
export function encodeState(state: KeyState): Uint8Array | string {
  const bodies = new Bodies();
  let items = "";
  for (const item of state.items) {
    items += items === "" ? textOf(item) : `,${textOf(item)}`;
    bodies.parts.push(item.payload.body);
  }
  let line = `{"k":"${state.kind}","n":"${state.nonce}"`;
  if (state.taken.length > 0) line += `,"t":${JSON.stringify(state.taken)}`;
  if (state.takenLeft > 0) line += `,"tl":${state.takenLeft}`;
  if (state.cut.length > 0) line += `,"x":${JSON.stringify(state.cut)}`;
  if (state.announced !== 0) line += `,"an":${state.announced}`;
  if (state.more !== false) line += state.more === true ? ',"m":1' : ',"m":2';
  if (state.line !== NOTHING.line) line += `,"ll":${state.line}`;
  if (state.paused) line += ',"p":1';
  if (state.alone > 0) line += `,"al":${state.alone}`;
  if (state.lease !== undefined) line += `,"c":${leaseText(state.lease)}`;
  if (state.wanted.length > 0) line += `,"wa":[${state.wanted.map(leaseText).join(",")}]`;
  if (state.below.length > 0) line += `,"b":${JSON.stringify(state.below)}`;
  if (state.recordBelow) line += ',"r":1';
  if (state.todo.length > 0) line += `,"do":${JSON.stringify(state.todo.map((todo) => todoLine(todo, bodies)))}`;
  return join(items === "" ? `${line}}` : `${line},"i":[${items}]}`, bodies);
}

/** The first message of a key. Its own nonce is its item's, and not written twice. */
export function encodeFirst(item: KeyItem): Uint8Array | string {
  const bodies = new Bodies();
  bodies.parts.push(item.payload.body);
  return join(`{"k":"ready","i":[${textOf(item)}]}`, bodies);
}

export function firstState(item: KeyItem): KeyState {
  return { ...NOTHING, kind: "ready", nonce: item.unique, items: [item] };
}

function textOf(item: KeyItem): string {
  return item instanceof KeptItem ? item.text() : newTextOf(item);
}

function newTextOf(item: KeyItem): string {
  return isBare(item) ? bareText(item) : JSON.stringify(itemLine(item, new Bodies()));
}

/** The line of an item of which nothing unusual has to be said. */
export function lineOf(item: KeyItem): string | undefined {
  return isBare(item) ? bareText(item) : undefined;
}

/** Media types that JSON can quote as they are: all that anybody uses. */
const PLAIN_TYPE = /^[\w.+/;= -]*$/;

/** Nothing has to be said of it but what it is, and how often it was tried: by far the most are like this. */
function isBare({ id, headers, keepMs, replaceable, dueAt, tried, losses, payload }: KeyItem): boolean {
  const isUsual = id === undefined && headers === undefined && dueAt === undefined && !replaceable && keepMs === 0;
  return (
    isUsual && tried === undefined && losses === 0 && typeof payload.body === "string" && PLAIN_TYPE.test(payload.type)
  );
}

/** The same as JSON would make of its line, at a quarter of the cost. */
function bareText({ unique, level, submittedAt, payload: { type, body }, place, attempts }: KeyItem): string {
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  const rest = `${place === 0 ? "" : `,"o":${place}`}${attempts === 0 ? "" : `,"a":${attempts}`}`;
  return `{"u":"${unique}","l":${level},"t":${submittedAt},"p":["${type}",${length}]${rest}}`;
}

export function decodeState(data: Uint8Array, sequence: number): KeyState {
  const { line, bodies } = split<StateLine>(data);
  checkState(line);
  return {
    kind: line.k,
    nonce: line.n ?? line.i?.[0]?.u ?? "",
    items: line.i?.map((item) => readItem(item, bodies, sequence)) ?? NOTHING.items,
    taken: line.t ?? NOTHING.taken,
    takenLeft: line.tl ?? 0,
    cut: line.x ?? NOTHING.cut,
    announced: line.an ?? 0,
    more: line.m === undefined ? false : line.m === 1 || "closing",
    line: line.ll ?? NOTHING.line,
    paused: line.p === 1,
    alone: line.al ?? 0,
    lease: line.c === undefined ? undefined : readLease(line.c, sequence),
    wanted: line.wa?.map((wish) => readLease(wish, 0)) ?? NOTHING.wanted,
    below: line.b ?? NOTHING.below,
    recordBelow: line.r === 1,
    todo: line.do?.map((todo) => readTodo(todo, bodies, sequence)) ?? NOTHING.todo,
  };
}

export function encodeItem(item: KeyItem): Uint8Array | string {
  const bodies = new Bodies();
  bodies.parts.push(item.payload.body);
  return join(textOf(item), bodies);
}

/** @param sequence of the message, which is the item's place unless it has one already */
export function decodeItem(data: Uint8Array, sequence: number): KeyItem {
  const { line, bodies } = split<ItemLine>(data);
  return readItem(line, bodies, sequence);
}

/** Something small beside an item: a dead letter. */
export function encodeWith(extra: object, item: KeyItem): Uint8Array | string {
  const bodies = new Bodies();
  return join(JSON.stringify({ extra, item: itemLine(item, bodies) }), bodies);
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function decodeWith<T extends object>(data: Uint8Array): { readonly extra: T; readonly item: KeyItem } {
  const { line, bodies } = split<{ extra: T; item: ItemLine }>(data);
  checkExtra(line);
  return { extra: line.extra, item: readItem(line.item, bodies, 0) };
}

/** An outcome, whose result is a payload. */
export function encodeOutcome(extra: object, outcome: Outcome | undefined): Uint8Array | string {
  const bodies = new Bodies();
  const line = { extra, outcome: outcome === undefined ? undefined : outcomeLine(outcome, bodies) };
  return join(JSON.stringify(line), bodies);
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function decodeOutcome<T extends object>(data: Uint8Array): { readonly extra: T; readonly outcome?: Outcome } {
  const { line, bodies } = split<{ extra: T; outcome?: TodoLine["outcome"] }>(data);
  checkExtra(line);
  return line.outcome === undefined
    ? { extra: line.extra }
    : { extra: line.extra, outcome: readOutcome(line.outcome, bodies) };
}

function join(line: string, { parts }: Bodies): Uint8Array | string {
  let text = `${line}\n`;
  for (const part of parts) {
    if (typeof part !== "string") return bytesOf(line, parts);
    // Halves of a character at the end of one and the start of the next must not become one.
    text += part.isWellFormed() ? part : part.toWellFormed();
  }
  return text;
}

function bytesOf(line: string, parts: readonly Payload["body"][]): Uint8Array {
  const bytes = parts.map((part) => (typeof part === "string" ? Buffer.from(part, "utf8") : part));
  return Buffer.concat([Buffer.from(`${line}\n`, "utf8"), ...bytes]);
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
function split<T>(data: Uint8Array): { readonly line: T; readonly bodies: BodyReader } {
  const buffer = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const end = buffer.indexOf(LINE_END);
  if (end === -1) throw new TypeError("it has no line end");
  const line = ownJson<T>(buffer.toString("utf8", 0, end));
  if (typeof line !== "object" || line === null) throw new TypeError("it is no JSON object");
  return { line, bodies: new BodyReader(buffer, end + 1) };
}

const KINDS: ReadonlySet<string> = new Set<Kind>(["ready", "running", "held", "parked", "idle"]);

/** What every step relies on. Anybody may publish: JSON that is something else must not be taken for a key. */
function checkState({ k, i, c }: StateLine): void {
  if (!KINDS.has(k)) throw new TypeError("it says no state of a key");
  const needsItem = k === "ready" || k === "running";
  if (needsItem && (!Array.isArray(i) || i.length === 0)) throw new TypeError(`it is ${k} without an item`);
  const needsLease = k === "running" || k === "held";
  if (needsLease && (typeof c?.s !== "string" || typeof c.n !== "string" || typeof c.l !== "number"))
    throw new TypeError(`it is ${k} without a lease`);
}

function checkExtra({ extra }: { readonly extra: unknown }): void {
  const isThere = typeof extra === "object" && extra !== null && "key" in extra && typeof extra.key === "string";
  if (!isThere) throw new TypeError("it names no key");
}

function checkItem({ u, l, t, p }: ItemLine): void {
  if (typeof u === "string" && typeof l === "number" && typeof t === "number" && Array.isArray(p)) return;
  throw new TypeError("it has no item where one belongs");
}

function itemLine(item: KeyItem, bodies: Bodies): ItemLine {
  const line: ItemLine = { u: item.unique, l: item.level, t: item.submittedAt, p: bodies.add(item.payload) };
  if (item.id !== undefined) line.i = item.id;
  if (item.place !== 0) line.o = item.place;
  if (item.attempts !== 0) line.a = item.attempts;
  if (item.headers !== undefined) line.h = item.headers;
  if (item.keepMs !== 0) line.k = item.keepMs;
  if (item.replaceable) line.r = 1;
  if (item.dueAt !== undefined) line.d = item.dueAt;
  if (item.tried !== undefined) line.f = item.tried;
  if (item.losses !== 0) line.x = item.losses;
  return line;
}

/** A key's state is written again and again with the same items in it: each remembers its text. */
class KeptItem implements KeyItem {
  readonly unique: string;
  readonly id: string | undefined;
  readonly place: number;
  readonly level: number;
  readonly attempts: number;
  readonly submittedAt: number;
  readonly payload: Payload;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly keepMs: number;
  readonly replaceable: boolean;
  readonly dueAt: number | undefined;
  readonly tried: Attempts | undefined;
  readonly losses: number;
  #text: string | undefined;

  constructor(item: KeyItem) {
    this.unique = item.unique;
    this.id = item.id;
    this.place = item.place;
    this.level = item.level;
    this.attempts = item.attempts;
    this.submittedAt = item.submittedAt;
    this.payload = item.payload;
    this.headers = item.headers;
    this.keepMs = item.keepMs;
    this.replaceable = item.replaceable;
    this.dueAt = item.dueAt;
    this.tried = item.tried;
    this.losses = item.losses;
  }

  text(): string {
    this.#text ??= newTextOf(this);
    return this.#text;
  }
}

/** An item that is in its place, and is likely to be written again. */
export function placed(item: KeyItem, place: number): KeyItem {
  return new KeptItem({ ...item, place });
}

function readItem(line: ItemLine, bodies: BodyReader, sequence: number): KeyItem {
  checkItem(line);
  return new KeptItem({
    unique: line.u,
    id: line.i,
    place: line.o ?? sequence,
    level: line.l,
    attempts: line.a ?? 0,
    submittedAt: line.t,
    payload: bodies.take(line.p),
    headers: line.h,
    keepMs: line.k ?? 0,
    replaceable: line.r === 1,
    dueAt: line.d,
    tried: line.f,
    losses: line.x ?? 0,
  });
}

function leaseText({ session, worker, since, leaseMs, nonce, fence, ...lease }: StateLease): string {
  const { progress, cancelRequested, covered, toCancel } = lease;
  const rest =
    (fence === 0 ? "" : `,"f":${fence}`) +
    (progress === undefined ? "" : `,"g":${progress}`) +
    (cancelRequested ? ',"c":1' : "") +
    (covered === 1 ? "" : `,"v":${covered}`) +
    (toCancel.length === 0 ? "" : `,"x":${JSON.stringify(toCancel)}`);
  return `{"s":"${session}","w":${JSON.stringify(worker)},"t":${since},"l":${leaseMs},"n":"${nonce}"${rest}}`;
}

function readLease(line: LeaseLine, sequence: number): StateLease {
  return {
    fence: line.f ?? fenceOf(sequence),
    session: line.s,
    worker: line.w,
    since: line.t,
    leaseMs: line.l,
    nonce: line.n,
    progress: line.g,
    cancelRequested: line.c === 1,
    covered: line.v ?? 1,
    toCancel: line.x ?? NONE,
  };
}

function todoLine(todo: Todo, bodies: Bodies): TodoLine {
  switch (todo.type) {
    case "ended":
      return { type: todo.type, i: itemLine(todo.item, bodies), outcome: outcomeLine(todo.outcome, bodies) };
    case "dead":
      return { type: todo.type, i: itemLine(todo.item, bodies), at: todo.at, failure: todo.failure };
    case "later":
      return { type: todo.type, i: itemLine(todo.item, bodies), at: todo.dueAt };
    case "wake":
      return { type: todo.type, at: todo.dueAt };
  }
}

function readTodo(line: TodoLine, bodies: BodyReader, sequence: number): Todo {
  const { type, at = 0 } = line;
  if (type === "wake" || line.i === undefined) return { type: "wake", dueAt: at };
  const item = readItem(line.i, bodies, sequence);
  if (type === "dead") return { type, item, at, failure: line.failure ?? { message: "" } };
  if (type === "later" || line.outcome === undefined) return { type: "later", item, dueAt: at };
  return { type, item, outcome: readOutcome(line.outcome, bodies) };
}

function outcomeLine({ result, ...outcome }: Outcome, bodies: Bodies): NonNullable<TodoLine["outcome"]> {
  return result === undefined ? outcome : { ...outcome, result: bodies.add(result) };
}

function readOutcome({ result, ...outcome }: NonNullable<TodoLine["outcome"]>, bodies: BodyReader): Outcome {
  return result === undefined ? outcome : { ...outcome, result: bodies.take(result) };
}
