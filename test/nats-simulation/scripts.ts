/**
 * Races that must be reachable, each by its name: a short plan, played again and again with one thing moved, so that the
 * two sides of the race meet in every order; or with one fault, at every message in turn.
 */
import type { Passing, Way } from "../jetstream/faults.ts";
import { CALM_RATES } from "./line.ts";
import type { Deed, Fault, Interference, ItemPlan, Plan, Timed } from "./plan.ts";

export interface Script {
  readonly name: string;
  readonly plans: readonly Plan[];
}

/** One fault at every message: how many there are is found out by a first run. */
export interface Sweep {
  readonly name: string;
  readonly plan: Plan;
}

const LEASE_MS = 400;
const AT = 100;
/** Of the lines in scripts: long enough that things cross on their way. */
const LINE_MS = 2;

function item(key: string, level: number, more: Partial<ItemPlan> = {}): ItemPlan {
  return {
    key,
    level,
    id: undefined,
    mode: "fifo",
    delayMs: 0,
    keeps: true,
    big: false,
    failures: [],
    leases: 0.02,
    ...more,
  };
}

function submit(at: number, process: number, ...items: readonly ItemPlan[]): Timed<Deed> {
  return { at, process, what: { type: "submit", items } };
}

function plan(deeds: readonly Timed<Deed>[], more: Partial<Plan> = {}): Plan {
  return {
    seed: 1,
    leaseMs: LEASE_MS,
    keys: ["a", "b"],
    processes: [1, 1, 0],
    runs: 1,
    replicas: 1,
    stale: 0,
    lateMs: 0,
    wallShiftMs: 0,
    troubleMs: 1_500,
    rates: { ...CALM_RATES, slowestMs: LINE_MS },
    careless: 0,
    plain: false,
    together: false,
    deeds,
    faults: [],
    interference: undefined,
    ...more,
  };
}

/** The same with something at every half of a millisecond, and chance drawn anew each time. */
function moved(fromMs: number, toMs: number, make: (at: number) => Plan): readonly Plan[] {
  const plans: Plan[] = [];
  for (let at = fromMs; at < toMs; at += 0.5) plans.push({ ...make(at), seed: plans.length + 1 });
  return plans;
}

function fault(at: number, process: number, what: Fault): Timed<Fault> {
  return { at, process, what };
}

/** Nothing is remembered of it: it may start by the very write that brings it. */
const LIGHT: Partial<ItemPlan> = { keeps: false };
/** Items of keys that are idle, submitted where a worker waits: the first makes its session known, the others start by one write. */
const AT_HOME: readonly Timed<Deed>[] = [
  submit(AT, 0, item("a", 1, LIGHT)),
  submit(AT + 35, 0, item("b", 1, LIGHT)),
  submit(AT + 58, 0, item("c", 1, LIGHT), item("d", 2, LIGHT)),
];
const HOME: Partial<Plan> = { keys: ["a", "b", "c", "d", "e", "f"], processes: [2, 1, 0] };

