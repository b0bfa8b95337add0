/** Applications that are bundled to one file, with the package as the build made it. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { build } from "esbuild";
import { root } from "../scripts/tool.ts";
import { startRedisServer } from "../servers/redis-server.ts";

const run = promisify(execFile);

const APPLICATION = `
import { connect } from "batonq";
async function main() {
  const baton = await connect(process.argv[2]);
  const cars = baton.queue("cars");
  const receipt = await cars.submit("car1", { do: "paint" }, { id: "order-17" });
  const worker = cars.work((item) => item.payload.do + "ed");
  const { state, result } = await receipt.outcome({ timeout: "1m" });
  await worker.stop();
  await baton.close();
  console.log(state, result);
}
main().catch((error) => console.log(error.code, error.message));
`;

/** As after \`npm install batonq\`: the package and what it depends on, and none of the optional packages. */
function install(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "baton-bundle-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const installed = join(folder, "node_modules/batonq");
  mkdirSync(installed, { recursive: true });
  for (const part of ["dist", "package.json"]) cpSync(join(root, part), join(installed, part), { recursive: true });
  cpSync(join(root, "node_modules/commander"), join(folder, "node_modules/commander"), { recursive: true });
  return folder;
}

/** @param nodePaths where packages are looked for beside those that are installed in the folder */
async function bundle(
  folder: string,
  contents: string,
  format: "esm" | "cjs",
  nodePaths: string[] = [],
  banner = "",
): Promise<string> {
  const outfile = join(folder, `out/app.${format === "esm" ? "mjs" : "cjs"}`);
  const { warnings } = await build({
    stdin: { contents, resolveDir: folder },
    bundle: true,
    platform: "node",
    nodePaths,
    banner: { js: banner },
    format,
    outfile,
    logLevel: "silent",
  });
  assert.deepEqual(
    warnings.map(({ text }) => text),
    [],
  );
  return outfile;
}

async function play(file: string, store: string, folder: string): Promise<string> {
  const { stdout, stderr } = await run(process.execPath, [file, store], { cwd: folder });
  assert.equal(stderr, "");
  return stdout;
}

describe("a bundle", { timeout: 120_000 }, () => {
  before(() => assert.ok(existsSync(join(root, "dist/index.js")), "Run npm run build first."));

  for (const format of ["esm", "cjs"] as const) {
    test(`of an application with SQLite works in one file, with no optional package installed (${format})`, async (context) => {
      const folder = install(context);
      const file = await bundle(folder, APPLICATION, format);
      // The package is not there any more where the bundle runs.
      rmSync(join(folder, "node_modules"), { recursive: true });
      assert.equal(await play(file, "sqlite:work.db", folder), "done painted\n");
    });

    test(`that is asked for a store whose package is missing says which (${format})`, async (context) => {
      const folder = install(context);
      const file = await bundle(folder, APPLICATION, format);
      for (const [url, library] of [
        ["nats://127.0.0.1:9", "@nats-io/transport-node"],
        ["postgres://127.0.0.1:9/x", "pg"],
        ["redis://127.0.0.1:9", "@redis/client"],
        ["consul://127.0.0.1:9", "undici"],
        ["sqlite:work.db?wake=nats://127.0.0.1:9", "@nats-io/transport-node"],
      ] as const)
        assert.match(await play(file, url, folder), new RegExp(`^ENGINE_MISSING .*Run: npm install ${library}\n$`));
    });
  }

  test("of an application with Redis has the client library in it", async (context) => {
    const server = await startRedisServer();
    context.after(() => server.stop());
    const folder = install(context);
    const file = await bundle(folder, APPLICATION, "cjs", [join(root, "node_modules")]);
    assert.equal(await play(file, server.url, folder), "done painted\n");
    await server.kill();
    assert.match(await play(file, server.url, folder), /^STORE_UNAVAILABLE Redis cannot be reached/);
  });

  test("as an ES module with CommonJS client libraries in it says what it lacks, and works with that", async (context) => {
    const server = await startRedisServer();
    context.after(() => server.stop());
    const folder = install(context);
    const modules = [join(root, "node_modules")];
    const lacking = await bundle(folder, APPLICATION, "esm", modules);
    for (const url of ["nats://127.0.0.1:9", "postgres://127.0.0.1:9/x", server.url, "consul://127.0.0.1:9"]) {
      const said = await play(lacking, url, folder);
      assert.match(said, /^ENGINE_MISSING .* needs the package .* --format=cjs, .* --banner:js='import /);
    }
    const [, banner] = /--banner:js='(.*)'\n$/.exec(await play(lacking, server.url, folder)) ?? [];
    const file = await bundle(folder, APPLICATION, "esm", modules, banner);
    assert.equal(await play(file, server.url, folder), "done painted\n");
  });

  test("of every other entry point can be made with no optional package installed", async (context) => {
    const folder = install(context);
    const entries = ["relay", "consul", "nats", "postgres", "redis", "sqlite", "memory", "conformance"];
    const contents = entries.map((entry) => `export * as ${entry} from "batonq/${entry}";`).join("\n");
    for (const format of ["esm", "cjs"] as const) await bundle(folder, contents, format);
  });
});
