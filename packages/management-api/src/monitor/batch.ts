import type { Buffer } from 'node:buffer'

import { Gap } from './gap.ts'
import { messageFrame } from './monitor-frames.ts'
import type { Sighting } from './monitor-frames.ts'

/**
 * Messages and gaps that are shown together. Each message is serialized once for all monitors with
 * the same `max_body_size`.
 */
export class Batch {
  readonly #items: readonly (Sighting | Gap)[]
  readonly #frames = new Map<number, Map<Sighting, Buffer>>()

  constructor(items: readonly (Sighting | Gap)[]) {
    this.#items = items
  }

  get items(): readonly (Sighting | Gap)[] {
    return this.#items
  }

  /** The bytes of the bodies. */
  get bytes(): number {
    return this.#items.reduce((sum, item) => sum + (item instanceof Gap ? 0 : item.message.body.byteLength), 0)
  }

  frame(sighting: Sighting, maxBodySize: number): Buffer {
    let bySize = this.#frames.get(maxBodySize)
    if (bySize === undefined) this.#frames.set(maxBodySize, (bySize = new Map()))
    let frame = bySize.get(sighting)
    if (frame === undefined) bySize.set(sighting, (frame = messageFrame(sighting, maxBodySize)))
    return frame
  }
}
