export { Baton, type BatonOptions } from "./client/baton.ts";
export { connect } from "./client/connect.ts";
export { PartlyRefused } from "./client/partly-refused.ts";
export { type KeyPageOptions, type PageOptions, Queue, type Submit, type SubmitOptions } from "./client/queue.ts";
export { type ItemOutcome, type OutcomeOptions, Receipt } from "./client/receipt.ts";
export { type StopOptions, Worker, type WorkOptions } from "./client/worker.ts";
export type { Clock, Instant, Timer } from "./domain/clock.ts";
export { type Duration, parseDuration } from "./domain/duration.ts";
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
  OutcomeUnknown,
  QueueFull,
  RetryLater,
  Stopping,
} from "./domain/errors.ts";
export type { Failure } from "./domain/failure.ts";
export { leaseMarginMs } from "./domain/lease.ts";
export type { Body, Payload } from "./domain/payload.ts";
export type { RetryOptions } from "./domain/retry.ts";
export type { LimitOptions, Mode, QueueOptions } from "./domain/settings.ts";
export type * from "./engine/port.ts";
export { describeWarning, type WorkerEvent } from "./worker/events.ts";
export { type Handler, WorkItem } from "./worker/handler.ts";
export type { HeldLease } from "./worker/run.ts";
export type { StopReport } from "./worker/worker-loop.ts";
