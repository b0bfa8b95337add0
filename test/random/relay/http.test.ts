/**
 * A small share of the random relays against real HTTP receivers, which answer anything, and go away and come back,
 * twice and more: attempts are spent where the message is at fault, what was refused for good is not sent again, no host
 * gets more than it may, and the counts of the admin surface add up.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createRelay, DEFAULT_HTTP, type HttpTarget, type RelayEvent } from "../../../src/relay/index.ts";
import { Random } from "../../kit/random.ts";
import { again, Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";
import { ScriptedSource, type ScriptedMessage } from "../../relay/core/scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, route, settingsOf } from "../../relay/core/stage.ts";
import { type Answer, ComingAndGoing, FastClock } from "./http-receiver.ts";

type Step =
  | { readonly step: "put"; readonly id: string; readonly host: number; readonly answers: readonly Answer[] }
  | { readonly step: "pass"; readonly ms: number }
  | { readonly step: "go" | "come"; readonly host: number }
  | { readonly step: "mood"; readonly host: number; readonly mood: Answer | undefined };

interface Plan {
  readonly seed: number;
  readonly hosts: number;
  readonly isDapr: boolean;
  readonly drops: boolean;
  readonly attempts: number;
  readonly concurrency: number;
  readonly perHost: number;
  readonly failures: number;
  readonly script: readonly Step[];
}

/** Of the relay's clock to ours: a circuit that is open for ten seconds costs half of one. */
const RATE = 25;
const OPEN_MS = 1_500;
const TIMEOUT_MS = 3_000;
/** By the relay's clock: what is not over by then is never over. */
const LONGEST_MS = 250_000;
/** Ways to answer that a message pays for with an attempt. */
const PAID: ReadonlySet<Answer> = new Set(["fails", "unserved", "later", "resets", "hangs", "retry-body", "half-body"]);

function drawPlan(seed: number): Plan {
  const random = new Random(seed);
  const hosts = random.pick([1, 1, 2]);
  const isDapr = random.chance(0.4);
  const script: Step[] = [];
  let ids = 0;
  const put = (): void => {
    const answers: Answer[] = [];
    const others: readonly Answer[] = isDapr ? ["retry-body", "drop-body", "half-body"] : [];
    while (random.chance(0.3))
      answers.push(random.pick(["fatal", "fails", "fails", "later", "resets", "hangs", ...others]));
    ids += 1;
    script.push({ step: "put", id: `m${ids}`, host: random.between(0, hosts - 1), answers: [...answers, "ok"] });
  };
  for (let episode = random.between(2, 4); episode > 0; episode -= 1) {
    for (let count = random.between(1, 6); count > 0; count -= 1) put();
    script.push({ step: "pass", ms: random.pick([0, 100, 800]) });
    const host = random.between(0, hosts - 1);
    const isAway = random.chance(0.5);
    const mood = random.pick(["unserved", "hangs", "resets"] as const);
    script.push(isAway ? { step: "go", host } : { step: "mood", host, mood });
    for (let count = random.between(1, 4); count > 0; count -= 1) put();
    script.push({ step: "pass", ms: random.pick([100, 2_000]) });
    script.push(isAway ? { step: "come", host } : { step: "mood", host, mood: undefined });
  }
  return {
    seed,
    hosts,
    isDapr,
    drops: random.chance(0.3),
    attempts: random.between(2, 4),
    concurrency: random.between(1, 4),
    perHost: random.between(1, 3),
    failures: random.between(2, 3),
    script,
  };
}

