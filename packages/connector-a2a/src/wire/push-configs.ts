import type { JsonObject } from '@signalbox/http-kit'
import type { WireVersion } from './methods.ts'

import { defined } from './json.ts'
import type { MemberReader } from './member-reader.ts'

/** Translates a push notification configuration without the id of its task. */
export function translatePushConfig(config: MemberReader, to: WireVersion): JsonObject {
  const authentication = config.child('authentication')
  return defined({
    id: config.string('id'),
    url: config.requiredString('url'),
    token: config.string('token'),
    authentication: authentication === undefined ? undefined : translateAuthentication(authentication, to),
  })
}

/** Translates a push notification configuration with the id of its task: flat in 1.0, nested in 0.3. */
export function translateTaskPushConfig(config: MemberReader, to: WireVersion): JsonObject {
  const taskId = config.requiredString('taskId')
  return to === '1.0'
    ? { taskId, ...translatePushConfig(config.requiredChild('pushNotificationConfig'), to) }
    : { taskId, pushNotificationConfig: translatePushConfig(config, to) }
}

/** 0.3 has a list of schemes, 1.0 one: the first of the list. */
function translateAuthentication(authentication: MemberReader, to: WireVersion): JsonObject {
  const credentials = authentication.string('credentials')
  if (to === '1.0') return defined({ scheme: authentication.strings('schemes')?.[0], credentials })
  const scheme = authentication.string('scheme')
  return defined({ schemes: scheme === undefined ? [] : [scheme], credentials })
}
