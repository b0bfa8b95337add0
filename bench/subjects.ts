import { BadArgument } from "./arguments.ts";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { DURABILITY_CLASSES, type Subject } from "./subject.ts";

const FOLDER = join(import.meta.dirname, "subjects");

/** Those of every file in `subjects/`; Baton first, the raw ceiling last. */
export async function allSubjects(): Promise<readonly Subject[]> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith(".ts")).toSorted();
  const found = await Promise.all(
    files.map(async (file) => (await import(join(FOLDER, file))) as { readonly subjects: readonly Subject[] }),
  );
  const all = found.flatMap(({ subjects }) => subjects);
  // Nothing but this would notice: a subject without a class is compared with nobody.
  const vague = all.find((subject) => !DURABILITY_CLASSES.includes(subject.class));
  if (vague !== undefined) throw new Error(`The subject ${vague.name} has to say its class: synced or buffered.`);
  return all;
}

export async function findSubject(name: string): Promise<Subject> {
  const subject = (await allSubjects()).find((one) => one.name === name);
  if (subject === undefined) throw new Error(`There is no subject ${name}.`);
  return subject;
}

/** By name; a name selects its variants too. What they are compared with is always among them; in a hurry, variants only if named. */
export function selectSubjects(all: readonly Subject[], names: readonly string[], hurry: boolean): readonly Subject[] {
  if (names.length === 0) return all.filter((subject) => !hurry || subject.variant !== true);
  for (const name of names) {
    if (!all.some((subject) => isNamed(subject, name)))
      throw new BadArgument(
        `There is no subject ${name}. There are: ${all.map((subject) => subject.name).join(", ")}.`,
      );
  }
  const chosen = new Set(all.filter((subject) => names.some((name) => isNamed(subject, name))));
  // Only the main baselines are brought along; a class that has one of its own needs no other.
  const classes = new Set(Array.from(chosen).flatMap((one) => (one.against === undefined ? one.class : [])));
  for (const one of chosen) if (one.baseline === true) classes.delete(one.class);
  return all.filter(
    (subject) =>
      chosen.has(subject) ||
      [...chosen].some(({ against }) => against === subject.name) ||
      (subject.baseline === true && subject.variant !== true && classes.has(subject.class)),
  );
}

function isNamed(subject: Subject, name: string): boolean {
  return subject.name === name || subject.name.startsWith(`${name}-`);
}