export const SCRIPTS: readonly Script[] = [
  {
    name: "an item is submitted between the holder's last look and its release",
    plans: moved(AT, AT + 40, (at) => plan([submit(AT, 2, item("a", 1)), submit(at, 1, item("a", 1))])),
  },
  {
    name: "the same, with a line",
    plans: moved(AT, AT + 40, (at) =>
      plan([submit(AT, 2, item("a", 1, { big: true })), submit(at, 1, item("a", 1)), submit(at + 3, 2, item("a", 0))]),
    ),
  },
  {
    name: "the same, while the key is paused and resumed",
    plans: moved(AT, AT + 40, (at) =>
      plan([
        submit(AT, 2, item("a", 1)),
        { at: AT + 1, process: 1, what: { type: "pause", key: "a", forMs: 15 } },
        submit(at, 2, item("a", 1)),
      ]),
    ),
  },
  {
    name: "a lift races with the start",
    plans: moved(AT, AT + 20, (at) => plan([submit(AT, 2, item("a", 2), item("a", 2)), submit(at, 1, item("a", 0))])),
  },
  {
    name: "two lifts race with one another and with the start",
    plans: moved(AT, AT + 20, (at) =>
      plan([submit(AT, 2, item("a", 2)), submit(at, 1, item("a", 1)), submit(at + 1, 2, item("a", 0))], {
        processes: [1, 0, 0],
      }),
    ),
  },
  {
    name: "a stale holder finishes after the takeover",
    plans: moved(AT, AT + 30, (at) =>
      plan([submit(AT, 2, item("a", 1, { leases: 0.05 }), item("a", 1))], {
        careless: 1,
        faults: [
          fault(at, 0, { type: "stop", forMs: LEASE_MS * 2.5 }),
          fault(at, 1, { type: "stop", forMs: LEASE_MS * 0.5 }),
        ],
      }),
    ),
  },
  {
    name: "a reaper races with a submit",
    plans: moved(0, 60, (at) =>
      plan(
        [
          submit(AT, 2, item("a", 1, { leases: 0.9 })),
          submit(AT + LEASE_MS * 1.05 + at * 4, 1, item("a", 1), item("a", 0)),
        ],
        { faults: [fault(AT + 20, 0, { type: "crash", sent: "arrives", serverNoticesMs: 0 })] },
      ),
    ),
  },
  {
    name: "a consumer delivers again after the server has started again",
    plans: moved(AT, AT + 40, (at) =>
      plan([submit(AT, 2, item("a", 1), item("a", 1)), submit(AT + 5, 1, item("b", 1, { big: true }), item("b", 1))], {
        faults: [fault(at, 0, { type: "restart", downMs: 5, forgetAcksMs: 100, inWrite: false })],
      }),
    ),
  },
  {
    name: "copies answer that are behind",
    plans: moved(AT, AT + 40, (at) =>
      plan([submit(AT, 2, item("a", 1)), submit(at, 1, item("a", 1)), submit(at + 2, 2, item("a", 0, { big: true }))], {
        replicas: 3,
        stale: 0.9,
      }),
    ),
  },
  {
    name: "two submit the same id",
    plans: moved(AT, AT + 20, (at) =>
      plan([
        submit(AT, 2, item("a", 1, { id: "x" })),
        submit(at, 1, item("a", 1, { id: "x" })),
        submit(AT, 2, item("a", 1)),
      ]),
    ),
  },
  {
    name: "what waits is cancelled while it starts",
    plans: moved(AT, AT + 40, (at) =>
      plan([
        submit(AT, 2, item("a", 1), item("a", 1, { big: true }), item("a", 1)),
        ...[0.1, 0.5, 0.9].map((pick) => ({ at, process: 1, what: { type: "cancel" as const, pick } })),
      ]),
    ),
  },
  {
    name: "what waits is replaced while it starts",
    plans: moved(AT, AT + 40, (at) =>
      plan([
        submit(AT, 2, item("a", 1), item("a", 1, { big: true }), item("a", 1)),
        submit(at, 1, item("a", 1, { mode: "latest" })),
      ]),
    ),
  },
  {
    name: "a big head is replaced, lifted or cancelled while others stand in line behind it",
    plans: moved(AT, AT + 20, (at) =>
      plan([
        submit(AT, 2, item("a", 1, { big: true }), item("a", 1)),
        submit(AT, 2, item("b", 1, { big: true }), item("b", 1)),
        submit(at, 1, item("a", 1, { mode: "latest" })),
        submit(at, 1, item("b", 0)),
        submit(at + 4, 1, item("b", 1)),
        { at, process: 0, what: { type: "cancel", pick: 0.5 } },
      ]),
    ),
  },
  {
    name: "a hold races with a submit and a start",
    plans: moved(AT, AT + 30, (at) =>
      plan([
        submit(AT, 2, item("a", 1), item("a", 0)),
        { at, process: 1, what: { type: "hold", key: "a", waitMs: 0, forMs: 10 } },
      ]),
    ),
  },
  {
    name: "holds that wait are handed a key, or give up in that moment",
    plans: moved(0, 40, (waitMs) =>
      plan([
        submit(AT, 2, item("a", 1), item("a", 0), item("a", 1)),
        { at: AT + 2, process: 0, what: { type: "hold", key: "a", waitMs: waitMs + 1, forMs: 5 } },
        { at: AT + 3, process: 1, what: { type: "hold", key: "a", waitMs: 1_000, forMs: 5 } },
      ]),
    ),
  },
  {
    name: "a key is handed to one who died while waiting for it",
    // From long before, so that nothing is known of it any more, to the moment itself.
    plans: moved(0, 20, (step) =>
      plan(
        [
          submit(AT, 0, item("a", 1, { leases: 3 }), item("a", 1)),
          { at: AT + 20, process: 2, what: { type: "hold", key: "a", waitMs: 5_000, forMs: 5 } },
        ],
        { faults: [fault(AT + 100 + step * 56, 2, { type: "crash", sent: "arrives", serverNoticesMs: 0 })] },
      ),
    ),
  },
  {
    name: "an item starts by the write that brings it, while something more urgent comes from elsewhere",
    plans: moved(AT, AT + 20, (at) =>
      plan([...AT_HOME, submit(at + 50, 1, item("e", 0, LIGHT)), submit(at + 51, 2, item("f", 1))], HOME),
    ),
  },
  {
    name: "the same, while its key is held, or gets an item from elsewhere",
    plans: moved(AT, AT + 20, (at) =>
      plan(
        [
          ...AT_HOME,
          { at: at + 50, process: 1, what: { type: "hold", key: "c", waitMs: 20, forMs: 3 } },
          submit(at + 50, 2, item("d", 1), item("d", 0)),
        ],
        HOME,
      ),
    ),
  },
  {
    name: "the same, while the queue or its key is paused",
    plans: moved(AT, AT + 20, (at) =>
      plan(
        [
          ...AT_HOME,
          { at: at + 45, process: 1, what: { type: "pause", key: undefined, forMs: 5 } },
          { at: at + 50, process: 1, what: { type: "pause", key: "c", forMs: 5 } },
        ],
        HOME,
      ),
    ),
  },
  {
    name: "the same, by a process that then stands still until its session is taken for dead",
    plans: moved(0, 20, (step) =>
      plan([submit(AT, 0, item("a", 1, LIGHT)), submit(AT + 380, 0, item("b", 1, LIGHT), item("c", 1, LIGHT))], {
        ...HOME,
        faults: [fault(AT + 376 + step / 2, 0, { type: "stop", forMs: LEASE_MS * 1.5 })],
      }),
    ),
  },
];

