import type { WebhookFormat } from '@signalbox/broker-core/ports'

import { readNotes, readSecrets, signingSecret } from './push-config.ts'

/** The name of the format of push notifications. */
export const PUSH_FORMAT = 'a2a.push'

/**
 * Returns the form of push notifications: one event each, with the token and the credentials that the client has set.
 * Receivers of A2A know no consent, and the answer 410 ends the configuration.
 */
export function a2aPushFormat(): WebhookFormat {
  return {
    name: PUSH_FORMAT,
    maxBatch: 1,
    goneEnds: 'removal',
    encode(_type, [message], { notes, secretNotes }) {
      if (message === undefined) return undefined
      const secrets = readSecrets(secretNotes)
      const { authorization, token } = secrets
      const isOld = readNotes(notes)?.version === '0.3'
      return {
        headers: {
          'content-type': isOld ? 'application/json' : 'application/a2a+json',
          ...(authorization === undefined ? {} : { authorization }),
          ...(token === undefined ? {} : { 'x-a2a-notification-token': token }),
        },
        body: message.body,
        unsigned: signingSecret(secrets) === undefined,
      }
    },
    verify: async () => ({}),
  }
}
