/** What tests of the engine itself submit and ask for, where it does not matter. */
export const entry = {
  queue: "cars",
  level: "normal",
  payload: { type: "text/plain", body: "x" },
  delayMs: 0,
  keepMs: 0,
  mode: "fifo",
  keyLimit: 10,
  queueLimit: 10,
} as const;

export const claim = { queue: "cars", worker: "w", max: 1, patienceMs: 1_000, leaseMs: 60_000 };
