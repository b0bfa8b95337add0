/** How a relay is doing, for whoever asks. */
export interface RelayReport {
  readonly state: "starting" | "running" | "draining" | "stopped";
  readonly routes: readonly RouteReport[];
}

export interface RouteReport {
  readonly name: string;
  readonly slots: number;
  readonly inWork: number;
  readonly waitingForKey: number;
  /** Sources that did not answer, or refused, when they were last asked. */
  readonly failing: readonly string[];
  /** Targets to which nothing is sent now, or only a probe. */
  readonly openCircuits: readonly string[];
  /** Of these, the targets that did not accept a connection when they were last tried. */
  readonly unreachable: readonly string[];
}

/** How the deliveries ended that were under way when the relay was stopped. */
export interface RelayStop {
  readonly finished: number;
  /** Broken off, or untried: their messages are for others. */
  readonly givenBack: number;
  /** Did not end when they were told to. Their messages come again when their hold runs out. */
  readonly abandoned: number;
}

export function sum(reports: readonly RelayStop[]): RelayStop {
  const total = { finished: 0, givenBack: 0, abandoned: 0 };
  for (const { finished, givenBack, abandoned } of reports) {
    total.finished += finished;
    total.givenBack += givenBack;
    total.abandoned += abandoned;
  }
  return total;
}
