import { BadArgument } from "./arguments.ts";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Subject } from "./subject.ts";

/** What everything is compared with. */
export const BASELINE = "sqlite";

const FOLDER = join(import.meta.dirname, "subjects");

/** Those of every file in `subjects/`; Baton first, the raw ceiling last. */
export async function allSubjects(): Promise<readonly Subject[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith(".ts")).toSorted();
  const found = await Promise.all(
    files.map(async (file) => (await import(join(FOLDER, file))) as { readonly subjects: readonly Subject[] }),
  );
  return found.flatMap(({ subjects }) => subjects);
}

export async function findSubject(name: string): Promise<Subject> {
  const subject = (await allSubjects()).find((one) => one.name === name);
  if (subject === undefined) throw new Error(`There is no subject ${name}.`);
  return subject;
}

/** By name; a name selects its variants too. The baseline is always among them; in a hurry, variants only if named. */
export function selectSubjects(all: readonly Subject[], names: readonly string[], hurry: boolean): readonly Subject[] {
  if (names.length === 0) return all.filter((subject) => !hurry || subject.variant !== true);
  for (const name of names) {
    if (!all.some((subject) => isNamed(subject, name)))
      throw new BadArgument(
        `There is no subject ${name}. There are: ${all.map((subject) => subject.name).join(", ")}.`,
      );
  }
  return all.filter((subject) => subject.name === BASELINE || names.some((name) => isNamed(subject, name)));
}

function isNamed(subject: Subject, name: string): boolean {
  return subject.name === name || subject.name.startsWith(`${name}-`);
}
