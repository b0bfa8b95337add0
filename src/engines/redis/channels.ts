/** What can subscribe: a connection of its own, or a client that finds the right one. */
export interface Subscriber {
  sSubscribe(channel: string, listener: (message: string) => unknown): Promise<unknown>;
  sUnsubscribe(channel: string, listener: (message: string) => unknown): Promise<unknown>;
}

interface Channel {
  readonly listeners: Set<{ readonly heard: (message: string) => void }>;
  readonly hear: (message: string) => void;
  /** Ends when the last change is done. */
  change: Promise<void>;
  isSubscribed: boolean;
}

/**
 * One subscription per channel, for all who listen to it; begun with the first and ended with the last. Changes of one channel are made one after the other:
 * the client loses a subscription that begins while another of the same channel ends.
 */
export class Channels {
  readonly #subscriber: Subscriber;
  readonly #channels = new Map<string, Channel>();

  constructor(subscriber: Subscriber) {
    this.#subscriber = subscriber;
  }

  async listen(name: string, heard: (message: string) => void): Promise<() => void> {
    const channel = this.#channel(name);
    const listener = { heard };
    channel.listeners.add(listener);
    const leave = (): void => {
      if (channel.listeners.delete(listener)) this.#change(name, channel).catch(ignore);
    };
    try {
      await this.#change(name, channel);
    } catch (error) {
      leave();
      throw error;
    }
    return leave;
  }

  #channel(name: string): Channel {
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      const listeners: Channel["listeners"] = new Set();
      const hear = (message: string): void => {
        for (const { heard } of listeners) heard(message);
      };
      channel = { listeners, hear, change: Promise.resolve(), isSubscribed: false };
      this.#channels.set(name, channel);
    }
    return channel;
  }

  #change(name: string, channel: Channel): Promise<void> {
    channel.change = this.#afterwards(channel.change, name, channel);
    return channel.change;
  }

  async #afterwards(before: Promise<void>, name: string, channel: Channel): Promise<void> {
    await before.catch(ignore);
    const { hear, listeners } = channel;
    if (listeners.size > 0 && !channel.isSubscribed) {
      await this.#subscriber.sSubscribe(name, hear);
      channel.isSubscribed = true;
    } else if (listeners.size === 0 && channel.isSubscribed) {
      channel.isSubscribed = false;
      await this.#subscriber.sUnsubscribe(name, hear);
    }
    if (listeners.size === 0 && !channel.isSubscribed) this.#channels.delete(name);
  }
}

function ignore(): void {
  // Whoever asked for it was told.
}
