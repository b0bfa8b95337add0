import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { BatonError, InvalidInput } from "../../domain/errors.ts";
import type { RelayReport } from "../relay-report.ts";
import type { AdminSettings } from "../settings.ts";

/** What the surface shows. It changes nothing. */
export interface AdminView {
  report(): RelayReport;
  metrics(): string;
}

export interface AdminServer {
  readonly url: string;
  /** Whether it listens where these settings say. */
  isAt(settings: AdminSettings): boolean;
  /** From now on it asks for this token. */
  useToken(token: string | undefined): void;
  close(): Promise<void>;
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"]);

/**
 * Opens `/healthz`, `/readyz` and `/metrics`. On another host than loopback there is a token, which all that names
 * sources and targets needs. The status of the first two needs none: probes of orchestrators have no token.
 */
export async function openAdmin(settings: AdminSettings, view: AdminView): Promise<AdminServer> {
  const { host, port } = settings;
  checkToken(settings);
  let { token } = settings;
  const server = createServer((request, response) => {
    const refusal = refusalOf(request, host);
    if (refusal === undefined) answer(request, response, view, mayRead(request, token));
    else send(response, refusal, "text/plain", "");
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "the port is in use" : cause.message;
      reject(
        new BatonError(
          "STORE_UNAVAILABLE",
          `The admin surface cannot listen on ${host}:${port}: ${why}. Choose another admin.port, or 0 for any.`,
          { cause },
        ),
      );
    });
    server.listen(port, host, resolve);
  });
  // The relay is what keeps the process alive.
  server.unref();
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return {
    isAt: (other) => other.host === host && other.port === port,
    useToken: (other) => {
      token = other;
    },
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function checkToken({ host, token }: AdminSettings): void {
  if (!LOOPBACK.has(host) && token === undefined)
    throw new InvalidInput("admin.token", token, `a token, because ${host} can be reached from other machines`);
}

function answer({ method, url }: IncomingMessage, response: ServerResponse, view: AdminView, isKnown: boolean): void {
  if (method !== "GET" && method !== "HEAD") return send(response, 405, "text/plain", "");
  switch (url?.split("?")[0]) {
    case "/healthz":
      return send(response, 200, "application/json", JSON.stringify({ state: view.report().state }));
    case "/readyz": {
      const report = view.report();
      const body = isKnown ? report : { state: report.state };
      return send(response, isReady(report) ? 200 : 503, "application/json", JSON.stringify(body));
    }
    case "/metrics":
      if (!isKnown) return send(response, 401, "text/plain", "", { "www-authenticate": "Bearer" });
      return send(response, 200, "text/plain; version=0.0.4; charset=utf-8", view.metrics());
    default:
      return send(response, isKnown ? 404 : 401, "text/plain", "");
  }
}

/** It takes messages, and every source answers. */
function isReady({ state, routes }: RelayReport): boolean {
  return state === "running" && routes.every(({ failing }) => failing.length === 0);
}

/** A name that leads here from somebody's page is not ours: on loopback only its own names are answered. */
function refusalOf({ headers, headersDistinct }: IncomingMessage, host: string): number | undefined {
  // Whoever stands between may have gone by the other one.
  if ((headersDistinct["host"]?.length ?? 0) > 1) return 400;
  if (!LOOPBACK.has(host)) return undefined;
  const name = (headers.host ?? "").replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  return LOOPBACK.has(name) ? undefined : 421;
}

function mayRead({ headers }: IncomingMessage, token: string | undefined): boolean {
  if (token === undefined) return true;
  // The name of a scheme is written in any case. A token may have blanks in it, as passphrases have.
  const [, given = ""] = /^bearer +(.*)$/i.exec(headers.authorization ?? "") ?? [];
  return isSame(given.trimEnd(), token.trim());
}

/** In a time that does not tell how much of it was right. */
function isSame(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string,
  more: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": type, "cache-control": "no-store", ...more }).end(body);
}
