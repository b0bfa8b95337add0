/**
 * Up to where a consumer takes everything for acknowledged, by the stream's sequences and by its own deliveries. The real
 * server moves both together, and not always rightly: a purge can carry the second one past messages that are still to be
 * acknowledged. A refusal (NAK) of one of those is confirmed, and changes nothing.
 */
export interface Delivered {
  /** Of its first delivery, in the consumer's own count. */
  readonly place: number;
}

export class AckFloor {
  stream: number;
  consumer = 0;

  constructor(stream: number) {
    this.stream = stream;
  }

  /** One was acknowledged. @param pending those that are left */
  move(sequence: number, { place }: Delivered, pending: ReadonlyMap<number, Delivered>): void {
    if (place !== this.consumer + 1) return;
    this.consumer = place;
    this.stream = sequence;
    const next = Math.min(...[...pending.keys()].filter((each) => each > sequence));
    const left = pending.get(next);
    if (left === undefined) return;
    this.consumer = left.place - 1;
    this.stream = next - 1;
  }

  /** Nothing is to be acknowledged. */
  reset(nextSequence: number, delivered: number): void {
    this.stream = nextSequence - 1;
    this.consumer = delivered;
  }

  /** A crash forgot acknowledgements: it is not beyond what is pending. */
  sink(pending: ReadonlyMap<number, Delivered>): void {
    for (const [sequence, { place }] of pending) {
      this.stream = Math.min(this.stream, sequence - 1);
      this.consumer = Math.min(this.consumer, place - 1);
    }
  }

  /** A purge leaves nothing before `start`. Answers which of the pending are not waited for any more. */
  purge(start: number, pending: ReadonlyMap<number, Delivered>, isGone: (sequence: number) => boolean): number[] {
    if (this.stream >= start) return [];
    this.stream = start - 1;
    const over = [...pending.keys()].filter((sequence) => sequence <= this.stream || isGone(sequence));
    for (const sequence of over) this.consumer = Math.max(this.consumer, pending.get(sequence)?.place ?? 0);
    return over;
  }
}
