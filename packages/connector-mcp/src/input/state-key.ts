import { randomBytes } from 'node:crypto'

import type { BrokerHandle } from '@signalbox/broker-core'
import { isBrokerError } from '@signalbox/broker-core'
import { KeyedLog } from '@signalbox/broker-core/internal'

/** Returns the key that signs the state of calls that wait for input. */
export type StateKey = () => Promise<Uint8Array>

/** The compacted events store of the key, and its key there. */
const CHANNEL = '_AGENTS_.mcp'
const NAME = 'state-key'

const KEY_BYTES = 32

/** Returns a random key, which no other process knows. */
export function randomStateKey(): StateKey {
  const key = randomBytes(KEY_BYTES)
  return async () => key
}

/**
 * Returns the key on the broker's own channel `_AGENTS_.mcp`, which all nodes share. The first use creates it.
 * @param system The handle for reserved channels
 */
export function brokerStateKey(system: BrokerHandle): StateKey {
  const log = new KeyedLog(system, CHANNEL)
  return async () => {
    await log.create()
    const stored = await log.last(NAME)
    if (stored !== undefined) return validKey(stored.body)
    const body = randomBytes(KEY_BYTES)
    try {
      await log.write(NAME, { body }, 0)
      return body
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) throw error
    }
    // Another node was faster.
    return validKey((await log.last(NAME))?.body)
  }
}

/** With a short key any client could sign. */
function validKey(key: Uint8Array | undefined): Uint8Array {
  if (key?.byteLength === KEY_BYTES) return key
  throw new Error(`the key ${NAME} in ${CHANNEL} has ${key?.byteLength ?? 0} bytes; it must have ${KEY_BYTES}`)
}
