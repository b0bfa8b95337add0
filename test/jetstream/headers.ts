/** Header blocks as the protocol has them: a line with perhaps a status, lines of names and values, an empty line. */
import type { Delivery } from "../../src/engines/nats/wire.ts";

const VERSION = "NATS/1.0";
const NONE: readonly Header[] = [];

export type Header = readonly [name: string, value: string];

export interface HeaderBlock {
  readonly status: number;
  readonly description: string;
  readonly fields: readonly Header[];
}

export function readHeaders(block: Uint8Array | undefined): HeaderBlock {
  if (block === undefined || block.length === 0) return { status: 0, description: "", fields: NONE };
  const [first = "", ...lines] = Buffer.from(block).toString().split("\r\n");
  if (!first.startsWith(VERSION)) throw new Error(`A header block begins with ${JSON.stringify(first)}.`);
  const rest = first.slice(VERSION.length).trim();
  const fields = lines
    .filter((line) => line !== "")
    .map((line): Header => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()];
    });
  const status = /^\d{3}/.exec(rest)?.[0];
  return { status: Number(status ?? 0), description: status === undefined ? rest : rest.slice(3).trim(), fields };
}

export function writeHeaders(fields: readonly Header[], status = 0, description = ""): Uint8Array {
  const first = status === 0 ? VERSION : `${VERSION} ${status}${description === "" ? "" : ` ${description}`}`;
  return Buffer.from(`${first}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`);
}

export function findHeader(fields: readonly Header[], name: string): string | undefined {
  return fields.find((field) => field[0] === name)?.[1];
}

/** What a connection hands to whoever subscribed. */
export function toDelivery(subject: string, reply: string, data: Uint8Array, block: Uint8Array | undefined): Delivery {
  const { status, description, fields } = readHeaders(block);
  return { subject, reply, data, status, description, header: (name) => findHeader(fields, name) };
}