/** A worker that has begun; its item for `a` starts by a delivery, and is done in a moment. */
const PLAIN: Partial<Plan> = { plain: true, processes: [1, 0, 0], keys: ["a", "b", "c", "d"] };
const SOON: readonly Timed<Deed>[] = [submit(AT, 2, item("a", 1, LIGHT), item("b", 1, LIGHT))];

export const PLAIN_SCRIPTS: readonly Script[] = [
  {
    name: "an item comes to a key whose lease ends",
    plans: moved(AT, AT + 60, (at) =>
      plan([...SOON, submit(at, 1, item("a", 1, LIGHT)), submit(at, 2, item("b", 0, LIGHT))], PLAIN),
    ),
  },
  {
    name: "such a key is held, paused or its item cancelled",
    plans: moved(AT, AT + 60, (at) =>
      plan(
        [
          ...SOON,
          { at, process: 1, what: { type: "hold", key: "a", waitMs: 50, forMs: 3 } },
          { at: at + 1, process: 2, what: { type: "pause", key: "b", forMs: 5 } },
          { at: at + 2, process: 2, what: { type: "cancel", pick: 0.6 } },
        ],
        PLAIN,
      ),
    ),
  },
  {
    name: "whoever has such a key is stopped, and comes back after somebody else has it",
    plans: moved(AT, AT + 40, (at) =>
      plan([...SOON, submit(AT + LEASE_MS, 2, item("a", 1, LIGHT))], {
        ...PLAIN,
        processes: [1, 1, 0],
        careless: 1,
        faults: [fault(at, 0, { type: "stop", forMs: LEASE_MS * 2.5 })],
      }),
    ),
  },
  {
    name: "the same, but only for a while: it is delivered to others meanwhile",
    plans: moved(AT, AT + 40, (at) =>
      plan([...SOON, submit(AT + 1_200, 2, item("a", 1, LIGHT))], {
        ...PLAIN,
        leaseMs: 3_000,
        processes: [1, 1, 0],
        faults: [fault(at, 0, { type: "stop", forMs: 1_500 })],
      }),
    ),
  },
  {
    name: "an item ends when others come to its key",
    plans: moved(0, 60, (step) =>
      plan(
        [
          submit(AT, 2, item("a", 1, { ...LIGHT, leases: 0.25 + step / 200 })),
          submit(AT + 250 + step * 3, 1, item("a", 1, LIGHT)),
        ],
        { ...PLAIN, leaseMs: 1_000 },
      ),
    ),
  },
  {
    name: "the connection is away for long while the end of a lease is on its way",
    plans: moved(AT, AT + 40, (at) =>
      plan(SOON, {
        ...PLAIN,
        processes: [1, 1, 0],
        troubleMs: 9_000,
        faults: [fault(at, 0, { type: "cut", forMs: 8_000, clientNoticesMs: 0, serverNoticesMs: 0 })],
      }),
    ),
  },
  {
    name: "the server starts again and has forgotten acknowledgements",
    plans: moved(AT, AT + 60, (at) =>
      plan([...SOON, submit(at + 20, 1, item("a", 1, LIGHT)), submit(at + 25, 2, item("b", 1, LIGHT))], {
        ...PLAIN,
        processes: [1, 1, 0],
        faults: [fault(at, 0, { type: "restart", downMs: 5, forgetAcksMs: 100, inWrite: false })],
      }),
    ),
  },
];

