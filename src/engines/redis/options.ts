/** What can be chosen, in code or in a URL. */
import { readFileSync } from "node:fs";
import { BatonError, InvalidInput } from "../../domain/errors.ts";
import { checkOptions, checkParameters, type OptionNames } from "../../domain/options.ts";
import { isError } from "../../domain/realms.ts";
import type { Wake } from "../../wake/wake.ts";

export interface RedisOptions extends StoreOptions {
  /** `redis://user:password@host:6379/0`; `rediss://` for encrypted connections. */
  readonly url: string;
  /** Files with the certificates of the server's authority, and of the client and its key. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface StoreOptions {
  /** Begins the names of all keys. Default `baton`. */
  readonly prefix?: string | undefined;
  /** Wakes other processes in place of Redis's own publish and subscribe. Closed with the engine. */
  readonly wake?: Wake | undefined;
}

export interface Prefixed {
  readonly prefix: string;
}

const STORE_OPTIONS: OptionNames<StoreOptions> = { prefix: true, wake: true };
const REDIS_OPTIONS: OptionNames<RedisOptions> = { ...STORE_OPTIONS, url: true, ca: true, cert: true, key: true };

const PREFIX = /^[A-Za-z0-9_-]{1,32}$/;
const A_URL = "redis://host:6379/0, or rediss:// for encryption";
const PARAMETERS = ["prefix", "ca", "cert", "key"];

/** Those of an engine on a client of its own. */
export function checkRedisOptions(options: RedisOptions): RedisOptions & Prefixed {
  const { url } = checkOptions(options, REDIS_OPTIONS);
  if (typeof url !== "string") throw new InvalidInput("url", url, A_URL);
  return withPrefix(options);
}

/** Those of an engine on a client of the application's. */
export function checkStoreOptions(options: StoreOptions): StoreOptions & Prefixed {
  return withPrefix(checkOptions(options, STORE_OPTIONS));
}

function withPrefix<T extends StoreOptions>(options: T): T & Prefixed {
  const { prefix = "baton" } = options;
  if (!PREFIX.test(prefix)) throw new InvalidInput("prefix", prefix, "1 to 32 letters, digits, _ or -");
  return { ...options, prefix };
}

/** The parameters are ours, the rest is the client's. */
export function parseRedisUrl(written: string): RedisOptions {
  const url = URL.parse(written);
  if (url?.protocol !== "redis:" && url?.protocol !== "rediss:")
    throw new InvalidInput("store", withoutSecrets(written), A_URL);
  if (!/^\/?(\d+)?$/.test(url.pathname))
    throw new InvalidInput("store", withoutSecrets(written), "the number of a database behind the host, if anything");
  checkParameters(url.searchParams.keys(), PARAMETERS);
  const given = (name: string): Record<string, string> => {
    const value = url.searchParams.get(name);
    return value === null ? {} : { [name]: value };
  };
  const options = { ...given("prefix"), ...given("ca"), ...given("cert"), ...given("key") };
  url.search = "";
  return { url: url.toString(), ...options };
}

export interface TlsFiles {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

export function readTlsFiles(options: RedisOptions): TlsFiles {
  const files = (["ca", "cert", "key"] as const).flatMap((what) => {
    const file = options[what];
    return file === undefined ? [] : [[what, readTlsFile(what, file)] as const];
  });
  return Object.fromEntries(files);
}

function readTlsFile(what: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    const reason = isError(cause) ? ` (${cause.message})` : "";
    throw new BatonError(
      "STORE_UNAVAILABLE",
      `The ${what} file ${file} could not be read${reason}. Nothing was done. Put its name right, or its permissions.`,
      { cause },
    );
  }
}

function withoutSecrets(url: string): string {
  return url.replace(/\/\/[^/?]*@/, "//…@");
}
