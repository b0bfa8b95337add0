/**
 * Import direction: every folder of src may import itself and the folders named here, nothing else of ours.
 * dependency-cruiser reads TypeScript through swc, because TypeScript 7 has no JavaScript API.
 */
import type { IConfiguration, IForbiddenRuleType } from "dependency-cruiser";

const LAYERS: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  engine: ["domain"],
  worker: ["engine", "domain"],
  client: ["worker", "engine", "domain"],
  conformance: ["client", "engine", "domain"],
  cli: ["client", "engine", "domain"],
};

/** The root re-exports what is public; the CLI and the conformance suite may use it like any other program. */
const ROOT = "src/index\\.ts$";
const ROOT_MAY_USE = ["client", "worker", "engine", "domain"];
const USERS_OF_ROOT = new Set(["conformance", "cli"]);

const KNOWN = `^(${ROOT}|src/(${Object.keys(LAYERS).join("|")}|engines/[^/]+)/)`;

function folders(names: readonly string[]): string {
  return `src/(${names.join("|")})/`;
}

const layerRules = Object.entries(LAYERS).map(([layer, below]): IForbiddenRuleType => {
  const allowed = [folders([layer, ...below])];
  if (USERS_OF_ROOT.has(layer)) allowed.push(ROOT);
  // The client loads an engine when a URL names it: see client-loads-engines-lazily.
  if (layer === "client") allowed.push("src/engines/");
  return {
    name: `${layer}-imports-downwards`,
    comment: `src/${layer} may import only ${[layer, ...below].join(", ")}.`,
    severity: "error",
    from: { path: `^src/${layer}/` },
    to: { path: "^src/", pathNot: `^(${allowed.join("|")})` },
  };
});

const configuration: IConfiguration = {
  forbidden: [
    ...layerRules,
    {
      name: "engine-stands-alone",
      comment: "An engine may import its own folder, the engine port and the domain.",
      severity: "error",
      from: { path: "^src/engines/([^/]+)/" },
      to: { path: "^src/", pathNot: "^src/(engines/$1|engine|domain)/" },
    },
    {
      name: "client-loads-engines-lazily",
      comment: "A static import would load every driver with the root: use import() where the URL names the engine.",
      severity: "error",
      from: { path: "^src/client/" },
      to: { path: "^src/engines/", dynamic: false },
    },
    {
      name: "root-imports-no-engine",
      comment: "The root re-exports the client and the layers below it.",
      severity: "error",
      from: { path: `^${ROOT}` },
      to: { path: "^src/", pathNot: `^${folders(ROOT_MAY_USE)}` },
    },
    {
      name: "domain-is-pure",
      comment: "The domain runs in a simulation: no Node modules and no packages.",
      severity: "error",
      from: { path: "^src/domain/" },
      to: { pathNot: "^src/" },
    },
    {
      name: "known-layer",
      comment: "A new folder of src needs its place in .dependency-cruiser.ts.",
      severity: "error",
      from: { path: "^src/", pathNot: KNOWN },
      to: {},
    },
    {
      name: "into-known-layer",
      comment: "A new folder of src needs its place in .dependency-cruiser.ts.",
      severity: "error",
      from: {},
      to: { path: "^src/", pathNot: KNOWN },
    },
    {
      name: "no-cycle",
      comment: "Two modules that need each other are one, or a third is missing. Types count.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "resolvable",
      comment: "An import that does not resolve escapes all other rules.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: "declared-dependency",
      comment: "What is published may import only what package.json declares for it.",
      severity: "error",
      from: { path: "^src/" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"] },
    },
  ],
  options: {
    parser: "swc",
    exclude: { path: "\\.test\\.ts$" },
    doNotFollow: { path: "node_modules" },
  },
};

export default configuration;
