import { formatValue } from "./report/format.ts";
import { median } from "./report/statistics.ts";
import type { Measured, Metric } from "./workload.ts";

/** What is going on, on the standard error: one line that changes on a terminal, a line each elsewhere. */
export class Progress {
  readonly #started = performance.now();
  #steps = 0;
  #done = 0;
  #title = "";

  say(line: string): void {
    this.#write(line, true);
  }

  begins(steps: number): void {
    this.#steps = steps;
  }

  starts(title: string): void {
    this.#title = title;
    if (process.stderr.isTTY) this.#write(`${this.#position()} ${title} …`, false);
  }

  ended({ values }: Measured, metrics: readonly Metric[]): void {
    const figures = metrics.flatMap((metric) => {
      const value = values[metric.name];
      if (value === undefined) return [];
      const figure = typeof value === "number" ? value : median(value);
      return [`${metric.title} ${formatValue(figure, metric.unit)}`.trim()];
    });
    this.#done += 1;
    this.#write(`${this.#position()} ${this.#title}: ${figures.join("; ")}`, !process.stderr.isTTY);
  }

  failed(reason: string): void {
    this.#done += 1;
    this.#write(`${this.#position()} ${this.#title}: ${reason}`, true);
  }

  finished(): void {
    if (process.stderr.isTTY) process.stderr.write("\r\u001B[K");
  }

  #position(): string {
    const seconds = Math.round((performance.now() - this.#started) / 1_000);
    const minutes = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    return `[${minutes}, ${this.#done} of ${this.#steps}]`;
  }

  #write(line: string, keep: boolean): void {
    if (!process.stderr.isTTY) {
      process.stderr.write(`${line}\n`);
      return;
    }
    const width = (process.stderr.columns ?? 80) - 1;
    process.stderr.write(`\r\u001B[K${keep ? `${line}\n` : line.slice(0, width)}`);
  }
}