/** Whatever changes something, or says that something was changed. */
const isWrite = ({ subject }: Passing): boolean =>
  subject.startsWith("baton.") || subject.startsWith("$JS.ACK") || /\.(DELETE|PURGE|PAUSE)\./.test(subject);
const isReply = ({ subject }: Passing): boolean => subject.includes(".r.");
const isDelivery = ({ subject }: Passing): boolean => subject.startsWith("baton.q.");

const BUSY: readonly Timed<Deed>[] = [
  submit(
    AT,
    0,
    item("a", 1),
    item("a", 1, { failures: [{ type: "retry", place: "keep", delayMs: 20 }] }),
    item("a", 0),
  ),
  { at: AT + 2, process: 0, what: { type: "hold", key: "a", waitMs: 500, forMs: 5 } },
  { at: AT + 3, process: 2, what: { type: "hold", key: "a", waitMs: 500, forMs: 5 } },
  { at: AT + 4, process: 0, what: { type: "hold", key: "b", waitMs: 500, forMs: 5 } },
  submit(
    AT + 30,
    0,
    item("a", 1, { id: "x" }),
    item("b", 2, { failures: [{ type: "retry", place: "yield", delayMs: 20 }] }),
  ),
  submit(AT + 35, 2, item("b", 1, { big: true }), item("b", 1), item("b", 1, { failures: [{ type: "dead" }] })),
  submit(AT + 60, 0, item("a", 1, { mode: "latest" }), item("b", 2, { delayMs: 15 })),
  { at: AT + 62, process: 0, what: { type: "cancel", pick: 0.6 } },
  { at: AT + 64, process: 0, what: { type: "pause", key: "b", forMs: 10 } },
  { at: AT + 66, process: 0, what: { type: "hold", key: "a", waitMs: 0, forMs: 5 } },
];

const LIVELY: Partial<Plan> = {
  ...HOME,
  deeds: [
    ...AT_HOME,
    submit(AT + 59, 0, item("c", 1, LIGHT)),
    submit(AT + 60, 2, item("e", 0)),
    submit(AT + 61, 0, item("f", 1, LIGHT)),
    { at: AT + 62, process: 0, what: { type: "cancel", pick: 0.6 } },
    { at: AT + 63, process: 2, what: { type: "hold", key: "f", waitMs: 200, forMs: 5 } },
  ],
};

const isAnything = (): boolean => true;

