/** What can be chosen, in code or in a URL. */
import { InvalidInput } from "../../domain/errors.ts";
import { checkOptions, checkParameters, type OptionNames } from "../../domain/options.ts";

export interface NatsOptions {
  /** `host:port`, several for a cluster. */
  readonly servers: readonly string[];
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly token?: string | undefined;
  /** File with the seed of an nkey. */
  readonly nkey?: string | undefined;
  /** File with a JWT and the seed that belongs to it, as `nsc` writes it. */
  readonly creds?: string | undefined;
  readonly tls?: TlsOptions | undefined;
  readonly store?: StoreOptions | undefined;
}

export interface TlsOptions {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

/** How streams are made when they are first needed. Those that exist are never changed. */
export interface StoreOptions {
  /** Begins the names of all streams and subjects. Default `baton`. */
  readonly prefix?: string | undefined;
  /** Servers that keep a copy: 1, 3 or 5. Default 1. */
  readonly replicas?: number | undefined;
  /** Default `file`. */
  readonly storage?: "file" | "memory" | undefined;
  /** `always`: the servers sync every write (`sync_interval: always`). Then writes that wait go together. Servers do not say so themselves. */
  readonly sync?: "always" | undefined;
  /** JetStream domain, when the servers have one. */
  readonly domain?: string | undefined;
  /** Begins the subjects of replies. Default `_INBOX`. */
  readonly inbox?: string | undefined;
}

const NATS_OPTIONS: OptionNames<NatsOptions> = {
  servers: true,
  user: true,
  password: true,
  token: true,
  nkey: true,
  creds: true,
  tls: true,
  store: true,
};
const TLS_OPTIONS: OptionNames<TlsOptions> = { ca: true, cert: true, key: true };
const STORE_OPTIONS: OptionNames<StoreOptions> = {
  prefix: true,
  replicas: true,
  storage: true,
  sync: true,
  domain: true,
  inbox: true,
};

export interface StoreSettings {
  readonly prefix: string;
  readonly replicas: number;
  readonly storage: "file" | "memory";
  readonly sync: "always" | undefined;
  readonly api: string;
  readonly inbox: string;
}

/** Hyphens are left to tell the prefix from the queue in the name of a stream. */
const PREFIX = /^[A-Za-z0-9_]{1,32}$/;
const INBOX = /^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;
const DOMAIN = /^[^\s.*>]+$/;
const PARAMETERS = [
  "prefix",
  "replicas",
  "storage",
  "sync",
  "domain",
  "inbox",
  "token",
  "nkey",
  "creds",
  "tls",
  "ca",
  "cert",
  "key",
];

/** Looked at before anything is connected. */
export function checkNatsOptions(options: NatsOptions): NatsOptions {
  const { servers, tls, store } = checkOptions(options, NATS_OPTIONS);
  const isList = Array.isArray(servers) && servers.length > 0 && servers.every((one) => typeof one === "string");
  if (!isList) throw new InvalidInput("servers", servers, "a list of one host:port or more");
  if (tls !== undefined) checkOptions(tls, TLS_OPTIONS, "tls");
  if (store !== undefined) parseStoreOptions(store, "store");
  return options;
}

/** @param place where the options stand in larger ones */
export function parseStoreOptions(options: StoreOptions = {}, place = ""): StoreSettings {
  checkOptions(options, STORE_OPTIONS, place);
  const { prefix = "baton", replicas = 1, storage = "file", sync, domain, inbox = "_INBOX" } = options;
  if (!PREFIX.test(prefix)) throw new InvalidInput("prefix", prefix, "1 to 32 letters, digits or _");
  if (![1, 2, 3, 4, 5].includes(replicas))
    throw new InvalidInput("replicas", replicas, "a number from 1 to 5; 1, 3 or 5 make sense");
  if (storage !== "file" && storage !== "memory") throw new InvalidInput("storage", storage, "file or memory");
  if (sync !== undefined && sync !== "always") throw new InvalidInput("sync", sync, "always, or nothing");
  if (domain !== undefined && !DOMAIN.test(domain))
    throw new InvalidInput("domain", domain, "the name of a JetStream domain: no spaces, dots or wildcards");
  if (!INBOX.test(inbox)) throw new InvalidInput("inbox", inbox, "a subject without wildcards");
  return { prefix, replicas, storage, sync, api: domain === undefined ? "$JS.API" : `$JS.${domain}.API`, inbox };
}

/** `nats://[user:password@]host:4222,host2:4222?prefix=…`; `tls://…` for encrypted connections. */
export function parseNatsUrl(url: string): NatsOptions {
  const match =
    /^(nats|tls):\/\/(?:([^@/?,]*)@)?((?:[^@/?,]+|,(?:nats|tls):\/\/(?:[^@/?,]*@)?|,)*)\/?(?:\?(.*))?$/.exec(url);
  const [, scheme, credentials, hosts = "", query = ""] = match ?? [];
  const servers = hosts
    .split(",")
    .map((host) => host.replace(/^(?:nats|tls):\/\/(?:[^@]*@)?/, ""))
    .filter((host) => host !== "");
  if (match === null || servers.length === 0)
    throw new InvalidInput("store", withoutSecrets(url), "nats://host:4222, with more hosts behind commas");
  const parameters = new URLSearchParams(query);
  checkParameters(parameters.keys(), PARAMETERS);
  const [user, password] = credentialsOf(credentials ?? "", url);
  const token = parameters.get("token") ?? (password === undefined && user !== "" ? user : undefined);
  return {
    servers,
    ...(password === undefined ? {} : { user: user ?? "", password }),
    ...(token === undefined || token === "" ? {} : { token }),
    ...given(parameters, "nkey"),
    ...given(parameters, "creds"),
    ...(scheme === "tls" ||
    (parameters.get("tls") ?? "false") !== "false" ||
    ["ca", "cert", "key"].some((name) => parameters.has(name))
      ? { tls: { ...given(parameters, "ca"), ...given(parameters, "cert"), ...given(parameters, "key") } }
      : {}),
    store: storeOf(parameters),
  };
}

function storeOf(parameters: URLSearchParams): StoreOptions {
  const replicas = parameters.get("replicas");
  const storage = parameters.get("storage");
  const sync = parameters.get("sync");
  const options: StoreOptions = {
    ...given(parameters, "prefix"),
    ...given(parameters, "domain"),
    ...given(parameters, "inbox"),
    ...(replicas === null ? {} : { replicas: Number(replicas) }),
    ...(storage === null ? {} : { storage: storage === "memory" ? "memory" : "file" }),
    ...(sync === null ? {} : { sync: "always" }),
  };
  if (storage !== null && storage !== "memory" && storage !== "file")
    throw new InvalidInput("storage", storage, "file or memory");
  if (sync !== null && sync !== "always") throw new InvalidInput("sync", sync, "always, or nothing");
  parseStoreOptions(options);
  return options;
}

function given<K extends string>(parameters: URLSearchParams, name: K): Partial<Record<K, string>> {
  const value = parameters.get(name);
  const found: Partial<Record<K, string>> = {};
  if (value !== null) found[name] = value;
  return found;
}

function credentialsOf(text: string, url: string): readonly [string | undefined, string | undefined] {
  const at = text.indexOf(":");
  try {
    if (at === -1) return [decodeURIComponent(text), undefined];
    return [decodeURIComponent(text.slice(0, at)), decodeURIComponent(text.slice(at + 1))];
  } catch {
    throw new InvalidInput("store", withoutSecrets(url), "a user and password in which % is written as %25");
  }
}

function withoutSecrets(url: string): string {
  return url.replaceAll(/\/\/[^,?]*@/g, "//…@").replace(/([?&]token=)[^&]*/, "$1…");
}
