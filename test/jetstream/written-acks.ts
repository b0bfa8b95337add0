/**
 * What the real server has written down of a consumer's deliveries and acknowledgements, which is what it shows of the
 * floor. An acknowledgement of something below the floor, beyond which a purge can have carried that, is not written down:
 * the message stays there as one to be acknowledged, and can hold the floor back until all is written anew.
 * That is refused if what is written is further in the stream: a purge can have brought it there message by message.
 */
import { AckFloor, type Delivered } from "./ack-floor.ts";

export interface ConsumerState {
  readonly nextSequence: number;
  readonly delivered: number;
  readonly floor: AckFloor;
  readonly pending: ReadonlyMap<number, Delivered>;
}

export class WrittenAcks {
  readonly floor: AckFloor;
  readonly #pending = new Map<number, Delivered>();
  #deliveredStream: number;
  #delivered = 0;

  constructor(stream: number) {
    this.floor = new AckFloor(stream);
    this.#deliveredStream = stream;
  }

  /** @param place of this delivery, which need not be the first one */
  deliver(sequence: number, place: number): void {
    this.#delivered = place;
    if (sequence <= this.#deliveredStream) return;
    this.#deliveredStream = sequence;
    this.#pending.set(sequence, { place });
  }

  acknowledge(sequence: number, place: number): void {
    const pending = this.#pending.get(sequence);
    if (place <= this.floor.consumer || pending === undefined) return;
    this.#pending.delete(sequence);
    if (this.#pending.size === 0) this.floor.reset(this.#deliveredStream + 1, this.#delivered);
    else this.floor.move(sequence, pending, this.#pending);
  }

  /** All of it, unless it seems outdated. */
  update(state: ConsumerState): void {
    if (state.floor.stream >= this.floor.stream) this.replace(state);
  }

  replace({ nextSequence, delivered, floor, pending }: ConsumerState): void {
    this.#deliveredStream = nextSequence - 1;
    this.#delivered = delivered;
    this.floor.stream = floor.stream;
    this.floor.consumer = floor.consumer;
    this.#pending.clear();
    for (const [sequence, { place }] of pending) this.#pending.set(sequence, { place });
  }
}
