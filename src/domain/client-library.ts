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

/** How esbuild says that a bundled package calls `require`, and that the bundle is an ES module, which has none. */
const NO_REQUIRE = /^Dynamic require of /;

/** What whoever wants to use a store is told when its client library could not be loaded. */
export function whyNotLoaded(library: string, store: string, cause: unknown): Error {
  if (isNotFound(cause)) return notInstalled(library, store, cause);
  if (!isError(cause)) return new Error(String(cause), { cause });
  if (!NO_REQUIRE.test(cause.message)) return cause;
  return new BatonError(
    "ENGINE_MISSING",
    `${store} needs the package ${library}, whose modules call require(), and this bundle is an ES module without it. Nothing was done. Bundle with ` +
      `--format=cjs, or leave the package out with --external:${library}, or add ` +
      `--banner:js='import { createRequire } from "node:module"; const require = createRequire(import.meta.url);'`,
    { cause },
  );
}
