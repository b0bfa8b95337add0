import { InvalidInput } from "./errors.ts";
import { isBytes } from "./realms.ts";

/** Text is UTF-8 and stays text, so that JSON is not copied from string to bytes and back on the way. */
export type Body = string | Uint8Array;

export interface Payload {
  readonly type: string;
  readonly body: Body;
}

export const JSON_TYPE = "application/json";
export const TEXT_TYPE = "text/plain";
export const BYTES_TYPE = "application/octet-stream";

export const EMPTY_PAYLOAD: Payload = { type: TEXT_TYPE, body: "" };

/** Bytes stay bytes unless a type is given with them; everything else becomes JSON. */
export function encodePayload(value: unknown, type?: string): Payload {
  if (isBytes(value)) return { type: type ?? BYTES_TYPE, body: value };
  if (type !== undefined && !isJson(type)) {
    if (typeof value === "string") return { type, body: value };
    throw new InvalidInput("payload", value, `a string or bytes, because its content type is ${type}`);
  }
  let body: string | undefined;
  try {
    body = JSON.stringify(value === undefined ? null : value);
  } catch (cause) {
    throw new InvalidInput("payload", String(cause), "a value that JSON can carry");
  }
  if (body === undefined) throw new InvalidInput("payload", value, "a value that JSON can carry");
  return { type: type ?? JSON_TYPE, body };
}

export function decodePayload(payload: Payload): unknown {
  if (isJson(payload.type)) return JSON.parse(bodyText(payload.body));
  if (payload.type.startsWith("text/")) return bodyText(payload.body);
  return bodyBytes(payload.body);
}

export function bodyText(body: Body): string {
  return typeof body === "string" ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("utf8");
}

export function bodyBytes(body: Body): Uint8Array {
  return typeof body === "string" ? Buffer.from(body, "utf8") : body;
}

export function bodySize(body: Body): number {
  return typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
}

function isJson(type: string): boolean {
  return type === JSON_TYPE || type.startsWith("application/json;") || type.endsWith("+json");
}
