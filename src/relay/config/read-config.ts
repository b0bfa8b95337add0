/** Reads a relay's configuration file, JSON or YAML, and says everything that is wrong with it at once. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type * as Yaml from "yaml";
import { BatonError } from "../../domain/errors.ts";
import type { RelaySettings, RouteSettings } from "../settings.ts";
import type { Environment } from "./environment.ts";
import { original } from "./original-schema.ts";
import { type ReadRoute, relay } from "./relay-schema.ts";
import { isObject, Place, type Problem, refused } from "./schema.ts";

export class ConfigInvalid extends BatonError {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const lines = problems.map(
      ({ path, expected, found }) => `  ${path === "" ? "the file" : path}: expected ${expected}; found ${found}`,
    );
    const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
    super("INVALID_INPUT", `${file} has ${count}. Nothing was started.\n${lines.join("\n")}`);
    this.file = file;
    this.problems = problems;
  }
}

export async function readConfig(file: string, environment: Environment = process.env): Promise<RelaySettings> {
  return await parseConfig(await parseFile(file), { file, environment });
}

/** The same for a configuration that is a value already. Paths in it begin where the file would be. */
export async function parseConfig(
  value: unknown,
  {
    file = "relay.json",
    environment = process.env,
  }: { readonly file?: string; readonly environment?: Environment } = {},
): Promise<RelaySettings> {
  const problems: Problem[] = [];
  const later: (() => Promise<unknown>)[] = [];
  const at = new Place("", { environment, folder: dirname(resolve(file)), later }, problems);
  const isOriginal = isObject(value) && "queues" in value;
  const read = (isOriginal ? original : relay).read(value, at);
  if (read === refused) {
    await Promise.all(later.map((look) => look()));
    throw new ConfigInvalid(file, problems);
  }
  const routes = await Promise.all(read.routes.map(openRoute));
  const opened = routes.filter((route) => route !== refused);
  if (opened.length < routes.length) throw new ConfigInvalid(file, problems);
  return { ...read, routes: opened };
}

async function openRoute(route: ReadRoute): Promise<RouteSettings | typeof refused> {
  const transforms = await Promise.all(route.transforms.map((open) => open()));
  const opened = transforms.filter((transform) => transform !== refused);
  return opened.length < transforms.length ? refused : { ...route, transforms: opened };
}

async function parseFile(file: string): Promise<unknown> {
  let written: string;
  try {
    written = await readFile(file, "utf8");
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new BatonError("NOT_FOUND", `The configuration ${file} could not be read: ${why}. Nothing was started.`, {
      cause,
    });
  }
  try {
    return /\.ya?ml$/i.test(file) ? await parseYaml(written) : (JSON.parse(written) as unknown);
  } catch (cause) {
    if (cause instanceof BatonError) throw cause;
    // Without the excerpts of the file that both readers show: there may be a secret in them.
    const [said = ""] = (cause instanceof Error ? cause.message : String(cause)).split("\n");
    const why = said.replace(/, (?:\.{3})?".*$/, "");
    throw new BatonError(
      "INVALID_INPUT",
      `${file} is not ${/\.ya?ml$/i.test(file) ? "YAML" : "JSON"}: ${why}. Nothing was started.`,
      {
        cause,
      },
    );
  }
}

async function parseYaml(written: string): Promise<unknown> {
  let library: typeof Yaml;
  try {
    library = await import("yaml");
  } catch (cause) {
    throw new BatonError(
      "ENGINE_MISSING",
      "Configurations in YAML need the package yaml, which is not installed. Nothing was started. Run: npm install yaml, or write JSON.",
      { cause },
    );
  }
  return library.parse(written) as unknown;
}
