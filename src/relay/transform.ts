import type { PackageName } from "./check/package-name.ts";

/** What travels from a source to a processor: bytes, their media type, and small texts beside them. */
export interface Content {
  readonly data: Uint8Array;
  readonly contentType: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
}

/**
 * Unwraps or reshapes what a source delivers. What it throws means that the data is bad: trying again would not help.
 */
export interface Transform {
  /** As the configuration calls it. */
  readonly name: string;
  /** Optional packages that it needs. */
  readonly packages?: readonly PackageName[];
  apply(content: Content): Content | Promise<Content>;
}
