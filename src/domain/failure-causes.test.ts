import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Random } from "../../test/kit/random.ts";
import { again, Seeds } from "../../test/kit/seeds.ts";
import { describeFailure } from "./failure.ts";

interface Said {
  readonly message: string;
  readonly code: string | undefined;
}

/** Something thrown with causes of its own, and what a failure should say of each, in the order in which a person reads them. */
interface Tree {
  readonly thrown: unknown;
  readonly said: readonly Said[];
}

/** As many as a failure has room for, and as deep. */
const MOST_NODES = 8;
const DEEPEST = 4;

class Grower {
  readonly #random: Random;
  #nodes = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  error(depth: number): Tree {
    this.#nodes += 1;
    const message = `e${this.#nodes}`;
    const code = this.#random.chance(0.3) ? `C${this.#nodes}` : undefined;
    const errors = this.#random.chance(0.5) ? this.#some(depth) : undefined;
    const cause = this.#random.chance(0.6) ? this.#some(depth, 1)[0] : undefined;
    const options = cause === undefined ? {} : { cause: cause.thrown };
    const error =
      errors === undefined
        ? new Error(message, options)
        : new AggregateError(
            errors.map(({ thrown }) => thrown),
            message,
            options,
          );
    if (code !== undefined) Object.assign(error, { code });
    const behind = [...(errors ?? []), ...(cause === undefined ? [] : [cause])].flatMap(({ said }) => said);
    return { thrown: error, said: [{ message, code }, ...behind] };
  }

  #some(depth: number, most = 3): readonly Tree[] {
    const trees: Tree[] = [];
    const count = depth < DEEPEST ? this.#random.between(1, most) : 0;
    while (trees.length < count && this.#nodes < MOST_NODES) {
      trees.push(this.#random.chance(0.6) ? this.error(depth + 1) : this.#other());
    }
    return trees;
  }

  /** What is thrown need not be an error. */
  #other(): Tree {
    this.#nodes += 1;
    const message = this.#random.chance(0.5) ? `text ${this.#nodes}` : `{"n":${this.#nodes}}`;
    const thrown: unknown = message.startsWith("{") ? JSON.parse(message) : message;
    return { thrown, said: [{ message, code: undefined }] };
  }
}

suite("The causes of a failure", () => {
  test("stand in the order in which they are read, errors or not, and the first code counts", (context) => {
    const seeds = new Seeds({ seeds: 300, longestMs: 1_000 });
    for (const seed of seeds) {
      const { thrown, said } = new Grower(new Random(seed)).error(0);
      const [own, ...causes] = said;
      const failure = describeFailure(thrown);
      const told = (failure.causes ?? []).map(({ message, code }) => ({ message, code }));
      assert.deepEqual(told, causes, again(seed));
      assert.equal(failure.code, own?.code ?? causes.find(({ code }) => code !== undefined)?.code, again(seed));
      for (const { message } of said)
        assert.ok(failure.message.includes(message), `${failure.message}; ${again(seed)}`);
    }
    seeds.tell(context, "causes of failures");
  });
});
