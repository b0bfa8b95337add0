/** What can be chosen, in code, in a URL, or by the variables that Consul's own command reads. */
import { InvalidInput } from "../domain/errors.ts";
import { parseDuration } from "../domain/duration.ts";
import { checkOptions, checkParameters, given, type OptionNames } from "../domain/options.ts";

export interface ConsulOptions {
  /** `host:port`, or `unix:///path`. Default `$CONSUL_HTTP_ADDR`, else `127.0.0.1:8500`. */
  readonly address?: string | undefined;
  /** Begins the keys of all locks. Default `baton/locks`. */
  readonly prefix?: string | undefined;
  /** Default `$CONSUL_HTTP_TOKEN`. */
  readonly token?: string | undefined;
  /** Read anew for every request, because such files are replaced while processes run. Default `$CONSUL_HTTP_TOKEN_FILE`. */
  readonly tokenFile?: string | undefined;
  /** Where the locks are kept. Default: that of the agent. */
  readonly datacenter?: string | undefined;
  /** Of Consul Enterprise. Default `$CONSUL_NAMESPACE`. */
  readonly namespace?: string | undefined;
  /** Default: by `$CONSUL_HTTP_SSL`. */
  readonly tls?: ConsulTls | boolean | undefined;
  /** The servers' `session_ttl_min`, if they have another than Consul's own 10 seconds. */
  readonly shortestLeaseMs?: number | undefined;
}

/** Files, as `$CONSUL_CACERT`, `$CONSUL_CLIENT_CERT`, `$CONSUL_CLIENT_KEY` and `$CONSUL_TLS_SERVER_NAME` name them. */
export interface ConsulTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name that the server's certificate has to carry. */
  readonly serverName?: string | undefined;
  /** False: whoever answers is believed. `$CONSUL_HTTP_SSL_VERIFY`. */
  readonly verify?: boolean | undefined;
}

const CONSUL_OPTIONS: OptionNames<ConsulOptions> = {
  address: true,
  prefix: true,
  token: true,
  tokenFile: true,
  datacenter: true,
  namespace: true,
  tls: true,
  shortestLeaseMs: true,
};
const TLS_OPTIONS: OptionNames<ConsulTls> = { ca: true, cert: true, key: true, serverName: true, verify: true };

