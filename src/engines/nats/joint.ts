import { asError } from "./as-error.ts";

/** Many answers, and one promise. */
export class Joint {
  readonly #all = Promise.withResolvers<void>();
  #open = 1;

  /** Resolves when all that were expected are there. */
  get all(): Promise<void> {
    this.#close();
    return this.#all.promise;
  }

  expect(): void {
    this.#open += 1;
  }

  take<T>(answer: T | Promise<T>, keep: (value: T) => void): void {
    if (!(answer instanceof Promise)) {
      keep(answer);
      this.#close();
      return;
    }
    answer.then(
      (value) => {
        keep(value);
        this.#close();
      },
      (error: unknown) => this.#all.reject(asError(error)),
    );
  }

  #close(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#all.resolve();
  }
}
