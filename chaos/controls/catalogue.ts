/**
 * Flaws that a run must catch, or its verdict is worth nothing. The product has several walls behind one another: a stale
 * worker is stopped by its own deadline before the store refuses it. Where a flaw takes down a wall behind another, the one
 * before it is taken down too.
 */
import { frozenClock, napClock } from "./clocks.ts";
import type { Settings } from "../settings.ts";
import type { Flaw } from "./flaw.ts";
import { ForgetsEndings, GivesKeysTwice } from "./wrong-answers.ts";
import { DropsDeadLetters, EndsLeasesEarly, ForgetsBegun, LetsOthersPass } from "./wrong-leases.ts";
import { ForgetsFences, RenewsAnything, SettlesAnything } from "./wrong-fences.ts";
import { AcceptsIdsTwice, DropsSubmissions, SwapsOrder } from "./wrong-submits.ts";

export const CONTROLS: Readonly<Record<string, Flaw>> = {
  "renew-unfenced": {
    story: "renewing compares no fence: whoever asks is told yes, also when another has the key",
    engine: (inner) => new RenewsAnything(inner),
    breaks: ["stale"],
  },
  "settle-unfenced": {
    story: "settling compares no fence, so a worker that was stopped ends what another has",
    engine: (inner) => new SettlesAnything(inner),
    faults: ["stop", "block"],
    clock: napClock,
    breaks: ["stale"],
  },
  "submit-dropped": {
    story: "one submission in a thousand is accepted and forgotten",
    engine: (inner, { place }) => new DropsSubmissions(inner, place),
    breaks: ["accounted"],
  },
  "fence-reset": {
    story: "fences count from one again after a restart",
    faults: ["kill", "kill-all"],
    engine: (inner, { generation }) => (generation > 1 ? new ForgetsFences(inner) : inner),
    breaks: ["fences"],
  },
  "order-swapped": {
    story: "some submissions are accepted at once and stored later, so others overtake them",
    engine: (inner, { leaseMs }) => new SwapsOrder(inner, leaseMs),
    breaks: ["ordered"],
  },
  "deadline-ignored": {
    story: "workers have no local deadline and go on when nobody renews",
    clock: frozenClock,
    breaks: ["effects"],
  },
  "key-given-twice": {
    story: "a key is given to two at a time",
    engine: (inner) => new GivesKeysTwice(inner),
    breaks: ["exclusive"],
  },
  "settle-forgotten": {
    story: "the end of an item is acknowledged and forgotten",
    engine: (inner) => new ForgetsEndings(inner),
    breaks: ["completed"],
  },
  "id-accepted-twice": {
    story: "a second submission under an id makes a second item",
    engine: (inner) => new AcceptsIdsTwice(inner),
    breaks: ["ids"],
  },
  "lease-short": {
    story: "the store ends leases a little early, in the moment that its workers keep in hand",
    engine: (inner) => new EndsLeasesEarly(inner),
    breaks: ["exclusive"],
  },
  "place-lost": {
    story: "an item that failed lets others pass",
    engine: (inner) => new LetsOthersPass(inner),
    breaks: ["ordered"],
  },
  "dead-dropped": {
    story: "what is given up is not kept as a dead letter",
    engine: (inner) => new DropsDeadLetters(inner),
    breaks: ["accounted"],
  },
  "begun-forgotten": {
    story: "what a lost worker had begun is not given out again",
    engine: (inner) => new ForgetsBegun(inner),
    breaks: ["accounted"],
  },
};

const NONE: Flaw = {};

/** A run with the flaw in it, and the faults that bring it out. */
export function withFlaw(settings: Settings, control: string): Settings {
  const { faults } = flawOf(control);
  return { ...settings, control, ...(faults === undefined ? {} : { faults }) };
}

export function flawOf(control: string | undefined): Flaw {
  if (control === undefined) return NONE;
  const flaw = CONTROLS[control];
  if (flaw === undefined) throw new Error(`There is no control ${control}. Known: ${Object.keys(CONTROLS).join(", ")}`);
  return flaw;
}
