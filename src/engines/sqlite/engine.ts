import { type BatonError, InvalidInput, KeyBusy, KeyFull, LevelsDiffer, QueueFull } from "../../domain/errors.ts";
import type {
  CancelResult,
  ClaimRequest,
  DeadReport,
  DeclareRequest,
  Engine,
  Finding,
  Grant,
  HoldRequest,
  ItemReport,
  ItemRequest,
  KeyPageRequest,
  KeyReport,
  Lease,
  Outcome,
  OutcomeRequest,
  PageRequest,
  PauseRequest,
  QueueDeclaration,
  QueueReport,
  Renewal,
  RenewResult,
  ReviveRequest,
  Settlement,
  SettleResult,
  Submission,
  SubmitResult,
} from "../../engine/port.ts";
import type {
  Granted,
  LeaseTuple,
  RefusalTuple,
  SubmitEntry,
  SubmitGroup,
  SubmitTerms,
  ThreadData,
} from "./messages.ts";
import { assignedId } from "./assigned-id.ts";
import { ThreadLink } from "./thread-link.ts";

/** Fewer settlements than this wait for others of the same turn. */
const WORTH_SENDING = 8;

/** The engine as the application sees it: turns the port's calls into messages to the store's thread and back. */
export class SqliteEngine implements Engine {
  readonly name = "sqlite";
  readonly #link: ThreadLink;

  private constructor(link: ThreadLink) {
    this.#link = link;
  }

  static async open(data: ThreadData): Promise<SqliteEngine> {
    return new SqliteEngine(await ThreadLink.open(data));
  }

  async declare({ queue, levels }: DeclareRequest): Promise<QueueDeclaration> {
    const declaration = await this.#link.call("declare", { queue, levels });
    if (levels !== undefined && !sameNames(levels, declaration.levels))
      throw new LevelsDiffer(queue, declaration.levels, levels);
    return declaration;
  }

  async submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const { at, answers } = await this.#link.call("submit", groupByTerms(submissions));
    return submissions.map((submission, index): SubmitResult => {
      const answer = answers[index];
      if (answer === undefined) throw new Error("The store did not answer to every submission.");
      if (typeof answer === "number") {
        const { key, level, id = assignedId(answer) } = submission;
        return { ok: true, accepted: { id, key, level, at, duplicate: false, replaced: NOTHING } };
      }
      return "id" in answer ? { ok: true, accepted: answer } : { ok: false, error: refusal(submission, answer) };
    });
  }

  async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const { queue, worker, max, leaseMs, patienceMs, signal } = request;
    if (signal.aborted) return [];
    const { number, reply } = this.#link.start("claim", { queue, worker, max, leaseMs, patienceMs });
    const granted = await this.#abandonable(number, reply, signal);
    return granted.grants.map((grant) => toGrant(queue, granted, grant));
  }

  async hold(request: HoldRequest): Promise<Lease | undefined> {
    const held = await this.#link.call("hold", request);
    if (held === undefined) return undefined;
    const { wall, monotonic, keyId, fence } = held;
    return { queue: request.queue, key: request.key, fence, since: { wall, monotonic }, handle: keyId };
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly RenewResult[]> {
    const { wall, monotonic, results } = await this.#link.call(
      "renew",
      renewals.map(({ lease, leaseMs, progress }) => [leaseTuple(lease), leaseMs, progress] as const),
    );
    const since = { wall, monotonic };
    return results.map((result) =>
      result === "lost" ? { ok: false } : { ok: true, since, cancelRequested: result === "cancel" },
    );
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    const request = settlements.map(({ lease, ending }) => [leaseTuple(lease), ending] as const);
    return settlements.length < WORTH_SENDING
      ? this.#link.call("settle", request)
      : this.#link.callNow("settle", request);
  }

  find({ queue, id }: ItemRequest): Promise<ItemReport | undefined> {
    return this.#link.call("find", { queue, id });
  }

  async outcome({ queue, id, signal }: OutcomeRequest): Promise<Outcome | undefined> {
    if (signal.aborted) return undefined;
    const { number, reply } = this.#link.start("outcome", { queue, id });
    return this.#abandonable(number, reply, signal);
  }

  cancel({ queue, id }: ItemRequest): Promise<CancelResult> {
    return this.#link.call("cancel", { queue, id });
  }

  async pause(request: PauseRequest): Promise<void> {
    await this.#link.call("pause", request);
  }

  queues({ queue }: { readonly queue?: string }): Promise<readonly QueueReport[]> {
    return this.#link.call("queues", { queue });
  }

  keys(request: KeyPageRequest): Promise<readonly KeyReport[]> {
    return this.#link.call("keys", request);
  }

  dead(request: PageRequest): Promise<readonly DeadReport[]> {
    return this.#link.call("dead", request);
  }

  /** All of them in small steps: others want to write too. Letters that die meanwhile are left for the next time. */
  async revive(request: ReviveRequest): Promise<number> {
    let revived = 0;
    for (let upTo: number | undefined; ;) {
      const step = await this.#link.call("revive", { ...request, upTo });
      revived += step.revived;
      if (!step.more) return revived;
      ({ upTo } = step);
    }
  }

  check(): Promise<readonly Finding[]> {
    return this.#link.call("check", null);
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  /** A call that waits is answered early when its signal fires: with whatever it has got by then. */
  async #abandonable<T>(call: number, reply: Promise<T>, signal: AbortSignal): Promise<T> {
    const abandon = (): void => {
      // A store that cannot be told has ended, and with it everything that waited.
      this.#link.call("abandon", { call }).catch(() => undefined);
    };
    signal.addEventListener("abort", abandon, { once: true });
    try {
      return await reply;
    } finally {
      signal.removeEventListener("abort", abandon);
    }
  }
}

