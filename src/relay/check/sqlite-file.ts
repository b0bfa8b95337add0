import { fileURLToPath } from "node:url";

/** The file of a `sqlite:` URL, to see whether it is there. Undefined for everything else: the engine will say. */
export function sqliteFile(url: string): string | undefined {
  const [, location] = /^sqlite:([^?]+)/i.exec(url) ?? [];
  if (location === undefined) return undefined;
  try {
    return location.startsWith("//") ? fileURLToPath(`file:${location}`) : decodeURIComponent(location);
  } catch {
    return undefined;
  }
}
