import { LevelsDiffer, QueueMissing } from "../../domain/errors.ts";
import { DEFAULT_LEVELS } from "../../domain/level.ts";
import type { DeclareRequest } from "../../engine/port.ts";
import type { Link } from "./link.ts";
import { integer, texts } from "./rows.ts";

export interface DeclaredQueue {
  readonly id: number;
  readonly name: string;
  readonly levels: readonly string[];
}

/** The queues that were declared on this handle. Their numbers and levels never change; one that is deleted and made anew has another number. */
export class Queues {
  readonly #link: Link;
  readonly #byName = new Map<string, DeclaredQueue>();
  readonly #byId = new Map<number, DeclaredQueue>();
  /** Those that were deleted. */
  readonly #missing = new Set<number>();

  constructor(link: Link) {
    this.#link = link;
  }

  /** For calls that begin: one that is known to be deleted is refused. */
  get(name: string): DeclaredQueue {
    const queue = this.#byName.get(name);
    if (queue === undefined || this.#missing.has(queue.id)) throw new QueueMissing(name);
    return queue;
  }

  /** For calls that are under way: the store says what is deleted. */
  known(name: string): DeclaredQueue {
    const queue = this.#byName.get(name);
    if (queue === undefined) throw new QueueMissing(name);
    return queue;
  }

  /** The store says that there is no queue of this number any more. */
  miss(id: number): QueueMissing {
    this.#missing.add(id);
    return new QueueMissing(this.#byId.get(id)?.name ?? `number ${id}`);
  }

  async assertThere(name: string): Promise<DeclaredQueue> {
    const queue = this.get(name);
    const [row] = await this.#link.query("baton_there", `SELECT FROM ${this.#link.schema}.queue WHERE id = $1`, [
      queue.id,
    ]);
    if (row === undefined) throw this.miss(queue.id);
    return queue;
  }

  /** Undefined: not one of this handle's. */
  byName(name: string): DeclaredQueue | undefined {
    return this.#byName.get(name);
  }

  /** Undefined: not one of this handle's. */
  byId(id: number): DeclaredQueue | undefined {
    return this.#byId.get(id);
  }

  async declare({ queue: name, levels }: DeclareRequest): Promise<DeclaredQueue> {
    const known = this.#byName.get(name);
    const isKnown = known !== undefined && !this.#missing.has(known.id);
    const queue = isKnown ? known : await this.#load(name, levels ?? DEFAULT_LEVELS);
    if (levels !== undefined && !sameNames(levels, queue.levels)) throw new LevelsDiffer(name, queue.levels, levels);
    this.#byName.set(name, queue);
    this.#byId.set(queue.id, queue);
    return queue;
  }

  async #load(name: string, levels: readonly string[]): Promise<DeclaredQueue> {
    const select = `SELECT id, levels FROM ${this.#link.schema}.queue WHERE name = $1`;
    for (;;) {
      const [row] = await this.#link.query("baton_queue", select, [name]);
      if (row !== undefined) return { id: integer(row, 0), name, levels: texts(row, 1) };
      await this.#link.query(
        "baton_declare",
        `INSERT INTO ${this.#link.schema}.queue (name, levels) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
        [name, [...levels]],
      );
    }
  }
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, index) => name === b[index]);
}
