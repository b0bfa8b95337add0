import type * as Package from "undici";
import { whyNotLoaded } from "../domain/client-library.ts";

type Library = typeof Package;

let library: Library | undefined;

/** Before anything else of it is used. */
export async function loadUndici(): Promise<Library> {
  try {
    library ??= await import("undici");
  } catch (cause) {
    throw whyNotLoaded("undici", "Consul", cause);
  }
  return library;
}
