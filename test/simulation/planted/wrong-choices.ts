import type * as port from "../../../src/engine/port.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";

/** All items wait at one level, whatever was asked for. */
export const ignoreUrgency: MakePlant = () => {
  const levels = new Map<string, string>();
  return { store: (handle) => new IgnoreUrgency(handle, levels) };
};

class IgnoreUrgency extends PassThrough {
  /** Per id, what it should have been: shown to the outside, so that only the order is wrong. */
  readonly #levels: Map<string, string>;

  constructor(inner: port.Engine, levels: Map<string, string>) {
    super(inner);
    this.#levels = levels;
  }

  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const results = await this.inner.submit(submissions.map((submission) => ({ ...submission, level: "normal" })));
    return results.map((result, index) => {
      const wanted = submissions[index]?.level;
      if (!result.ok || wanted === undefined) return result;
      const { id } = result.accepted;
      if (!this.#levels.has(id)) this.#levels.set(id, wanted);
      return { ok: true, accepted: { ...result.accepted, level: this.#levels.get(id) ?? wanted } };
    });
  }

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map(({ item, behind, lease }) => {
      const grant = { item: this.#disguised(item), lease };
      return behind === undefined ? grant : Object.assign(grant, { behind: behind.map((one) => this.#disguised(one)) });
    });
  }

  #disguised(item: port.Item): port.Item {
    return { ...item, level: this.#levels.get(item.id) ?? item.level };
  }
}

/** Nobody tells those who hand out that a key is paused. */
export const handOutWhilePaused: MakePlant = () => ({ store: (handle) => new HandOutWhilePaused(handle) });

class HandOutWhilePaused extends PassThrough {
  override async pause(request: port.PauseRequest): Promise<void> {
    if (!request.paused) await this.inner.pause(request);
  }
}
