import type { Scene } from './scene.ts'
import type { ServerKind } from './server-kind.ts'

export interface Attack {
  readonly name: string
  readonly about: string
  /** The servers that it is run against. @default all */
  readonly servers?: readonly ServerKind[]
  /** Settings of the server beyond its kind's. */
  readonly settings?: Readonly<Record<string, string>>
  /** How many files the server may have open. @default as many as this process */
  readonly openFiles?: number
  /**
   * Makes ready, which is not measured; resolves with the attack itself, which is. What it holds open when it is over is
   * broken off afterwards.
   */
  prepare(scene: Scene): Promise<() => Promise<void>>
}