export interface ConsulSettings {
  readonly origin: string;
  readonly socket: string | undefined;
  readonly prefix: string;
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  /** `user:password`, for a proxy in front of Consul. */
  readonly basicAuth: string | undefined;
  readonly datacenter: string | undefined;
  readonly namespace: string | undefined;
  readonly tls: ConsulTls | undefined;
  readonly shortestLeaseMs: number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_ADDRESS = "127.0.0.1:8500";
const DEFAULT_PREFIX = "baton/locks";
/** Of Consul, when its configuration says nothing. */
const SESSION_TTL_MIN_MS = 10_000;
const PREFIX = /^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/;
const PARAMETERS = ["dc", "ns", "token", "token-file", "ca", "cert", "key", "server-name", "verify", "shortest-lease"];

export function consulSettings(options: ConsulOptions, environment: Environment): ConsulSettings {
  checkOptions(options, CONSUL_OPTIONS);
  if (typeof options.tls === "object") checkOptions(options.tls, TLS_OPTIONS, "tls");
  const variable = (name: string): string | undefined => nonEmpty(environment[name]);
  const written = options.address ?? variable("CONSUL_HTTP_ADDR") ?? DEFAULT_ADDRESS;
  const [, scheme, address = ""] = /^(?:(https?|unix):\/\/)?(.*?)\/?$/.exec(written) ?? [];
  if (address === "") throw new InvalidInput("address", written, "host:port, or unix:///path");
  const { prefix = DEFAULT_PREFIX, shortestLeaseMs = SESSION_TTL_MIN_MS } = options;
  if (!PREFIX.test(prefix)) {
    throw new InvalidInput("prefix", prefix, "letters, digits, _ and -, in parts separated by /");
  }
  const tls = tlsOf(options, scheme, variable);
  return {
    origin: `${tls === undefined ? "http" : "https"}://${scheme === "unix" ? "localhost" : address}`,
    socket: scheme === "unix" ? address : undefined,
    prefix,
    token: options.token ?? (options.tokenFile === undefined ? variable("CONSUL_HTTP_TOKEN") : undefined),
    tokenFile: options.tokenFile ?? variable("CONSUL_HTTP_TOKEN_FILE"),
    basicAuth: variable("CONSUL_HTTP_AUTH"),
    datacenter: options.datacenter,
    namespace: options.namespace ?? variable("CONSUL_NAMESPACE"),
    tls,
    shortestLeaseMs,
  };
}

function tlsOf(
  { tls }: ConsulOptions,
  scheme: string | undefined,
  variable: (name: string) => string | undefined,
): ConsulTls | undefined {
  const wanted =
    tls === undefined ? scheme === "https" || isTrue(variable("CONSUL_HTTP_SSL"), "CONSUL_HTTP_SSL") : tls !== false;
  if (!wanted) return undefined;
  const fromVariables = {
    ...entry("ca", variable("CONSUL_CACERT")),
    ...entry("cert", variable("CONSUL_CLIENT_CERT")),
    ...entry("key", variable("CONSUL_CLIENT_KEY")),
    ...entry("serverName", variable("CONSUL_TLS_SERVER_NAME")),
    verify: isTrue(variable("CONSUL_HTTP_SSL_VERIFY") ?? "true", "CONSUL_HTTP_SSL_VERIFY"),
  };
  return typeof tls === "object" ? { ...fromVariables, ...given(tls) } : fromVariables;
}

/** `consul://host:8500/prefix?dc=…`; `consul+https://…` for encrypted connections. Without a host: as the variables say. */
export function parseConsulUrl(url: string): ConsulOptions {
  const match = /^consul(\+https?)?:(?:\/\/([^/?#@]*)(?:\/([^?#@]*))?)?(?:\?([^#]*))?$/.exec(url);
  if (match === null) {
    throw new InvalidInput("store", url.replace(/\?.*|[^/]*@/g, "…"), "consul://host:8500/prefix, without a user");
  }
  const [, secure, host, prefix, query = ""] = match;
  const parameters = new URLSearchParams(query);
  checkParameters(parameters.keys(), PARAMETERS);
  const value = (name: string): string | undefined => nonEmpty(parameters.get(name));
  const verify = value("verify");
  const shortest = value("shortest-lease");
  const tls = {
    ...entry("ca", value("ca")),
    ...entry("cert", value("cert")),
    ...entry("key", value("key")),
    ...entry("serverName", value("server-name")),
    ...(verify === undefined ? {} : { verify: isTrue(verify, "verify") }),
  };
  return {
    ...entry("address", nonEmpty(host)),
    ...entry("prefix", nonEmpty(prefix?.replace(/\/$/, ""))),
    ...entry("token", value("token")),
    ...entry("tokenFile", value("token-file")),
    ...entry("datacenter", value("dc")),
    ...entry("namespace", value("ns")),
    ...(secure === "+https" || Object.keys(tls).length > 0 ? { tls } : {}),
    ...(secure === "+http" ? { tls: false } : {}),
    ...(shortest === undefined ? {} : { shortestLeaseMs: parseDuration(shortest, "shortest-lease") }),
  };
}

/** A variable that is set to nothing is as good as none. */
function nonEmpty(value: string | null | undefined): string | undefined {
  return value === null || value === "" ? undefined : value;
}

function isTrue(value: string | undefined, field: string): boolean {
  if (value === undefined) return false;
  if (/^(1|t|true)$/i.test(value)) return true;
  if (/^(0|f|false)$/i.test(value)) return false;
  throw new InvalidInput(field, value, "true or false");
}

function entry<Name extends string>(name: Name, value: string | undefined): Partial<Record<Name, string>> {
  const found: Partial<Record<Name, string>> = {};
  if (value !== undefined) found[name] = value;
  return found;
}
