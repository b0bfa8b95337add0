/** Several files of tests in one process: for those that need nothing but a moment. Their paths are the arguments. */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./tool.ts";

for (const file of process.argv.slice(2)) await import(pathToFileURL(join(root, file)).href);
