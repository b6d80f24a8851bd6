import { encodeText } from '@signalbox/broker-core'

/** A version of the A2A protocol, as an agent or a caller speaks it. */
export type WireVersion = '1.0' | '0.3'

/** An operation of A2A, independent of the protocol's version. */
export type Operation =
  | 'send'
  | 'stream'
  | 'get'
  | 'list'
  | 'cancel'
  | 'resubscribe'
  | 'push-create'
  | 'push-get'
  | 'push-list'
  | 'push-delete'
  | 'extended-card'

/** A method of A2A and its names. */
export interface A2aMethod {
  readonly operation: Operation
  /** The JSON-RPC names by version; undefined if the version has no such method. */
  readonly names: { readonly '1.0': string; readonly '0.3': string | undefined }
  /** `true` if the answer is an event stream. */
  readonly streams: boolean
}

const PUSH = 'tasks/pushNotificationConfig'

/** Every method of A2A, by operation. */
export const METHODS: { readonly [O in Operation]: A2aMethod } = {
  send: method('send', 'SendMessage', 'message/send'),
  stream: method('stream', 'SendStreamingMessage', 'message/stream', true),
  get: method('get', 'GetTask', 'tasks/get'),
  list: method('list', 'ListTasks', undefined),
  cancel: method('cancel', 'CancelTask', 'tasks/cancel'),
  resubscribe: method('resubscribe', 'SubscribeToTask', 'tasks/resubscribe', true),
  'push-create': method('push-create', 'CreateTaskPushNotificationConfig', `${PUSH}/set`),
  'push-get': method('push-get', 'GetTaskPushNotificationConfig', `${PUSH}/get`),
  'push-list': method('push-list', 'ListTaskPushNotificationConfigs', `${PUSH}/list`),
  'push-delete': method('push-delete', 'DeleteTaskPushNotificationConfig', `${PUSH}/delete`),
  'extended-card': method('extended-card', 'GetExtendedAgentCard', 'agent/getAuthenticatedExtendedCard'),
}

/** Returns a request of the gateway itself to a method, in JSON-RPC. */
export function requestTo({ names }: A2aMethod, version: WireVersion, params: object): Uint8Array {
  return encodeText(JSON.stringify({ jsonrpc: '2.0', id: 1, method: names[version], params }))
}

/** A method, and the version whose name for it was given. */
export interface NamedMethod {
  readonly method: A2aMethod
  readonly version: WireVersion
}

const BY_NAME: ReadonlyMap<string, NamedMethod> = new Map(Object.values(METHODS).flatMap(namesOf))

/** Returns the method that one of the versions has under this name; undefined if none has. */
export function findMethod(name: string): NamedMethod | undefined {
  return BY_NAME.get(name)
}

/** Returns the version of A2A that has a method of this name; undefined if none has. */
export function a2aVersionOf(methodName: string): WireVersion | undefined {
  return findMethod(methodName)?.version
}

function method(operation: Operation, name10: string, name03: string | undefined, streams = false): A2aMethod {
  return { operation, names: { '1.0': name10, '0.3': name03 }, streams }
}

function namesOf(of: A2aMethod): [string, NamedMethod][] {
  const { '1.0': name10, '0.3': name03 } = of.names
  const names: [string, NamedMethod][] = [[name10, { method: of, version: '1.0' }]]
  if (name03 !== undefined) names.push([name03, { method: of, version: '0.3' }])
  return names
}

const EXTENSIONS: { readonly [V in WireVersion]: string } = { '1.0': 'a2a-extensions', '0.3': 'x-a2a-extensions' }

/**
 * Translates the headers of a request or an answer. Names are read in any case; the result has lower-case names. The
 * extensions have the target's header, and `a2a-version` is the target's version.
 */
export function translateHeaders(
  from: WireVersion,
  to: WireVersion,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const translated: Record<string, string> = {}
  for (const given of Object.keys(headers)) {
    const name = given.toLowerCase()
    const target = from !== to && name === EXTENSIONS[from] ? EXTENSIONS[to] : name
    const value = headers[given] ?? ''
    // A caller that serves both versions sends both headers.
    const other = translated[target]
    translated[target] = other === undefined || other === value ? value : `${other}, ${value}`
  }
  translated['a2a-version'] = to
  return translated
}
