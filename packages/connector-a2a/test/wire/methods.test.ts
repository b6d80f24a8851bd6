import { expect, test } from 'vitest'

import { findMethod, METHODS } from '../../src/wire/index.ts'

const NAMES = [
  ['send', 'SendMessage', 'message/send'],
  ['stream', 'SendStreamingMessage', 'message/stream'],
  ['get', 'GetTask', 'tasks/get'],
  ['list', 'ListTasks', undefined],
  ['cancel', 'CancelTask', 'tasks/cancel'],
  ['resubscribe', 'SubscribeToTask', 'tasks/resubscribe'],
  ['push-create', 'CreateTaskPushNotificationConfig', 'tasks/pushNotificationConfig/set'],
  ['push-get', 'GetTaskPushNotificationConfig', 'tasks/pushNotificationConfig/get'],
  ['push-list', 'ListTaskPushNotificationConfigs', 'tasks/pushNotificationConfig/list'],
  ['push-delete', 'DeleteTaskPushNotificationConfig', 'tasks/pushNotificationConfig/delete'],
  ['extended-card', 'GetExtendedAgentCard', 'agent/getAuthenticatedExtendedCard'],
] as const

test('A2A versions - every method has its names in both versions', () => {
  expect(Object.values(METHODS).map(({ operation, names }) => [operation, names['1.0'], names['0.3']])).toEqual(NAMES)
  for (const [operation, name10, name03] of NAMES) {
    const method = METHODS[operation]
    expect(findMethod(name10)).toEqual({ method, version: '1.0' })
    expect(findMethod(name03 ?? '')).toEqual(name03 === undefined ? undefined : { method, version: '0.3' })
  }
})

test('A2A versions - two methods answer with event streams', () => {
  const streams = Object.values(METHODS).filter((method) => method.streams)
  expect(streams.map(({ operation }) => operation)).toEqual(['stream', 'resubscribe'])
})

test('A2A versions - a name that is no method of A2A is not found', () => {
  for (const name of ['', 'sendMessage', 'tasks/send', 'tasks/list', '__proto__', 'constructor']) {
    expect(findMethod(name)).toBeUndefined()
  }
})
