import type { Connection } from './connection.ts'
import type { Settings } from './options.ts'

/** Streams take messages with a time to live of their own from server 2.11 on, which is API level 1. */
const MESSAGE_TTL = { minor: 11, level: 1 } as const

/** Replicas of servers before 2.10 may elect one that misses what was acknowledged. */
const SAFE_MINOR = 10

/**
 * What the servers offer beyond 2.9: the least of what the server at the other end and the one that leads JetStream
 * say. It is read again now and then, so servers may be upgraded under running nodes.
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

  /** The servers remove a message when its time to live is over (2.11). */
  get messageTtl(): boolean {
    return this.#messageTtl
  }

  async #read(): Promise<void> {
    const { api } = await this.#connection.call(() => this.#connection.manager.getAccountInfo())
    const version = this.#connection.serverVersion
    this.#messageTtl = minorOf(version) >= MESSAGE_TTL.minor && (api.level ?? 0) >= MESSAGE_TTL.level
    this.#warn(version)
  }

  /** Asks again; calls back when there is more on offer than before. What fails is asked again the next time. */
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
      message: `nats-server ${version} may lose what a majority has acknowledged when servers freeze; run 2.10 or later, the newest you can get`,
    })
  }
}

/** The minor version of server 2; infinite for later ones, 0 for what is no version. */
function minorOf(version: string): number {
  const [, major = '0', minor = '0'] = /^v?(\d+)\.(\d+)/.exec(version) ?? []
  return Number(major) > 2 ? Infinity : Number(major) < 2 ? 0 : Number(minor)
}
