import assert from "node:assert/strict";
import { test } from "node:test";
import { nearestName } from "./nearest-name.ts";

const NAMES = ["mode", "levels", "lease", "retry", "limits", "patience", "remember", "history", "maxBackoff", "perKey"];

test("the name that was meant", () => {
  const meant: Readonly<Record<string, string>> = {
    levle: "levels",
    leese: "lease",
    leas: "lease",
    LEASE: "lease",
    retries: "retry",
    rety: "retry",
    max_backoff: "maxBackoff",
    "per-key": "perKey",
    patiense: "patience",
    rememberFor: "remember",
    modes: "mode",
  };
  for (const [written, name] of Object.entries(meant)) assert.equal(nearestName(written, NAMES), name, written);
});

test("none, rather than any", () => {
  for (const written of ["concurrency", "x", "timeout", "", "id"]) assert.equal(nearestName(written, NAMES), undefined);
  assert.equal(nearestName("anything", []), undefined);
});
