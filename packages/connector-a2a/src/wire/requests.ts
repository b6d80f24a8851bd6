import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import { defined, isObject, UntranslatableError } from './json.ts'
import { memberOf, MemberReader } from './member-reader.ts'
import type { A2aMethod, Operation, WireVersion } from './methods.ts'
import { METHODS } from './methods.ts'
import { unsupportedOperation } from './errors.ts'
import { requireRole, translateMessage } from './tasks.ts'

/**
 * Translates the params of a request. Only members that the target version defines are carried over. A request of 0.3
 * cannot have a `tenant`; the one given here, from the agent's card, is added to its translation.
 * @throws JsonRpcError -32602 if a member has an invalid value, -32004 if the target has no such method
 */
export function translateRequest(
  method: A2aMethod,
  from: WireVersion,
  to: WireVersion,
  params: JsonObject | undefined,
  tenant?: string,
): JsonObject | undefined {
  if (from === to) return params
  if (method.names[to] === undefined) throw unsupportedOperation(method.names[from] ?? method.operation, to)
  try {
    const translated = PARAMS[method.operation](new MemberReader(params ?? {}, 'params'), to)
    return to === '1.0' && tenant !== undefined ? { tenant, ...translated } : translated
  } catch (error) {
    if (!(error instanceof UntranslatableError)) throw error
    throw new JsonRpcError(JSON_RPC_CODES.INVALID_PARAMS, `invalid params: ${error.message}`, { cause: error })
  }
}

/**
 * Returns the method to call for a translated request. It is the same method, with one exception: 0.3 reads a push
 * notification configuration without its id, and means the first; 1.0 has only the list.
 */
export function calledMethod(
  method: A2aMethod,
  from: WireVersion,
  to: WireVersion,
  params: JsonObject | undefined,
): A2aMethod {
  const id = (params && memberOf(params, CONFIG_ID_03)) ?? ''
  return method.operation === 'push-get' && from === '0.3' && to === '1.0' && id === '' ? METHODS['push-list'] : method
}

/** Returns true for a request for push notifications. */
export function asksForPush({ operation }: A2aMethod, params: JsonObject | undefined): boolean {
  if (operation === 'push-create') return true
  const configuration = params?.['configuration']
  if ((operation !== 'send' && operation !== 'stream') || !isObject(configuration)) return false
  const config =
    memberOf(configuration, 'taskPushNotificationConfig') ?? memberOf(configuration, 'pushNotificationConfig')
  return config !== undefined && config !== null
}

/** The member of 0.3 with the id of a configuration. */
const CONFIG_ID_03 = 'pushNotificationConfigId'

type Translate = (params: MemberReader, to: WireVersion) => JsonObject | undefined

const PARAMS: { readonly [O in Operation]: Translate } = {
  send: translateSend,
  stream: translateSend,
  get: (params) => defined({ id: params.requiredString('id'), historyLength: params.integer('historyLength') }),
  // 0.3 has no list of tasks.
  list: () => undefined,
  cancel: (params) => defined({ id: params.requiredString('id'), metadata: params.object('metadata') }),
  resubscribe: (params) => ({ id: params.requiredString('id') }),
  'push-create': translateTaskPushConfig,
  'push-get': (params, to) => translatePushReference(params, to, params.string(to === '1.0' ? CONFIG_ID_03 : 'id')),
  'push-list': (params, to) => translatePushReference(params, to, undefined),
  'push-delete': (params, to) =>
    translatePushReference(params, to, params.requiredString(to === '1.0' ? CONFIG_ID_03 : 'id')),
  'extended-card': (_params, to) => (to === '1.0' ? {} : undefined),
}

function translateSend(params: MemberReader, to: WireVersion): JsonObject {
  const message = params.requiredChild('message')
  if (to === '0.3') requireRole(message)
  const configuration = params.child('configuration')
  return defined({
    message: withContext(translateMessage(message, to), to === '1.0' ? params.string('contextId') : undefined),
    configuration: configuration === undefined ? undefined : translateConfiguration(configuration, to),
    metadata: params.object('metadata'),
  })
}

/** Adds the context that some callers of 0.3 send next to the message instead of in it. */
function withContext(message: JsonObject, contextId: string | undefined): JsonObject {
  return contextId === undefined || message['contextId'] !== undefined ? message : { ...message, contextId }
}

function translateConfiguration(configuration: MemberReader, to: WireVersion): JsonObject {
  const common = {
    acceptedOutputModes: configuration.strings('acceptedOutputModes'),
    historyLength: configuration.integer('historyLength'),
  }
  if (to === '1.0') {
    const push = configuration.child('pushNotificationConfig')
    const blocking = configuration.boolean('blocking')
    return defined({
      ...common,
      taskPushNotificationConfig: push === undefined ? undefined : translatePushConfig(push, to),
      // Both versions wait by default.
      returnImmediately: blocking === undefined ? undefined : !blocking,
    })
  }
  const push = configuration.child('taskPushNotificationConfig')
  return defined({
    ...common,
    pushNotificationConfig: push === undefined ? undefined : translatePushConfig(push, to),
    blocking: !(configuration.boolean('returnImmediately') ?? false),
  })
}

/** Translates a reference to a configuration, or to all of a task. */
function translatePushReference(params: MemberReader, to: WireVersion, id: string | undefined): JsonObject {
  return to === '1.0'
    ? defined({ taskId: params.requiredString('id'), id })
    : defined({ id: params.requiredString('taskId'), [CONFIG_ID_03]: id })
}

/** Translates a push notification configuration without the id of its task. */
function translatePushConfig(config: MemberReader, to: WireVersion): JsonObject {
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
