import { type Body, JSON_TYPE, type Payload } from "../../domain/payload.ts";

/** PostgreSQL's texts hold no NUL: one that has it is kept as bytes, and its type is marked with this. */
const TEXT_AS_BYTES = "\u0001";

/** A payload as columns: nearly everything is JSON, which is not written out. */
export interface Columns {
  readonly type: string | null;
  readonly text: string | null;
  readonly bytes: Uint8Array | null;
}

export function columnsOf({ type, body }: Payload): Columns {
  const named = type === JSON_TYPE ? null : type;
  if (typeof body !== "string") return { type: named, text: null, bytes: body };
  if (!body.includes("\0")) return { type: named, text: body, bytes: null };
  return { type: TEXT_AS_BYTES + (named ?? ""), text: null, bytes: Buffer.from(body, "utf8") };
}

export function payloadOf(type: unknown, text: unknown, bytes: unknown): Payload {
  const marked = typeof type === "string" && type.startsWith(TEXT_AS_BYTES);
  const named = marked ? type.slice(1) : type;
  return { type: typeof named === "string" && named !== "" ? named : JSON_TYPE, body: bodyOf(text, bytes, marked) };
}

function bodyOf(text: unknown, bytes: unknown, marked: boolean): Body {
  if (typeof text === "string") return text;
  if (!(bytes instanceof Uint8Array)) throw new TypeError("The store has no payload where one belongs.");
  return marked ? Buffer.from(bytes).toString("utf8") : bytes;
}
