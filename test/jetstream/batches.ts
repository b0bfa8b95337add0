/** Writes that are stored together or not at all: they are kept aside until the last of them comes. */
import { ApiError } from "./errors.ts";
import { findHeader, readHeaders } from "./headers.ts";
import type { Publication, Stream, Taken } from "./stream.ts";

export interface BatchTaken extends Taken {
  readonly id: string;
  readonly count: number;
}

const incomplete = (): ApiError => new ApiError(400, 10_176, "atomic publish batch is incomplete");

export class Batches {
  /** By stream and id. */
  readonly #begun = new Map<string, Publication[]>();

  /** Undefined: it is none of a batch. Nothing: it is kept aside. */
  take(stream: Stream, publication: Publication): BatchTaken | "kept aside" | undefined {
    const { fields } = readHeaders(publication.headers);
    const id = findHeader(fields, "Nats-Batch-Id");
    if (id === undefined) return undefined;
    if (stream.config.allow_atomic !== true) throw new ApiError(400, 10_174, "atomic publish is disabled");
    const name = `${stream.config.name} ${id}`;
    const number = Number(findHeader(fields, "Nats-Batch-Sequence"));
    const begun = number === 1 && !this.#begun.has(name) ? [] : this.#begun.get(name);
    this.#begun.delete(name);
    if (begun?.length !== number - 1) throw incomplete();
    begun.push(publication);
    if (findHeader(fields, "Nats-Batch-Commit") !== undefined)
      return { ...stream.takeAll(begun), id, count: begun.length };
    this.#begun.set(name, begun);
    return "kept aside";
  }

  /** What was kept aside is forgotten. */
  clear(): void {
    this.#begun.clear();
  }
}