async function play(plan: Plan): Promise<string | undefined> {
  const { isDapr, drops, attempts, concurrency, perHost, failures } = plan;
  using clock = new FastClock(RATE);
  const random = new Random(plan.seed + 1);
  const answers = new Map<string, readonly Answer[]>();
  const sent = new Map<string, number>();
  const answerOf = (id: string): Answer => {
    const count = (sent.get(id) ?? 0) + 1;
    sent.set(id, count);
    const all = answers.get(id) ?? ["ok"];
    return all[Math.min(count, all.length) - 1] ?? "ok";
  };
  const receivers = Array.from({ length: plan.hosts }, () => new ComingAndGoing(answerOf));
  for (const receiver of receivers) await receiver.come();
  const source = new PatientSource(clock);
  const only: HttpTarget = { type: "url", url: receivers[0]?.origin ?? "" };
  const named: HttpTarget = {
    type: "attribute",
    name: "to",
    hosts: ["127.0.0.1"],
    plainHttp: true,
    privateAddresses: true,
  };
  const processor = {
    ...DEFAULT_HTTP,
    target: plan.hosts === 1 ? only : named,
    timeoutMs: TIMEOUT_MS,
    perHost,
    fatal: { codes: [422], action: drops ? ("drop" as const) : ("dead-letter" as const) },
    replies: isDapr ? ("dapr" as const) : ("status" as const),
    breaker: { failures, openMs: OPEN_MS },
  };
  const retry = { attempts, backoffMs: 100, maxBackoffMs: 400 };
  const events: RelayEvent[] = [];
  const settings = settingsOf(route([fromSource(source, { retry })], processor, { concurrency }), {
    admin: { host: "127.0.0.1", port: 0, token: undefined },
  });
  const relay = await createRelay(settings, {
    clock,
    random: () => random.next(),
    onEvent: (event) => events.push(event),
  });
  const ids: string[] = [];
  try {
    for (const step of plan.script) {
      const receiver = "host" in step ? receivers[step.host] : undefined;
      switch (step.step) {
        case "pass":
          await new Promise<void>((resolve) => clock.setTimer(step.ms, resolve));
          break;
        case "go":
          await receiver?.go();
          break;
        case "come":
          await receiver?.come();
          break;
        case "mood":
          if (receiver !== undefined) receiver.mood = step.mood;
          break;
        case "put":
          answers.set(step.id, step.answers);
          ids.push(step.id);
          source.put(step.id, { attributes: { to: `${String(receiver?.origin)}/` }, sentAt: clock.wall() });
      }
    }
    for (const receiver of receivers) {
      receiver.mood = undefined;
      await receiver.come();
    }
    const ends = (): readonly string[] =>
      events.flatMap((event) =>
        event.type === "done" || event.type === "dead" || event.type === "drop" ? [event.id] : [],
      );
    const inTime = async (isSo: () => boolean): Promise<boolean> => {
      const giveUpAt = clock.monotonic() + LONGEST_MS;
      await until(() => isSo() || clock.monotonic() > giveUpAt, "the clock");
      return isSo();
    };
    if (!(await inTime(() => ends().length >= ids.length)))
      return `${ids.length - ends().length} of ${ids.length} messages had not ended: ${source.told.join("; ")}`;
    // The last ones may have opened a circuit: the next message finds its receiver well, and closes it.
    for (const [host, { origin }] of receivers.entries()) {
      const id = `last${host}`;
      ids.push(id);
      answers.set(id, ["ok"]);
      source.put(id, { attributes: { to: `${origin}/` }, sentAt: clock.wall() });
    }
    if (!(await inTime(() => ends().length >= ids.length && openCircuits(events).length === 0)))
      return `All is well again, and these have not ended: ${ids.filter((id) => !ends().includes(id)).join(", ")}; these circuits are open: ${openCircuits(events).join(", ")}.`;
    const text = await (await fetch(`${String(relay.adminUrl)}/metrics`)).text();
    return (
      judgeMessages(plan, ids, events, receivers, answers) ??
      judgeHosts(plan, receivers, events) ??
      judgeCounts(text, events) ??
      (relay.report().routes[0]?.inWork === 0 ? undefined : "At rest there is something in work.")
    );
  } finally {
    await relay.stop({ graceMs: 0 });
    for (const receiver of receivers) await receiver.go();
  }
}

/** Those whose circuit was not told to be closed again. */
function openCircuits(events: readonly RelayEvent[]): readonly string[] {
  const states = new Map(
    events.flatMap((event) => (event.type === "circuit" ? [[event.target, event.state] as const] : [])),
  );
  return [...states].flatMap(([target, state]) => (state === "closed" ? [] : [target]));
}

/** Puts what comes back in its queue again, when its time has come. */
class PatientSource extends ScriptedSource {
  readonly #clock: FastClock;

  constructor(clock: FastClock) {
    super("orders");
    this.#clock = clock;
  }

  override put(id: string, more: Parameters<ScriptedSource["put"]>[1] = {}): ScriptedMessage {
    const message = super.put(id, more);
    const giveBack = message.giveBack.bind(message);
    message.giveBack = async (request) => {
      await giveBack(request);
      if (request.delayMs > 0) this.#clock.setTimer(request.delayMs, () => this.putBack(message));
    };
    return message;
  }
}

