/** What the processes of a run write down, each into a file of its own, by the one monotonic clock of the machine. */
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Fact =
  /** Asked for at `from`, acknowledged at `at`. */
  | {
      readonly type: "submitted";
      readonly from: number;
      readonly at: number;
      readonly item: string;
      readonly key: string;
      readonly level: string;
    }
  /** A handler began; it may trust its lease until `until`. Items of one run have the same fence. */
  | {
      readonly type: "began";
      readonly at: number;
      readonly until: number;
      readonly worker: string;
      readonly item: string;
      readonly key: string;
      readonly fence: number;
      readonly attempt: number;
    }
  /** The handler saw that its lease now lasts until `until`. */
  | { readonly type: "renewed"; readonly at: number; readonly until: number; readonly fence: number }
  /** The handler ended. Only if `done` did it do its work. */
  | {
      readonly type: "ended";
      readonly at: number;
      readonly item: string;
      readonly fence: number;
      readonly done: boolean;
    }
  /** The worker was told that the store accepted the end, or refused it because the lease was lost. */
  | { readonly type: "settled" | "refused"; readonly at: number; readonly item: string; readonly fence: number }
  /** The process was gone at `at`. */
  | { readonly type: "killed"; readonly at: number; readonly worker: string }
  /** What the store said in the end. */
  | { readonly type: "final"; readonly at: number; readonly item: string; readonly state: string };

export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function recorder(folder: string, name: string): (fact: Fact) => void {
  const file = join(folder, `${name}.history`);
  return (fact) => appendFileSync(file, `${JSON.stringify(fact)}\n`);
}

export function readHistory(folder: string): readonly Fact[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".history"))
    .flatMap((name) => {
      const text = readFileSync(join(folder, name), "utf8");
      // A process that was killed while it wrote leaves half a line.
      return text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
    })
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Fact)
    .toSorted((a, b) => a.at - b.at);
}
