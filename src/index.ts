import "./domain/node-version.ts";
export { Baton, type BatonOptions, type QueuesOptions } from "./client/baton.ts";
export { connect } from "./client/connect.ts";
export { type BatonEvent, describeWarning } from "./client/events.ts";
export type { EachOptions, EachReport } from "./client/locks/each.ts";
export { Election, type ElectionOptions, type Leader, type ObserveOptions } from "./client/locks/election.ts";
export type { LockEvent } from "./client/locks/events.ts";
export type { HeldLock, ReleaseOptions } from "./client/locks/hold.ts";
export type { CloseOptions, LockSession } from "./client/locks/kept-session.ts";
export type { HoldOptions } from "./client/locks/key-hold.ts";
export { type BusyReason, LockBusy } from "./client/locks/lock-busy.ts";
export type { LockStore } from "./client/locks/locks-only-engine.ts";
export type { LockOptions, SessionLockOptions, SessionOptions } from "./client/locks/options.ts";
export { PartlyRefused } from "./client/partly-refused.ts";
export {
  type DeleteQueueOptions,
  type KeyPageOptions,
  type PageOptions,
  Queue,
  type Submit,
  type SubmitOptions,
} from "./client/queue.ts";
export { type ItemOutcome, type OutcomeOptions, Receipt } from "./client/receipt.ts";
export type { RetryItemOptions, TakenItem, TakeOptions } from "./client/take.ts";
export { type StopOptions, Worker, type WorkOptions } from "./client/worker.ts";
export type { Clock, Instant, Timer } from "./domain/clock.ts";
export { type Duration, formatDuration, parseDuration } from "./domain/duration.ts";
export {
  BatonError,
  Cancelled,
  Closed,
  type ErrorCode,
  Fatal,
  HandlerTimeout,
  InvalidInput,
  KeyBusy,
  KeyFull,
  LeaseLost,
  LevelsDiffer,
  LockLost,
  OutcomeUnknown,
  type QueueContents,
  QueueFull,
  QueueMissing,
  QueueNotEmpty,
  RetryLater,
  SessionLost,
  Stopping,
} from "./domain/errors.ts";
export type { Failure, FailureCause } from "./domain/failure.ts";
export { nearestName } from "./domain/nearest-name.ts";
export { leaseMarginMs } from "./domain/lease.ts";
export type { Body, Payload } from "./domain/payload.ts";
export type { RetryOptions } from "./domain/retry.ts";
export type { LimitOptions, Mode, QueueOptions } from "./domain/settings.ts";
export type * from "./engine/port.ts";
export { locksOnRegister, type LocksOnRegisterOptions } from "./locks/locks-on-register.ts";
export type * from "./locks/port.ts";
export type * from "./locks/register.ts";
export type { HintResult, HintStore, WakeAdapter, WakeMessage } from "./wake/port.ts";
export type { WorkerEvent } from "./worker/events.ts";
export type { Handler, WorkItem } from "./worker/handler.ts";
export type { HeldLease } from "./worker/held-item.ts";
export type { StopReport } from "./worker/endings-told.ts";
