/** A further item begins, and those before it are not reported yet, in this time. */
const RUN_MS = 50;

/** The items that one lease covers. */
export interface Chain {
  readonly since: number;
  /** Those that may follow, by name. */
  behind: readonly string[];
  /** Those that the store has not heard of. */
  ended: readonly string[];
  isCovering: boolean;
}

/** What a keeper of leases promises, without its timer: dates are looked for anew at each moment. */
export interface ModelRun {
  /** Of the first item of a run the name of its key. */
  readonly key: string;
  readonly chain: Chain | undefined;
  since: number;
  marginMs: number;
  renewDueAt: number;
  isHeld: boolean;
  isRenewed: boolean;
  begunAt: number | undefined;
  isLost: boolean;
  isCancelled: boolean;
  isTimedOut: boolean;
  isReported: boolean;
  share: number | undefined;
  reason: string | undefined;
}

export interface ModelSetting {
  readonly leaseMs: number;
  readonly timeoutMs: number | undefined;
  readonly chance: number;
}

/** Whether the keeper must tell of a stall, may, or must not: its timer may be set for a run that is gone. */
export interface PendingStall {
  readonly from: number;
  readonly until: number;
}

export class KeeperModel {
  readonly runs: Map<string, ModelRun> = new Map();
  readonly story: string[] = [];
  now: number;
  stallEndedAt: number = -Infinity;
  /** One that hurt nobody is known only if the timer was set for somebody who is gone. */
  maybeStallEndedAt: number = -Infinity;
  #progressDueAt = Infinity;
  #againAt = 0;
  readonly #setting: ModelSetting;

  constructor(setting: ModelSetting, now: number) {
    this.#setting = setting;
    this.now = now;
  }

  get held(): readonly ModelRun[] {
    return [...this.runs.values()].filter(({ isHeld }) => isHeld);
  }

  /** The next moment at which something is to be done. */
  get nextAt(): number {
    let at = this.held.some(({ isReported, isRenewed }) => isReported && isRenewed) ? this.#progressDueAt : Infinity;
    for (const run of this.held) at = Math.min(at, ...this.#dates(run));
    return at;
  }

  #dates(run: ModelRun): readonly number[] {
    const { timeoutMs } = this.#setting;
    const isTimed = timeoutMs !== undefined && run.isRenewed;
    return [
      run.since + this.#setting.leaseMs - run.marginMs,
      ...(run.isRenewed ? [run.renewDueAt] : []),
      ...(isTimed ? [(run.begunAt ?? Infinity) + timeoutMs] : []),
    ];
  }

