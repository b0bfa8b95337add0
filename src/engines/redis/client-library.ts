import type * as Package from "@redis/client";
import { whyNotLoaded } from "../../domain/client-library.ts";

type Library = typeof Package;

let library: Library | undefined;

/** Before anything else of it is used. */
export async function loadRedis(): Promise<Library> {
  try {
    library ??= await import("@redis/client");
  } catch (cause) {
    throw whyNotLoaded("@redis/client", "Redis", cause);
  }
  return library;
}

/** Undefined until it is loaded: no error can be one of its own before. */
export function redisLibrary(): Library | undefined {
  return library;
}
