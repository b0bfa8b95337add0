/** Reads a relay's configuration file, JSON or YAML, and says everything that is wrong with it at once. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type * as Yaml from "yaml";
import { BatonError, show } from "../../domain/errors.ts";
import { checkOptions, type OptionNames } from "../../domain/options.ts";
import { isError } from "../../domain/realms.ts";
import type { RelaySettings, RouteSettings } from "../settings.ts";
import { missingBySigns } from "../check/packages.ts";
import { duplicateKeys } from "./duplicate-keys.ts";
import type { Environment } from "./environment.ts";
import { original } from "./original-schema.ts";
import { type ReadRoute, relay } from "./relay-schema.ts";
import { isObject, Place, type Problem, refused } from "./schema.ts";

export class ConfigInvalid extends BatonError {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const lines = problems.map(({ path, message }) => `  ${path === "" ? "the file" : path}: ${message}`);
    const count = problems.length === 1 ? "a problem" : `${problems.length} problems`;
    super("INVALID_INPUT", `${file} has ${count}. Nothing was started.\n${lines.join("\n")}`);
    this.file = file;
    this.problems = problems;
  }
}

export interface ConfigOptions {
  /** Where the configuration would stand, for messages and for the paths in it. Default `relay.json` in the current folder. */
  readonly file?: string | undefined;
  /** What `${NAME}` in it stands for. Default: the environment of the process. */
  readonly environment?: Environment | undefined;
}

const CONFIG_OPTIONS: OptionNames<ConfigOptions> = { file: true, environment: true };

export async function readConfig(file: string, environment: Environment = process.env): Promise<RelaySettings> {
  return await parseConfig(await parseFile(file), { file, environment });
}

/** The same for a configuration that is a value already. Paths in it begin where the file would be. */
export async function parseConfig(value: unknown, options: ConfigOptions = {}): Promise<RelaySettings> {
  const { file = "relay.json", environment = process.env } = checkOptions(options, CONFIG_OPTIONS);
  const problems: Problem[] = [];
  const later: (() => Promise<unknown>)[] = [];
  const warnings: string[] = [];
  const at = new Place("", { environment, folder: dirname(resolve(file)), later, warnings }, problems);
  // Its names may be written in any case.
  const isOriginal = isObject(value) && Object.keys(value).some((name) => name.toLowerCase() === "queues");
  const read = (isOriginal ? original : relay).read(value, at);
  if (read === refused) {
    await Promise.all(later.map((look) => look()));
    throw new ConfigInvalid(file, problems);
  }
  const routes = await Promise.all(read.routes.map(openRoute));
  const opened = routes.filter((route) => route !== refused);
  if (opened.length < routes.length) throw new ConfigInvalid(file, problems);
  return { ...read, routes: opened, ...(warnings.length === 0 ? {} : { warnings }) };
}

async function openRoute({ daprReplies, ...route }: ReadRoute): Promise<RouteSettings | typeof refused> {
  const opening = await Promise.all(route.transforms.map((open) => open()));
  const transforms = opening.filter((transform) => transform !== refused);
  if (transforms.length < opening.length) return refused;
  const { processor, form } = route;
  // An application that is given what Dapr delivers answers as Dapr wants it: a RETRY with status 200 must not be lost.
  const isDapr = form.type === "dapr" || transforms.some(({ name }) => name === "dapr_aws");
  if (processor.type !== "http" || daprReplies === undefined || !isDapr) return { ...route, transforms };
  return { ...route, transforms, processor: { ...processor, replies: daprReplies } };
}

async function parseFile(file: string): Promise<unknown> {
  let written: string;
  try {
    written = await readFile(file, "utf8");
  } catch (cause) {
    const why = isError(cause) ? cause.message : String(cause);
    throw new BatonError("NOT_FOUND", `The configuration ${file} could not be read: ${why}. Nothing was started.`, {
      cause,
    });
  }
  const isYaml = /\.ya?ml$/i.test(file);
  try {
    return isYaml ? await parseYaml(written) : parseJson(written, file);
  } catch (cause) {
    if (cause instanceof BatonError) throw cause;
    // Without the excerpts of the file that both readers show: there may be a secret in them.
    const [said = ""] = (isError(cause) ? cause.message : String(cause)).split("\n");
    const why = said.replace(/, (?:\.{3})?".*$/, "");
    throw new BatonError("INVALID_INPUT", `${file} is not ${isYaml ? "YAML" : "JSON"}: ${why}. Nothing was started.`, {
      cause,
    });
  }
}

/** Some editors put a byte order mark before a text. */
function parseJson(written: string, file: string): unknown {
  const text = written.replace(/^\uFEFF/, "");
  const value = JSON.parse(text) as unknown;
  const twice = duplicateKeys(text);
  if (twice.length === 0) return value;
  const problems = twice.map(({ name, line, column }) => {
    const place = `line ${line}, column ${column}`;
    return { path: place, expected: "each name once", found: name, message: `${show(name)} stands here a second time` };
  });
  throw new ConfigInvalid(file, problems);
}

async function parseYaml(written: string): Promise<unknown> {
  let library: typeof Yaml;
  try {
    library = await import("yaml");
  } catch (cause) {
    const more = await missingBySigns(written);
    const seen = more.length === 0 ? "" : ` By what stands in this one, it also needs ${more.join(", ")}.`;
    throw new BatonError(
      "ENGINE_MISSING",
      `Configurations in YAML need the package yaml, which is not installed. Nothing was started.${seen} Run: npm install ` +
        `${["yaml", ...more].join(" ")}.`,
      { cause },
    );
  }
  // Merge keys (`<<: *defaults`) belong to YAML 1.1; most files that use anchors have them.
  return library.parse(written, { merge: true }) as unknown;
}
