/** Reads what the processes of a run wrote, and nothing else. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Fact } from "../history/fact.ts";

/** In the order of their times. */
export function readHistory(folder: string): readonly Fact[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".history"))
    .flatMap((name) => factsOf(name, readFileSync(join(folder, name), "utf8")))
    .toSorted((a, b) => a.at - b.at);
}

function factsOf(name: string, text: string): readonly Fact[] {
  // A process that was killed while it wrote leaves half a line behind.
  const lines = text.slice(0, text.lastIndexOf("\n") + 1).split("\n");
  return lines.flatMap((line, index) => {
    if (line === "") return [];
    const fact: unknown = JSON.parse(line);
    if (!isFact(fact)) throw new Error(`${name}, line ${index + 1}, is not a fact of a history: ${line}`);
    return [fact];
  });
}

/** Each process writes whole facts or none, so this much tells a history from any other file. */
function isFact(value: unknown): value is Fact {
  if (typeof value !== "object" || value === null) return false;
  return "at" in value && typeof value.at === "number" && "by" in value && "type" in value;
}
