import { cases, type ConformanceTarget } from "../../src/conformance/index.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { draw, type Variant } from "../kit/draw.ts";

/** Everything that somebody waits for; the rest of an engine does not know of wakes. */
const waited = cases.filter(({ guarantee, name }) => guarantee === "G7" || /hold|lost|outcome|told|woken/.test(name));

/** The cases of the engines' suite that need wakes, with a test each. */
export function addWaitedTests(variant: Variant, target: ConformanceTarget): void {
  addEngineTests(target.name, target, draw.cases(variant, waited));
}
