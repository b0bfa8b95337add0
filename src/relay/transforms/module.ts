/**
 * A transform of the user's own: a module whose default export is a function from content to content. It may return the
 * new data alone, as a text or as bytes; media type and attributes then stay as they were.
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Fatal, InvalidInput, show } from "../../domain/errors.ts";
import { isBytes, isError } from "../../domain/realms.ts";
import type { Content, Transform } from "../transform.ts";

/** @param folder where a relative path begins: that of the configuration file */
export async function openModule(path: string, folder: string): Promise<Transform> {
  const file = resolve(folder, path);
  const apply = await load(path, file);
  return {
    name: path,
    async apply(content) {
      try {
        return contentOf(await apply(content), content, path);
      } catch (cause) {
        if (cause instanceof Fatal) throw cause;
        const why = isError(cause) ? cause.message : String(cause);
        throw new Fatal(`Transform ${path}: ${why}`, { cause });
      }
    },
  };
}

async function load(path: string, file: string): Promise<(content: Content) => unknown> {
  let loaded: unknown;
  try {
    loaded = await import(pathToFileURL(file).href);
  } catch (cause) {
    const why = isError(cause) ? cause.message : String(cause);
    throw new InvalidInput("path", path, `a module that can be loaded (${why})`);
  }
  const found = typeof loaded === "object" && loaded !== null && "default" in loaded ? loaded.default : undefined;
  if (typeof found !== "function") throw new InvalidInput("path", path, "a module whose default export is a function");
  return (content) => Reflect.apply(found, undefined, [content]) as unknown;
}

function contentOf(result: unknown, before: Content, path: string): Content {
  if (typeof result === "string") return { ...before, data: Buffer.from(result, "utf8") };
  if (isBytes(result)) return { ...before, data: result };
  if (typeof result === "object" && result !== null && "data" in result) {
    const { data } = result;
    const bytes = typeof data === "string" ? Buffer.from(data, "utf8") : data;
    const contentType = "contentType" in result ? result.contentType : before.contentType;
    const attributes = "attributes" in result ? result.attributes : before.attributes;
    const isRight = isBytes(bytes) && (contentType === undefined || typeof contentType === "string");
    if (isRight && isTexts(attributes)) return { data: bytes, contentType, attributes };
  }
  throw new Fatal(
    `Transform ${path}: it returned ${show(result)}, which is neither a text, nor bytes, nor content with data.`,
  );
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return typeof value === "object" && value !== null && Object.values(value).every((text) => typeof text === "string");
}