const NOTHING: readonly string[] = [];

/** Submissions in a row with the same terms travel together. */
function groupByTerms(submissions: readonly Submission[]): readonly SubmitGroup[] {
  const groups: (readonly [SubmitTerms, SubmitEntry[]])[] = [];
  let terms: SubmitTerms | undefined;
  let entries: SubmitEntry[] = [];
  for (const submission of submissions) {
    if (terms === undefined || !haveTerms(submission, terms)) {
      terms = termsOf(submission);
      entries = [];
      groups.push([terms, entries]);
    }
    const { key, payload, id, headers } = submission;
    entries.push([key, ownBytes(payload.body), id, headers === undefined ? undefined : JSON.stringify(headers)]);
  }
  return groups;
}

function termsOf({ queue, level, payload, delayMs, mode, keyLimit, queueLimit, keepMs }: Submission): SubmitTerms {
  return { queue, level, type: payload.type, delayMs, mode, keyLimit, queueLimit, keepMs };
}

function haveTerms(submission: Submission, terms: SubmitTerms): boolean {
  return (
    submission.level === terms.level &&
    submission.payload.type === terms.type &&
    submission.delayMs === terms.delayMs &&
    submission.keepMs === terms.keepMs &&
    submission.mode === terms.mode &&
    submission.queue === terms.queue &&
    submission.keyLimit === terms.keyLimit &&
    submission.queueLimit === terms.queueLimit
  );
}

/** A view of a larger buffer would be sent with all of that buffer. */
function ownBytes(body: string | Uint8Array): string | Uint8Array {
  return typeof body === "string" || body.byteLength === body.buffer.byteLength ? body : new Uint8Array(body);
}

function toGrant(queue: string, { wall, monotonic, levels }: Granted, grant: Granted["grants"][number]): Grant {
  const [keyId, key, fence, id, rank, type, body, written, submittedAt, attempt] = grant;
  const headers = written === undefined ? undefined : readHeaders(written);
  const level = levels[rank] ?? "";
  return {
    lease: { queue, key, fence, since: { wall, monotonic }, handle: keyId },
    item: { id, queue, key, level, payload: { type, body }, headers, submittedAt, attempt },
  };
}

function readHeaders(json: string): Readonly<Record<string, string>> {
  const value: unknown = JSON.parse(json);
  if (isHeaders(value)) return value;
  throw new TypeError("The store has no headers where some belong.");
}

function isHeaders(value: unknown): value is Readonly<Record<string, string>> {
  return typeof value === "object" && value !== null && Object.values(value).every((one) => typeof one === "string");
}

function leaseTuple({ handle, fence }: Lease): LeaseTuple {
  if (typeof handle !== "number") throw new InvalidInput("lease", handle, "a lease that this engine gave");
  return [handle, fence];
}

function refusal({ queue, key, level, keyLimit, queueLimit }: Submission, [code, detail]: RefusalTuple): BatonError {
  switch (code) {
    case "KEY_BUSY":
      return new KeyBusy(queue, key);
    case "KEY_FULL":
      return new KeyFull(queue, key, keyLimit);
    case "QUEUE_FULL":
      return new QueueFull(queue, queueLimit);
    case "LEVEL":
      return new InvalidInput("level", level, detail);
  }
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index]);
}
