import { fileURLToPath } from "node:url";

/** What SQLite takes for something else than a file of that name. */
const NO_FILE = /^(:memory:$|file:)/i;

/** The file of a `sqlite:` URL, to see whether it is there. Undefined for everything else, and for what cannot be one: the engine will say. */
export function sqliteFile(url: string): string | undefined {
  const [, location] = /^sqlite:([^?]+)/i.exec(url) ?? [];
  if (location === undefined) return undefined;
  try {
    const file = location.startsWith("//") ? fileURLToPath(`file:${location}`) : decodeURIComponent(location);
    return NO_FILE.test(file) ? undefined : file;
  } catch {
    return undefined;
  }
}
