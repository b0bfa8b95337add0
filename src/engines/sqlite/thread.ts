import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { instant, systemClock } from "../../domain/clock.ts";
import { CellBells } from "./cell-bells.ts";
import { describeStoreFailure } from "./failure.ts";
import type { Call, FromThread, ThreadData, ToThread } from "./messages.ts";
import { Pulse } from "./pulse.ts";
import { type BatchResult, Store } from "./store.ts";
import { Wake } from "./wake.ts";

/**
 * The store's own thread. Here it may block: for the disk, and for other processes. The application's event loop,
 * and with it the renewal of leases, never does.
 *
 * Whatever has come in while the last transaction was written to disk is done together in the next one.
 */

/** A sleeper looks by itself this often, in case a wake was lost. Reading one number is all it costs. */
const SAFETY_LOOK_MS = 500;
/** Wakes that come from elsewhere are there to spare the store looks. */
const FOREIGN_SAFETY_LOOK_MS = 5_000;
/** No wake tells when the lease of another process will run out. To be there in time, a sleeper asks for the next date this often. */
const DATE_LOOK_MS = 2_000;
/** The bell for those who hold leases: it rings when somebody finds one that ran out, which is rare. */
const LOSSES = "lost/";
/** Rings come in bursts; one look serves them all. */
const LOOK_PAUSE_MS = 1;

function main(port: MessagePort, { file, synchronous, wake: kind = "own", pulse: shared }: ThreadData): void {
  const send = (message: FromThread): void => port.postMessage(message);
  let store: Store;
  let wake: Wake | undefined;
  const bells = new CellBells(file, () => lookSoon(0));
  const losses = new CellBells(file, () => send({ type: "losses" }));
  const isOwn = kind === "own";
  const pulse = new Pulse(shared);
  const isAlive = (): boolean => pulse.isAlive(() => send({ type: "alive?" }));
  const often: readonly [number, number] = [SAFETY_LOOK_MS, SAFETY_LOOK_MS];
  const seldom: readonly [number, number] = [FOREIGN_SAFETY_LOOK_MS, DATE_LOOK_MS];
  // Until it is known that the carrier is heard, and when it is not any more, as without one.
  let [safetyMs, dateMs] = often;
  try {
    store = new Store(file, synchronous, () => instant(systemClock), isAlive);
    wake = isOwn ? new Wake(`${file}-wake`, () => lookSoon(0)) : undefined;
  } catch (error) {
    const { code, message } = describeStoreFailure(error, file);
    send({ type: "failed", failure: { code, message } });
    port.close();
    return;
  }

  let timer: NodeJS.Timeout | undefined;
  let immediate: NodeJS.Immediate | undefined;
  let timerAt = Infinity;
  let lookedAt = 0;
  /** There is a reason for the next look: somebody rang, or something will be due. */
  let hasReason = false;

  function lookSoon(delayMs: number, forReason = true): void {
    if (!store.hasWaiting) return;
    hasReason ||= forReason;
    const now = systemClock.monotonic();
    const at = Math.max(now + delayMs, lookedAt + LOOK_PAUSE_MS);
    if (at >= timerAt) return;
    cancelLook();
    timerAt = at;
    // A timer takes a millisecond even for nothing.
    if (at <= now) immediate = setImmediate(look);
    else timer = setTimeout(lookIfNeeded, Math.ceil(at - now));
  }

  function cancelLook(): void {
    clearTimeout(timer);
    clearImmediate(immediate);
  }

  function lookIfNeeded(): void {
    timerAt = Infinity;
    if (hasReason || systemClock.monotonic() - lookedAt >= safetyMs) look();
    else lookWhenDue();
  }

  function lookWhenDue(): void {
    const dueMs = waitMs();
    lookSoon(dueMs, dueMs < dateMs);
  }

  function look(): void {
    timerAt = Infinity;
    hasReason = false;
    lookedAt = systemClock.monotonic();
    finish(store.look());
  }

  function finish({ replies, cells, news }: BatchResult): void {
    if (replies.length > 0) send({ type: "replies", replies });
    for (const one of news) {
      if (one.work.length + one.stirred.length + one.ended.length > 0) wake?.ring();
      // Where the store wakes by itself, the application's thread wants to hear of its leases only.
      if (!isOwn || one.lost.length > 0) send({ type: "news", news: one });
      if (isOwn && one.lost.length > 0) losses.ring([LOSSES]);
    }
    bells.ring(cells);
    if (bells.hear(store.watchedCells())) lookSoon(0);
    else lookWhenDue();
  }

  /** A store that cannot be asked now is asked again later. */
  function waitMs(): number {
    try {
      return Math.min(store.waitMs(), dateMs);
    } catch {
      return dateMs;
    }
  }

  function onMessage(first: ToThread): void {
    const calls: Call[] = [];
    for (let message: ToThread | undefined = first; message !== undefined; message = receive(port)) {
      if (message === "close") {
        if (calls.length > 0) finish(store.run(calls));
        return close();
      }
      if (message === "look") lookSoon(0);
      else if (message === "hears" || message === "deaf") {
        [safetyMs, dateMs] = message === "hears" ? seldom : often;
        lookSoon(0);
      } else if (message === "hear losses") losses.hear([LOSSES]);
      else for (const call of message.calls) calls.push(call);
    }
    if (calls.length > 0) finish(store.run(calls));
  }

  function close(): void {
    cancelLook();
    const replies = store.close();
    wake?.close();
    bells.close();
    losses.close();
    send({ type: "replies", replies });
    port.close();
  }

  port.on("message", onMessage);
  send({ type: "open" });
}

function receive(port: MessagePort): ToThread | undefined {
  const received: { message: ToThread } | undefined = receiveMessageOnPort(port);
  return received?.message;
}

// Set by ThreadLink.open, which is typed.
// oxlint-disable-next-line typescript/no-unsafe-argument
if (parentPort !== null) main(parentPort, workerData);
