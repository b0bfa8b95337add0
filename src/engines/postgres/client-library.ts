import type * as Package from "pg";
import { whyNotLoaded } from "../../domain/client-library.ts";

type Library = typeof Package;

let library: Library | undefined;

/** Before anything else of it is used. */
export async function loadPg(): Promise<Library> {
  try {
    library ??= await import("pg");
  } catch (cause) {
    throw whyNotLoaded("pg", "PostgreSQL", cause);
  }
  return library;
}

/** Of what was loaded before. */
export function pg(): Library {
  if (library === undefined) throw new Error("The library pg is used before it was loaded.");
  return library;
}