function judgeMessages(
  { attempts, isDapr, drops }: Plan,
  ids: readonly string[],
  events: readonly RelayEvent[],
  receivers: readonly ComingAndGoing[],
  answers: ReadonlyMap<string, readonly Answer[]>,
): string | undefined {
  const requests = receivers.flatMap((receiver) => receiver.requests);
  for (const id of ids) {
    const own = requests.filter((request) => request.id === id);
    const ends = events.flatMap((event) => ("id" in event && event.id === id ? [event.type] : []));
    const end = ends.filter((type) => type === "done" || type === "dead" || type === "drop");
    const story = `${id}, which is due ${String(answers.get(id)?.join(", "))}: ${own.map(({ answer }) => answer).join(", ")} → ${ends.join(", ")}`;
    if (end.length !== 1) return `It ended ${end.length} times. ${story}`;
    // Some may have been broken off before they were read; each of those was paid for, too.
    const paid = events.filter((event) => event.type === "retry" && event.id === id).length;
    if (paid >= attempts) return `It was tried again after ${paid} failures of ${attempts}. ${story}`;
    const last = own.at(-1);
    if (own.slice(0, -1).some(({ answer }) => !PAID.has(answer)))
      return `It was sent again after it had its answer. ${story}`;
    if (last?.answer === "ok" && end[0] !== "done") return `It was handled, and ended ${String(end[0])}. ${story}`;
    if (last?.answer === "fatal" && end[0] !== (drops ? "drop" : "dead"))
      return `It was refused, and ended ${String(end[0])}. ${story}`;
    if (last?.answer === "drop-body" && end[0] !== (isDapr ? "drop" : "done"))
      return `It was dropped, and ended ${String(end[0])}. ${story}`;
    if (last !== undefined && PAID.has(last.answer) && (end[0] !== "dead" || paid + 1 < attempts))
      return `It failed ${paid + 1} times of ${attempts}, and ended ${String(end[0])}. ${story}`;
    const numbers = own.map(({ attempt }) => attempt);
    if (numbers.some((number, index) => number < index + 1 - paidUnread(own.length, paid) || number > paid + 1))
      return `It came with attempts ${numbers.join(", ")}. ${story}`;
  }
  return undefined;
}

/** Requests that the receiver saw, and whose answers did not count. */
function paidUnread(seen: number, paid: number): number {
  return Math.max(0, seen - 1 - paid);
}

function judgeHosts(
  { perHost, concurrency, hosts }: Plan,
  receivers: readonly ComingAndGoing[],
  events: readonly RelayEvent[],
): string | undefined {
  // Where messages name their host, none of them gets all the slots.
  const bound = hosts > 1 && perHost >= concurrency ? Math.max(1, Math.floor(concurrency / 2)) : perHost;
  for (const { origin, mostInFlight } of receivers) {
    if (mostInFlight > Math.min(bound, concurrency))
      return `${origin} had ${mostInFlight} requests at a time, of ${bound}.`;
    const states = events.flatMap((event) =>
      event.type === "circuit" && event.target === origin ? [event.state] : [],
    );
    for (const [index, state] of states.entries()) {
      if (state === "probing" && states[index - 1] !== "open")
        return `${origin} was probed when its circuit was ${String(states[index - 1])}.`;
    }
  }
  return undefined;
}

/** What the admin surface says is what was told. */
function judgeCounts(text: string, events: readonly RelayEvent[]): string | undefined {
  for (const type of ["done", "retry", "back", "unreachable", "dead", "drop", "lost"]) {
    const told = events.filter((event) => event.type === type).length;
    const [, counted = "0"] =
      new RegExp(`^baton_relay_messages_total\\{source="orders",outcome="${type}"\\} (\\d+)$`, "m").exec(text) ?? [];
    if (Number(counted) !== told) return `The metrics count ${counted} of ${type}, and ${told} were told.`;
  }
  const timed = events.filter(({ type }) => ["done", "retry", "dead", "drop", "lost"].includes(type)).length;
  const [, count = "0"] = /^baton_relay_delivery_seconds_count\{source="orders"\} (\d+)$/m.exec(text) ?? [];
  if (Number(count) !== timed) return `The metrics timed ${count} deliveries, of ${timed}.`;
  if (/^baton_relay_(circuit_open|unreachable)\{[^}]*\} 1$/m.test(text))
    return "At rest the metrics have an open circuit.";
  return undefined;
}

describe("a relay and real receivers", { timeout: seedTimeoutMs(60_000) }, () => {
  test("deliver, whatever comes and goes", async (context) => {
    const seeds = new Seeds({ seeds: 12, longestMs: 6_000 });
    const lane = async (): Promise<void> => {
      for (const seed of seeds) {
        const plan = drawPlan(seed);
        if ((await play(plan)) === undefined) continue;
        seeds.stop();
        const script = await shrink(
          plan.script,
          async (shorter) => (await play({ ...plan, script: shorter })) !== undefined,
        );
        const problem = (await play({ ...plan, script })) ?? (await play(plan));
        const told = [{ ...plan, script: [] }, ...script].map((one) => JSON.stringify(one)).join("\n");
        assert.fail(`${String(problem)}\n${again(seed)}\n${told}`);
      }
    };
    // They wait more than they work.
    await Promise.all([lane(), lane(), lane()]);
    seeds.tell(context, "relays and real receivers");
  });
});
