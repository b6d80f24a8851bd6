import type { Scene } from './scene.ts'
import type { EngineName, ServerKind } from './server-kind.ts'

export interface Attack {
  readonly name: string
  readonly about: string
  /** The kinds of server that the attack runs against. @default all */
  readonly servers?: readonly ServerKind[]
  /** The engines that the attack runs against. @default all */
  readonly engines?: readonly EngineName[]
  /**
   * The CPU time that one tick of the event loop may take, in milliseconds. The default is for requests of many
   * connections; measure a single request with {@link Scene.single}. @default 100
   */
  readonly loopMs?: number
  /** Settings of the server, in addition to its kind's. */
  readonly settings?: Readonly<Record<string, string>>
  /** The number of files that the server may have open. @default this process's limit */
  readonly openFiles?: number
  /**
   * Prepares the attack, without measurement; resolves with the attack itself, which is measured. Everything that the
   * attack holds open at its end is closed afterwards.
   */
  prepare(scene: Scene): Promise<() => Promise<void>>
}
