/** A private copy of the tree, in which flaws are planted and tests run. The tree itself is never written to. */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { tmpdir } from "node:os";
import { join, relative, sep } from "node:path";
import { type Mutant, planted } from "./mutant.ts";

/** What a copy does without, or shares. */
const LEFT: ReadonlySet<string> = new Set(["node_modules", ".git", ".cache", "chaos-runs"]);
const SHARED = ["node_modules", join(".cache", "servers")];

const MEMORY = "/dev/shm";
const MEMORY_NEEDED = 2 * 1024 ** 3;

export class Workspace implements Disposable {
  readonly root: string;
  readonly #folder: string;
  #temporary: string;

  constructor(original: string) {
    this.#folder = mkdtempSync(join(hasRoom() ? MEMORY : tmpdir(), "baton-mutate-"));
    this.root = join(this.#folder, "tree");
    cpSync(original, this.root, {
      recursive: true,
      filter: (path) =>
        path === original ||
        !relative(original, path)
          .split(sep)
          .some((part) => LEFT.has(part)),
    });
    mkdirSync(join(this.root, ".cache"));
    for (const name of SHARED) {
      if (existsSync(join(original, name))) symlinkSync(join(original, name), join(this.root, name));
    }
    // Servers may run as somebody else.
    chmodSync(this.#folder, 0o755);
    this.#temporary = this.#newTemporary();
  }

  /** For what tests write. */
  get temporary(): string {
    return this.#temporary;
  }

  /** Undone when it is disposed of. */
  plant(mutant: Mutant): Disposable {
    const undo = [this.#write(mutant.file, (text) => planted(text, mutant))];
    const built = mutant.file.replace(/^src\//, "dist/").replace(/\.ts$/, ".js");
    if (existsSync(join(this.root, built))) {
      const flawed = readFileSync(join(this.root, mutant.file), "utf8");
      undo.push(this.#write(built, () => compiled(flawed)));
    }
    return { [Symbol.dispose]: () => undo.forEach((one) => one()) };
  }

  /** What an ended run has left behind. Its servers may end a moment later, and write until then. */
  sweep(): void {
    remove(this.#temporary);
    this.#temporary = this.#newTemporary();
  }

  [Symbol.dispose](): void {
    remove(this.#folder);
  }

  #newTemporary(): string {
    const folder = mkdtempSync(join(this.#folder, "tmp-"));
    chmodSync(folder, 0o1777);
    return folder;
  }

  #write(file: string, change: (text: string) => string): () => void {
    const path = join(this.root, file);
    const text = readFileSync(path, "utf8");
    writeFileSync(path, change(text));
    return () => writeFileSync(path, text);
  }
}

/** As the build does it, as far as a running program can tell. The thread of SQLite, which the build makes one text of, stays as it is. */
function compiled(source: string): string {
  return stripTypeScriptTypes(source).replaceAll(/((?:from|import\(?) ?"\.[^"]+)\.ts"/g, '$1.js"');
}

function remove(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  } catch {
    // Somebody writes to it still. It goes with the whole copy, or when the machine starts anew.
  }
}

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize > MEMORY_NEEDED;
  } catch {
    return false;
  }
}
