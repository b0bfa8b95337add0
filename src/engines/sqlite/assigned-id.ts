import { ASSIGNED_ID_MARK } from "../../domain/names.ts";

/** The id that an item without one goes by. */
export function assignedId(seq: number): string {
  return `${ASSIGNED_ID_MARK}${seq.toString(36)}`;
}

export function seqOfAssigned(id: string): number | undefined {
  if (!id.startsWith(ASSIGNED_ID_MARK)) return undefined;
  const seq = Number.parseInt(id.slice(ASSIGNED_ID_MARK.length), 36);
  return Number.isSafeInteger(seq) && assignedId(seq) === id ? seq : undefined;
}
