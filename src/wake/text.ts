import { LONGEST_TEXT } from "./port.ts";

/**
 * How signals travel: a JSON list that begins with the sender, then one flat list per signal.
 *
 *     ["f3c1…", ["cars", 3, 1], ["vans"]]
 *
 * work: queue, how many, whether the budget has them; or the queue alone for everybody · ended: queue, id; or the queue alone for
 * too many to name · lost: queue, key, fence
 */
export type Entry = readonly (string | number)[];

export interface Letter {
  readonly sender: string;
  readonly entries: readonly Entry[];
}

/** As few texts as they fit into. */
export function writeTexts(sender: string, entries: readonly Entry[]): readonly string[] {
  const head = `[${JSON.stringify(sender)}`;
  const texts: string[] = [];
  let text = head;
  for (const entry of entries) {
    const written = `,${JSON.stringify(entry)}`;
    if (text !== head && Buffer.byteLength(text) + Buffer.byteLength(written) >= LONGEST_TEXT) {
      texts.push(`${text}]`);
      text = head;
    }
    text += written;
  }
  if (text !== head) texts.push(`${text}]`);
  return texts;
}

/** Undefined: not one of ours. Anybody may publish on a channel, and nothing that comes in may do more than make somebody look. */
export function readText(text: string): Letter | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isList(value)) return undefined;
    const [sender, ...entries] = value;
    return typeof sender === "string" ? { sender, entries: entries.filter(isEntry) } : undefined;
  } catch {
    return undefined;
  }
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function isEntry(value: unknown): value is Entry {
  return isList(value) && value.every((part) => typeof part === "string" || typeof part === "number");
}
