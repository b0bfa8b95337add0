import { Child } from "./child/child.ts";
import type { FreshStore } from "./stores/store.ts";
import type { Subject } from "./subject.ts";

/** One measurement's stage: an empty store, a producer process and a worker process. */
export class Scene implements AsyncDisposable {
  readonly producer: Child;
  readonly #subject: Subject;
  readonly #store: FreshStore;
  readonly #exclusive: boolean;
  #worker: Child | undefined;

  private constructor(subject: Subject, store: FreshStore, exclusive: boolean) {
    this.#subject = subject;
    this.#store = store;
    this.#exclusive = exclusive;
    this.producer = new Child(subject.name, store.location, exclusive);
  }

  static async open(subject: Subject, store: FreshStore, exclusive: boolean): Promise<Scene> {
    const scene = new Scene(subject, store, exclusive);
    try {
      await scene.producer.call("prepare");
      return scene;
    } catch (error) {
      await scene[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Begins when it is first asked for: workloads that only submit have none. */
  get worker(): Child {
    this.#worker ??= new Child(this.#subject.name, this.#store.location, this.#exclusive);
    return this.#worker;
  }

  /** Lets the server settle after much was loaded. */
  rest(): Promise<void> {
    return this.#store.rest();
  }

  serverMemory(): number | undefined {
    return this.#store.serverMemory();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.producer.end(), this.#worker?.end()]);
  }
}
