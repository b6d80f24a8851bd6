import { createHash } from 'node:crypto'

import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'
import { isJsonObject, readJson } from '@signalbox/http-kit/internal'

import { MemberReader } from '../wire/member-reader.ts'
import type { WireVersion } from '../wire/index.ts'
import { UntranslatableError } from '../wire/index.ts'

/** A configuration of push notifications, as a caller gives it. */
export interface PushConfig {
  /** The id within the task; undefined if the caller gave none. */
  readonly id: string | undefined
  readonly url: string
  readonly token: string | undefined
  readonly scheme: string | undefined
  readonly credentials: string | undefined
  /** The version of A2A in which notifications are sent: that of the call. */
  readonly version: WireVersion
}

/** The parts of a configuration that are stored with its subscription. */
export interface PushNotes {
  readonly agentId: string
  readonly taskId: string
  readonly configId: string
  readonly version: WireVersion
  readonly scheme?: string | undefined
}

/** The parts that are stored sealed. */
export interface PushSecrets {
  readonly token?: string | undefined
  /** The value of the header Authorization. */
  readonly authorization?: string | undefined
}

const MAX_ID = 256
const MAX_SECRET = 4_096
const PRINTABLE = /^[\x20-\x7e]+$/
const SCHEME = /^[\w!#$%&'*+.^`|~-]{1,64}$/

/** The prefix of a token that is a secret of Standard Webhooks. */
const SIGNING = 'whsec_'

/** Reads a configuration of A2A 1.0, without its task. @throws JsonRpcError -32602 */
export function readPushConfig(value: unknown, path: string, version: WireVersion): PushConfig {
  return read(() => {
    const config = new MemberReader(value, path)
    const authentication = config.child('authentication')
    const given = {
      id: config.string('id'),
      url: config.requiredString('url'),
      token: config.string('token'),
      scheme: authentication?.string('scheme'),
      credentials: authentication?.string('credentials'),
      version,
    }
    limit(`${path}.id`, given.id, MAX_ID)
    limit(`${path}.token`, given.token, MAX_SECRET)
    limit(`${path}.authentication.credentials`, given.credentials, MAX_SECRET)
    if (given.scheme !== undefined && !SCHEME.test(given.scheme)) {
      throw invalid(`${path}.authentication.scheme is no scheme of HTTP authentication, such as Bearer`)
    }
    return given
  })
}

/** Returns the id of a task that params name. @throws JsonRpcError -32602 */
export function readTaskId(params: JsonObject): string {
  return read(() => {
    const taskId = new MemberReader(params, 'params').requiredString('taskId')
    limit('params.taskId', taskId, MAX_ID)
    return taskId
  })
}

/** Returns the id of a configuration that params name; undefined if they name none. @throws JsonRpcError -32602 */
export function readConfigId(params: JsonObject): string | undefined {
  return read(() => new MemberReader(params, 'params').string('id'))
}

function read<T>(reading: () => T): T {
  try {
    return reading()
  } catch (error) {
    if (error instanceof UntranslatableError) throw invalid(error.message)
    throw error
  }
}

function limit(path: string, text: string | undefined, max: number): void {
  if (text === undefined || (text.length <= max && PRINTABLE.test(text))) return
  throw invalid(`${path} must be at most ${max} printable ASCII characters`)
}

function invalid(problem: string): JsonRpcError {
  return new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${problem}`)
}

/** Returns the secret that signs deliveries; undefined for a token that is no such secret. */
export function signingSecret({ token }: PushSecrets): string | undefined {
  return token?.startsWith(SIGNING) === true ? token : undefined
}

export function secretsOf({ token, scheme, credentials }: PushConfig): PushSecrets {
  const authorization = scheme === undefined ? undefined : `${scheme} ${credentials ?? ''}`.trimEnd()
  return { token, authorization: credentials === undefined ? undefined : authorization }
}

/** Returns the name of a task as a channel of webhooks. An agent_id has no slash. */
export function channelOf(agentId: string, taskId: string): string {
  return `${agentId}/${taskId}`
}

/** Returns the agent of a channel. */
export function agentOf(channel: string): string {
  return channel.slice(0, Math.max(0, channel.indexOf('/')))
}

/** Returns the id of the subscription of a configuration, the same on all nodes. */
export function subscriptionId(agentId: string, taskId: string, configId: string): string {
  const name = JSON.stringify([agentId, taskId, configId])
  return createHash('sha256').update(name).digest('base64url').slice(0, 32)
}

/** Reads the notes of a subscription; undefined for notes of another kind. */
export function readNotes(text: string | undefined): PushNotes | undefined {
  const value = text === undefined ? undefined : readJson(text)?.value
  if (!isJsonObject(value)) return undefined
  const { agentId, taskId, configId, scheme, version } = value
  if (typeof agentId !== 'string' || typeof taskId !== 'string' || typeof configId !== 'string') return undefined
  return {
    agentId,
    taskId,
    configId,
    version: version === '0.3' ? '0.3' : '1.0',
    scheme: typeof scheme === 'string' ? scheme : undefined,
  }
}

/** Reads the secret notes of a subscription. */
export function readSecrets(text: string): PushSecrets {
  const value = readJson(text)?.value
  if (!isJsonObject(value)) return {}
  const { authorization, token } = value
  return {
    token: typeof token === 'string' ? token : undefined,
    authorization: typeof authorization === 'string' ? authorization : undefined,
  }
}
