/** What an operator should know about what carries wakes. */
export interface WakeReport {
  readonly carrier: string;
  readonly hasHints: boolean;
  /** The last thing that went wrong since something went well. */
  readonly trouble: string | undefined;
}

/** A finding of an engine's check. */
export interface WakeFinding {
  readonly severity: "ok" | "warning";
  readonly subject: string;
  readonly detail: string;
  readonly advice?: string;
}

/** A store whose wakes are lost is slower and nothing else, so this is never an error. */
export function wakeFinding({ carrier, hasHints, trouble }: WakeReport): WakeFinding {
  const subject = "wakes";
  if (trouble !== undefined) {
    return {
      severity: "warning",
      subject,
      detail: `Carried by ${carrier}, which is in trouble: ${trouble}`,
      advice: "Look after what carries the wakes; until then idle workers find work by looking now and then.",
    };
  }
  const hints = hasHints ? "with hints against the herd" : "without hints: all idle workers look when work comes";
  return { severity: "ok", subject, detail: `Carried by ${carrier}, ${hints}.` };
}
