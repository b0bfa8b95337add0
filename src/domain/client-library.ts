import { BatonError } from "./errors.ts";
import { isError } from "./realms.ts";

/**
 * A client library is the application's choice to install, and without it the error says so. Each is loaded by an `import()` within a `try`
 * when it is first needed: only so do bundlers put up with one that is not there.
 */
export function notInstalled(library: string, store: string, cause: unknown): BatonError {
  return new BatonError(
    "ENGINE_MISSING",
    `${store} needs the package ${library}, which is not installed. Nothing was done. Run: npm install ${library}`,
    { cause },
  );
}

/** In a bundle of CommonJS modules it is `require` that does not find it. */
export function isNotFound(cause: unknown): boolean {
  return isError(cause) && "code" in cause && /^(ERR_)?MODULE_NOT_FOUND$/.test(String(cause.code));
}
