/**
 * TypeScript's own parser and checker, through the API of its version 7. It is called unstable there; the version is
 * pinned, and this file alone knows it. A flaw is checked in its own file: what other files see of it is written down
 * in types (isolatedDeclarations), so it cannot be wrong elsewhere only.
 */
import { join } from "node:path";
import type { SourceFile } from "typescript/unstable/ast";
import { API, type Program } from "typescript/unstable/sync";

/** Something is not used any more: true of most statements left out, and no reason to refuse a flaw. */
const UNUSED: ReadonlySet<number> = new Set([6133, 6138, 6192, 6196, 6198, 6199, 6205]);

export class Compiler implements Disposable {
  readonly #root: string;
  readonly #api: API;
  readonly #config: string;
  /** What the compiler reads instead of the file. */
  readonly #flawed = new Map<string, string>();
  #program: Program;

  constructor(root: string) {
    this.#root = root;
    this.#config = join(root, "tsconfig.json");
    this.#api = new API({ cwd: root, fs: { readFile: (name) => this.#flawed.get(name) } });
    this.#program = this.#read({ openProjects: [this.#config] });
  }

  parse(file: string): SourceFile {
    const found = this.#program.getSourceFile(join(this.#root, file));
    if (found === undefined) throw new Error(`${file} is no part of the program that tsconfig.json describes.`);
    return found;
  }

  /** Says why the compiler refuses the file with this text. Undefined: it does not. */
  refusal(file: string, text: string): string | undefined {
    const name = join(this.#root, file);
    this.#flawed.set(name, text);
    try {
      this.#program = this.#read({ fileChanges: { changed: [name] } });
      const syntax = this.#program.getSyntacticDiagnostics(name);
      const found = syntax.length > 0 ? syntax : this.#program.getSemanticDiagnostics(name);
      return found.find(({ code }) => !UNUSED.has(code))?.text;
    } finally {
      this.#flawed.delete(name);
      this.#program = this.#read({ fileChanges: { changed: [name] } });
    }
  }

  [Symbol.dispose](): void {
    this.#api.close();
  }

  #read(parameters: Parameters<API["updateSnapshot"]>[0]): Program {
    const project = this.#api.updateSnapshot(parameters).getProject(this.#config);
    if (project === undefined) throw new Error(`The compiler cannot read ${this.#config}.`);
    return project.program;
  }
}
