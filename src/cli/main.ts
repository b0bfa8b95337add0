#!/usr/bin/env node
// Nothing is imported before the version is known: an older Node would stop at the first thing that it does not
// have, with a stack trace that tells nobody what to do.
const NEEDED = 24;
const LINGER_MS = 500;
const found = process.versions.node;

if (Number.parseInt(found, 10) < NEEDED) {
  process.stderr.write(
    `baton: Baton needs Node ${NEEDED} or newer; this is Node ${found} (${process.execPath}). Nothing was done. ` +
      `Install Node ${NEEDED} from https://nodejs.org or with your version manager; in a clone of Baton, run: npx baton\n`,
  );
  process.exitCode = 1;
} else {
  const { run } = await import("./program.ts");
  process.exitCode = await run(process.argv.slice(2));
  // A client library can leave a connection open, such as one to a server that never says a word. Nobody needs it any more.
  setTimeout(() => process.stdout.write("", () => process.exit()), LINGER_MS).unref();
}
