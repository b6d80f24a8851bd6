import type { BrokerHandle } from '@signalbox/broker-core'
import { encodeText, isBrokerError } from '@signalbox/broker-core'
import { retry } from '@signalbox/broker-core/internal'

import type { WebhookOptions } from './options.ts'
import { checkWebhookOptions } from './options.ts'
import { SecretBox } from '@signalbox/http-kit'
import { WebhookLog } from './subscription/webhook-log.ts'
import { Webhooks } from './webhooks.ts'

/** The place of the entry by which a node checks its key. */
const KEY_CHECK = 'key'

/**
 * Opens the webhooks of a broker. Resolves when the subscriptions were read. If several nodes share the store, waits
 * until it is available.
 * @param system The handle for reserved channels
 * @throws TypeError, RangeError for an option that is not allowed; Error for a key that the stored secrets were not sealed with; BrokerError ENGINE_UNAVAILABLE
 */
export async function openWebhooks(system: BrokerHandle, options: WebhookOptions): Promise<Webhooks> {
  checkWebhookOptions(options)
  const log = new WebhookLog(system)
  const box = new SecretBox(options.key)
  const mayRetry = (error: unknown): boolean => {
    const waits = options.shared === true && isBrokerError(error, 'ENGINE_UNAVAILABLE')
    if (waits) options.hooks?.failed?.(error)
    return waits
  }
  await retry(() => checkKey(log, box), { mayRetry })
  const webhooks = new Webhooks(system, log, box, options)
  await webhooks.open()
  return webhooks
}

/** A node with another key would disable every subscription that it takes over. */
async function checkKey(log: WebhookLog, box: SecretBox): Promise<void> {
  await log.create()
  let entry = await log.last(KEY_CHECK)
  if (entry === undefined) {
    try {
      await log.write(KEY_CHECK, { sealed: box.seal(encodeText(KEY_CHECK), KEY_CHECK) }, 0)
      return
    } catch (error) {
      if (!isBrokerError(error, 'CONFLICT')) throw error
    }
    entry = await log.last(KEY_CHECK)
  }
  const value = entry?.value
  const sealed: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, 'sealed') : undefined
  if (typeof sealed === 'string' && box.open(sealed, KEY_CHECK) !== undefined) return
  throw new Error('the stored secrets of webhooks were sealed with another key; use the key file of all nodes')
}
