import { watchFiles } from '@signalbox/http-kit'
import { isJsonObject } from '@signalbox/http-kit/internal'
import type { OperatorCredentials, OperatorCredentialsOf } from '@signalbox/registry'
import { CREDENTIALS_FORM, isAgentCredentials } from '@signalbox/registry'

import { ServerError } from '../errors.ts'
import { parseYaml } from '../files/yaml.ts'
import type { NotifySecurity } from '../security/events.ts'

/** The operator's credentials for agents: read at the start, and again after each change of the file. */
export interface CredentialsFile extends Disposable {
  readonly of: OperatorCredentialsOf
}

type Credentials = ReadonlyMap<string, OperatorCredentials>

/**
 * Opens a file of credentials. If the file becomes invalid later, that is reported and the last valid credentials
 * remain in force. No problem names a secret.
 * @throws ServerError CONFIG_INVALID
 */
export function openCredentialsFile(file: string, notify: NotifySecurity, lookMs?: number): CredentialsFile {
  try {
    const watched = watchFiles([file], {
      parse: ([text = '']) => credentialsIn(text),
      changed: ({ size }) => notify({ kind: 'agent_credentials.reloaded', file, agents: size }),
      refused: ({ message }) => notify({ kind: 'agent_credentials.refused', file, reason: message }),
      lookMs,
    })
    return {
      of: (agentId) => watched.value.get(agentId),
      [Symbol.dispose]: () => watched[Symbol.dispose](),
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ServerError('CONFIG_INVALID', [`agentCredentialsFile: ${file}: ${reason}`], { cause: error })
  }
}

/** @throws RangeError */
function credentialsIn(text: string): Credentials {
  const parsed = parseYaml(text)
  // The error of the parser quotes the text, which contains secrets.
  if ('problem' in parsed) throw new RangeError('it is neither YAML nor JSON')
  const { value } = parsed
  if (!isJsonObject(value)) throw new RangeError('it is not an object of agents by agent_id')
  return new Map(Object.entries(value).map(([agentId, entry]) => [agentId, entryOf(agentId, entry)]))
}

function entryOf(agentId: string, entry: unknown): OperatorCredentials {
  const { origin, ...credentials } = isJsonObject(entry) ? entry : {}
  const url = typeof origin === 'string' ? URL.parse(origin) : null
  if (url === null || url.origin !== origin || !/^https?:$/.test(url.protocol)) {
    throw new RangeError(
      `${agentId}.origin is not an origin such as https://agent.example, which alone gets the credentials`,
    )
  }
  if (isAgentCredentials(credentials)) return { origin, credentials }
  throw new RangeError(
    `${agentId} has no valid credentials; allowed in addition to origin: ${CREDENTIALS_FORM.replace('"caller", ', '')}`,
  )
}
