import type { CardKeys } from '@signalbox/connector-a2a'
import { NO_CARD_KEYS, openCardKeys } from '@signalbox/connector-a2a'

import type { Config } from '../config/schema.ts'
import { ServerError } from '../errors.ts'
import type { NotifySecurity } from '../security/events.ts'

/**
 * Opens the keys that sign agent cards, if the configuration names a file of them.
 * @throws ServerError CONFIG_INVALID for a file that cannot be read or has other keys
 */
export function openSigningKeys({ connectors: { a2a } }: Config, notify: NotifySecurity): CardKeys {
  if (!a2a.enable || a2a.cardKeysFile === '') return NO_CARD_KEYS
  try {
    return openCardKeys(a2a.cardKeysFile, {
      changed: (kids) => notify({ kind: 'card_keys.reloaded', kids }),
      failed: (reason) => notify({ kind: 'card_keys.failed', reason }),
    })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('CONFIG_INVALID', [`connectors.a2a.cardKeysFile: ${reason}`], { cause: error })
  }
}
