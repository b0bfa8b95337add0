/** The one clock of all histories: it counts from the boot of the machine, in every process alike. In milliseconds. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