/** A worker that works off runs, while others cancel, replace and pause what it has, and add to it. */
const RUNS: Partial<Plan> = {
  runs: 4,
  deeds: [
    submit(
      AT,
      2,
      item("a", 1),
      item("a", 1, LIGHT),
      item("a", 1, { id: "x", failures: [{ type: "retry", place: "yield", delayMs: 15 }] }),
      item("a", 1, LIGHT),
      item("a", 1, { leases: 0.5 }),
      item("a", 1, { failures: [{ type: "retry", place: "keep", delayMs: 5 }] }),
      ...Array.from({ length: 3 }, () => item("b", 1, LIGHT)),
    ),
    { at: AT + 12, process: 2, what: { type: "cancel", pick: 0.2 } },
    submit(AT + 14, 2, item("a", 0, LIGHT), item("a", 1), item("b", 1, LIGHT)),
    { at: AT + 16, process: 1, what: { type: "cancel", pick: 0.5 } },
    submit(AT + 30, 2, item("b", 1, { big: true }), item("b", 1), item("b", 1, { id: "y" }), item("b", 1)),
    submit(AT + 40, 1, item("a", 1, { mode: "latest" })),
    { at: AT + 45, process: 2, what: { type: "pause", key: "b", forMs: 10 } },
    { at: AT + 50, process: 1, what: { type: "hold", key: "a", waitMs: 300, forMs: 5 } },
  ],
};

/** Items that come while others of their keys are in work for a moment, just done, or cleared away. */
const SHORT: Partial<Plan> = {
  ...PLAIN,
  processes: [1, 1, 0],
  deeds: [
    ...SOON,
    submit(AT + 14, 2, item("a", 1, LIGHT), item("c", 1, LIGHT)),
    submit(AT + 30, 2, item("b", 0, LIGHT), item("d", 1, { ...LIGHT, leases: 1 })),
    { at: AT + 40, process: 2, what: { type: "hold", key: "c", waitMs: 100, forMs: 3 } },
    { at: AT + 44, process: 2, what: { type: "cancel", pick: 0.9 } },
  ],
};

function sweep(
  name: string,
  way: Way,
  counts: Interference["counts"],
  does: Interference["does"],
  more: Partial<Plan> = {},
  process = "p1",
): Sweep {
  return { name, plan: plan(BUSY, { ...more, interference: { process, way, number: Infinity, counts, does } }) };
}

export const SWEEPS: readonly Sweep[] = [
  ...(["kill before", "kill after", "lose", "cut", "stop"] as const).map((does) =>
    sweep(`where leases cover runs, any of its writes: ${does}`, "to server", isWrite, does, RUNS),
  ),
  sweep("where leases cover runs, the reply to any of its requests is lost", "from server", isReply, "lose", RUNS),
  sweep("a process dies right before any of its writes", "to server", isWrite, "kill before"),
  sweep("a process dies right after any of its writes", "to server", isWrite, "kill after"),
  sweep("any of its writes is lost", "to server", isWrite, "lose"),
  sweep("the reply to any of its requests is lost, after it was done", "from server", isReply, "lose"),
  sweep("its connection breaks at any of its writes", "to server", isWrite, "cut"),
  sweep(
    "it is stopped at any of its writes, beyond its leases: redelivered while it is only slow",
    "to server",
    isWrite,
    "stop",
    { leaseMs: 1_000 },
  ),
  sweep("a delivery waits in its buffer while it is stopped", "from server", isDelivery, "stop", { leaseMs: 1_000 }),
  ...(["kill before", "kill after", "lose", "cut", "stop"] as const).map((does) =>
    sweep(
      `where items start by the write that brings them, any of its writes: ${does}`,
      "to server",
      isWrite,
      does,
      LIVELY,
    ),
  ),
  sweep("the reply to any of its requests is lost there", "from server", isReply, "lose", LIVELY),
  ...(["kill before", "kill after", "cut", "stop"] as const).map((does) =>
    sweep(`where items take a moment, any of its messages: ${does}`, "to server", isAnything, does, SHORT),
  ),
  // Whoever brings the next item to such a key.
  ...(["kill before", "kill after", "cut", "stop"] as const).map((does) =>
    sweep(`where items take a moment, any message of a submitter: ${does}`, "to server", isAnything, does, SHORT, "p3"),
  ),
];

/** All runs of a sweep, once it is known how many messages there are. */
export function spread({ plan: base }: Sweep, count: number): readonly Plan[] {
  const { interference } = base;
  if (interference === undefined) return [base];
  return Array.from({ length: count }, (_, index) => ({
    ...base,
    interference: { ...interference, number: index + 1 },
  }));
}
