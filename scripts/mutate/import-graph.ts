/**
 * Which test files can reach a source file: those whose imports lead to it, also the lazy ones, and files that are named in a
 * text because a process or a thread is started with them.
 */
import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";
import { dirname } from "node:path/posix";

const NAMED = /["'`]([\w@./-]+\.[jt]s)["'`]/g;

export class ImportGraph {
  readonly tests: readonly string[];
  readonly #texts = new Map<string, string>();
  readonly #closures = new Map<string, ReadonlyMap<string, number>>();

  constructor(root: string) {
    const files = globSync("{src,test,chaos,servers,scripts,examples,demo,bench}/**/*.ts", {
      cwd: root,
      exclude: ["**/node_modules"],
    });
    for (const file of files) this.#texts.set(file.replaceAll("\\", "/"), readFileSync(join(root, file), "utf8"));
    this.tests = [...this.#texts.keys()].filter((file) => /^(?:src|test|chaos)\/.*\.test\.ts$/.test(file)).toSorted();
  }

  /** How many imports lead from the test to the source. Undefined: none do. */
  distance(test: string, source: string): number | undefined {
    return this.#closure(test).get(source);
  }

  /** It plays many histories, by a seed or by a suite of cases: it may catch a flaw that is far away. */
  isBroad(test: string): boolean {
    return /simulation|conformance/.test(test) || (this.#texts.get(test) ?? "").includes("new Seeds(");
  }

  /** Changes with each file that the test can reach. */
  fingerprint(test: string): string {
    return digest([...this.#closure(test).keys()].toSorted().map((file) => this.#texts.get(file) ?? ""));
  }

  /** Changes with one file. */
  fingerprintOfFile(file: string): string {
    return digest([this.#texts.get(file) ?? ""]);
  }

  #closure(test: string): ReadonlyMap<string, number> {
    const known = this.#closures.get(test);
    if (known !== undefined) return known;
    const found = new Map([[test, 0]]);
    for (const [file, distance] of found) {
      for (const next of this.#named(file)) if (!found.has(next)) found.set(next, distance + 1);
    }
    this.#closures.set(test, found);
    return found;
  }

  #named(file: string): readonly string[] {
    const text = this.#texts.get(file) ?? "";
    return [...text.matchAll(NAMED)]
      .map(([, written = ""]) => fileOf(written, file))
      .filter((name) => this.#texts.has(name));
  }
}

function digest(texts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text);
  return hash.digest("hex").slice(0, 16);
}

/** The built command is that of the sources. */
function fileOf(written: string, from: string): string {
  const built = /(?:^|\/)dist\/(.*)\.js$/.exec(written)?.[1];
  if (built !== undefined) return `src/${built}.ts`;
  return normalize(`${dirname(from)}/${written}`).replaceAll("\\", "/");
}
