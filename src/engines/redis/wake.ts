import { BatonError } from "../../domain/errors.ts";
import type { HintResult, HintStore, WakeAdapter, WakeMessage } from "../../wake/port.ts";
import type { Wire } from "./client.ts";
import { explain } from "./failure.ts";
import { Script } from "./script.ts";

/** A budget that nobody touched for so long belongs to work that is done. */
const HINT_MS = 60_000;

const ADD = new Script(String.raw`
redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`);

const TAKE = new Script(String.raw`
local left = redis.call('GET', KEYS[1])
if not left then return 'missing' end
if tonumber(left) < 1 then return 'empty' end
redis.call('DECR', KEYS[1])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 'taken'
`);

/** Wakes by the publish and subscribe of Redis, for stores that have none, or a slower one. */
export class RedisWake implements WakeAdapter {
  readonly name = "redis";
  readonly hints: HintStore;
  readonly #wire: Wire;
  readonly #prefix: string;
  readonly #stops = new Set<() => void>();

  constructor(wire: Wire, prefix: string) {
    this.#wire = wire;
    this.#prefix = prefix;
    this.hints = hintsOf(wire, prefix);
  }

  async publish(messages: readonly WakeMessage[]): Promise<void> {
    const sent = messages.map(({ channel, text }) => {
      const name = this.#channel(channel);
      return this.#wire.send(name, ["SPUBLISH", name, text]);
    });
    await explained(Promise.all(sent), "a wake");
  }

  async listen(
    channel: string,
    heard: (text: string) => void,
    missed: () => void,
    deaf?: () => void,
  ): Promise<() => Promise<void>> {
    const listening = this.#wire.listen(this.#channel(channel), heard, missed, deaf);
    const silence = await explained(listening, "listening for wakes");
    const stop = (): void => {
      if (this.#stops.delete(stop)) silence();
    };
    this.#stops.add(stop);
    return async () => {
      stop();
      await Promise.resolve();
    };
  }

  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#wire.close();
    await Promise.resolve();
  }

  #channel(name: string): string {
    return `${this.#prefix}:wake:${name}`;
  }
}

/** A script changes a budget in one step: nobody is ever faster in between. */
function hintsOf(wire: Wire, prefix: string): HintStore {
  const run = (script: Script, name: string, ...args: readonly string[]): Promise<unknown> =>
    explained(script.run(wire, [`${prefix}:hint:${name}`], [...args, String(HINT_MS)]), "a hint");
  return {
    async add(name, count) {
      await run(ADD, name, String(count));
    },
    async take(name): Promise<HintResult> {
      const result = await run(TAKE, name);
      if (result === "taken" || result === "missing" || result === "empty") return result;
      throw new BatonError("STORE_CORRUPT", "Redis answered to a hint with something else than a hint.");
    },
  };
}

async function explained<T>(work: Promise<T>, what: string): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw explain(error, what);
  }
}
