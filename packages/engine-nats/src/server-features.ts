import type { Connection } from './connection.ts'
import type { Settings } from './options.ts'

/** Streams accept messages with a time to live from server 2.11 on, which is API level 1. */
const MESSAGE_TTL = { minor: 11, level: 1 } as const

/** Before server 2.10, replicas may elect a leader that misses acknowledged messages. */
const SAFE_MINOR = 10

/**
 * The features of the servers beyond 2.9: those that both the connected server and the leader of JetStream
 * offer. They are read repeatedly, so servers can be upgraded while nodes run.
 */
export class ServerFeatures {
  readonly #connection: Connection
  readonly #settings: Settings
  #messageTtl = false
  #warnedOf = ''

  private constructor(connection: Connection, settings: Settings) {
    this.#connection = connection
    this.#settings = settings
  }

  /** @throws BrokerError ENGINE_UNAVAILABLE */
  static async read(connection: Connection, settings: Settings): Promise<ServerFeatures> {
    const features = new ServerFeatures(connection, settings)
    await features.#read()
    return features
  }

  /** `true` when the servers remove a message at the end of its time to live (2.11). */
  get messageTtl(): boolean {
    return this.#messageTtl
  }

  async #read(): Promise<void> {
    const { api } = await this.#connection.call(() => this.#connection.manager.getAccountInfo())
    const version = this.#connection.serverVersion
    this.#messageTtl = minorOf(version) >= MESSAGE_TTL.minor && (api.level ?? 0) >= MESSAGE_TTL.level
    this.#warn(version)
  }

  /**
   * Reads the features again, and calls `onMore` when there are new ones. A failed read is repeated the next
   * time.
   */
  refresh(onMore: () => void): void {
    const before = this.#messageTtl
    this.#read()
      .then(() => {
        if (this.#messageTtl && !before && this.#connection.connected) onMore()
      })
      .catch(() => {})
  }

  #warn(version: string): void {
    if (this.#settings.replicas === 1 || minorOf(version) >= SAFE_MINOR || this.#warnedOf === version) return
    this.#warnedOf = version
    this.#settings.onProblem({
      kind: 'warning',
      message: `nats-server ${version} may lose acknowledged messages when servers freeze; upgrade to 2.10 or later, preferably the latest`,
    })
  }
}

/**
 * Returns the minor version of server 2; infinity for later major versions, 0 for earlier and invalid ones.
 */
function minorOf(version: string): number {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  return Number(major) > 2 ? Infinity : Number(major) < 2 ? 0 : Number(minor)
}
