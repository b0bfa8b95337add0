import { integers } from "./arrays.ts";

/** Those in other processes who have gone to sleep unseen are told of these queues with the next statement. */
export class Rings {
  #work: number[] = [];
  #outcomes: number[] = [];

  get areThere(): boolean {
    return this.#work.length > 0 || this.#outcomes.length > 0;
  }

  addWork(queue: number): void {
    this.#work.push(queue);
  }

  addOutcomes(queue: number): void {
    this.#outcomes.push(queue);
  }

  /** As two arguments of a statement. */
  take(): readonly Buffer[] {
    const rings = [integers(this.#work), integers([...new Set(this.#outcomes)])];
    this.#work = [];
    this.#outcomes = [];
    return rings;
  }
}