  leftMs(run: ModelRun): number {
    return run.isLost ? 0 : Math.max(0, run.since + this.#setting.leaseMs - run.marginMs - this.now);
  }

  add(key: string, since: number, chain?: Chain): ModelRun {
    const { leaseMs } = this.#setting;
    const run: ModelRun = {
      key,
      chain,
      since,
      marginMs: margin(leaseMs, 0),
      renewDueAt: since + leaseMs / 3,
      isHeld: true,
      isRenewed: true,
      begunAt: undefined,
      isLost: false,
      isCancelled: false,
      isTimedOut: false,
      isReported: false,
      share: undefined,
      reason: undefined,
    };
    this.runs.set(key, run);
    return run;
  }

  /** The item is done, and the next one of its run begins. Undefined: there is none that may. */
  next(run: ModelRun): ModelRun | undefined {
    const { chain } = run;
    const [key, ...behind] = chain?.behind ?? [];
    if (chain === undefined || key === undefined || this.now - chain.since >= RUN_MS) return undefined;
    chain.behind = behind;
    chain.ended = [...chain.ended, run.key];
    this.drop(run);
    const next = this.add(key, chain.since, chain);
    next.begunAt = this.now;
    next.renewDueAt = Math.min(next.renewDueAt, chain.since + RUN_MS);
    return next;
  }

  drop(run: ModelRun): void {
    run.isHeld = false;
    run.isRenewed = false;
    run.isReported = false;
  }

  progress(run: ModelRun, share: number): void {
    run.share = share;
    if (!run.isRenewed) return;
    run.isReported = true;
    // The first of a batch begins it, although that one may be gone before it is sent.
    if (this.#progressDueAt === Infinity || this.#progressDueAt <= this.now) this.#progressDueAt = this.now + 200;
  }

  /** It is the lease that is doubted: whatever is held under it by now is asked for. */
  doubt(key: string): void {
    const leaseOf = (name: string): string => name.split(".", 1).join();
    for (const run of this.runs.values()) {
      if (run.isHeld && leaseOf(run.key) === leaseOf(key)) run.renewDueAt = this.now;
    }
  }

  abort(run: ModelRun, reason: string): void {
    if (run.reason === undefined || reason === "LEASE_LOST") run.reason = reason;
  }

  stop(): void {
    for (const run of this.held) this.drop(run);
    this.#progressDueAt = Infinity;
  }

  /** All that is due by now. */
  tick(): void {
    this.endExpired();
    const { timeoutMs } = this.#setting;
    for (const run of this.held) {
      if (timeoutMs === undefined || run.begunAt === undefined || !run.isRenewed) continue;
      if (run.begunAt + timeoutMs > this.now) continue;
      run.isRenewed = false;
      run.isReported = false;
      run.isTimedOut = run.reason === undefined;
      this.abort(run, "HANDLER_TIMEOUT");
    }
    const isReportDue = this.#progressDueAt <= this.now;
    const due = this.held.filter(
      (run) => run.isRenewed && (run.renewDueAt <= this.now || (isReportDue && run.isReported)),
    );
    if (isReportDue) {
      this.#progressDueAt = Infinity;
      for (const run of this.runs.values()) run.isReported = false;
    }
    for (const run of due) run.renewDueAt = this.now + this.#setting.leaseMs / 3;
    for (const run of due) this.closed(run);
    if (due.length > 0)
      this.tell(
        `renew ${due
          .map(({ key, share, chain }) => `${key}:${share ?? "-"}${endedOf(chain)}`)
          .toSorted()
          .join()}`,
      );
  }

  /** What follows was given back with the renewal. */
  closed(run: ModelRun): void {
    if (run.chain !== undefined) run.chain.behind = [];
  }

  #reported({ chain }: ModelRun): void {
    if (chain === undefined) return;
    const { ended } = chain;
    chain.ended = [];
    chain.isCovering = false;
    if (ended.length > 0) this.tell(`reported ${ended.join()}`);
  }

  endExpired(): void {
    for (const run of this.held) if (this.leftMs(run) <= 0) this.#lose(run, "expired");
  }

  answered(key: string, since: number, ok: boolean, cancelled: boolean): void {
    const run = this.runs.get(key);
    if (run?.isHeld !== true) return;
    if (!ok) return this.#lose(run, "taken");
    if (since >= run.since) {
      run.since = since;
      run.marginMs = margin(this.#setting.leaseMs, this.now - since);
    }
    this.#reported(run);
    if (!cancelled || run.isCancelled) return;
    run.isCancelled = true;
    this.abort(run, "CANCELLED");
    this.tell(`cancelling ${key}`);
  }

  /** All that failed are tried again together. */
  failed(keys: readonly string[]): void {
    const { leaseMs, chance } = this.#setting;
    if (this.#againAt <= this.now) this.#againAt = this.now + (leaseMs / 12) * (0.5 + chance / 2);
    for (const key of keys) {
      const run = this.runs.get(key);
      if (run !== undefined) run.renewDueAt = this.#againAt;
    }
  }

  tell(what: string): void {
    this.story.push(`${this.now} ${what}`);
  }

  #lose(run: ModelRun, why: string): void {
    this.drop(run);
    run.isLost = true;
    this.abort(run, "LEASE_LOST");
    this.tell(`lost ${run.key} ${why}`);
  }
}

function endedOf(chain: Chain | undefined): string {
  return chain?.isCovering === true ? `[${chain.ended.join("+")}]` : "";
}

function margin(leaseMs: number, roundTripMs: number): number {
  return Math.min(Math.max(leaseMs / 10, 500, 2 * roundTripMs), leaseMs / 4);
}
