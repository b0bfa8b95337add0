import { integer, type Row, type Statement, text, type Sql } from "./rows.ts";

export interface QueueRow {
  readonly id: number;
  readonly name: string;
  readonly levels: readonly string[];
  paused: boolean;
  /** Per level. */
  readonly waiting: number[];
  delayed: number;
  running: number;
  dead: number;
}

/** The rows of queues, with their counts: read once, written back once per transaction. */
export class QueueTable {
  readonly #byName = new Map<string, QueueRow>();
  readonly #byId = new Map<number, QueueRow>();
  readonly #dirty = new Set<QueueRow>();
  readonly #selectByName: Statement;
  readonly #selectById: Statement;
  readonly #save: Statement;

  constructor(sql: Sql) {
    const columns = "id, name, levels, paused, waiting, delayed, running, dead";
    this.#selectByName = sql(`SELECT ${columns} FROM queue WHERE name = ?`);
    this.#selectById = sql(`SELECT ${columns} FROM queue WHERE id = ?`);
    this.#save = sql("UPDATE queue SET paused = ?, waiting = ?, delayed = ?, running = ?, dead = ? WHERE id = ?");
  }

  has(name: string): boolean {
    return this.#look(name) !== undefined;
  }

  find(name: string): QueueRow {
    const queue = this.#look(name);
    if (queue === undefined) throw new Error(`Queue ${name} was not declared.`);
    return queue;
  }

  get(id: number): QueueRow {
    const queue = this.#byId.get(id) ?? this.#load(this.#selectById.get(id));
    if (queue === undefined) throw new Error(`Queue ${id} is not in the store.`);
    return queue;
  }

  /** The queue, about to be changed. */
  touch(queue: QueueRow): QueueRow {
    this.#dirty.add(queue);
    return queue;
  }

  /** It was deleted from the store. */
  drop(queue: QueueRow): void {
    this.#dirty.delete(queue);
    this.#byName.delete(queue.name);
    this.#byId.delete(queue.id);
  }

  flush(): void {
    for (const { id, paused, waiting, delayed, running, dead } of this.#dirty) {
      this.#save.run(paused ? 1 : 0, JSON.stringify(waiting), delayed, running, dead, id);
    }
    this.#dirty.clear();
  }

  forget(): void {
    this.#byName.clear();
    this.#byId.clear();
    this.#dirty.clear();
  }

  #look(name: string): QueueRow | undefined {
    return this.#byName.get(name) ?? this.#load(this.#selectByName.get(name));
  }

  #load(row: Row | undefined): QueueRow | undefined {
    if (row === undefined) return undefined;
    const queue: QueueRow = {
      id: integer(row, 0),
      name: text(row, 1),
      levels: texts(text(row, 2)),
      paused: integer(row, 3) === 1,
      waiting: numbers(text(row, 4)),
      delayed: integer(row, 5),
      running: integer(row, 6),
      dead: integer(row, 7),
    };
    this.#byName.set(queue.name, queue);
    this.#byId.set(queue.id, queue);
    return queue;
  }
}

export function texts(json: string): readonly string[] {
  const value: unknown = JSON.parse(json);
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  throw new TypeError("The store has no list of names where one belongs.");
}

function numbers(json: string): number[] {
  const value: unknown = JSON.parse(json);
  if (Array.isArray(value) && value.every((one) => typeof one === "number")) return value;
  throw new TypeError("The store has no list of counts where one belongs.");
}
