/** The packages that a relay's settings need. They are the application's to install, and all that are missing are named at once. */
import { isNotFound } from "../../domain/client-library.ts";
import { isError } from "../../domain/realms.ts";
import { BatonError } from "../../domain/errors.ts";
import type { RelaySettings, RouteSettings } from "../settings.ts";
import type { PackageName } from "./package-name.ts";

/** Each is named where it is loaded, so that a bundler finds it; and with a `catch`, so that it puts up with one that is not there. */
const LOADERS: Readonly<Record<PackageName, () => Promise<unknown>>> = {
  "@aws-sdk/client-sqs": () => import("@aws-sdk/client-sqs").catch(again),
  "@google-cloud/pubsub": () => import("@google-cloud/pubsub").catch(again),
  "@nats-io/transport-node": () => import("@nats-io/transport-node").catch(again),
  "@redis/client": () => import("@redis/client").catch(again),
  cloudevents: () => import("cloudevents").catch(again),
  pg: () => import("pg").catch(again),
  undici: () => import("undici").catch(again),
};

export interface NeededPackage {
  readonly name: PackageName;
  /** What needs it, for people. */
  readonly use: string;
}

/** By the scheme of a store's URL, and of what wakes it. SQLite and memory need none. */
const OF_STORES: Readonly<Record<string, PackageName>> = {
  nats: "@nats-io/transport-node",
  tls: "@nats-io/transport-node",
  postgres: "pg",
  postgresql: "pg",
  redis: "@redis/client",
  rediss: "@redis/client",
};

export function storePackages(url: string): readonly PackageName[] {
  const wake = URL.canParse(url) ? new URL(url).searchParams.get("wake") : null;
  return [url, wake ?? ""].flatMap((one) => {
    const [, scheme = ""] = /^([a-z][a-z0-9+.-]*):/i.exec(one) ?? [];
    return OF_STORES[scheme.toLowerCase()] ?? [];
  });
}

export function packagesOf({ routes, keys }: RelaySettings): readonly NeededPackage[] {
  const ofKeys = keys === undefined || typeof keys.store !== "string" ? [] : storePackages(keys.store);
  return [...routes.flatMap(ofRoute), ...ofKeys.map((name) => ({ name, use: "the store of the keys" }))];
}

function ofRoute({ sources, transforms, form, processor }: RouteSettings): readonly NeededPackage[] {
  const needed: NeededPackage[] = [];
  for (const { name: source, packages = [], deadLetter } of sources) {
    needed.push(...packages.map((name) => ({ name, use: `source ${source}` })));
    const letters = deadLetter.to === "queue" ? storePackages(deadLetter.store) : [];
    needed.push(...letters.map((name) => ({ name, use: `the dead letters of source ${source}` })));
  }
  for (const { name: transform, packages = [] } of transforms)
    needed.push(...packages.map((name) => ({ name, use: `transform ${transform}` })));
  if (form.type !== "raw") needed.push({ name: "cloudevents", use: `form ${form.type}` });
  if (processor.type === "http") needed.push({ name: "undici", use: "delivery by HTTP" });
  return needed;
}

/** What a word in a configuration needs. */
const SIGNS: readonly (readonly [RegExp, PackageName])[] = [
  [/\btype["']?:\s*["']?(?:aws_?)?sqs\b/i, "@aws-sdk/client-sqs"],
  [/\btype["']?:\s*["']?(?:gcp_?)?pubsub\b/i, "@google-cloud/pubsub"],
  [/\b(?:nats|tls):\/\//i, "@nats-io/transport-node"],
  [/\bpostgres(?:ql)?:\/\//i, "pg"],
  [/\brediss?:\/\//i, "@redis/client"],
  [/\bcloudevents\b|\btype["']?:\s*["']?dapr\b(?!_)/i, "cloudevents"],
  [/\btype["']?:\s*["']?http(?:_raw|_dapr)?\b/i, "undici"],
];

/** Of a configuration that cannot be read, because what reads it is missing, too: by its words, as far as they tell. */
export async function missingBySigns(text: string): Promise<readonly PackageName[]> {
  const needed = SIGNS.filter(([sign]) => sign.test(text)).map(([, name]) => ({ name, use: "" }));
  return (await thoseMissing(needed)).map(({ name }) => name);
}

/** Those that cannot be loaded, each once for every use. */
export async function missingPackages(settings: RelaySettings): Promise<readonly NeededPackage[]> {
  return await thoseMissing(packagesOf(settings));
}

async function thoseMissing(needed: readonly NeededPackage[]): Promise<readonly NeededPackage[]> {
  const missing = new Set<PackageName>();
  for (const name of new Set(needed.map((one) => one.name))) {
    try {
      await LOADERS[name]();
    } catch (cause) {
      if (!isNotFound(cause)) throw cause;
      missing.add(name);
    }
  }
  return needed.filter(({ name }) => missing.has(name));
}

/** Throws unless all that the settings need is installed. */
export async function checkPackages(settings: RelaySettings): Promise<void> {
  const missing = await missingPackages(settings);
  if (missing.length > 0) throw new BatonError("ENGINE_MISSING", `${missingText(missing)} Nothing was started.`);
}

/** Which are missing, what for, and the one line that installs them. */
export function missingText(missing: readonly NeededPackage[]): string {
  const uses = Map.groupBy(missing, ({ name }) => name);
  const list = Array.from(uses, ([name, all]) => `${name} (${[...new Set(all.map(({ use }) => use))].join(", ")})`);
  const what = list.length === 1 ? "a package that is" : "packages that are";
  return `The configuration needs ${what} not installed: ${list.join("; ")}. Run: npm install ${[...uses.keys()].join(" ")}.`;
}

function again(cause: unknown): never {
  throw isError(cause) ? cause : new Error(String(cause));
}
