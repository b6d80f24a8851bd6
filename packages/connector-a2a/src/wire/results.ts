import type { JsonObject } from '@signalbox/http-kit'
import { JSON_RPC_CODES, JsonRpcError } from '@signalbox/http-kit'

import { MemberReader, translateList } from './member-reader.ts'
import type { A2aMethod, Operation, WireVersion } from './methods.ts'
import { translateTaskPushConfig } from './requests.ts'
import { translateEvent, translateTaskOrMessage } from './stream.ts'
import { translateTask } from './tasks.ts'

/**
 * Translates the result of a method. For a method with an event stream it is the agent's only event. An extended card is
 * returned unchanged: the gateway writes the cards that it shows, for either version.
 * @param method the method that the caller called
 * @throws UntranslatableError if the result is not what the method returns in its version
 * @throws JsonRpcError -32603 if 0.3 answers this result with an error: a task without push notification configurations
 */
export function translateResult(method: A2aMethod, from: WireVersion, to: WireVersion, result: unknown): unknown {
  if (from === to) return result
  return RESULTS[method.operation](result, to)
}

type Translate = (result: unknown, to: WireVersion) => unknown

const RESULTS: { readonly [O in Operation]: Translate } = {
  send: (result, to) => translateTaskOrMessage(read(result), to),
  stream: (result, to) => translateEvent(read(result), to),
  resubscribe: (result, to) => translateEvent(read(result), to),
  get: (result, to) => translateTask(read(result), to),
  cancel: (result, to) => translateTask(read(result), to),
  // 0.3 has no list of tasks, so that no request for one is translated.
  list: (result) => result,
  'push-create': (result, to) => translateTaskPushConfig(read(result), to),
  'push-get': (result, to) => translatePushConfigOrFirst(read(result), to),
  'push-list': translatePushList,
  'push-delete': () => null,
  'extended-card': (result) => read(result).value,
}

function read(result: unknown): MemberReader {
  return new MemberReader(result, 'result')
}

/** Translates a configuration, or takes the first if the agent was asked for the list. */
function translatePushConfigOrFirst(result: MemberReader, to: WireVersion): JsonObject {
  const isList = to === '0.3' && (result.has('configs') || !result.has('url'))
  if (!isList) return translateTaskPushConfig(result, to)
  const first = result.list('configs', (config) => translateTaskPushConfig(config, to))?.[0]
  if (first !== undefined) return first
  throw new JsonRpcError(JSON_RPC_CODES.INTERNAL_ERROR, 'the task has no push notification configuration')
}

function translatePushList(result: unknown, to: WireVersion): unknown {
  // Writers of 1.0 omit an empty list.
  if (to === '0.3') return read(result).list('configs', (config) => translateTaskPushConfig(config, to)) ?? []
  // The result of 0.3 is the array itself.
  return { configs: translateList(result, 'result', (config) => translateTaskPushConfig(config, to)) }
}
