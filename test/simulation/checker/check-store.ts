import type { GrantedItem, Happening } from "../history.ts";
import { ENDLESS_PATIENCE_MS, type Settings } from "../settings.ts";
import { checkSubmission } from "./check-submission.ts";
import { checkOrderOnKey, moreUrgent } from "./check-order.ts";
import { type ModelItem, type ModelKey, type ModelLease, StoreModel } from "./store-model.ts";
import type { Findings } from "./violation.ts";

/** Alarms are set in whole milliseconds, and wall clocks show whole ones. */
const PROMPT_MS = 3;

type Of<Type extends Happening["type"]> = Extract<Happening, { type: Type }>;

/** Follows the store step by step and compares each answer with what a correct store must have said. */
export class StoreChecker {
  readonly model: StoreModel = new StoreModel();
  readonly #settings: Settings;
  readonly #findings: Findings;
  /** False as soon as the store's wall clock was stepped: what waits for that clock is then anybody's guess. */
  #trustWall = true;
  #lastChange = 0;
  /** Per claim: the most items of a run. */
  readonly #most = new Map<number, number>();
  /** Per key: who wrote last to a register that refuses lower fences. */
  readonly #registers = new Map<string, { fence: number; lease: number }>();
  /** More urgent items that were ready when another was handed out. */
  readonly #passedOver: { readonly at: number; readonly item: ModelItem; readonly passed: ModelItem }[] = [];
  rejectedEffects = 0;

  constructor(settings: Settings, findings: Findings) {
    this.#settings = settings;
    this.#findings = findings;
  }

  follow(happening: Happening): void {
    this.#passTime(happening.at);
    switch (happening.type) {
      case "store-submit":
        for (const entry of happening.entries) {
          checkSubmission(this.model, this.#settings, this.#findings, happening, entry);
        }
        break;
      case "store-claim":
        this.model.waitingClaims.add(happening.claim);
        this.#most.set(happening.claim, happening.items);
        break;
      case "store-claim-over":
        this.model.waitingClaims.delete(happening.claim);
        break;
      case "store-grant":
        this.#grant(happening);
        break;
      case "store-hold":
        this.#hold(happening);
        break;
      case "store-renew":
        this.#renew(happening);
        break;
      case "store-settle":
        this.#settle(happening);
        break;
      case "store-cancel":
        this.#cancel(happening);
        break;
      case "store-pause":
        if (happening.done !== true) break;
        if (happening.key === undefined) this.model.paused = happening.paused;
        else this.model.key(happening.key).paused = happening.paused;
        break;
      case "started":
        this.#started(happening);
        break;
      case "effect":
        this.#effect(happening);
        break;
      case "fault":
        if (happening.process === "store") this.#trustWall = false;
        break;
      default:
        break;
    }
  }

  /** After the last happening. */
  finish(): void {
    this.#checkUrgency(Infinity);
  }

  /** Grants of one moment come to the history in any order, so only when it is over does being passed over count. */
  #checkUrgency(now: number): void {
    if (this.#passedOver[0] === undefined || this.#passedOver[0].at === now) return;
    for (const { at, item, passed } of this.#passedOver.splice(0)) {
      if (passed.key.grantedAt === at) continue;
      const says = `item ${item.token} was handed out while the more urgent item ${passed.token} of ${passed.key.name} was ready`;
      this.#findings.add("G8 urgent first", at, item.key.name, says);
    }
  }

  /** Leases run out by themselves; and while nothing changes, no claim may wait beside a key that is ready. */
  #passTime(until: number): void {
    this.#checkUrgency(until);
    for (;;) {
      const next = this.model.nextExpired(until);
      if (next === undefined) break;
      this.#checkPrompt(next.lease.deadline);
      this.model.expire(next.key, next.lease);
    }
    this.#checkPrompt(until);
  }

