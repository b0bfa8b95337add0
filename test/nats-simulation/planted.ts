/** Bugs on purpose, outside of the engine: the checker must find them. */
import type { Engine, Settlement, SettleResult } from "../../src/engine/port.ts";
import type { Delivery, PublishOptions, Subscription, Wire } from "../../src/engines/nats/wire.ts";
import { toDelivery } from "../jetstream/headers.ts";
import type { Stream } from "../jetstream/stream.ts";
import type { Random } from "../kit/random.ts";
import type { Guarantee } from "./checker.ts";

export interface Plant {
  readonly wire?: (wire: Wire) => Wire;
  readonly engine?: (engine: Engine) => Engine;
  readonly stream?: (stream: Stream) => void;
  /** Of direct gets, although there is one server only. */
  readonly stale?: number;
}

export interface PlantedBug {
  readonly name: string;
  readonly breaks: readonly Guarantee[];
  /** Where the search begins: few seeds show it, and one of them is near. */
  readonly from?: number;
  readonly make: (random: Random) => Plant;
}

export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: "writes of keys are not compared with what was seen",
    breaks: ["G1", "G2", "G4", "G5", "once"],
    make: () => ({ wire: (wire) => new ChangedWire(wire, withoutConditions(/\.q\./)) }),
  },
  {
    name: "an item starts by the write that brings it, although its key may be busy",
    breaks: ["G1", "G2", "G4", "G5", "once"],
    make: () => ({ wire: (wire) => new ChangedWire(wire, whereNothingWasSeen(withoutConditions(/\.s\.run\./))) }),
  },
  {
    name: "ids are written without a look at what is there",
    breaks: ["G9"],
    from: 79,
    make: () => ({ wire: (wire) => new ChangedWire(wire, withoutConditions(/\.c\.id\./)) }),
  },
  {
    name: "what is acknowledged stays in the stream",
    breaks: ["G1", "G4", "once", "clean"],
    make: () => ({ stream: keepsAll }),
  },
  {
    name: "sessions give no signs of life, and believe they do",
    breaks: ["G1", "G2"],
    make: () => ({ wire: (wire) => new ChangedWire(wire, swallowBeats) }),
  },
  {
    name: "sessions are taken for dead after a tenth of their time",
    breaks: ["G1", "G2"],
    make: () => ({ wire: (wire) => new ChangedWire(wire, hastyLapse) }),
  },
  {
    name: "a lost lease is settled all the same",
    breaks: ["G2", "once"],
    make: () => ({ engine: (engine) => alwaysSettled(engine) }),
  },
  {
    name: "reads come from a copy that is behind",
    breaks: ["G1", "G4", "G5", "G9", "once", "clean", "truth"],
    make: () => ({ stale: 0.3 }),
  },
  {
    name: "now and then a delivery is acknowledged before the key has started",
    breaks: ["G4", "once"],
    make: (random) => ({ stream: (stream) => losesSome(stream, random) }),
  },
];

interface Outgoing {
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly options: PublishOptions;
}

/** Undefined: it is not sent, and the text is the reply. */
type Change = (outgoing: Outgoing) => Outgoing | { readonly answer: string };

class ChangedWire implements Wire {
  readonly #wire: Wire;
  readonly #change: Change;
  readonly #listening: { readonly subject: string; readonly receive: (delivery: Delivery) => void }[] = [];

  constructor(wire: Wire, change: Change) {
    this.#wire = wire;
    this.#change = change;
  }

  get server(): Wire["server"] {
    return this.#wire.server;
  }

  publish(subject: string, data: Uint8Array | string, options: PublishOptions = {}): void {
    const changed = this.#change({ subject, data, options });
    if ("subject" in changed) {
      this.#wire.publish(changed.subject, changed.data, changed.options);
      return;
    }
    const { reply = "" } = options;
    const to = this.#listening.find(
      (one) => one.subject.endsWith(".r.*") && reply.startsWith(one.subject.slice(0, -1)),
    );
    void Promise.resolve().then(() => to?.receive(toDelivery(reply, "", Buffer.from(changed.answer), undefined)));
  }

  subscribe(subject: string, receive: (delivery: Delivery) => void): Subscription {
    this.#listening.push({ subject, receive });
    return this.#wire.subscribe(subject, receive);
  }

  watch(listener: (up: boolean) => void): void {
    this.#wire.watch(listener);
  }

  close(): Promise<void> {
    return this.#wire.close();
  }
}

function withoutConditions(subjects: RegExp): Change {
  return (outgoing) => {
    const { headers } = outgoing.options;
    if (headers === undefined || !subjects.test(outgoing.subject)) return outgoing;
    const lines = headers.split("\r\n").filter((line) => !line.startsWith("Nats-Expected"));
    return { ...outgoing, options: { ...outgoing.options, headers: lines.join("\r\n") } };
  };
}

/** Of writes that are to be the first of their key. */
function whereNothingWasSeen(change: Change): Change {
  return (outgoing) =>
    /Expected-Last-Subject-Sequence: ?0\r/.test(outgoing.options.headers ?? "") ? change(outgoing) : outgoing;
}

function swallowBeats(outgoing: Outgoing): ReturnType<Change> {
  if (!outgoing.subject.includes(".c.session.")) return outgoing;
  const { beat } = JSON.parse(String(outgoing.data)) as { readonly beat: number };
  return beat <= 1 ? outgoing : { answer: JSON.stringify({ stream: "baton", seq: 1 }) };
}

function hastyLapse(outgoing: Outgoing): ReturnType<Change> {
  if (!outgoing.subject.includes(".c.session.")) return outgoing;
  const line = JSON.parse(String(outgoing.data)) as { readonly lapse: number };
  return { ...outgoing, data: JSON.stringify({ ...line, lapse: line.lapse / 10 }) };
}

function keepsAll(stream: Stream): void {
  if (stream.config.retention === "workqueue") stream.remove = () => true;
}

/** Whoever asks for the next messages of a consumer finds some of them gone: as if their receiver had died too late. */
function losesSome(stream: Stream, random: Random): void {
  if (stream.config.retention !== "workqueue") return;
  const add = stream.messages.add.bind(stream.messages);
  stream.messages.add = (message) => {
    add(message);
    if (!message.subject.includes(".s.run.") && message.subject.includes(".s.") && random.chance(0.02))
      queueMicrotask(() => stream.remove(message.sequence));
  };
}

function alwaysSettled(engine: Engine): Engine {
  return new Proxy(engine, {
    get(target, name) {
      if (name === "settle") {
        return async (settlements: readonly Settlement[]): Promise<readonly SettleResult[]> => {
          const results = await target.settle(settlements);
          return results.map((result) => (result === "lost" ? "settled" : result));
        };
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
