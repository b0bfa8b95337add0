/** Reads what the processes of a run wrote, and nothing else. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Fact } from "../history/fact.ts";

/** The files are not what the processes of a run wrote. */
export class Unreadable extends Error {}

/** In the order of their times. */
export function readHistory(folder: string): readonly Fact[] {
  const names = namesIn(folder).filter((name) => name.endsWith(".history"));
  if (names.length === 0) throw new Unreadable(`There is no history of a chaos run in ${folder}.`);
  return names
    .flatMap((name) => factsOf(name, readFileSync(join(folder, name), "utf8")))
    .toSorted((a, b) => a.at - b.at);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    throw new Unreadable(`${folder} is no folder that can be read.`, { cause });
  }
}

function factsOf(name: string, text: string): readonly Fact[] {
  // A process that was killed while it wrote leaves half a line behind.
  const lines = text.slice(0, text.lastIndexOf("\n")).split("\n");
  if (text.lastIndexOf("\n") === -1) return [];
  return lines.map((line, index) => {
    const fact = parsed(line);
    if (!isFact(fact)) throw new Unreadable(`${name}, line ${index + 1}, is not a fact of a history: ${line}`);
    if (fact.line !== undefined && fact.line !== index + 1)
      throw new Unreadable(`${name} is torn: line ${index + 1} was written as line ${fact.line}.`);
    return fact;
  });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/** Each process writes whole facts or none, so this much tells a history from any other file. */
function isFact(value: unknown): value is Fact {
  if (typeof value !== "object" || value === null) return false;
  return "at" in value && typeof value.at === "number" && "by" in value && "type" in value;
}