  #checkPrompt(until: number): void {
    const since = this.#lastChange;
    this.#lastChange = Math.max(since, until);
    if (this.model.waitingClaims.size === 0 || until - since <= PROMPT_MS) return;
    for (const key of this.model.keys.values()) {
      const readyAt = this.model.readyAt(key, this.#trustWall);
      if (readyAt === undefined || until - Math.max(since, readyAt) <= PROMPT_MS) continue;
      const waitedMs = until - Math.max(since, readyAt);
      this.#findings.add(
        "G6 no blocking",
        until,
        key.name,
        `ready for ${waitedMs} ms while a claim waited at the store`,
      );
    }
  }

  #lease(key: ModelKey, lease: ModelLease, at: number): void {
    if (key.lease !== undefined) {
      const leftMs = key.lease.deadline - at;
      const says = `lease #${lease.number} was made while #${key.lease.number} had ${leftMs} ms left`;
      this.#findings.add("G1 exclusive", at, key.name, says);
      if (key.lease.item?.state === "running") key.lease.item.state = "waiting";
    }
    if (lease.fence <= key.highestFence) {
      const says = `lease #${lease.number} got fence ${lease.fence} after fence ${key.highestFence}`;
      this.#findings.add("G2 fenced", at, key.name, says);
    }
    key.highestFence = Math.max(key.highestFence, lease.fence);
    key.lease = lease;
  }

  #grant(grant: Of<"store-grant">): void {
    const { at, token, fence, process, lease: number, leaseMs } = grant;
    const key = this.model.key(grant.key);
    if (key.paused || this.model.paused)
      this.#findings.add("pause", at, key.name, `item ${token} was handed out although paused`);
    const item = this.#handOut(grant, grant, []);
    if (item === undefined) return;
    const run = [item];
    for (const one of grant.behind) {
      const covered = this.#handOut(grant, one, run);
      if (covered === undefined) return;
      this.#checkCovered(covered, run, at);
      covered.state = "waiting";
      covered.due = undefined;
      run.push(covered);
    }
    this.#checkRun(grant, key);
    if (this.#settings.patienceMs === ENDLESS_PATIENCE_MS) {
      for (const passed of moreUrgent(this.model, item)) this.#passedOver.push({ at, item, passed });
    }
    this.#lease(key, { number, fence, process, item, behind: run.slice(1), deadline: at + leaseMs }, at);
    item.state = "running";
    key.grantedAt = at;
    item.attempts += 1;
    item.due = undefined;
  }

  /** An item of a run, at its place: undefined when there is no such item. */
  #handOut(
    { at, wall, key: keyName }: Of<"store-grant">,
    { token, id, level, attempt, losses }: GrantedItem,
    before: readonly ModelItem[],
  ): ModelItem | undefined {
    const key = this.model.key(keyName);
    const item = this.model.items.get(token);
    if (item === undefined) {
      this.#findings.add("G4 nothing lost", at, key.name, `item ${token} runs, which was never accepted`);
      return undefined;
    }
    if (item.key !== key || item.id !== id || this.#settings.levels[item.level] !== level) {
      this.#findings.add("G4 nothing lost", at, key.name, `item ${token} was handed out with another key, id or level`);
    }
    if (!item.key.items.has(item)) {
      this.#findings.add(
        "G9 idempotent",
        at,
        key.name,
        `item ${token} was handed out after it had ended ${item.state}`,
      );
    }
    if (this.#trustWall && item.due !== undefined && wall < item.due.wall) {
      const earlyMs = item.due.wall - wall;
      this.#findings.add("delays", at, key.name, `item ${token} was handed out ${earlyMs} ms before it was due`);
    }
    if (attempt !== item.attempts + 1) {
      const says = `item ${token} was handed out as attempt ${attempt}, after ${item.attempts} that count`;
      this.#findings.add("attempts", at, key.name, says);
    }
    if (losses !== item.losses) {
      const says = `item ${token} was handed out with ${losses} lost leases, after ${item.losses} that were lost while it ran`;
      this.#findings.add("attempts", at, key.name, says);
    }
    checkOrderOnKey(item, before, at, this.#findings);
    return item;
  }

  /** A run takes in only what is innocent and equal. */
  #checkCovered(item: ModelItem, [first]: readonly ModelItem[], at: number): void {
    // One that was delayed has come due, or was found out to be early before.
    const waits = item.state === "waiting" || (item.state === "delayed" && !item.yielded);
    if (waits && item.level === first?.level && item.attempts === 0) return;
    const says = `item ${item.token} was covered by a lease that it must not be covered by (${item.state}, ${item.attempts} attempts)`;
    this.#findings.add("runs", at, item.key.name, says);
  }

  #checkRun({ at, claim, behind }: Of<"store-grant">, key: ModelKey): void {
    const most = this.#most.get(claim) ?? 1;
    const length = behind.length + 1;
    if (length > most)
      this.#findings.add("runs", at, key.name, `a run of ${length} items was handed out to a claim of ${most}`);
    if (length > 1 && key.alone > 0) {
      const says = `a run of ${length} items was handed out, although ${key.alone} must still end one by one`;
      this.#findings.add("runs", at, key.name, says);
    }
  }

  /** While a lease is current, its holder begins only what it covers. */
  #started({ at, lease, token, process }: Of<"started">): void {
    const item = this.model.items.get(token);
    const current = item?.key.lease;
    if (item === undefined || current?.number !== lease) return;
    if (current.item === item || current.behind.includes(item)) return;
    const says = `${process} began item ${token} under lease #${lease}, which does not cover it (any more)`;
    this.#findings.add("runs", at, item.key.name, says);
  }

  #hold(hold: Of<"store-hold">): void {
    const { at, lease: number, fence, process, leaseMs, refused } = hold;
    const key = this.model.key(hold.key);
    if (number === undefined || fence === undefined) {
      if (refused === true && key.lease === undefined)
        this.#findings.add("G1 exclusive", at, key.name, "a hold on a free key was refused");
      return;
    }
    this.#lease(key, { number, fence, process, item: undefined, behind: [], deadline: at + leaseMs }, at);
  }

  #renew(renew: Of<"store-renew">): void {
    if (renew.ok === undefined) return;
    const key = this.model.key(renew.key);
    const current = key.lease?.number === renew.lease;
    if (renew.ok !== current) {
      const says = renew.ok
        ? `lease #${renew.lease} was renewed after it was over`
        : `current lease #${renew.lease} was not renewed`;
      this.#findings.add("G2 fenced", renew.at, key.name, says);
    }
    if (!current || key.lease === undefined) return;
    key.lease.deadline = renew.at + renew.leaseMs;
    if (renew.ended === undefined) return;
    this.model.endBefore(key, key.lease, renew.ended);
    this.model.uncover(key.lease);
  }

  #settle(settle: Of<"store-settle">): void {
    const { at, ending, result, lease: number } = settle;
    if (result === undefined) return;
    const key = this.model.key(settle.key);
    const current = key.lease?.number === number ? key.lease : undefined;
    if ((result === "settled") !== (current !== undefined)) {
      const says =
        result === "settled"
          ? `lease #${number} was settled after it was over`
          : `current lease #${number} was not settled`;
      this.#findings.add("G2 fenced", at, key.name, says);
    }
    if (current === undefined) return;
    this.model.endBefore(key, current, settle.ended);
    this.model.uncover(current);
    key.lease = undefined;
    const { item } = current;
    if (item === undefined) return;
    if (ending !== "release") key.alone = Math.max(0, key.alone - 1);
    switch (ending) {
      case "done":
      case "dead":
      case "cancelled":
        this.model.end(item, ending);
        break;
      case "release":
        item.attempts -= 1;
        item.state = "waiting";
        if (item.cancelRequested) this.model.end(item, "cancelled");
        break;
      case "retry":
        item.state = settle.place === "keep" ? "backing off" : "delayed";
        item.yielded ||= settle.place === "yield";
        item.due = { wall: settle.wall + settle.delayMs, at: at + settle.delayMs };
        if (item.cancelRequested) this.model.end(item, "cancelled");
        break;
    }
  }

  #cancel({ at, id, result }: Of<"store-cancel">): void {
    if (result === undefined) return;
    const item = this.model.byId.get(id);
    const expected = item === undefined ? "missing" : this.#expectedCancel(item);
    if (result !== expected) {
      const says = `cancelling ${id}, which is ${item?.state ?? "unknown"}, gave ${result} instead of ${expected}`;
      this.#findings.add("cancel", at, item?.key.name, says);
    }
    if (item === undefined) return;
    if (expected === "cancelled") this.model.end(item, "cancelled");
    if (expected === "requested") item.cancelRequested = true;
  }

  #expectedCancel(item: ModelItem): string {
    const { state, kept } = item;
    if (state === "running" || this.model.isCovered(item)) return "requested";
    if (state === "waiting" || state === "delayed" || state === "backing off") return "cancelled";
    return kept || state === "dead" ? "ended" : "missing";
  }

  #effect({ at, key, fence, lease }: Of<"effect">): void {
    const register = this.#registers.get(key);
    const accepted = register === undefined || fence >= register.fence;
    const current = this.model.key(key).lease?.number === lease;
    if (!accepted) {
      this.rejectedEffects += 1;
      if (current)
        this.#findings.add("G2 fenced", at, key, `the holder of lease #${lease} was refused for its fence ${fence}`);
      return;
    }
    if (register !== undefined && lease < register.lease) {
      const says = `an effect under lease #${lease} was accepted after one under the newer #${register.lease}`;
      this.#findings.add("G2 fenced", at, key, says);
    }
    this.#registers.set(key, { fence, lease });
  }
}
