import { expect, test } from 'vitest'

import { preferredWaitMs } from '../../src/gateway/call.ts'
import type { OfficialCall } from '../../src/native/official-call.ts'
import { guessOfficialCall, needsNativeStream, officialCall, versionProblem } from '../../src/native/official-call.ts'
import { callPath } from '../../src/request-path.ts'

const NAMES_10 = [
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
]

const NAMES_03 = [
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
  'tasks/pushNotificationConfig/delete',
  'agent/getAuthenticatedExtendedCard',
]

const STREAMS: ReadonlySet<string> = new Set([
  'SendStreamingMessage',
  'SubscribeToTask',
  'message/stream',
  'tasks/resubscribe',
])

const shown = (speech: OfficialCall | undefined): string =>
  speech === undefined ? 'dialect' : `${speech.version}${speech.streams ? ' stream' : ''}`

const of = (method: string, version = '', v03 = false): string => shown(officialCall({ method, version, v03 }))

const problem = (version: string, spoken: '1.0' | '0.3' = '1.0'): number | undefined =>
  versionProblem({ version: spoken, method: undefined, streams: false }, version)?.code

const at = (path: string, isNative = true): string => {
  const call = callPath(path, isNative)
  return call === undefined ? '404' : `${call.agentId}${call.v03 ? ' 0.3' : ''}`
}

test('native - the name of the method, the path and the version decide how a caller speaks', () => {
  for (const name of NAMES_10) {
    const native = STREAMS.has(name) ? '1.0 stream' : '1.0'
    for (const version of ['', '0.3', '1.0', '9']) {
      expect([name, version, of(name, version)]).toEqual([name, version, native])
      expect([name, version, of(name, version, true)]).toEqual([name, version, native])
    }
  }
  for (const name of NAMES_03) {
    const native = STREAMS.has(name) ? '0.3 stream' : '0.3'
    expect([name, of(name)]).toEqual([name, 'dialect'])
    for (const version of ['0.3', '1.0', '9']) expect([name, of(name, version)]).toEqual([name, native])
    for (const version of ['', '0.3', '1.0']) expect([name, of(name, version, true)]).toEqual([name, native])
  }
  expect([of('tasks/resubscribe'), of('tasks/resubscribe', '0.3')]).toEqual(['0.3 stream', '0.3 stream'])
  for (const other of ['tasks/send', 'stream_cancel', 'sendMessage', 'x', '__proto__', 'constructor']) {
    expect([other, of(other), of(other, '1.0'), of(other, '', true)]).toEqual([other, 'dialect', 'dialect', '0.3'])
  }
})

test('native - a caller whose method is not known speaks as its path or its version says', () => {
  const guess = (version: string, v03 = false): string => shown(guessOfficialCall({ version, v03, method: undefined }))
  expect([guess(''), guess('1.0'), guess('0.3'), guess('0.3.1'), guess('9'), guess('', true)]).toEqual([
    'dialect',
    '1.0',
    '0.3',
    '0.3',
    '1.0',
    '0.3',
  ])
  expect(shown(guessOfficialCall({ version: '1.0', v03: false, method: 'other' }))).toBe('dialect')
})

test('native - versions are compared without their patch number', () => {
  for (const version of ['', '1.0', '0.3', '1.0.0', '0.3.17'])
    expect([version, problem(version)]).toEqual([version, undefined])
  for (const version of ['1', '2.0', '1.0.', '1.0.0.0', 'v1.0', '0.3, 1.0', '1.1', ' ']) {
    expect([version, problem(version), problem(version, '0.3')]).toEqual([version, -32009, -32600])
  }
})

test('native - paths of calls: the id, /v0.3, and one slash more', () => {
  expect(['', 'a1', 'a1/', 'a1/v0.3', 'a1/v0.3/'].map((path) => at(path))).toEqual(['', 'a1', 'a1', 'a1 0.3', 'a1 0.3'])
  for (const path of [
    '/',
    '//',
    'a1//',
    'a1/v0.3//',
    'a1/v1.0',
    '/a1',
    '/v0.3',
    'a/b/v0.3',
    'a1/stream',
    'a1/v0.3/x',
  ]) {
    expect([path, at(path)]).toEqual([path, '404'])
  }
  expect([at('a1', false), at('a1/', false), at('a1/v0.3', false)]).toEqual(['a1', 'a1', '404'])
})

test('native - a stream that only official calls have is recognized while they are off', () => {
  const names = [...NAMES_10, ...NAMES_03, 'tasks/resubscribe', 'tasks/send']
  expect(names.filter(needsNativeStream)).toEqual(['SendStreamingMessage', 'SubscribeToTask', 'tasks/resubscribe'])
})

test('native - Prefer: wait is a time in seconds', () => {
  expect(['wait=2', 'respond-async, wait=10', 'wait="3"; x', 'WAIT = 1'].map(preferredWaitMs)).toEqual([
    2_000, 10_000, 3_000, 1_000,
  ])
  for (const header of [undefined, '', 'wait', 'wait=0', 'wait=-1', 'wait=x', 'await=3', 'wait=1.5']) {
    expect(preferredWaitMs(header)).toBeUndefined()
  }
})
